"""Hypothesis state machines over the core's own handlers (issue 4)."""
