"""A ``DECODE_FFN`` stage as a person sees it: its table, who waits for whom, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from frontier.events import ENVIRONMENT, EXPERT, STAGE_SCHEDULE, Batch, Event
from frontier.ffn import FfnConfig, FfnReplica
from models.waits import NO_EVENT, NO_WAKE_UP, ORPHAN_TICKET, PRESENTED_BY, REFUSED
from verify.waitfor import Wait, WaitFor, analyse


def name_of_scheduler(config: FfnConfig, scheduler: int) -> str:
    """Participant: an EP lane or a full-stage scheduler."""
    if scheduler < config.ep_size:
        return f"EP lane {scheduler}"
    if config.full_stages == 1:
        return "full-stage scheduler"
    return f"full-stage scheduler {scheduler - config.ep_size}"


def scheduler_name(replica: FfnReplica, scheduler: int) -> str:
    """Name of a live stage's scheduler."""
    return name_of_scheduler(replica.config, scheduler)


def ticket_name(ticket: Any) -> str:
    """Participant: a ticket on the context."""
    return f"ticket seq {ticket.admission_seq} ({ticket.operation_id.title})"


def _ticket(ticket: Any) -> dict[str, Any]:
    group = ticket.operation_id
    return {
        "seq": ticket.admission_seq,
        "scope": ticket.scope,
        "operation": group.title,
        "lane": group.lane if group.lane >= 0 else None,
    }


def describe_group_stage(replica: FfnReplica) -> list[dict[str, Any]]:
    """Return the table of the one stage, in the form of :func:`models.view.describe_stages`.

    ``lanes`` are the schedulers: EP lanes, then full-stage ones, each with its name.
    """
    context = replica.context
    return [
        {
            "stage": replica.config.stage,
            "active": [_ticket(ticket) for ticket in context.active_tickets],
            "fifo": [_ticket(ticket) for ticket in context.queued_tickets],
            "sealed": context.forward_group_sealed,
            "rooms": [],
            "lanes": [
                {
                    "lane": number,
                    "name": scheduler_name(replica, number),
                    "work": "group",
                    "running": None if s.running is None else s.running.number,
                    "queued": [group.number for group in sorted(s.queue)],
                }
                for number, s in enumerate(replica.schedulers)
            ],
        }
    ]


class _GroupWaits:
    """Collects the waits of one state."""

    def __init__(self, replica: FfnReplica, pending: Sequence[Event]) -> None:
        self.replica = replica
        timed = [event for event in pending if event.kind not in ENVIRONMENT]
        self.moving = {(e.batch, e.lane) for e in timed if e.batch is not None}

    def all(self) -> Iterator[Wait]:
        for number, scheduler in enumerate(self.replica.schedulers):
            if scheduler.running is not None:
                yield from self._running(number, scheduler.running)
            elif scheduler.queue:
                yield from self._blocked(number, scheduler.queue[0])
        context = self.replica.context
        for ticket in context.queued_tickets:
            if not self._is_orphan(ticket.operation_id):
                yield self._queued(ticket)
        for ticket in (*context.active_tickets, *context.queued_tickets):
            if self._is_orphan(ticket.operation_id):
                reason = "is left of a group that is gone: nobody will present or release it"
                yield Wait(ticket_name(ticket), (), reason, ORPHAN_TICKET)

    def _running(self, number: int, group: Batch) -> Iterator[Wait]:
        if (group, number) in self.moving or (group, -1) in self.moving:
            return
        name = scheduler_name(self.replica, number)
        siblings = self.replica.unfinished.get(group, set()) - {number}
        if not siblings:
            yield Wait(name, (), f"runs {group.title}, which no event will end", NO_EVENT)
            return
        targets = tuple(scheduler_name(self.replica, s) for s in sorted(siblings))
        reason = f"has done its part of {group.title} and waits for {', '.join(targets)}"
        yield Wait(name, targets, reason, REFUSED)

    def _blocked(self, number: int, group: Batch) -> Iterator[Wait]:
        replica, name = self.replica, scheduler_name(self.replica, number)
        ticket = replica.tickets.get(group)
        if ticket is None or replica.context.is_active(ticket):
            what = "has no ticket" if ticket is None else "holds the stage already"
            reason = f"has {group.title}, which {what}, and no event is left to present it"
            yield Wait(name, (), reason, NO_WAKE_UP)
            return
        refusals = replica.context.refusals(ticket)
        if not refusals:
            reason = f"would be admitted now (seq {ticket.admission_seq}), but nothing retries it"
            yield Wait(name, (), reason, NO_WAKE_UP)
        for refusal in refusals:
            behind = refusal.reason == "behind"
            targets = tuple(ticket_name(t) if behind else self._holder(t) for t in refusal.blockers)
            why = f"it stands behind {targets[0]}" if behind else f"{targets[0]} holds the stage"
            reason = f"is refused (seq {ticket.admission_seq}): {why}"
            yield Wait(name, targets, reason, REFUSED, refusal.mode)

    def _queued(self, ticket: Any) -> Wait:
        group = ticket.operation_id
        names = [
            scheduler_name(self.replica, n)
            for n, s in enumerate(self.replica.schedulers)
            if group in s.queue
        ]
        reason = f"is presented by {' or '.join(names)}"
        return Wait(ticket_name(ticket), tuple(names), reason, PRESENTED_BY, "any")

    def _is_orphan(self, group: Any) -> bool:
        """Whether nothing of a group is left but its ticket."""
        there = any(s.running == group or group in s.queue for s in self.replica.schedulers)
        return not there and all(group != moving for moving, _ in self.moving)

    def _holder(self, ticket: Any) -> str:
        group = ticket.operation_id
        if self._is_orphan(group):
            return ticket_name(ticket)
        return scheduler_name(self.replica, 0 if group.phase == EXPERT else group.lane)


def group_waits(replica: FfnReplica, pending: Sequence[Event]) -> WaitFor:
    """Analyse who waits for whom in a live stage with these pending timed events."""
    return analyse(tuple(_GroupWaits(replica, pending).all()))


def group_note(replica: FfnReplica, event: Event, follow: Sequence[Event]) -> str:
    """Say what an event came to: admitted, a sibling of an admitted wave, refused and why."""
    if event.kind != STAGE_SCHEDULE:
        return ""
    name, scheduler = scheduler_name(replica, event.lane), replica.schedulers[event.lane]
    if follow:
        group = follow[0].batch
        return "" if group is None else f"{name} runs {group.title}"
    if scheduler.busy or not scheduler.queue:
        return "nothing to do"
    waits = _GroupWaits(replica, ())._blocked(event.lane, scheduler.queue[0])
    return f"{name} " + "; ".join(wait.reason for wait in waits)
