"""The folder of one matrix: inputs, provenance and outcome of each case, whole or not at all.

Layout::

    ROOT/matrix.json              what the matrix is of: set, rule
    ROOT/.lock                    held by the one process that writes
    ROOT/cases/CASE/inputs.json   what was run
    ROOT/cases/CASE/provenance.json
    ROOT/cases/CASE/outcome.json  outcome class, error, sha256 of every metrics file
    ROOT/cases/CASE/...           metrics files, and state.json of a run that drained
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from verify.files import lock_folder, write_text_atomically

FORMAT: Final = "frontier-verify matrix"
VERSION: Final = 1
CHILD_FAILURES: Final = ("timeout", "crash", "bad result")
"""Errors of the child process, not of the case: such a case is run again."""

_TEMPORARY: Final = ".tmp-"


class MatrixError(Exception):
    """A matrix folder that cannot be used; the message says what and what to do."""


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class CaseRecord:
    """One case as it stands in the folder.

    ``metrics`` are the contents of the metrics files by name; ``damage`` lists those that do not
    match their recorded digest.
    """

    case_id: str
    inputs: dict[str, Any]
    provenance: dict[str, Any]
    outcome: dict[str, Any]
    metrics: dict[str, str]
    damage: tuple[str, ...]


class MatrixRoot:
    """Access to a matrix folder.

    Parameters
    ----------
    path
        The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cases = path / "cases"

    @contextmanager
    def writing(self, header: Mapping[str, Any]) -> Iterator[None]:
        """Hold the folder's exclusive lock, after making it or checking what it is of.

        Raises
        ------
        MatrixError
            If another process writes here, the folder is of another matrix, or it cannot be made.
        """
        try:
            self._cases.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.path)
        except OSError as error:
            raise MatrixError(f"cannot write to {self.path}: {error.strerror}") from None
        if lock is None:
            raise MatrixError(
                f"another process is writing to {self.path}; wait for it or use another --root"
            )
        try:
            self._claim({"format": FORMAT, "version": VERSION, **header})
            for left in self._cases.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            os.close(lock)

    def _claim(self, header: dict[str, Any]) -> None:
        file = self.path / "matrix.json"
        if file.exists():
            found = self.header()
            if found != header:
                raise MatrixError(
                    f"{self.path} holds another matrix: {_brief(found)}, not {_brief(header)}; "
                    "use another --root"
                )
        else:
            write_text_atomically(file, json.dumps(header, indent=1) + "\n")

    def header(self) -> dict[str, Any]:
        """Return what the matrix is of; MatrixError if the folder holds none."""
        header = _read_json(self.path / "matrix.json")
        if header.get("format") != FORMAT or header.get("version") != VERSION:
            raise MatrixError(f"{self.path} holds no matrix of this version: {_brief(header)}")
        return header

    def case_ids(self) -> list[str]:
        """Cases that are complete, in order of name."""
        names = (path.parent.name for path in self._cases.glob("*/outcome.json"))
        return sorted(name for name in names if not name.startswith(_TEMPORARY))

    def is_complete(self, case_id: str, inputs: Mapping[str, Any], code: Mapping[str, Any]) -> bool:
        """Whether a case ran to its end with these inputs, by code with the same sources."""
        folder = self._cases / case_id
        try:
            stored = _read_json(folder / "inputs.json")
            provenance = _read_json(folder / "provenance.json")
            outcome = _read_json(folder / "outcome.json")
        except MatrixError:
            return False
        then = provenance.get("code", {})
        ran = (outcome.get("error") or {}).get("kind") not in CHILD_FAILURES
        return ran and stored == dict(inputs) and then.get("sha256") == code["sha256"]

    def write_case(
        self,
        case_id: str,
        inputs: Mapping[str, Any],
        provenance: Mapping[str, Any],
        outcome: Mapping[str, Any],
        files: Mapping[str, str],
    ) -> None:
        """Store a case; the folder appears under its name only when it is whole."""
        whole = {
            "inputs.json": _json(inputs),
            "provenance.json": _json(provenance),
            "outcome.json": _json(
                {**outcome, "sha256": {name: digest(text) for name, text in files.items()}}
            ),
            **files,
        }
        temporary = Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self._cases))
        for name, text in whole.items():
            with (temporary / name).open("w", encoding="utf-8", newline="") as out:
                out.write(text)
        temporary.chmod(0o755)
        final = self._cases / case_id
        if final.exists():
            final.rename(Path(tempfile.mkdtemp(prefix=_TEMPORARY, dir=self._cases)) / "old")
        temporary.rename(final)
        for left in self._cases.glob(f"{_TEMPORARY}*/old"):
            shutil.rmtree(left.parent, ignore_errors=True)

    def read_case(self, case_id: str) -> CaseRecord:
        """Read a case; MatrixError if a file is missing or no JSON."""
        folder = self._cases / case_id
        outcome = _read_json(folder / "outcome.json")
        metrics, damage = {}, []
        for name, expected in outcome.get("sha256", {}).items():
            try:
                metrics[name] = (folder / name).read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                damage.append(f"{name} cannot be read")
                continue
            if digest(metrics[name]) != expected:
                damage.append(f"{name} does not match its recorded sha256")
        return CaseRecord(
            case_id,
            _read_json(folder / "inputs.json"),
            _read_json(folder / "provenance.json"),
            outcome,
            metrics,
            tuple(damage),
        )


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MatrixError(
            f"cannot read {path}: {error.strerror}; expected a folder of matrix run"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise MatrixError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise MatrixError(f"{path} must hold an object, got {type(value).__name__}")
    return value


def _brief(header: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in header.items() if key != "format")
