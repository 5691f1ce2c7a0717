"""Contexts that a hostile maintainer writes: each is the right one but for one strange thing."""

import random
import sys
import weakref
from dataclasses import dataclass

from frontier.execution.stage_context import StageExecutionContext as Right


class EndsTheProgramWhenMade(Right):
    def __init__(self, *, replica_id, stage_id, ep_size, full_stage_capacity=1):
        sys.exit(0)


class EndsTheProgramOnRelease(Right):
    def release(self, ticket):
        raise SystemExit(0)


class Generates(Right):
    def try_acquire(self, ticket):
        yield super().try_acquire(ticket)


class Awaits(Right):
    async def try_acquire(self, ticket):
        return super().try_acquire(ticket)


class MethodsForProperties(Right):
    def is_idle(self):
        return not self._active

    def queued_tickets(self):
        return list(self._fifo)


class PropertyForMethod(Right):
    try_acquire = property(lambda self: True)


class Truthy(Right):
    def try_acquire(self, ticket):
        return 1 if super().try_acquire(ticket) else 0


class ChangesOnRead(Right):
    @property
    def queued_tickets(self):
        shown = list(self._fifo)
        self._fifo.rotate(1)
        return shown


_EVERYWHERE = {}


class SharesState(Right):
    def __init__(self, **given):
        super().__init__(**given)
        self._active = _EVERYWHERE


class CopiesAreTheSame(Right):
    def __deepcopy__(self, memo):
        return self


class CopiesAreNew(Right):
    def __deepcopy__(self, memo):
        shape = ("replica_id", "stage_id", "ep_size", "full_stage_capacity")
        return type(self)(**{name: getattr(self, name) for name in shape})


class CallsTheOriginal(Right):
    """A copy by attributes still calls the context it was copied from."""

    def __init__(self, **given):
        super().__init__(**given)
        self._me = weakref.ref(self)

    def try_acquire(self, ticket):
        return Right.try_acquire(self._me(), ticket)


class TicketsThatRemember(Right):
    class Ticket:
        def __init__(self, *fields):
            self.replica_id, self.stage_id, self.admission_seq, *rest = fields
            self.operation_id, self.scope, self.participant_ep_ids = rest
            self.waits = True

    def _ticket(self, *fields):
        return self.Ticket(self.replica_id, self.stage_id, *fields, *[()] * (4 - len(fields)))

    def try_acquire(self, ticket):
        admitted = super().try_acquire(ticket)
        ticket.waits = ticket.waits and not admitted
        return admitted

    def is_queued(self, ticket):
        return ticket.waits and super().is_queued(ticket)


class NoTickets(Right):
    def enqueue_full_stage(self, *, operation_id):
        super().enqueue_full_stage(operation_id=operation_id)


class TicketsWithoutEquality(Right):
    class Ticket(TicketsThatRemember.Ticket):
        def __eq__(self, other):
            raise RuntimeError("never compare tickets")

        __hash__ = object.__hash__

    _ticket = TicketsThatRemember._ticket


class Forgets(Right):
    """Right for long: after the 25th ticket one is lost."""

    minted = 0

    def _enqueue(self, *given):
        self.minted += 1
        ticket = super()._enqueue(*given)
        if self.minted > 25:
            self._fifo.pop()
        return ticket


class Guesses(Right):
    def try_acquire(self, ticket):
        return random.random() < 0.5 and super().try_acquire(ticket)


class Anything:
    def __init__(self, **given):
        pass

    def __getattr__(self, name):
        return lambda *args, **given: None


@dataclass
class OnlyData:
    replica_id: int
    stage_id: int
    ep_size: int
    full_stage_capacity: int = 1


class Slots:
    __slots__ = ("inner",)

    def __init__(self, **given):
        self.inner = Right(**given)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Talks(Right):
    def try_acquire(self, ticket):
        print("to whom it may concern")
        return super().try_acquire(ticket)


def factory(**given):
    return Right(**given)
