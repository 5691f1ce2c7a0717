"""pytest plugin: keep an admission contract under regression test (issue 4).

Only the options live here, so that a session that does not use them pays nothing; the suite to
subclass is :class:`verify.contract.suite.AdmissionContract`, also found here by name.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the admission contract."""
    group = parser.getgroup("admission contract")
    group.addoption(
        "--admission-impl",
        metavar="FILE.py:Class",
        default="",
        help="Stage execution context that AdmissionContract classes test.",
    )
    group.addoption(
        "--admission-rule",
        metavar="RULE",
        default="",
        help="Admission rule whose contract is tested.",
    )
    group.addoption(
        "--admission-max-tickets",
        metavar="N",
        type=int,
        default=0,
        help="Tickets live at once in the exhaustive check.",
    )
    group.addoption(
        "--admission-manifest",
        metavar="FILE",
        default="",
        help="Expectation manifest; default: contract.toml beside the tests or in the rootdir.",
    )


def __getattr__(name: str) -> Any:
    """Find ``AdmissionContract`` when it is asked for."""
    if name == "AdmissionContract":
        return importlib.import_module("verify.contract.suite").AdmissionContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
