"""The discrete-event loop: events in the order ``(time, creation id)`` (PROTOCOL.md section 4)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Protocol

from frontier.durations import Durations
from frontier.events import Event


class System(Protocol):
    """What the loop drives: a replica, or a cluster of them."""

    def start(self) -> list[Event]:
        """Events of the start, in order of creation."""
        ...

    def handle(self, event: Event) -> list[Event]:
        """Handle one event and return those that follow, in order of creation."""
        ...


Observer = Callable[[int, Event, Sequence[Event]], None]
"""Called after each event with the time in nanoseconds, the event, and the events that follow."""


class Simulation:
    """One run of a system under an execution-time model.

    Attributes
    ----------
    now
        Time of the last handled event, in nanoseconds.
    handled
        Number of events handled so far.
    """

    def __init__(
        self, system: System, durations: Durations, observers: Sequence[Observer] = ()
    ) -> None:
        self.system = system
        self.now = 0
        self.handled = 0
        self._durations = durations
        self._observers = tuple(observers)
        self._created = 0
        self._heap: list[tuple[int, int, Event]] = []
        self._add(system.start())

    def _add(self, events: Sequence[Event]) -> None:
        for event in events:
            delay = 0 if event.is_urgent else self._durations.of(event)
            heapq.heappush(self._heap, (self.now + delay, self._created, event))
            self._created += 1

    @property
    def pending(self) -> list[tuple[int, Event]]:
        """Events still to come as ``(time in ns, event)``, in handling order."""
        return [(time, event) for time, _, event in sorted(self._heap)]

    @property
    def created(self) -> list[Event]:
        """Events still to come in the order of their creation."""
        return [event for _, _, event in sorted(self._heap, key=lambda entry: entry[1])]

    @property
    def next_time(self) -> int | None:
        """Time of the next event in nanoseconds, None when no event is left."""
        return self._heap[0][0] if self._heap else None

    def step(self) -> Event | None:
        """Handle the next event and return it, or None when no event is left.

        Raises
        ------
        CoreError
            If the system rejects the event.
        """
        if not self._heap:
            return None
        self.now, _, event = heapq.heappop(self._heap)
        follow = self.system.handle(event)
        self.handled += 1
        self._add(follow)
        for observe in self._observers:
            observe(self.now, event, follow)
        return event

    def run(self, until: int | None = None) -> None:
        """Handle events until none is left: the run is then complete, or it drained.

        Parameters
        ----------
        until
            Time in nanoseconds after which nothing more is handled, None for no end.
        """
        while (due := self.next_time) is not None and (until is None or due <= until):
            self.step()
