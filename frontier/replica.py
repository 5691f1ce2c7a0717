"""One replica as a state machine: ``handle(event)`` returns the events that follow.

The discrete-event loop, the explorer and the replay all drive this one class (PROTOCOL.md
section 4). It talks to its stage contexts through their public API only, so that any other
implementation of that API can take their place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from frontier.admission import AdmissionRule, EpOrdered
from frontier.context import StageExecutionContext
from frontier.events import (
    ARRIVE,
    ATTENTION_DONE,
    BATCH_END,
    KV_TRANSFER,
    LANE_SCHEDULE,
    REQUEST,
    STAGE_END,
    STAGE_SCHEDULE,
    STAND_IN,
    WAVE_END,
    Batch,
    CoreError,
    Event,
    WaveOperation,
)
from frontier.lanes import LaneStageScheduler
from frontier.rooms import Room, RoomKey, RoomRule, SharedRooms
from frontier.standin import Standard, StandInRule
from frontier.tickets import EP_WAVE
from frontier.workload import Workload


class StageContext(Protocol):
    """Public API of a stage execution context that a replica uses (PROTOCOL.md section 2).

    Tickets are opaque to the replica.
    """

    @property
    def queued_tickets(self) -> Sequence[Any]:
        """The ready FIFO, head first."""
        ...

    @property
    def forward_group_sealed(self) -> bool:
        """Whether the bound forward group takes no more owners."""
        ...

    def enqueue_full_stage(self, *, operation_id: Hashable) -> Any:
        """Queue one lane's operation and return its ticket."""
        ...

    def try_acquire(self, ticket: Any) -> bool:
        """Admit the ticket now, or return False and change nothing."""
        ...

    def bind_forward_group(self, ticket: Any) -> int:
        """Join the stage's shared forward group."""
        ...

    def transition_active_scope(
        self,
        ticket: Any,
        *,
        operation_id: Hashable,
        scope: str,
        participant_ep_ids: Sequence[int] = ...,
    ) -> Any:
        """Replace one active owner's operation."""
        ...

    def replace_full_stage_owners_with_ep_wave(
        self,
        owner_tickets: Sequence[Any],
        *,
        operation_id: Hashable,
        participant_ep_ids: Sequence[int],
    ) -> Any:
        """Turn active lane owners into one active EP wave."""
        ...

    def replace_ep_wave_with_full_stage_owners(
        self, wave_ticket: Any, *, operation_ids: Sequence[Hashable]
    ) -> Sequence[Any]:
        """Turn the active EP wave into one full-stage owner per operation id."""
        ...

    def release(self, ticket: Any) -> None:
        """End an active operation."""
        ...


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Shape and rules of one replica.

    Parameters
    ----------
    lanes, stages, layers
        Attention-DP lanes, pipeline stages, and model layers *per stage*; each at least 1.
    moe
        Whether layers end in an EP wave; a dense stage runs as one piece.
    admission, stand_in, rooms
        The rules of PROTOCOL.md section 3.
    capacity
        Full-stage owners per stage; ``lanes`` unless given.
    in_flight
        Batches that a lane may have in flight; ``stages`` unless given.
    """

    lanes: int
    stages: int
    layers: int
    moe: bool = True
    admission: AdmissionRule = field(default_factory=EpOrdered)
    stand_in: StandInRule = field(default_factory=Standard)
    rooms: RoomRule = field(default_factory=SharedRooms)
    capacity: int | None = None
    replica_id: int = 0
    in_flight: int | None = None

    @property
    def max_in_flight(self) -> int:
        """Batches that a lane may have in flight at once."""
        return self.stages if self.in_flight is None else self.in_flight

    @property
    def ep_size(self) -> int:
        """EP participants of a wave: one per lane, 1 for a dense model."""
        return self.lanes if self.moe else 1

    def make_context(self, stage: int) -> StageExecutionContext:
        """Build the stage's context."""
        return StageExecutionContext(
            replica_id=self.replica_id,
            stage_id=stage,
            ep_size=self.ep_size,
            full_stage_capacity=self.lanes if self.capacity is None else self.capacity,
            rule=self.admission,
        )


class StageSnapshot(NamedTuple):
    """One stage: its context, and per lane the running batch and the queued ones in order."""

    context: Hashable
    lanes: tuple[tuple[Batch | None, tuple[Batch, ...]], ...]


class ReplicaSnapshot(NamedTuple):
    """A replica between two events, as a hashable value without history.

    ``outside`` is what may still come from outside, where something may.
    """

    stages: tuple[StageSnapshot, ...]
    rooms: tuple[tuple[RoomKey, tuple[tuple[int, Batch | None], ...]], ...]
    in_flight: tuple[int, ...]
    workload: Hashable
    outside: Hashable = ()


class Replica:
    """Lanes over shared stages, with one room per stage and layer (PROTOCOL.md sections 1 and 4).

    Parameters
    ----------
    config
        Shape and rules.
    workload
        Source of batches.
    contexts
        One stage execution context per stage; built from ``config`` unless given.
    """

    def __init__(
        self,
        config: ReplicaConfig,
        workload: Workload,
        contexts: Sequence[StageContext] | None = None,
    ) -> None:
        self.config = config
        self.workload = workload
        stages = range(config.stages)
        self.contexts: list[StageContext] = (
            [config.make_context(stage) for stage in stages] if contexts is None else list(contexts)
        )
        self.schedulers = [[LaneStageScheduler() for _ in range(config.lanes)] for _ in stages]
        self.rooms: dict[RoomKey, Room] = {}
        self.tickets: list[dict[Hashable, Any]] = [{} for _ in stages]
        self.in_flight = [0] * config.lanes
        self._parts: dict[Hashable, Any] = {}
        self._world = tuple(range(config.ep_size))
        self._handlers: dict[str, Callable[[Event], list[Event]]] = {
            REQUEST: self._request,
            KV_TRANSFER: self._request,
            LANE_SCHEDULE: self._lane_schedule,
            ARRIVE: self._arrive,
            STAGE_SCHEDULE: self._stage_schedule,
            ATTENTION_DONE: self._attention_done,
            STAND_IN: self._stand_in,
            WAVE_END: self._wave_end,
            STAGE_END: self._stage_end,
            BATCH_END: self._batch_end,
        }

    # ---------------------------------------------------------------- driving

    def start(self) -> list[Event]:
        """Events of the start, in order of creation."""
        return self.workload.start()

    def handle(self, event: Event) -> list[Event]:
        """Handle one event and return those that follow, in order of creation.

        Raises
        ------
        CoreError
            If a stage context rejects a call; the replica is then in a failing state.
        """
        try:
            return self._handlers[event.kind](event)
        except ValueError as error:
            raise CoreError(event, str(error)) from error

    @property
    def is_complete(self) -> bool:
        """Whether every batch has been formed and has ended."""
        return not any(self.in_flight) and self.workload.all_batches_formed

    # ---------------------------------------------------------------- lanes

    def _request(self, event: Event) -> list[Event]:
        return [Event(LANE_SCHEDULE, self.workload.request(event))]

    def _lane_schedule(self, event: Event) -> list[Event]:
        lane = event.lane
        arrivals = []
        while self.in_flight[lane] < self.config.max_in_flight:
            batch = self.workload.next_batch(lane)
            if batch is None:
                break
            self.in_flight[lane] += 1
            arrivals.append(Event(ARRIVE, lane, batch, 0))
        return arrivals

    def _batch_end(self, event: Event) -> list[Event]:
        self.in_flight[event.lane] -= 1
        self.workload.batch_ended(batch_of(event))
        return [Event(LANE_SCHEDULE, event.lane)]

    # ---------------------------------------------------------------- stages

    def _arrive(self, event: Event) -> list[Event]:
        batch, stage = batch_of(event), event.stage
        if self.config.admission.ticket_at == "arrival":
            self._mint(stage, batch)
        scheduler = self.schedulers[stage][event.lane]
        scheduler.push(batch)
        if scheduler.running is not None:
            return []
        return [Event(STAGE_SCHEDULE, event.lane, None, stage)]

    def _mint(self, stage: int, batch: Batch) -> Any:
        ticket = self.contexts[stage].enqueue_full_stage(operation_id=batch)
        self.tickets[stage][batch] = ticket
        return ticket

    def _stage_schedule(self, event: Event) -> list[Event]:
        lane, stage = event.lane, event.stage
        scheduler = self.schedulers[stage][lane]
        if scheduler.running is not None or not scheduler.queue:
            return []
        batch = scheduler.queue[0]
        ticket = self.tickets[stage].get(batch)
        if ticket is None:
            ticket = self._mint(stage, batch)
        if not self.contexts[stage].try_acquire(ticket):
            return []
        scheduler.run_head()
        return self._run(lane, batch, stage)

    def _run(self, lane: int, batch: Batch, stage: int) -> list[Event]:
        """Start what an admitted batch does first at a stage."""
        if not self.config.moe:
            return [Event(STAGE_END, lane, batch, stage)]
        self.contexts[stage].bind_forward_group(self.tickets[stage][batch])
        return [Event(ATTENTION_DONE, lane, batch, stage, 0)]

    def _stage_end(self, event: Event) -> list[Event]:
        lane, batch, stage = event.lane, batch_of(event), event.stage
        self.schedulers[stage][lane].running = None
        self.contexts[stage].release(self.tickets[stage].pop(batch))
        follow = self._retries(lane, stage)
        if stage + 1 < self.config.stages:
            follow.append(Event(ARRIVE, lane, batch, stage + 1))
        else:
            follow.append(Event(BATCH_END, lane, batch))
        return follow

    def _retries(self, lane: int, stage: int) -> list[Event]:
        """Whom the end of a lane's batch wakes at a stage: the lane itself, then the others."""
        schedulers = self.schedulers[stage]
        order = (lane, *(other for other in range(self.config.lanes) if other != lane))
        return [
            Event(STAGE_SCHEDULE, each, None, stage)
            for each in order
            if schedulers[each].running is None and schedulers[each].queue
        ]

    # ---------------------------------------------------------------- rooms and waves

    def _attention_done(self, event: Event) -> list[Event]:
        lane, batch, stage = event.lane, batch_of(event), event.stage
        key = self.config.rooms.key(stage, event.layer, batch)
        room = self.rooms.setdefault(key, {})
        self._store(room, stage, lane, batch)
        stand_ins = []
        if len(room) < self.config.lanes:
            allows, context = self.config.stand_in.allows, self.contexts[stage]
            for absent, scheduler in enumerate(self.schedulers[stage]):
                if absent not in room and allows(absent, scheduler, context):
                    self._store(room, stage, absent, None)
                    stand_ins.append(
                        Event(STAND_IN, absent, None, stage, event.layer, phase=key.phase)
                    )
        return stand_ins or self._dispatch_if_full(key, room)

    def _stand_in(self, event: Event) -> list[Event]:
        key = RoomKey(event.stage, event.layer, event.phase)
        room = self.rooms.get(key)
        if room is None or room.get(event.lane) is not None:
            return []
        self._store(room, event.stage, event.lane, None)
        return self._dispatch_if_full(key, room)

    def _store(self, room: Room, stage: int, lane: int, entry: Batch | None) -> None:
        room[lane] = entry
        if self.config.stand_in.withdraws_joined:
            schedulers = self.schedulers[stage]
            for other in [at for at, held in room.items() if held is None]:
                if schedulers[other].running is not None:
                    del room[other]

    def _dispatch_if_full(self, key: RoomKey, room: Room) -> list[Event]:
        if len(room) < self.config.lanes:
            return []
        batches = tuple([room[lane] for lane in sorted(room) if room[lane] is not None])
        context, tickets = self.contexts[key.stage], self.tickets[key.stage]
        owners = [tickets[batch] for batch in batches]
        wave = WaveOperation(key.layer, batches)  # type: ignore[arg-type]
        if len(owners) == 1:
            tickets[wave] = context.transition_active_scope(
                owners[0], operation_id=wave, scope=EP_WAVE, participant_ep_ids=self._world
            )
        else:
            tickets[wave] = context.replace_full_stage_owners_with_ep_wave(
                owners, operation_id=wave, participant_ep_ids=self._world
            )
        for batch in batches:
            del tickets[batch]
        del self.rooms[key]
        return [Event(WAVE_END, -1, None, key.stage, key.layer, members=wave.batches)]

    def _wave_end(self, event: Event) -> list[Event]:
        stage, layer, batches = event.stage, event.layer, event.members
        tickets = self.tickets[stage]
        owners = self.contexts[stage].replace_ep_wave_with_full_stage_owners(
            tickets.pop(WaveOperation(layer, batches)), operation_ids=batches
        )
        tickets.update(zip(batches, owners, strict=True))
        if layer + 1 < self.config.layers:
            return [Event(ATTENTION_DONE, b.lane, b, stage, layer + 1) for b in batches]
        return [Event(STAGE_END, b.lane, b, stage) for b in batches]

    # ---------------------------------------------------------------- snapshot

    def snapshot(self) -> ReplicaSnapshot:
        """Return what the future depends on; the contexts must offer ``snapshot`` too.

        Equal parts of the snapshots of one replica are one object (collapse compression), so
        that a stored state costs little more than references.
        """
        return self._compressed(self._loose_snapshot())

    def _loose_snapshot(self) -> ReplicaSnapshot:
        """Return a snapshot whose parts are objects of its own."""
        stages = []
        for context, lanes in zip(self.contexts, self.schedulers, strict=True):
            held = tuple([(lane.running, lane.in_order) for lane in lanes])
            stages.append(StageSnapshot(context.snapshot(), held))  # type: ignore[attr-defined]
        rooms = [(key, tuple(sorted(room.items()))) for key, room in self.rooms.items()]
        return ReplicaSnapshot(
            tuple(stages), tuple(sorted(rooms)), tuple(self.in_flight), self.workload.snapshot()
        )

    def _compressed(self, loose: ReplicaSnapshot) -> ReplicaSnapshot:
        shared = self._parts.setdefault
        stages = tuple([shared(stage, stage) for stage in loose.stages])
        return ReplicaSnapshot(shared(stages, stages), *[shared(part, part) for part in loose[1:]])

    def restore(self, snapshot: ReplicaSnapshot) -> None:
        """Become the replica of a snapshot, whatever this one was before."""
        for stage, (context, lanes) in enumerate(snapshot.stages):
            self.tickets[stage] = self.contexts[stage].restore(context)  # type: ignore[attr-defined]
            for scheduler, (running, queue) in zip(self.schedulers[stage], lanes, strict=True):
                scheduler.restore(running, queue)
        self.rooms = {key: dict(members) for key, members in snapshot.rooms}
        self.in_flight = list(snapshot.in_flight)
        self.workload.restore(snapshot.workload)


def batch_of(event: Event) -> Batch:
    """Batch of an event that has one; TypeError if it has none."""
    if event.batch is None:
        raise TypeError(f"{event.kind} needs a batch, got {event!r}")
    return event.batch
