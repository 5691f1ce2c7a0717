"""Who waits for whom in a lane replica, and what class of violation a state is (issue 2).

Participants are lanes at a stage, rooms, queued tickets, and active waves. A participant with a
pending event of its own moves by itself and has no wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from frontier.context import StageExecutionContext
from frontier.events import ENVIRONMENT, Batch, Event
from frontier.replica import Replica
from frontier.rooms import Room, RoomKey
from frontier.tickets import StageAdmissionTicket
from models.contexts import ExplainingContext
from verify.waitfor import Wait, WaitFor, analyse

CIRCULAR_WAIT: Final = "circular_wait"
LOST_WAKEUP: Final = "lost_wakeup"
STRANDED_RENDEZVOUS: Final = "stranded_rendezvous"
SPLIT_RENDEZVOUS: Final = "split_rendezvous"
WAVE_ORDER: Final = "wave_order"
ORPHAN_TICKET: Final = "orphan_ticket"
CORE_ERROR: Final = "core_error"
INVARIANT_VIOLATION: Final = "invariant_violation"

IN_ROOM: Final = "in_room"
NEEDS_LANE: Final = "needs_lane"
OTHER_ROOM: Final = "other_room"
NEVER_ENTERS: Final = "never_enters"
REFUSED: Final = "refused"
PRESENTED_BY: Final = "presented_by"
NO_WAKE_UP: Final = "no_wake_up"
NO_EVENT: Final = "no_event"


def lane_name(lane: int, stage: int) -> str:
    """Participant: a lane at a stage."""
    return f"lane {lane} at stage {stage}"


def room_name(key: RoomKey) -> str:
    """Participant: a room."""
    kind = f"{key.phase} room" if key.phase else "room"
    return f"{kind} (stage {key.stage}, layer {key.layer})"


def ticket_name(ticket: StageAdmissionTicket) -> str:
    """Participant: a queued ticket."""
    operation: Any = ticket.operation_id
    return f"ticket seq {ticket.admission_seq} (lane {operation.lane}) of stage {ticket.stage_id}"


def wave_name(stage: int) -> str:
    """Participant: the active EP wave of a stage."""
    return f"EP wave at stage {stage}"


class _Waits:
    """Collects the waits of one state."""

    def __init__(self, replica: Replica, pending: Sequence[Event]) -> None:
        self.replica = replica
        pending = [event for event in pending if event.kind not in ENVIRONMENT]
        self.moving = {e.batch for e in pending if e.batch is not None}
        self.moving.update(batch for e in pending for batch in e.members)
        self.requests = {e.lane for e in pending if e.batch is None and not e.members}

    def all(self) -> Iterator[Wait]:
        for stage, schedulers in enumerate(self.replica.schedulers):
            for lane, scheduler in enumerate(schedulers):
                if scheduler.running is not None:
                    yield from self._running(stage, lane, scheduler.running)
                elif scheduler.queue:
                    yield from self._blocked(stage, lane, scheduler.queue[0])
            yield from self._tickets(stage)
            yield from self._orphans(stage)
        for key, room in sorted(self.replica.rooms.items()):
            yield from self._room(key, room)

    def _running(self, stage: int, lane: int, batch: Batch) -> Iterator[Wait]:
        if batch in self.moving:
            return
        key = self._room_of(stage, lane, batch)
        name = lane_name(lane, stage)
        if key is None:
            yield Wait(name, (), "runs a batch that no event will end", NO_EVENT)
        else:
            yield Wait(name, (room_name(key),), f"waits in the {room_name(key)}", IN_ROOM)

    def _room_of(self, stage: int, lane: int, batch: Batch) -> RoomKey | None:
        rooms = self.replica.rooms.items()
        return next((k for k, r in rooms if k.stage == stage and r.get(lane) == batch), None)

    def _blocked(self, stage: int, lane: int, batch: Batch) -> Iterator[Wait]:
        context = self.replica.contexts[stage]
        ticket = self.replica.tickets[stage].get(batch)
        name = lane_name(lane, stage)
        if ticket is None:
            reason = "has a batch without a ticket, and no event is left that would present it"
            yield Wait(name, (), reason, NO_WAKE_UP)
            return
        if not isinstance(context, ExplainingContext):
            yield from self._blocked_opaquely(name, context, ticket)
            return
        refusals = context.refusals(ticket)
        own = f"seq {ticket.admission_seq}"
        if not refusals:
            reason = f"would be admitted now ({own}), but no event is left that would retry it"
            yield Wait(name, (), reason, NO_WAKE_UP)
        for refusal in refusals:
            if not refusal.blockers:
                reason = f"is refused ({own}), though nothing that the context shows is in the way"
                yield Wait(name, (), reason, NO_WAKE_UP)
                continue
            targets = tuple(self._holder(stage, t) for t in refusal.blockers)
            if refusal.reason == "behind":
                head = refusal.blockers[0]
                targets = tuple(ticket_name(t) for t in refusal.blockers)
                reason = f"is refused ({own}): it stands behind {ticket_name(head)}"
            elif refusal.reason == "capacity":
                reason = f"is refused ({own}): all owner slots are taken"
            elif refusal.reason == "sealed":
                reason = f"is refused ({own}): the forward group is sealed until every owner leaves"
            else:
                reason = f"is refused ({own}): an EP wave holds the stage"
            yield Wait(name, targets, reason, REFUSED, refusal.mode)

    def _blocked_opaquely(self, name: str, context: Any, ticket: Any) -> Iterator[Wait]:
        """Read a foreign context through its public API: it tells no reasons."""
        queue = list(context.queued_tickets)
        ahead = queue[: queue.index(ticket)] if ticket in queue else []
        targets = tuple(ticket_name(t) for t in ahead)
        reason = "is refused by the context; " + (
            f"it stands behind {targets[0]}" if targets else "no ticket stands ahead of it"
        )
        yield Wait(name, targets, reason, REFUSED if targets else NO_WAKE_UP)

    def _holder(self, stage: int, ticket: StageAdmissionTicket) -> str:
        operation = ticket.operation_id
        if not isinstance(operation, Batch):
            return wave_name(stage)
        if self._is_orphan(stage, operation):
            return ticket_name(ticket)
        return lane_name(operation.lane, stage)

    def _is_orphan(self, stage: int, batch: Batch) -> bool:
        """Whether nothing of a batch is left but its ticket."""
        scheduler = self.replica.schedulers[stage][batch.lane]
        return (
            scheduler.running != batch and batch not in scheduler.queue and batch not in self.moving
        )

    def _orphans(self, stage: int) -> Iterator[Wait]:
        context = self.replica.contexts[stage]
        if not isinstance(context, StageExecutionContext):
            return
        for ticket in (*context.active_tickets, *context.queued_tickets):
            operation = ticket.operation_id
            if isinstance(operation, Batch) and self._is_orphan(stage, operation):
                reason = "is left of a batch that is gone: nobody will present or release it"
                yield Wait(ticket_name(ticket), (), reason, ORPHAN_TICKET)

    def _tickets(self, stage: int) -> Iterator[Wait]:
        for ticket in self.replica.contexts[stage].queued_tickets:
            batch: Batch = ticket.operation_id
            if self._is_orphan(stage, batch):
                continue
            busy = self.replica.schedulers[stage][batch.lane].busy
            reason = (
                f"can be presented only by lane {batch.lane}, which is busy with an earlier batch"
                if busy
                else f"is presented by lane {batch.lane}, which is not admitted"
            )
            target = lane_name(batch.lane, stage)
            yield Wait(ticket_name(ticket), (target,), reason, PRESENTED_BY)

    def _room(self, key: RoomKey, room: Room) -> Iterator[Wait]:
        for lane in range(self.replica.config.lanes):
            if lane not in room:
                yield self._missing(key, lane)

    def _missing(self, key: RoomKey, lane: int) -> Wait:
        name, scheduler = room_name(key), self.replica.schedulers[key.stage][lane]
        here = lane_name(lane, key.stage)
        if scheduler.running is not None:
            other = self._room_of(key.stage, lane, scheduler.running)
            if other is not None and other.layer == key.layer:
                reason = f"needs lane {lane}, which waits in the {room_name(other)} instead"
                return Wait(name, (here,), reason, OTHER_ROOM)
            if other is not None and other.layer > key.layer:
                reason = f"needs lane {lane}, which has passed it: it waits in layer {other.layer}"
                return Wait(name, (), reason, NEVER_ENTERS)
            return Wait(name, (here,), f"needs lane {lane}, which is busy here", NEEDS_LANE)
        if scheduler.queue and self.replica.contexts[key.stage].forward_group_sealed:
            reason = (
                f"needs lane {lane}, which the sealed group keeps out; a stand-in could count for "
                f"it, but is stored only when somebody enters"
            )
            return Wait(name, (), reason, NEVER_ENTERS)
        if scheduler.queue:
            reason = f"needs lane {lane}, whose batch is not admitted; no stand-in is allowed"
            return Wait(name, (here,), reason, NEEDS_LANE)
        elsewhere = self._nearest_work(lane, key.stage)
        if elsewhere is None:
            reason = f"needs lane {lane}, which has nothing left to bring, and no stand-in is due"
            return Wait(name, (), reason, NEVER_ENTERS)
        reason = f"needs lane {lane}, whose next batch is held up: {elsewhere}"
        return Wait(name, (elsewhere,), reason, NEEDS_LANE)

    def _nearest_work(self, lane: int, stage: int) -> str | None:
        """Where the lane's next batch for a stage is: the closest earlier stage with one."""
        for earlier in range(stage - 1, -1, -1):
            scheduler = self.replica.schedulers[earlier][lane]
            if scheduler.busy or scheduler.queue:
                return lane_name(lane, earlier)
        if lane in self.requests:
            return f"lane {lane}'s next request"
        return None


def lane_waits(replica: Replica, pending: Sequence[Event]) -> WaitFor:
    """Analyse who waits for whom in a live replica with these pending timed events.

    The cycle starts at a lane that waits in a room, if one does.
    """
    analysis = analyse(tuple(_Waits(replica, pending).all()))
    cycle = analysis.cycle
    start = next((i for i, edge in enumerate(cycle) if edge.kind == IN_ROOM), 0)
    return replace(analysis, cycle=cycle[start:] + cycle[:start])


def classify(analysis: WaitFor) -> str:
    """Name the class of a drained state (issue 2).

    A cycle of rooms in which a lane waits in another room of the same layer is a split
    rendezvous; any other cycle a circular wait. Without a cycle the waits that nothing ends
    decide: a room that nobody will enter strands its members (the missing lanes have passed it,
    have nothing left to bring, or are kept out by the seal of the very group that waits in it),
    and a ticket that would be admitted but is never retried is a lost wake-up. A ticket whose
    batch is gone, wherever it blocks, is an orphan.
    """
    if any(edge.kind == OTHER_ROOM for edge in analysis.cycle):
        return SPLIT_RENDEZVOUS
    if analysis.cycle:
        return CIRCULAR_WAIT
    kinds = {wait.kind for wait in analysis.dead_ends}
    if ORPHAN_TICKET in kinds:
        return ORPHAN_TICKET
    return STRANDED_RENDEZVOUS if NEVER_ENTERS in kinds else LOST_WAKEUP
