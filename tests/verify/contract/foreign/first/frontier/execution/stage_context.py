"""A context of capacity 1 without forward groups or replacements of several owners."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from frontier.execution.checks import require_hashable, require_id

FULL_STAGE_WORLD = "FULL_STAGE_WORLD"
EP_WAVE = "EP_WAVE"


@dataclass(frozen=True)
class StageAdmissionTicket:
    replica_id: int
    stage_id: int
    admission_seq: int
    operation_id: Hashable
    scope: str
    participant_ep_ids: tuple = ()


class StageExecutionContext:
    def __init__(self, *, replica_id, stage_id, ep_size):
        self.replica_id = require_id("replica_id", replica_id)
        self.stage_id = require_id("stage_id", stage_id)
        self.ep_size = require_id("ep_size", ep_size, 1)
        self._fifo = deque()
        self._active = {}
        self._cancelled = set()
        self._seq = 100

    @property
    def is_idle(self):
        return len(self._active) == 0

    @property
    def queued_tickets(self):
        return list(self._fifo)

    def _front(self):
        for ticket in self._active.values():
            if ticket.scope == EP_WAVE:
                return ticket
        return self._active[min(self._active)] if self._active else None

    @property
    def active_scope(self):
        return self._front().scope if self._active else None

    @property
    def active_operation_id(self):
        return self._front().operation_id if self._active else None

    @property
    def active_participant_ep_ids(self):
        return self._front().participant_ep_ids if self._active else None

    def _check(self, ticket):
        if ticket.replica_id != self.replica_id or ticket.stage_id != self.stage_id:
            raise ValueError(f"ticket {ticket} is of another context")
        if ticket.scope not in (FULL_STAGE_WORLD, EP_WAVE):
            raise ValueError(f"ticket {ticket} has unknown scope {ticket.scope}")

    def _check_active(self, ticket):
        self._check(ticket)
        if not self.is_active(ticket):
            raise ValueError(f"ticket {ticket} is not active")

    def is_active(self, ticket):
        return self._active.get(ticket.admission_seq) == ticket

    def is_queued(self, ticket):
        return ticket in self._fifo

    def is_cancelled(self, ticket):
        return ticket in self._cancelled

    def owns(self, ticket):
        self._check(ticket)
        return self.is_active(ticket)

    def _check_operation(self, operation_id, apart_from=()):
        require_hashable(operation_id)
        for ticket in (*self._fifo, *self._active.values()):
            if ticket.operation_id == operation_id and ticket not in apart_from:
                raise ValueError(f"operation_id {operation_id!r} is queued or active")

    def _check_participants(self, participant_ep_ids):
        if tuple(participant_ep_ids) != tuple(range(self.ep_size)):
            raise ValueError(f"participant_ep_ids {participant_ep_ids!r} is not the EP world")
        return tuple(participant_ep_ids)

    def _ticket(self, seq, operation_id, scope, participants=()):
        return StageAdmissionTicket(
            self.replica_id, self.stage_id, seq, operation_id, scope, participants
        )

    def _enqueue(self, operation_id, scope, participants):
        ticket = self._ticket(self._seq, operation_id, scope, participants)
        self._seq += 3
        self._fifo.append(ticket)
        return ticket

    def enqueue_full_stage(self, *, operation_id):
        self._check_operation(operation_id)
        return self._enqueue(operation_id, FULL_STAGE_WORLD, tuple(range(self.ep_size)))

    def enqueue_ep_wave(self, *, operation_id, participant_ep_ids):
        self._check_operation(operation_id)
        return self._enqueue(operation_id, EP_WAVE, self._check_participants(participant_ep_ids))

    def _blocked_by_queue(self, ticket):
        if ticket not in self._fifo:
            raise ValueError(f"ticket {ticket} is neither queued nor active")
        return self._fifo[0] != ticket

    def try_acquire(self, ticket):
        self._check(ticket)
        if self.is_active(ticket):
            return False
        if self._blocked_by_queue(ticket):
            return False
        owners = list(self._active.values())
        if ticket.scope == EP_WAVE:
            if owners:
                return False
        else:
            if any(owner.scope == EP_WAVE for owner in owners):
                return False
            if len(owners) >= 1:
                return False
        self._fifo.remove(ticket)
        self._active[ticket.admission_seq] = ticket
        return True

    def release(self, ticket):
        self._check_active(ticket)
        del self._active[ticket.admission_seq]

    def cancel(self, ticket):
        self._check(ticket)
        if ticket not in self._fifo:
            raise ValueError(f"ticket {ticket} is not queued")
        self._fifo.remove(ticket)
        self._cancelled.add(ticket)

    def transition_active_scope(self, ticket, *, operation_id, scope, participant_ep_ids=()):
        self._check_active(ticket)
        if scope not in (FULL_STAGE_WORLD, EP_WAVE):
            raise ValueError(f"scope {scope!r} is unknown")
        self._check_operation(operation_id, (ticket,))
        participants = ()
        if scope == EP_WAVE:
            participants = self._check_participants(participant_ep_ids)
            if ticket.scope == FULL_STAGE_WORLD and len(self._active) > 1:
                raise ValueError("other owners are active")
        new = self._ticket(ticket.admission_seq, operation_id, scope, participants)
        self._active[ticket.admission_seq] = new
        return new
