"""Hypothesis state machines: what exhaustive checks bound, these go beyond (issue 4)."""
