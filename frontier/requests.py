"""Requests and when they arrive (issue 3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from frontier.durations import SECOND


class Request(NamedTuple):
    """One request of a run; its id is its arrival index.

    ``prefill_tokens`` is the prompt; ``decode_tokens`` counts all generated tokens, the first of
    which the prefill yields; ``arrival_ns`` is the time at which it arrives.
    """

    number: int
    prefill_tokens: int
    decode_tokens: int
    arrival_ns: int = 0


def poisson_times(count: int, rate: float, seed: int) -> tuple[int, ...]:
    """Arrival times of a Poisson process in nanoseconds: ``count`` exponential gaps summed.

    Parameters
    ----------
    rate
        Requests per second, positive.

    Raises
    ------
    ValueError
        If the rate is not positive.
    """
    if not rate > 0:
        raise ValueError(f"the rate of a Poisson process must be positive, got {rate!r}")
    draw = random.Random(seed)
    at, times = 0.0, []
    for _ in range(count):
        at += draw.expovariate(rate)
        times.append(round(at * SECOND))
    return tuple(times)


def uniform_requests(
    count: int, prefill_tokens: int, decode_tokens: int, times_ns: Sequence[int] | None = None
) -> tuple[Request, ...]:
    """Make requests of one size, in order of arrival; all at time 0 unless times are given.

    Raises
    ------
    ValueError
        If a count is below 1, or the times are not one per request in order.
    """
    for name, value in (
        ("requests", count),
        ("prefill_tokens", prefill_tokens),
        ("decode_tokens", decode_tokens),
    ):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    times = (0,) * count if times_ns is None else tuple(times_ns)
    if len(times) != count or list(times) != sorted(times) or times[0] < 0:
        raise ValueError(
            f"arrival times must be one per request, in order and not negative: {count} requests, "
            f"times {list(times[:8])}"
        )
    return tuple(
        Request(number, prefill_tokens, decode_tokens, at) for number, at in enumerate(times)
    )
