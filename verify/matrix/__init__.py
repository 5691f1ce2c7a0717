"""Before/after matrices: cases run one by one in child processes, and compared (issue 3).

Nothing here knows what a case simulates: a case is a command that prints one JSON object with its
outcome and its metrics files.
"""
