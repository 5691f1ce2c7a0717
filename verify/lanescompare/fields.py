"""Strict reading of JSON records: every complaint says what, where, and what was expected."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class LaneDataError(ValueError):
    """A trace or ledger that cannot be compared.

    Parameters
    ----------
    what : str
        The fault in one clause.
    where : str
        File and line, or file and record.
    remedy : str
        What was expected, or what to do about it.
    """

    def __init__(self, what: str, *, where: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}; {remedy}")


@dataclass(frozen=True)
class Record:
    """One JSON object and the place it was read from."""

    values: dict[str, Any]
    where: str

    def _get(self, name: str, expected: str) -> Any:
        if name not in self.values:
            raise LaneDataError(
                f"missing field {name!r}", where=self.where, remedy=f"expected {expected}"
            )
        return self.values[name]

    def _wrong(self, name: str, expected: str) -> LaneDataError:
        return LaneDataError(
            f"field {name!r} is {self.values[name]!r}",
            where=self.where,
            remedy=f"expected {expected}",
        )

    def text(self, name: str) -> str:
        """Return a non-empty string field."""
        value = self._get(name, "a non-empty string")
        if not isinstance(value, str) or not value:
            raise self._wrong(name, "a non-empty string")
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a string field that may be null (but not absent)."""
        value = self._get(name, "a string or null")
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string or null")
        return value

    def count(self, name: str, *, at_least: int = 0) -> int:
        """Return an integer field that is at least `at_least`."""
        expected = f"an integer of at least {at_least}"
        value = self._get(name, expected)
        if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
            raise self._wrong(name, expected)
        return value

    def seconds(self, name: str) -> float:
        """Return a finite number of seconds."""
        value = self._get(name, "a finite number of seconds")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(name, "a finite number of seconds")
        if not math.isfinite(value):
            raise self._wrong(name, "a finite number of seconds")
        return float(value)

    def items(self, name: str, kind: type) -> list[Any]:
        """Return a non-empty list field whose items are all of `kind`."""
        expected = f"a non-empty list of {kind.__name__}"
        value = self._get(name, expected)
        if not isinstance(value, list) or not value:
            raise self._wrong(name, expected)
        if any(not isinstance(item, kind) or isinstance(item, bool) for item in value):
            raise self._wrong(name, expected)
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object field."""
        value = self._get(name, "an object")
        if not isinstance(value, dict):
            raise self._wrong(name, "an object")
        return value


def read_text(path: Path, *, holds: str) -> str:
    """Return the text of `path`.

    Raises
    ------
    LaneDataError
        The file is absent or is not UTF-8 text; `holds` says what was looked for.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise LaneDataError(
            f"cannot be read ({reason})", where=str(path), remedy=f"expected {holds}"
        ) from error


def parse_object(text: str, where: str) -> Record:
    """Parse one JSON object.

    Raises
    ------
    LaneDataError
        The text is not JSON, or not an object.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise LaneDataError(
            f"not valid JSON ({error})", where=where, remedy="expected one JSON object"
        ) from error
    if not isinstance(values, dict):
        raise LaneDataError(
            f"a JSON {type(values).__name__}", where=where, remedy="expected one JSON object"
        )
    return Record(values, where)


def read_records(path: Path, *, holds: str) -> Iterator[Record]:
    """Yield the objects of a JSON-lines file, each with its ``path:line``; blank lines are skipped.

    Raises
    ------
    LaneDataError
        The file cannot be read or a line is not a JSON object.
    """
    for number, line in enumerate(read_text(path, holds=holds).splitlines(), start=1):
        if line.strip():
            yield parse_object(line, f"{path}:{number}")
