"""The kill matrix: ``python -m reports.kill_matrix`` builds ``kill_matrix.md``."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mutants.__main__ import main

if __name__ == "__main__":
    sys.argv[1:] = ["--write", str(Path(__file__).parent / "kill_matrix.md")]
    main()
