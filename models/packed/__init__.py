"""The lanes protocol as a packed model: compiled rules over bit-packed states (issue 6)."""
