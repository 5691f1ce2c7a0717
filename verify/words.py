"""Words for numbers."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, in the plural unless it is 1."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}" + ("" if number == 1 else ending)
