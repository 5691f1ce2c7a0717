"""The checker: its engine knows states and actions, never lanes."""
