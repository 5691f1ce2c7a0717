"""A package that happens to be called like the core."""
