"""Implementations that the contract tests run."""

from pathlib import Path

FOREIGN = Path(__file__).parent / "foreign"


_WITHOUT = """
from frontier.context import EP_WAVE, FULL_STAGE_WORLD, StageExecutionContext

class Without(StageExecutionContext):
{members}
"""


def without(folder, *members):
    """Name of a class in a file: the core's context, less these properties."""
    path = folder / "without.py"
    lines = "\n".join(f"    {member} = property()" for member in members)
    path.write_text(_WITHOUT.format(members=lines))
    return f"{path}:Without"


def foreign(revision):
    """Name of one of the three implementations whose package is called ``frontier``."""
    path = FOREIGN / revision / "frontier" / "execution" / "stage_context.py"
    return f"{path}:StageExecutionContext"
