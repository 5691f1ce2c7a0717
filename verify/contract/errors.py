"""The one error of this package: input that cannot be checked."""

from __future__ import annotations


class ContractInputError(Exception):
    """Bad input to a contract check: says what, where, what was expected and what to do."""
