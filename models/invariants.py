"""State invariants of a lane replica, read from its snapshot (issue 2, PROTOCOL.md sections 1-4).

Each is a function from a state to the sentence that says what is wrong, or None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from frontier.context import ContextSnapshot
from frontier.events import Batch, WaveOperation
from frontier.replica import ReplicaConfig, ReplicaSnapshot, StageSnapshot
from frontier.tickets import EP_WAVE
from models.quiescent import ProtocolState
from models.view import describe_operation
from models.waits import ORPHAN_TICKET
from verify.properties import Property, invariant

Check = Callable[[ProtocolState], str | None]


def _snapshot(state: ProtocolState) -> ReplicaSnapshot:
    snapshot = state.system
    if not isinstance(snapshot, ReplicaSnapshot):
        raise TypeError(f"expected the state of a lane replica, got {type(snapshot).__name__}")
    return snapshot


def _context(stage: StageSnapshot) -> ContextSnapshot:
    context = stage.context
    if not isinstance(context, ContextSnapshot):
        raise TypeError(f"expected a ContextSnapshot, got {type(context).__name__}")
    return context


def _named(batches: Iterable[object]) -> str:
    """Batches in words."""
    return ", ".join(sorted(map(describe_operation, batches))) or "nothing"


def owners(context: ContextSnapshot) -> list[Batch]:
    """Batches that hold the stage: full-stage owners, and the members of the active wave."""
    held: list[Batch] = []
    for _, operation in context.active:
        if isinstance(operation, WaveOperation):
            held.extend(operation.batches)
        elif isinstance(operation, Batch):
            held.append(operation)
    return held


def ownership_exclusive(state: ProtocolState) -> str | None:
    """At most one EP wave holds a stage, and no lane holds a stage twice."""
    for number, stage in enumerate(_snapshot(state).stages):
        context = _context(stage)
        if sum(scope == EP_WAVE for scope, _ in context.active) > 1:
            return f"stage {number} has more than one active EP wave"
        lanes = [batch.lane for batch in owners(context)]
        if len(set(lanes)) != len(lanes):
            return f"a lane holds stage {number} twice: lanes {sorted(lanes)}"
    return None


def one_batch_per_lane_and_stage(state: ProtocolState) -> str | None:
    """Each lane runs exactly the batch with which it holds the stage."""
    moving = {event.batch for event in state.pending}
    moving.update(batch for event in state.pending for batch in event.members)
    for number, stage in enumerate(_snapshot(state).stages):
        running = [batch for batch, _ in stage.lanes if batch is not None]
        held = owners(_context(stage))
        if sorted(running) != sorted(held):
            return f"stage {number} is held by {_named(held)}, but its lanes run {_named(running)}"
    return None


def ticket_in_one_place(state: ProtocolState, minted_at_arrival: bool) -> str | None:
    """Each ticket is queued or active, never both; queued ones are those of queued batches."""
    for number, stage in enumerate(_snapshot(state).stages):
        context = _context(stage)
        tickets = Counter([operation for _, operation in context.queued])
        tickets.update(owners(context))
        twice = [operation for operation, count in tickets.items() if count > 1]
        if twice:
            return f"stage {number} has more than one ticket for {_named(twice)}"
        fifo = {operation for _, operation in context.queued}
        heaps = {batch for _, queue in stage.lanes for batch in queue}
        if not fifo <= heaps or (minted_at_arrival and fifo != heaps):
            return (
                f"stage {number} has tickets queued for {_named(fifo)}, but batches {_named(heaps)}"
            )
    return None


def _placed(snapshot: ReplicaSnapshot) -> Iterator[Batch]:
    for stage in snapshot.stages:
        for running, queue in stage.lanes:
            yield from queue
            if running is not None:
                yield running


def work_conserved(state: ProtocolState) -> str | None:
    """Every batch in flight is at exactly one place, and a lane's count of them is right."""
    snapshot = _snapshot(state)
    placed = list(_placed(snapshot))
    if len(set(placed)) != len(placed):
        twice = [batch for batch, count in Counter(placed).items() if count > 1]
        return f"a batch is at two places: {_named(twice)}"
    per_lane = Counter(batch.lane for batch in placed)
    for lane, count in enumerate(snapshot.in_flight):
        if per_lane[lane] != count:
            return f"lane {lane} has {count} batches in flight, but {per_lane[lane]} are at a stage"
    return None


def no_orphan_ticket(state: ProtocolState) -> str | None:
    """Every ticket's batch is still there: to be presented if queued, to end if active."""
    moving = {event.batch for event in state.pending}
    moving.update(batch for event in state.pending for batch in event.members)
    for number, stage in enumerate(_snapshot(state).stages):
        running = {batch for batch, _ in stage.lanes if batch is not None}
        for batch in owners(_context(stage)):
            if batch not in running and batch not in moving:
                return (
                    f"a ticket of lane {batch.lane} holds stage {number}, but its batch is gone: "
                    f"nobody will ever release it"
                )
        heaps = {batch for _, queue in stage.lanes for batch in queue}
        for _, operation in _context(stage).queued:
            if operation not in heaps:
                lane = getattr(operation, "lane", None)
                return (
                    f"a ticket of lane {lane} stands in the FIFO of stage {number}, but its batch "
                    f"is gone: nobody will ever present it"
                )
    return None


def _unless_failed(check: Check) -> Check:
    return lambda state: None if state.failed else check(state)


def lane_invariants(config: ReplicaConfig) -> tuple[Property[ProtocolState], ...]:
    """Return the invariants of a lane replica of this shape; they judge non-failing states."""
    capacity = config.lanes if config.capacity is None else config.capacity
    minted_at_arrival = config.admission.ticket_at == "arrival"

    def within_capacity(state: ProtocolState) -> str | None:
        for number, stage in enumerate(_snapshot(state).stages):
            held = owners(_context(stage))
            if len(held) > capacity:
                return f"stage {number} has {len(held)} owners, capacity is {capacity}"
        return None

    checks: dict[str, Check] = {
        ORPHAN_TICKET: no_orphan_ticket,
        "ownership_exclusive": ownership_exclusive,
        "capacity": within_capacity,
        "one_batch_per_lane_and_stage": one_batch_per_lane_and_stage,
        "ticket_in_one_place": lambda state: ticket_in_one_place(state, minted_at_arrival),
        "work_conserved": work_conserved,
    }
    return tuple(invariant(name, _unless_failed(check)) for name, check in checks.items())
