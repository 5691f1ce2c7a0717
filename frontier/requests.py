"""Requests and when they arrive (issue 3)."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Sequence
from typing import Final, NamedTuple

from frontier.durations import MILLISECOND, SECOND


class Request(NamedTuple):
    """One request of a run; its id is its arrival index.

    ``prefill_tokens`` is the prompt; ``decode_tokens`` counts all generated tokens, the first of
    which the prefill yields; ``arrival_ns`` is the time at which it arrives.
    """

    number: int
    prefill_tokens: int
    decode_tokens: int
    arrival_ns: int = 0


MOST_REQUESTS: Final = 1_000_000
"""Requests of one run; many more would only exhaust the machine."""


def poisson_times(count: int, rate: float, seed: int) -> tuple[int, ...]:
    """Arrival times of a Poisson process in nanoseconds: ``count`` exponential gaps summed.

    Parameters
    ----------
    rate
        Requests per second, from 1e-6 to 1e9.

    Raises
    ------
    ValueError
        If the rate is outside these bounds, or there are more than :data:`MOST_REQUESTS`.
    """
    if not 1e-6 <= rate <= 1e9:
        raise ValueError(
            f"the rate of a Poisson process must be positive, from 1e-6 to 1e9 a second, "
            f"got {rate!r}"
        )
    _require_few(count)
    draw = random.Random(seed)
    at, times = 0.0, []
    for _ in range(count):
        at += draw.expovariate(rate)
        times.append(round(at * SECOND))
    return tuple(times)


def _require_few(count: int) -> None:
    if count > MOST_REQUESTS:
        raise ValueError(f"requests must be at most {MOST_REQUESTS:,}, got {count}")


def uniform_requests(
    count: int, prefill_tokens: int, decode_tokens: int, times_ns: Sequence[int] | None = None
) -> tuple[Request, ...]:
    """Make requests of one size, in order of arrival; all at time 0 unless times are given.

    Raises
    ------
    ValueError
        If a count is below 1, there are more than :data:`MOST_REQUESTS`, or the times are not
        one per request in order.
    """
    for name, value in (
        ("requests", count),
        ("prefill_tokens", prefill_tokens),
        ("decode_tokens", decode_tokens),
    ):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    _require_few(count)
    times = (0,) * count if times_ns is None else tuple(times_ns)
    if len(times) != count or list(times) != sorted(times) or times[0] < 0:
        raise ValueError(
            f"arrival times must be one per request, in order and not negative: {count} requests, "
            f"times {list(times[:8])}"
        )
    return tuple(
        Request(number, prefill_tokens, decode_tokens, at) for number, at in enumerate(times)
    )


_SECONDS: Final = (
    "arrival_s",
    "arrival_time_s",
    "arrival_time",
    "arrived_at",
    "arrival",
    "time_s",
    "time",
    "timestamp",
)
_MILLISECONDS: Final = ("arrival_ms", "arrival_time_ms", "time_ms")
_PREFILL: Final = ("prefill_tokens", "num_prefill_tokens")
_DECODE: Final = ("decode_tokens", "num_decode_tokens")


def read_requests_csv(
    text: str, prefill_tokens: int | None, decode_tokens: int | None
) -> tuple[Request, ...]:
    """Read a request trace: a CSV file with a header, one row per request.

    Parameters
    ----------
    text
        Content. Columns: ``arrival_s`` (or ``arrival_ms``), and optionally ``prefill_tokens`` and
        ``decode_tokens``. Without a header the first column is the arrival in seconds. Rows may
        stand in any order; requests are numbered by arrival.
    prefill_tokens, decode_tokens
        Size of requests whose row names none; None means that every row has to.

    Raises
    ------
    ValueError
        On a missing column or a value that is none, naming the line.
    """
    lines = [line for line in csv.reader(text.splitlines()) if any(cell.strip() for cell in line)]
    if lines and _is_number(lines[0][0]):
        lines.insert(0, ["arrival_s"])
    if len(lines) < 2:
        raise ValueError("the trace has no requests; expected a header and one row per request")
    header = [name.strip().lower() for name in lines[0]]
    at, unit = _column(header, _SECONDS), SECOND
    if at is None:
        at, unit = _column(header, _MILLISECONDS), MILLISECOND
    if at is None:
        raise ValueError(f"the trace needs a column arrival_s or arrival_ms, got {header}")
    sizes = (
        (_column(header, _PREFILL), prefill_tokens, _PREFILL[0]),
        (_column(header, _DECODE), decode_tokens, _DECODE[0]),
    )
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        tokens = [_tokens(line, column, given, name, number) for column, given, name in sizes]
        rows.append((round(_number(line, at, number) * unit), *tokens))
    rows.sort(key=lambda row: row[0])
    return tuple(
        Request(number, prefill, decode, arrival)
        for number, (arrival, prefill, decode) in enumerate(rows)
    )


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(line: Sequence[str], column: int, number: int) -> float:
    text = line[column] if column < len(line) else ""
    if not _is_number(text) or not 0 <= float(text) < math.inf:
        raise ValueError(f"row {number} of the trace: expected a time of at least 0, got {text!r}")
    return float(text)


def _tokens(
    line: Sequence[str], column: int | None, given: int | None, name: str, number: int
) -> int:
    if column is None:
        if given is None:
            raise ValueError(f"the trace has no column {name}, and no size was given for all")
        return given
    text = line[column].strip() if column < len(line) else ""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"row {number} of the trace: {name} must be a whole number of at least 1, got {text!r}"
        )
    return int(text)
