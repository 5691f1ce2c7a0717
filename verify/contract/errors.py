"""Errors of this package: input that cannot be checked, and what foreign code may raise."""

from __future__ import annotations

from typing import Final

RAISED: Final = (Exception, SystemExit)
"""What an implementation's code may raise; code that ends the program gives no right answer."""


class ContractInputError(Exception):
    """Bad input to a contract check: says what, where, what was expected and what to do."""
