"""Binding of the contract engine to the core: our own context under each admission rule."""

from __future__ import annotations

import frontier.context
from frontier.admission import ADMISSION_RULES
from frontier.context import StageExecutionContext
from verify.contract.implementation import Implementation, describe

OWN = "frontier.context:StageExecutionContext"
"""Name of the core's own context, as the command line takes it."""


def own_implementation(rule: str) -> Implementation:
    """Return the core's own context with one of the rules of PROTOCOL.md section 3."""
    extra = {"rule": ADMISSION_RULES[rule]}
    return describe(OWN, StageExecutionContext, frontier.context, extra)
