"""The stage execution context: who may hold one physical ``(replica, stage)``, and in what scope.

Its public API and its errors are PROTOCOL.md section 2. Every method either does all it says or
raises ``ValueError`` and changes nothing: arguments are checked before the first assignment.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from frontier.admission import AdmissionRule, EpOrdered
from frontier.tickets import (
    EP_WAVE,
    FULL_STAGE_WORLD,
    SCOPES,
    Refusal,
    StageAdmissionTicket,
)

__all__ = [
    "EP_WAVE",
    "FULL_STAGE_WORLD",
    "ContextSnapshot",
    "StageAdmissionTicket",
    "StageExecutionContext",
]

_canonical_ticket = lru_cache(maxsize=None)(StageAdmissionTicket)
"""Tickets that :meth:`StageExecutionContext.restore` mints, shared between restores."""


class ContextSnapshot(NamedTuple):
    """All of a context that its future depends on: no sequence numbers, no group counter.

    ``active`` and ``queued`` hold ``(scope, operation_id)``; ``active`` is sorted because the
    order in which owners were admitted cannot matter later, ``queued`` is in FIFO order.
    """

    active: tuple[tuple[str, Hashable], ...]
    queued: tuple[tuple[str, Hashable], ...]
    bound: bool
    sealed: bool


def _require_int(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value


def _as_tuple(name: str, value: Iterable[Any]) -> tuple[Any, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise ValueError(f"{name} must be a sequence, got {value!r}") from None


def _require_hashable(name: str, value: object) -> None:
    try:
        hash(value)
    except TypeError:
        raise ValueError(f"{name} must be hashable, got {value!r}") from None


class StageExecutionContext:
    """Admission control of one physical stage, shared by all lanes (PROTOCOL.md section 2).

    Parameters
    ----------
    replica_id, stage_id
        Non-negative integers that name the stage.
    ep_size
        Number of EP participants of a wave, at least 1 (1 for a dense model).
    full_stage_capacity
        Number of full-stage owners that may be active at once, at least 1.
    rule
        Admission rule; the adopted ``ep_ordered`` unless another is given.

    Raises
    ------
    ValueError
        On any argument outside these bounds, naming the argument and the value.
    """

    def __init__(
        self,
        *,
        replica_id: int,
        stage_id: int,
        ep_size: int,
        full_stage_capacity: int = 1,
        rule: AdmissionRule | None = None,
    ) -> None:
        self._replica_id = _require_int("replica_id", replica_id, 0)
        self._stage_id = _require_int("stage_id", stage_id, 0)
        self._ep_size = _require_int("ep_size", ep_size, 1)
        self._capacity = _require_int("full_stage_capacity", full_stage_capacity, 1)
        self._rule: AdmissionRule = EpOrdered() if rule is None else rule
        self._world = tuple(range(ep_size))
        self._queue: list[StageAdmissionTicket] = []
        self._active: dict[int, StageAdmissionTicket] = {}
        self._wave: StageAdmissionTicket | None = None
        self._live_operations: set[Hashable] = set()
        self._cancelled: set[StageAdmissionTicket] = set()
        self._next_seq = 0
        self._next_group = 0
        self._group: int | None = None
        self._sealed = False

    # ---------------------------------------------------------------- view

    @property
    def replica_id(self) -> int:
        """Replica that the stage belongs to."""
        return self._replica_id

    @property
    def stage_id(self) -> int:
        """Stage number."""
        return self._stage_id

    @property
    def ep_size(self) -> int:
        """Number of EP participants."""
        return self._ep_size

    @property
    def full_stage_capacity(self) -> int:
        """Number of full-stage owners that may be active at once."""
        return self._capacity

    @property
    def rule(self) -> AdmissionRule:
        """Admission rule in force."""
        return self._rule

    @property
    def is_idle(self) -> bool:
        """Whether nothing is active."""
        return not self._active

    @property
    def queued_tickets(self) -> tuple[StageAdmissionTicket, ...]:
        """The ready FIFO, head first."""
        return tuple(self._queue)

    @property
    def active_tickets(self) -> tuple[StageAdmissionTicket, ...]:
        """Everything that holds the stage, by ``admission_seq``."""
        return tuple(self._active[seq] for seq in sorted(self._active))

    @property
    def forward_group_sealed(self) -> bool:
        """Whether the bound forward group takes no more owners."""
        return self._sealed

    @property
    def joinable_forward_group_id(self) -> int:
        """Id of the bound group while it is unsealed, else the next id."""
        if self._group is not None and not self._sealed:
            return self._group
        return self._next_group

    @property
    def forward_group_bound(self) -> bool:
        """Whether an active owner has bound a forward group."""
        return self._group is not None

    def _shown(self) -> StageAdmissionTicket | None:
        if self._wave is not None:
            return self._wave
        return self._active[min(self._active)] if self._active else None

    @property
    def active_scope(self) -> str | None:
        """Scope in the single-ticket view: the wave, else the owner of smallest sequence."""
        shown = self._shown()
        return None if shown is None else shown.scope

    @property
    def active_operation_id(self) -> Hashable | None:
        """Operation in the single-ticket view, None when idle."""
        shown = self._shown()
        return None if shown is None else shown.operation_id

    @property
    def active_participant_ep_ids(self) -> tuple[int, ...]:
        """EP participants in the single-ticket view, empty when idle or full-stage."""
        shown = self._shown()
        return () if shown is None else shown.participant_ep_ids

    def is_active(self, ticket: StageAdmissionTicket) -> bool:
        """Whether the ticket holds the stage; never raises."""
        return isinstance(ticket, StageAdmissionTicket) and self._holds(ticket)

    def is_queued(self, ticket: StageAdmissionTicket) -> bool:
        """Whether the ticket waits in the ready FIFO; never raises."""
        return isinstance(ticket, StageAdmissionTicket) and ticket in self._queue

    def is_cancelled(self, ticket: StageAdmissionTicket) -> bool:
        """Whether the ticket was withdrawn; never raises."""
        try:
            return ticket in self._cancelled
        except TypeError:
            return False

    def owns(self, ticket: StageAdmissionTicket) -> bool:
        """Whether a valid ticket (queued or active here) holds the stage; ValueError if invalid."""
        self._validate(ticket)
        return self._holds(ticket)

    def _holds(self, ticket: StageAdmissionTicket) -> bool:
        return self._active.get(ticket.admission_seq) == ticket

    def _validate(self, ticket: StageAdmissionTicket) -> None:
        if not isinstance(ticket, StageAdmissionTicket):
            raise ValueError(f"ticket must be a StageAdmissionTicket, got {ticket!r}")
        if (ticket.replica_id, ticket.stage_id) != (self._replica_id, self._stage_id):
            raise ValueError(
                f"ticket belongs to replica {ticket.replica_id!r} stage {ticket.stage_id!r}, this "
                f"context is replica {self._replica_id} stage {self._stage_id}: {ticket!r}"
            )
        if not isinstance(ticket.scope, str) or ticket.scope not in SCOPES:
            raise ValueError(f"ticket has unknown scope {ticket.scope!r}: {ticket!r}")
        if not self._holds(ticket) and ticket not in self._queue:
            raise ValueError(f"ticket is neither queued nor active: {ticket!r}")

    def _require_active(self, ticket: StageAdmissionTicket, action: str) -> None:
        self._validate(ticket)
        if not self._holds(ticket):
            raise ValueError(f"cannot {action} a ticket that is not active: {ticket!r}")

    # ---------------------------------------------------------------- queue

    def enqueue_full_stage(self, *, operation_id: Hashable) -> StageAdmissionTicket:
        """Queue one lane's operation and return its ticket.

        Raises
        ------
        ValueError
            If the operation id is unhashable, or already queued or active.
        """
        self._require_new_operation(operation_id)
        return self._enqueue(operation_id, FULL_STAGE_WORLD, ())

    def enqueue_ep_wave(
        self, *, operation_id: Hashable, participant_ep_ids: Sequence[int]
    ) -> StageAdmissionTicket:
        """Queue one EP wave and return its ticket.

        Raises
        ------
        ValueError
            As :meth:`enqueue_full_stage`, or if the participants are not ``0 ... ep_size - 1``.
        """
        self._require_new_operation(operation_id)
        participants = self._require_world(participant_ep_ids)
        return self._enqueue(operation_id, EP_WAVE, participants)

    def _enqueue(
        self, operation_id: Hashable, scope: str, participants: tuple[int, ...]
    ) -> StageAdmissionTicket:
        ticket = self._mint(operation_id, scope, participants)
        self._queue.append(ticket)
        return ticket

    def _mint(
        self, operation_id: Hashable, scope: str, participants: tuple[int, ...]
    ) -> StageAdmissionTicket:
        ticket = StageAdmissionTicket(
            self._replica_id, self._stage_id, self._next_seq, operation_id, scope, participants
        )
        self._next_seq += 1
        self._live_operations.add(operation_id)
        return ticket

    def _require_new_operation(self, operation_id: Hashable) -> None:
        _require_hashable("operation_id", operation_id)
        if operation_id in self._live_operations:
            raise ValueError(f"operation_id is already queued or active: {operation_id!r}")

    def _require_world(self, participant_ep_ids: Sequence[int]) -> tuple[int, ...]:
        given = _as_tuple("participant_ep_ids", participant_ep_ids)
        if given != self._world or any(type(i) is not int for i in given):
            raise ValueError(
                f"participant_ep_ids must be 0 ... {self._ep_size - 1} in order, "
                f"got {participant_ep_ids!r}"
            )
        return self._world

    def cancel(self, ticket: StageAdmissionTicket) -> None:
        """Withdraw a queued ticket; ValueError if it is not queued here."""
        self._validate(ticket)
        if self._holds(ticket):
            raise ValueError(f"cannot cancel a ticket that is active: {ticket!r}")
        self._queue.remove(ticket)
        self._live_operations.discard(ticket.operation_id)
        self._cancelled.add(ticket)

    # ---------------------------------------------------------------- admission

    def try_acquire(self, ticket: StageAdmissionTicket) -> bool:
        """Admit the ticket now and return True, or return False and change nothing.

        Raises
        ------
        ValueError
            If the ticket is neither queued nor active here.
        """
        self._validate(ticket)
        if self._holds(ticket) or next(self._obstacles(ticket), None) is not None:
            return False
        self._queue.remove(ticket)
        self._active[ticket.admission_seq] = ticket
        if ticket.scope == EP_WAVE:
            self._wave = ticket
        return True

    def refusals(self, ticket: StageAdmissionTicket) -> tuple[Refusal, ...]:
        """Every obstacle that keeps a queued ticket out now; empty means it would be admitted."""
        self._validate(ticket)
        return () if self._holds(ticket) else tuple(self._obstacles(ticket))

    def _obstacles(self, ticket: StageAdmissionTicket) -> Iterator[Refusal]:
        if self._wave is not None:
            yield Refusal("ep_wave_active", (self._wave,))
        elif self._active and ticket.scope == EP_WAVE:
            yield Refusal("owners_active", self.active_tickets)
        if ticket.scope == FULL_STAGE_WORLD and self._active:
            owners = len(self._active) - (self._wave is not None)
            if owners >= self._capacity:
                yield Refusal("capacity", self.active_tickets)
            if self._sealed:
                yield Refusal("sealed", self.active_tickets)
        behind = self._rule.blockers(ticket, self._queue, self._active.values())
        if behind:
            yield Refusal("behind", behind)

    def release(self, ticket: StageAdmissionTicket) -> None:
        """End an active operation; the last one out unbinds and unseals the forward group."""
        self._require_active(ticket, "release")
        self._drop(ticket)
        if not self._active:
            self._group = None
            self._sealed = False

    def _drop(self, ticket: StageAdmissionTicket) -> None:
        del self._active[ticket.admission_seq]
        self._live_operations.discard(ticket.operation_id)
        if ticket is self._wave or ticket == self._wave:
            self._wave = None

    # ---------------------------------------------------------------- forward group and scope

    def bind_forward_group(self, ticket: StageAdmissionTicket) -> int:
        """Join the stage's shared forward group, opening the next one if none is bound.

        Raises
        ------
        ValueError
            If the ticket is not an active full-stage owner.
        """
        self._require_active(ticket, "bind")
        if ticket.scope != FULL_STAGE_WORLD:
            raise ValueError(f"only a full-stage owner binds a forward group: {ticket!r}")
        if self._group is None:
            self._group = self._next_group
            self._next_group += 1
        return self._group

    def transition_active_scope(
        self,
        ticket: StageAdmissionTicket,
        *,
        operation_id: Hashable,
        scope: str,
        participant_ep_ids: Sequence[int] = (),
    ) -> StageAdmissionTicket:
        """Replace one active owner's operation without releasing the stage; return its ticket.

        Raises
        ------
        ValueError
            If the ticket is not active, the scope unknown, the operation id not new, the
            participants wrong for the scope, or other owners are active while a full-stage
            owner leaves its scope.
        """
        self._require_active(ticket, "transition")
        if not isinstance(scope, str) or scope not in SCOPES:
            raise ValueError(f"scope must be one of {sorted(SCOPES)}, got {scope!r}")
        self._require_new_operation(operation_id)
        if scope == EP_WAVE:
            participants = self._require_world(participant_ep_ids)
        elif _as_tuple("participant_ep_ids", participant_ep_ids):
            raise ValueError(
                f"participant_ep_ids must be empty for {scope}, got {participant_ep_ids!r}"
            )
        else:
            participants = ()
        if ticket.scope == FULL_STAGE_WORLD and scope != ticket.scope and len(self._active) > 1:
            others = [t for t in self.active_tickets if t != ticket]
            raise ValueError(
                f"cannot leave full-stage scope while other owners are active: {others!r}"
            )
        return self._replace((ticket,), (operation_id,), scope, participants)[0]

    def replace_full_stage_owners_with_ep_wave(
        self,
        owner_tickets: Sequence[StageAdmissionTicket],
        *,
        operation_id: Hashable,
        participant_ep_ids: Sequence[int],
    ) -> StageAdmissionTicket:
        """Turn active lane owners into one active EP wave, atomically; return the wave's ticket.

        Raises
        ------
        ValueError
            With no owner, an owner twice, one that is not an active full-stage owner, while an
            EP wave is active, or on a bad operation id or participant set.
        """
        owners = _as_tuple("owner_tickets", owner_tickets)
        if not owners:
            raise ValueError("owner_tickets must name at least one owner, got none")
        for owner in owners:
            self._require_active(owner, "promote")
            if owner.scope != FULL_STAGE_WORLD:
                raise ValueError(f"owner_tickets must be full-stage owners, got {owner!r}")
        if len(set(owners)) != len(owners):
            raise ValueError(f"owner_tickets must not repeat an owner, got {owners!r}")
        if self._wave is not None:
            raise ValueError(f"cannot promote while an EP wave is active: {self._wave!r}")
        self._require_new_operation(operation_id)
        participants = self._require_world(participant_ep_ids)
        return self._replace(owners, (operation_id,), EP_WAVE, participants)[0]

    def replace_ep_wave_with_full_stage_owners(
        self, wave_ticket: StageAdmissionTicket, *, operation_ids: Sequence[Hashable]
    ) -> tuple[StageAdmissionTicket, ...]:
        """Turn the active EP wave into one full-stage owner per operation id, in that order.

        Raises
        ------
        ValueError
            If the ticket is not an active EP wave, or the operation ids are none, repeated, not
            new, or more than the capacity leaves room for.
        """
        self._require_active(wave_ticket, "restore")
        if wave_ticket.scope != EP_WAVE:
            raise ValueError(f"wave_ticket must be an EP wave, got {wave_ticket!r}")
        operations = _as_tuple("operation_ids", operation_ids)
        if not operations:
            raise ValueError("operation_ids must name at least one operation, got none")
        for operation_id in operations:
            self._require_new_operation(operation_id)
        if len(set(operations)) != len(operations):
            raise ValueError(f"operation_ids must not repeat, got {operations!r}")
        if len(self._active) - 1 + len(operations) > self._capacity:
            raise ValueError(
                f"operation_ids must not exceed full_stage_capacity {self._capacity} with "
                f"{len(self._active) - 1} other owners active, got {operations!r}"
            )
        return self._replace((wave_ticket,), operations, FULL_STAGE_WORLD, ())

    def _replace(
        self,
        old: tuple[StageAdmissionTicket, ...],
        operations: tuple[Hashable, ...],
        scope: str,
        participants: tuple[int, ...],
    ) -> tuple[StageAdmissionTicket, ...]:
        """Swap active tickets for new ones; a bound group seals when its scope changes."""
        changes_scope = any(ticket.scope != scope for ticket in old)
        for ticket in old:
            self._drop(ticket)
        new = tuple(self._mint(op, scope, participants) for op in operations)
        for ticket in new:
            self._active[ticket.admission_seq] = ticket
        if scope == EP_WAVE:
            self._wave = new[0]
        if changes_scope and self._group is not None:
            self._sealed = True
        return new

    # ---------------------------------------------------------------- snapshot

    def snapshot(self) -> ContextSnapshot:
        """Return what the future depends on; operation ids of one scope must be sortable."""
        return ContextSnapshot(
            tuple(sorted([(t.scope, t.operation_id) for t in self._active.values()])),
            tuple([(t.scope, t.operation_id) for t in self._queue]),
            self._group is not None,
            self._sealed,
        )

    def restore(self, snapshot: ContextSnapshot) -> dict[Hashable, StageAdmissionTicket]:
        """Become the context of a snapshot; return its live tickets by operation id.

        Sequence numbers start again from 0: active tickets first, then the FIFO in its order.
        """
        replica, stage, world = self._replica_id, self._stage_id, self._world
        tickets = {
            operation: _canonical_ticket(
                replica, stage, seq, operation, scope, world if scope == EP_WAVE else ()
            )
            for seq, (scope, operation) in enumerate(snapshot.active + snapshot.queued)
        }
        live = list(tickets.values())
        owners = live[: len(snapshot.active)]
        self._active = dict(enumerate(owners))
        self._wave = next((t for t in owners if t.scope == EP_WAVE), None)
        self._queue = live[len(owners) :]
        self._live_operations = set(tickets)
        self._cancelled = set()
        self._next_seq = len(live)
        self._group = 0 if snapshot.bound else None
        self._next_group = int(snapshot.bound)
        self._sealed = snapshot.sealed
        return tickets
