"""The fast engine: exhaustive breadth-first search over fixed-width packed states (issue 6)."""
