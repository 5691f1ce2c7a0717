"""Workloads: where a lane's next batch comes from (PROTOCOL.md section 4, arrivals)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, cast

from frontier.events import LANE_SCHEDULE, REQUEST, Batch, Event


class Workload(Protocol):
    """The work of one replica, lane by lane; it decides what is in a batch, never when it runs."""

    def start(self) -> list[Event]:
        """Events of the start, in order of creation."""
        ...

    def request(self, event: Event) -> int:
        """Take in what a timed ``request`` or ``kv_transfer`` brings; return its lane."""
        ...

    def next_batch(self, lane: int) -> Batch | None:
        """Form the lane's next batch, or None if no work waits."""
        ...

    def batch_ended(self, batch: Batch) -> None:
        """Note that a batch left its last stage."""
        ...

    @property
    def all_batches_formed(self) -> bool:
        """Whether no lane has work that is still to become a batch."""
        ...

    def snapshot(self) -> Hashable:
        """Return what the future depends on, as a hashable value."""
        ...

    def restore(self, snapshot: Hashable) -> None:
        """Become the workload of a snapshot."""
        ...


class FiniteWorkload:
    """A fixed sequence of batches per lane, waiting from the start or arriving one by one.

    Parameters
    ----------
    phases
        Per lane, the phases of its batches in order.
    arrivals
        ``burst``: every batch waits from the start, and lanes are woken in the order ``1, 2, ...,
        lanes - 1, 0``. ``open``: one timed ``request(lane)`` per batch, created lane by lane.
    """

    def __init__(self, phases: Sequence[Sequence[str]], arrivals: str = "burst") -> None:
        if arrivals not in ("burst", "open"):
            raise ValueError(f"arrivals must be burst or open, got {arrivals!r}")
        self._batches = [
            [Batch(lane, number, phase) for number, phase in enumerate(sequence)]
            for lane, sequence in enumerate(phases)
        ]
        self._burst = arrivals == "burst"
        self._formed = [0] * len(self._batches)
        self._arrived = [len(own) if self._burst else 0 for own in self._batches]

    def start(self) -> list[Event]:
        """``lane_schedule`` for each lane with work, or its requests."""
        lanes = range(len(self._batches))
        if not self._burst:
            return [Event(REQUEST, lane) for lane in lanes for _ in self._batches[lane]]
        order = [*lanes[1:], *lanes[:1]]
        return [Event(LANE_SCHEDULE, lane) for lane in order if self._batches[lane]]

    def request(self, event: Event) -> int:
        """One more batch of the event's lane waits."""
        self._arrived[event.lane] += 1
        return event.lane

    def next_batch(self, lane: int) -> Batch | None:
        """Return the lane's next batch in sequence, if it has arrived."""
        number = self._formed[lane]
        if number >= self._arrived[lane]:
            return None
        self._formed[lane] = number + 1
        return self._batches[lane][number]

    def batch_ended(self, batch: Batch) -> None:
        """Nothing follows from a finished batch."""

    @property
    def all_batches_formed(self) -> bool:
        """Whether every batch of every lane has been formed."""
        return all(
            formed == len(own) for formed, own in zip(self._formed, self._batches, strict=True)
        )

    def snapshot(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Per lane, how many batches were formed and how many had arrived."""
        return tuple(self._formed), tuple(self._arrived)

    def restore(self, snapshot: Hashable) -> None:
        """Become the workload of a snapshot."""
        formed, arrived = cast(tuple[tuple[int, ...], tuple[int, ...]], snapshot)
        self._formed = list(formed)
        self._arrived = list(arrived)
