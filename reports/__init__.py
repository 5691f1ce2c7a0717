"""Generated evidence: ``python -m reports.NAME`` builds ``reports/NAME.md``."""
