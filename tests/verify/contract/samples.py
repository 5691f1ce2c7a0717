"""Implementations that the contract tests run."""

from pathlib import Path

FOREIGN = Path(__file__).parent / "foreign"


def foreign(revision):
    """Name of one of the three implementations whose package is called ``frontier``."""
    path = FOREIGN / revision / "frontier" / "execution" / "stage_context.py"
    return f"{path}:StageExecutionContext"
