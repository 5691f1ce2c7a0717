"""A context written differently from the core's: deques, no rule object, sequence reuse.

It keeps PROTOCOL.md section 2 under ``ep_ordered``; where the page leaves a point open it chooses
otherwise than the core does.
"""

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
    def __init__(self, *, replica_id, stage_id, ep_size, full_stage_capacity=1):
        self.replica_id = require_id("replica_id", replica_id)
        self.stage_id = require_id("stage_id", stage_id)
        self.ep_size = require_id("ep_size", ep_size, 1)
        self.full_stage_capacity = require_id("full_stage_capacity", full_stage_capacity, 1)
        self._fifo = deque()
        self._active = {}
        self._cancelled = set()
        self._seq = 100
        self._group_counter = 7
        self._group = None
        self.forward_group_sealed = False

    @property
    def is_idle(self):
        return len(self._active) == 0

    @property
    def queued_tickets(self):
        return list(self._fifo)

    @property
    def joinable_forward_group_id(self):
        if self._group is None or self.forward_group_sealed:
            return self._group_counter
        return self._group

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
        for other in self._fifo:
            if other == ticket:
                return False
            if EP_WAVE in (ticket.scope, other.scope):
                return True
        return False

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
            if any(owner.scope == EP_WAVE for owner in owners) or self.forward_group_sealed:
                return False
            if len(owners) >= self.full_stage_capacity:
                return False
        self._fifo.remove(ticket)
        self._active[ticket.admission_seq] = ticket
        return True

    def release(self, ticket):
        self._check_active(ticket)
        del self._active[ticket.admission_seq]
        if not self._active:
            self._group = None
            self.forward_group_sealed = False

    def cancel(self, ticket):
        self._check(ticket)
        if ticket not in self._fifo:
            raise ValueError(f"ticket {ticket} is not queued")
        self._fifo.remove(ticket)
        self._cancelled.add(ticket)

    def bind_forward_group(self, ticket):
        self._check_active(ticket)
        if ticket.scope != FULL_STAGE_WORLD:
            raise ValueError(f"ticket {ticket} is no full-stage owner")
        if self.forward_group_sealed:
            raise ValueError("the forward group is sealed")
        if self._group is None:
            self._group = self._group_counter
            self._group_counter += 2
        return self._group

    def _seal(self):
        self.forward_group_sealed = self.forward_group_sealed or self._group is not None

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
        self._seal()
        return new

    def replace_full_stage_owners_with_ep_wave(
        self, owner_tickets, *, operation_id, participant_ep_ids
    ):
        owners = list(dict.fromkeys(owner_tickets))
        if not owners:
            raise ValueError("owner_tickets is empty")
        for owner in owners:
            self._check_active(owner)
        if any(owner.scope == EP_WAVE for owner in self._active.values()):
            raise ValueError("an EP wave is active")
        self._check_operation(operation_id, owners)
        participants = self._check_participants(participant_ep_ids)
        for owner in owners:
            del self._active[owner.admission_seq]
        wave = self._ticket(owners[0].admission_seq, operation_id, EP_WAVE, participants)
        self._active[wave.admission_seq] = wave
        self._seal()
        return wave

    def replace_ep_wave_with_full_stage_owners(self, wave_ticket, *, operation_ids):
        self._check_active(wave_ticket)
        if wave_ticket.scope != EP_WAVE:
            raise ValueError(f"ticket {wave_ticket} is no EP wave")
        if not operation_ids:
            raise ValueError("operation_ids is empty")
        for operation_id in operation_ids:
            self._check_operation(operation_id, (wave_ticket,))
        if len(set(operation_ids)) != len(operation_ids):
            raise ValueError(f"operation_ids {operation_ids!r} repeat")
        if len(operation_ids) > self.full_stage_capacity:
            raise ValueError(f"operation_ids {operation_ids!r} exceed the capacity")
        del self._active[wave_ticket.admission_seq]
        made = []
        for operation_id in operation_ids:
            ticket = self._ticket(self._seq, operation_id, FULL_STAGE_WORLD)
            self._seq += 3
            self._active[ticket.admission_seq] = ticket
            made.append(ticket)
        return made
