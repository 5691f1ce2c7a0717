"""State invariants of a ``DECODE_FFN`` stage, read from its snapshot (issue 7, section 7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from frontier.events import EXPERT, Batch
from frontier.ffn import FfnConfig, FfnSnapshot
from models.group_view import name_of_scheduler
from models.quiescent import ProtocolState
from models.waits import ORPHAN_TICKET
from verify.properties import Property, invariant


def _snapshot(state: ProtocolState) -> FfnSnapshot:
    snapshot = state.system
    if not isinstance(snapshot, FfnSnapshot):
        raise TypeError(f"expected the state of a DECODE_FFN stage, got {type(snapshot).__name__}")
    return snapshot


def _named(groups: Iterable[Hashable]) -> str:
    """Say groups in words."""
    return ", ".join(sorted(g.title if isinstance(g, Batch) else str(g) for g in groups))


def _schedulers(config: FfnConfig, numbers: Iterable[int]) -> str:
    """Say schedulers in words."""
    return ", ".join(name_of_scheduler(config, n) for n in sorted(numbers)) or "nobody"


def _schedulers_of(config: FfnConfig, group: Batch) -> set[int]:
    return set(range(config.ep_size)) if group.phase == EXPERT else {group.lane}


def group_invariants(config: FfnConfig) -> tuple[Property[ProtocolState], ...]:
    """Return the invariants of a stage of this shape; they judge non-failing states."""
    minted_at_arrival = config.admission.ticket_at == "arrival"

    def exclusive(state: ProtocolState) -> str | None:
        """Check that a wave holds the stage alone, full-stage owners within the capacity."""
        active = _snapshot(state).context.active
        waves = sum(isinstance(g, Batch) and g.phase == EXPERT for _, g in active)
        limit = 1 if waves else config.capacity
        if len(active) <= limit:
            return None
        return f"the stage is held at once by {_named(group for _, group in active)}"

    def runs_what_it_holds(state: ProtocolState) -> str | None:
        """Check that every running group holds the stage."""
        snapshot = _snapshot(state)
        held = {operation for _, operation in snapshot.context.active}
        running = {group for group, _ in snapshot.schedulers if group is not None}
        return None if running <= held else f"{_named(running - held)} runs without a ticket"

    def ticket_in_one_place(state: ProtocolState) -> str | None:
        """Check that a queued group stands in the heap of every scheduler of its own."""
        snapshot = _snapshot(state)
        queued = [operation for _, operation in snapshot.context.queued]
        heaps = [set(queue) for _, queue in snapshot.schedulers]
        for group in queued:
            if not isinstance(group, Batch):
                return f"the operation {group} is queued, which is no group"
            own = _schedulers_of(config, group)
            having = {number for number, heap in enumerate(heaps) if group in heap}
            if having != own:
                return (
                    f"the ticket of {group.title} is queued for {_schedulers(config, own)}, but it "
                    f"waits in the heap of {_schedulers(config, having)}"
                )
        held = {operation for _, operation in snapshot.context.active}
        homeless = set().union(*heaps) - set(queued) - held
        if minted_at_arrival and homeless:
            return f"{_named(homeless)} waits without a ticket"
        return None

    def no_orphan(state: ProtocolState) -> str | None:
        """Check that every ticket's group is still there, to be presented or to end."""
        snapshot = _snapshot(state)
        there = {group for _, queue in snapshot.schedulers for group in queue}
        there |= {group for group, _ in snapshot.schedulers if group is not None}
        there |= {event.batch for event in state.pending if event.batch is not None}
        for _, operation in (*snapshot.context.active, *snapshot.context.queued):
            if isinstance(operation, Batch) and operation not in there:
                return f"a ticket is left of {operation.title}, which is gone: nobody will use it"
        return None

    checks = {
        ORPHAN_TICKET: no_orphan,
        "ownership_exclusive": exclusive,
        "runs_what_it_holds": runs_what_it_holds,
        "ticket_in_one_place": ticket_in_one_place,
    }
    return tuple(
        invariant(name, lambda state, check=check: None if state.failed else check(state))  # type: ignore[misc]
        for name, check in checks.items()
    )
