"""A curated zoo of one-change mutants of the core, and the matrix of what kills them (issue 4)."""
