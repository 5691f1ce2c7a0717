"""Execution times: how long a timed event takes, in integer nanoseconds."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from frontier.events import (
    ATTENTION_DONE,
    CHILD_DONE,
    COMBINE_END,
    DECODE_ATTN,
    DECODE_FFN,
    FFN_RETURN,
    GROUP,
    KV_TRANSFER,
    REQUEST,
    STAGE_END,
    WAVE_END,
    Event,
)

MILLISECOND: Final = 1_000_000
"""Nanoseconds in a millisecond."""

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""


class DurationError(ValueError):
    """An execution-time model has no time for an event."""


class Durations(Protocol):
    """An execution-time model."""

    def of(self, event: Event) -> int:
        """Nanoseconds from the creation of a timed event to the instant it falls due, at least 1.

        For a ``request`` created at the start this is its arrival time, which may be 0.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConstantDurations:
    """The published "dummy" execution times (PROTOCOL.md section 6), in nanoseconds.

    A dense stage runs its layers and the stage's tail as one piece. Where the FFN is a cluster of
    its own, a layer's 6 ms are spent there: a dense group in one piece, an expert group as the
    children's compute and the combine. Nothing was published about transfers; 1 ms each is ours.
    """

    moe: bool
    layers: int
    attention: int = 8 * MILLISECOND
    wave: int = 6 * MILLISECOND
    tail: int = 8 * MILLISECOND
    combine: int = 1 * MILLISECOND
    kv_transfer: int = 1 * MILLISECOND
    m2n_transfer: int = 1 * MILLISECOND

    def of(self, event: Event) -> int:
        """Time by kind and role; a request of the start arrives at 0."""
        if event.kind == STAGE_END:
            return self._stage(event.role)
        times = {
            ATTENTION_DONE: self.attention,
            WAVE_END: self.wave,
            REQUEST: 0,
            KV_TRANSFER: self.kv_transfer,
            GROUP: self.m2n_transfer,
            FFN_RETURN: self.m2n_transfer,
            CHILD_DONE: self.wave - self.combine,
            COMBINE_END: self.combine,
        }
        if event.kind not in times:
            raise DurationError(f"{event.kind} is not a timed event: {event}")
        return times[event.kind]

    def _stage(self, role: str) -> int:
        if role == DECODE_FFN:
            return self.wave
        if self.moe or role == DECODE_ATTN:
            return self.tail
        return self.layers * (self.attention + self.wave) + self.tail


class WithArrivals:
    """Any execution-time model with given arrival times: the k-th request of a lane at its time.

    Parameters
    ----------
    times_ns
        Per lane, the arrival times of its requests in nanoseconds, in the order of creation.
    """

    def __init__(self, durations: Durations, times_ns: Sequence[Sequence[int]]) -> None:
        self._durations = durations
        self._times = [iter(own) for own in times_ns]

    def of(self, event: Event) -> int:
        """Return the arrival time of a request, else what the wrapped model says."""
        if event.kind == REQUEST:
            return next(self._times[event.lane])
        return self._durations.of(event)


class WithRequestTimes:
    """Any execution-time model with the arrival time of each request by number."""

    def __init__(self, durations: Durations, times_ns: Sequence[int]) -> None:
        self._durations = durations
        self._times = times_ns

    def of(self, event: Event) -> int:
        """Return the arrival time of a request, else what the wrapped model says."""
        if event.kind == REQUEST:
            return self._times[event.request]
        return self._durations.of(event)


class RandomDurations:
    """Uniform times between two bounds, drawn from a seed in the order of creation.

    Parameters
    ----------
    low, high
        Bounds in nanoseconds, both possible, at least 1.

    Raises
    ------
    ValueError
        If the bounds are out of order or below 1.
    """

    def __init__(self, low: int, high: int, seed: int) -> None:
        if not 1 <= low <= high:
            raise ValueError(f"random times need 1 ns <= LO <= HI, got {low} and {high} ns")
        self._low, self._high = low, high
        self._draw = random.Random(seed)

    def of(self, event: Event) -> int:
        """Draw a time; a request of the start arrives at 0."""
        return 0 if event.kind == REQUEST else self._draw.randint(self._low, self._high)


class EventKey(NamedTuple):
    """What tells one event of a run from another."""

    kind: str
    role: str = ""
    lane: int | None = None
    stage: int | None = None
    layer: int | None = None
    batch: int | None = None
    phase: str = ""
    request: int | None = None

    @staticmethod
    def of(event: Event) -> EventKey:
        """Key of an event; a wave has the batch of its first member."""
        first = event.members[0] if event.members else event.batch
        numbers = (event.lane, event.stage, event.layer, event.request)
        lane, stage, layer, request = (None if n < 0 else n for n in numbers)
        return EventKey(
            event.kind,
            event.role,
            lane,
            stage,
            layer,
            None if first is None else first.number,
            "" if first is None else first.phase,
            request,
        )


class TableDurations:
    """A table of times: each row names a kind and, optionally, more of the event.

    A row fits an event if all that it names agrees; of the rows that fit, the one that names most
    counts, of several the last.

    Parameters
    ----------
    rows
        ``(key, nanoseconds)``; an empty string or None in a key fits anything.

    Raises
    ------
    ValueError
        If a time is below 1 ns.
    """

    def __init__(self, rows: Sequence[tuple[EventKey, int]]) -> None:
        self._rows: dict[str, list[tuple[int, EventKey, int]]] = {}
        for key, time in rows:
            if time < 1:
                raise ValueError(f"a time must be at least 1 ns, got {time} for {key}")
            named = sum(field not in ("", None) for field in key)
            self._rows.setdefault(key.kind, []).append((named, key, time))
        self._known: dict[EventKey, int] = {}

    def of(self, event: Event) -> int:
        """Time of the row that fits best; DurationError if none does."""
        key = EventKey.of(event)
        if key not in self._known:
            fits = [
                (named, at, time)
                for at, (named, row, time) in enumerate(self._rows.get(key.kind, []))
                if all(want in ("", None, have) for want, have in zip(row, key, strict=True))
            ]
            if not fits:
                if event.kind == REQUEST:
                    return 0
                raise DurationError(f"the table of times has no row that fits {event} ({key})")
            self._known[key] = max(fits)[2]
        return self._known[key]


class RecordedDurations:
    """Times recorded from a run: each event gets the time that its like had, in order.

    An event that was not recorded is a :class:`DurationError`.
    """

    def __init__(self, rows: Sequence[tuple[EventKey, int]]) -> None:
        self._times: dict[EventKey, deque[int]] = {}
        for key, time in rows:
            self._times.setdefault(key, deque()).append(time)

    def of(self, event: Event) -> int:
        """Take the next recorded time of such an event."""
        times = self._times.get(EventKey.of(event))
        if not times:
            raise DurationError(f"the recorded times have no (further) entry for {event}")
        return times.popleft()


class Recording:
    """Any execution-time model, remembering what it said."""

    def __init__(self, durations: Durations) -> None:
        self._durations = durations
        self.rows: list[tuple[EventKey, int]] = []

    def of(self, event: Event) -> int:
        """Ask the wrapped model and remember its answer."""
        time = self._durations.of(event)
        self.rows.append((EventKey.of(event), time))
        return time
