"""Where a result comes from: versions, git revision, clean or not."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = ("frontier-verify", "numpy", "networkx")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def code_of(folder: Path, packages: Sequence[str]) -> dict[str, Any]:
    """Identify the code of packages under a folder.

    Returns
    -------
    dict
        ``revision`` (git; None if unknown), ``clean`` (whether the packages are as committed),
        ``version``, and ``sha256`` over every source file, which also tells apart what git does
        not know.
    """
    changes = _git(folder, "status", "--porcelain", "--", *packages)
    return {
        "revision": _git(folder, "rev-parse", "HEAD"),
        "clean": None if changes is None else not changes,
        "version": _version("frontier-verify"),
        "sha256": _sources_digest(folder, packages),
    }


def _sources_digest(folder: Path, packages: Sequence[str]) -> str:
    whole = hashlib.sha256()
    for package in packages:
        for path in sorted((folder / package).rglob("*.py")):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return whole.hexdigest()


def versions() -> dict[str, Any]:
    """Return the versions of Python and of the packages that a result may depend on."""
    return {"python": platform.python_version(), **{p: _version(p) for p in _PACKAGES}}
