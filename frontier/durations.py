"""Execution times: how long a timed event takes, in integer nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from frontier.events import ATTENTION_DONE, REQUEST, STAGE_END, WAVE_END, Event

MILLISECOND: Final = 1_000_000
"""Nanoseconds in a millisecond."""

SECOND: Final = 1_000_000_000
"""Nanoseconds in a second."""


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

    A dense stage runs its layers and the stage's tail as one piece.
    """

    moe: bool
    layers: int
    attention: int = 8 * MILLISECOND
    wave: int = 6 * MILLISECOND
    tail: int = 8 * MILLISECOND

    def of(self, event: Event) -> int:
        """Time by kind; a request of the start arrives at 0."""
        if event.kind == ATTENTION_DONE:
            return self.attention
        if event.kind == WAVE_END:
            return self.wave
        if event.kind == STAGE_END:
            return self.tail if self.moe else self.layers * (self.attention + self.wave) + self.tail
        if event.kind == REQUEST:
            return 0
        raise ValueError(f"{event.kind} is not a timed event of a lane replica: {event}")


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
