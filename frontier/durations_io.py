"""Reading and writing execution times: tables (CSV) and recorded traces (JSON lines)."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from frontier.durations import MILLISECOND, SECOND, EventKey
from frontier.events import TIMED

_UNITS: Final = {"ms": MILLISECOND, "s": SECOND, "ns": 1}
_COLUMNS: Final = EventKey._fields
_NUMBERS: Final = ("lane", "stage", "layer", "batch", "request")


def read_table(text: str) -> list[tuple[EventKey, int]]:
    """Read a table of times: CSV with a header.

    Columns are ``kind``, one of ``ms``, ``s`` or ``ns``, and any of ``role, lane, stage, layer,
    batch, phase, request``; an empty cell fits anything.

    Raises
    ------
    ValueError
        On an unknown column or kind, or a value that is none, naming the row.
    """
    reader = csv.DictReader(text.splitlines(), skipinitialspace=True)
    header = [name.strip() for name in reader.fieldnames or []]
    units = [name for name in header if name in _UNITS]
    unknown = [name for name in header if name not in (*_COLUMNS, *_UNITS)]
    if unknown or "kind" not in header or len(units) != 1:
        raise ValueError(
            f"a table of times has the columns kind, one of {', '.join(_UNITS)}, and any of "
            f"{', '.join(_COLUMNS[1:])}; got {header}"
        )
    reader.fieldnames = header
    return [
        (_key(row, f"row {at}"), _time(row[units[0]], _UNITS[units[0]], f"row {at}"))
        for at, row in enumerate(reader, start=2)
    ]


def _key(values: Mapping[str, Any], where: str) -> EventKey:
    fields: dict[str, Any] = {}
    for name in _COLUMNS:
        value = values.get(name)
        if value is None or value == "":
            continue
        if name in _NUMBERS:
            if not str(value).strip().isdecimal():
                raise ValueError(f"{where}: {name} must be a number, got {value!r}")
            fields[name] = int(value)
        else:
            fields[name] = str(value).strip()
    if fields.get("kind") not in TIMED:
        raise ValueError(
            f"{where}: kind must be one of {', '.join(sorted(TIMED))}, got {fields.get('kind')!r}"
        )
    return EventKey(**fields)


def _time(text: object, unit: int, where: str) -> int:
    try:
        value = float(str(text))
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise ValueError(f"{where}: a time must be a positive number, got {text!r}")
    return max(1, round(value * unit))


def read_recording(text: str) -> list[tuple[EventKey, int]]:
    """Read a recorded trace: one JSON object per line, the event's fields and ``ns``.

    Raises
    ------
    ValueError
        On a line that is no such object, naming it.
    """
    rows = []
    for at, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(f"line {at} is no JSON: {error}") from None
        if not isinstance(values, dict) or not isinstance(values.get("ns"), int):
            raise ValueError(f"line {at} must be an object with a whole number ns, got {values!r}")
        rows.append((_key(values, f"line {at}"), _time(values["ns"], 1, f"line {at}")))
    return rows


def write_recording(rows: Iterable[tuple[EventKey, int]]) -> str:
    """Write a recorded trace; arrivals are no execution times and are left out."""
    lines = []
    for key, time in rows:
        named = {name: value for name, value in key._asdict().items() if value not in ("", None)}
        lines.append(json.dumps({**named, "ns": time}))
    return "".join(line + "\n" for line in lines)
