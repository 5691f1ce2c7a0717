"""The reference semantics as a system: ranks in lockstep, each on stages of its own (issue 8).

In the real engine a rank shares no stage with another, so there is no admission and no stand-in
rule. Forwards pair one to one across ranks: the n-th forward of every rank meets the n-th of all
others at every layer of every stage. A rank without work runs a dummy forward when a peer has
started a forward it has not; it decides so when its first stage is free to begin.

The system speaks the core's events, so the checker and the discrete-event loop drive it as they
drive the lanes (PROTOCOL.md sections 4 and 5).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from frontier.events import (
    ARRIVE,
    ATTENTION_DONE,
    BATCH_END,
    LANE_SCHEDULE,
    REQUEST,
    STAGE_END,
    WAVE_END,
    Batch,
    Event,
)
from frontier.replica import batch_of
from frontier.workload import Workload
from models.scenario import Scenario


def dummy(lane: int) -> Batch:
    """Return the forward of a rank that has no work; it belongs to no wave's members."""
    return Batch(lane, -1, "dummy")


def is_real(batch: Batch) -> bool:
    """Whether a forward carries work."""
    return batch.number >= 0


class LockstepSnapshot(NamedTuple):
    """The system between two events, without history.

    ``running`` and ``waiting`` are per stage and rank; ``ahead`` is how many forwards each rank
    has started more than the last one.
    """

    running: tuple[tuple[Batch | None, ...], ...]
    waiting: tuple[tuple[tuple[Batch, ...], ...], ...]
    met: tuple[tuple[tuple[int, int], tuple[int, ...]], ...]
    in_flight: tuple[int, ...]
    ahead: tuple[int, ...]
    workload: Hashable


class Lockstep:
    """Ranks × stages in lockstep; of a scenario only shape, arrivals and work count.

    Parameters
    ----------
    lanes, stages, layers
        Ranks, pipeline stages, and model layers per stage.
    workload
        Source of batches.
    """

    def __init__(self, lanes: int, stages: int, layers: int, workload: Workload) -> None:
        self.lanes, self.stages, self.layers = lanes, stages, layers
        self.workload = workload
        self.running: list[list[Batch | None]] = [[None] * lanes for _ in range(stages)]
        self.waiting: list[list[list[Batch]]] = [[[] for _ in range(lanes)] for _ in range(stages)]
        self.met: dict[tuple[int, int], set[int]] = {}
        self.in_flight = [0] * lanes
        self.started = [0] * lanes
        self._handlers: dict[str, Callable[[Event], list[Event]]] = {
            REQUEST: self._request,
            LANE_SCHEDULE: self._lane_schedule,
            ARRIVE: self._arrive,
            ATTENTION_DONE: self._attention_done,
            WAVE_END: self._wave_end,
            STAGE_END: self._stage_end,
            BATCH_END: self._batch_end,
        }

    @staticmethod
    def of(scenario: Scenario) -> Lockstep:
        """Build the reference of a scenario's shape and work, before its start."""
        return Lockstep(
            scenario.lanes,
            scenario.stages,
            scenario.layers,
            scenario.make_replica().workload,
        )

    def start(self) -> list[Event]:
        """Events of the start, in order of creation."""
        return self.workload.start()

    def handle(self, event: Event) -> list[Event]:
        """Handle one event and return those that follow, in order of creation."""
        return self._handlers[event.kind](event)

    @property
    def is_complete(self) -> bool:
        """Whether every batch has been formed and every forward has ended."""
        return not any(self.in_flight) and self.workload.all_batches_formed

    def _request(self, event: Event) -> list[Event]:
        return [Event(LANE_SCHEDULE, self.workload.request(event))]

    def _lane_schedule(self, event: Event) -> list[Event]:
        """Start the rank's next forward if its first stage and a place in flight are free."""
        lane = event.lane
        if self.running[0][lane] is not None or self.in_flight[lane] >= self.stages:
            return []
        batch = self.workload.next_batch(lane)
        leads = self.started[lane] == max(self.started)
        if batch is None and leads:
            return []
        self.in_flight[lane] += 1
        self.started[lane] += 1
        forward = [self._begin(0, batch or dummy(lane))]
        if leads:
            forward.extend(Event(LANE_SCHEDULE, peer) for peer in range(self.lanes) if peer != lane)
        return forward

    def _begin(self, stage: int, batch: Batch) -> Event:
        self.running[stage][batch.lane] = batch
        return Event(ATTENTION_DONE, batch.lane, batch, stage, 0)

    def _arrive(self, event: Event) -> list[Event]:
        batch = batch_of(event)
        if self.running[event.stage][event.lane] is None:
            return [self._begin(event.stage, batch)]
        self.waiting[event.stage][event.lane].append(batch)
        return []

    def _attention_done(self, event: Event) -> list[Event]:
        place = (event.stage, event.layer)
        present = self.met.setdefault(place, set())
        present.add(event.lane)
        if len(present) < self.lanes:
            return []
        del self.met[place]
        members = tuple(b for b in self.running[event.stage] if b is not None and is_real(b))
        return [Event(WAVE_END, -1, None, event.stage, event.layer, members=members)]

    def _wave_end(self, event: Event) -> list[Event]:
        stage, layer = event.stage, event.layer
        forwards = [batch for batch in self.running[stage] if batch is not None]
        if layer + 1 < self.layers:
            return [Event(ATTENTION_DONE, b.lane, b, stage, layer + 1) for b in forwards]
        return [Event(STAGE_END, b.lane, b, stage) for b in forwards]

    def _stage_end(self, event: Event) -> list[Event]:
        lane, batch, stage = event.lane, batch_of(event), event.stage
        self.running[stage][lane] = None
        follow = []
        if stage == 0:
            follow.append(Event(LANE_SCHEDULE, lane))
        elif self.waiting[stage][lane]:
            follow.append(self._begin(stage, self.waiting[stage][lane].pop(0)))
        if stage + 1 < self.stages:
            follow.append(Event(ARRIVE, lane, batch, stage + 1))
        else:
            follow.append(Event(BATCH_END, lane, batch))
        return follow

    def _batch_end(self, event: Event) -> list[Event]:
        batch = batch_of(event)
        self.in_flight[event.lane] -= 1
        if is_real(batch):
            self.workload.batch_ended(batch)
        return [Event(LANE_SCHEDULE, event.lane)]

    def snapshot(self) -> LockstepSnapshot:
        """Return what the future depends on, as a hashable value."""
        least = min(self.started)
        return LockstepSnapshot(
            tuple(map(tuple, self.running)),
            tuple(tuple(map(tuple, lanes)) for lanes in self.waiting),
            tuple(sorted((place, tuple(sorted(lanes))) for place, lanes in self.met.items())),
            tuple(self.in_flight),
            tuple(count - least for count in self.started),
            self.workload.snapshot(),
        )

    def restore(self, snapshot: LockstepSnapshot) -> None:
        """Become the system of a snapshot, whatever this one was before."""
        self.running = [list(lanes) for lanes in snapshot.running]
        self.waiting = [[list(batches) for batches in lanes] for lanes in snapshot.waiting]
        self.met = {place: set(lanes) for place, lanes in snapshot.met}
        self.in_flight = list(snapshot.in_flight)
        self.started = list(snapshot.ahead)
        self.workload.restore(snapshot.workload)
