"""Stage execution."""
