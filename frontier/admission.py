"""Admission rules: which queued ticket may pass the ones ahead of it (PROTOCOL.md section 3).

A rule answers one question, :meth:`AdmissionRule.blockers`; everything that holds whatever the
rule (capacity, scopes, seal) is the context's own.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from frontier.tickets import EP_WAVE, StageAdmissionTicket


def lane_of(operation_id: Hashable) -> Hashable:
    """Lane that an operation belongs to: its ``lane`` if it has one, else the operation itself."""
    return getattr(operation_id, "lane", operation_id)


class AdmissionRule(Protocol):
    """A named, stateless policy for the order of one stage's ready FIFO."""

    @property
    def name(self) -> str:
        """Name used in scenarios, reports and the command line."""
        ...

    @property
    def ticket_at(self) -> Literal["arrival", "attempt"]:
        """When a batch gets its ticket: on arrival, or at its lane's first admission attempt."""
        ...

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],
    ) -> tuple[StageAdmissionTicket, ...]:
        """Queued tickets ahead of ``ticket`` that it must wait for, from the head on.

        ``queue`` is the ready FIFO, head first, and contains ``ticket``; ``active`` are the
        tickets that hold the stage. Empty means that the rule lets the ticket pass.
        """
        ...


def _ahead(
    ticket: StageAdmissionTicket, queue: Sequence[StageAdmissionTicket]
) -> Sequence[StageAdmissionTicket]:
    return queue[: queue.index(ticket)]


@dataclass(frozen=True, slots=True)
class StrictFifo:
    """Only the FIFO head is admitted.

    Fair among tickets, blind to lanes: the head may belong to a lane that is busy at this stage
    and can therefore not present it, while the lane it waits for stands behind the head.
    """

    name: str = "strict_fifo"
    ticket_at: Literal["arrival", "attempt"] = "arrival"

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],  # noqa: ARG002 - one signature for all rules
    ) -> tuple[StageAdmissionTicket, ...]:
        """Everything ahead."""
        if queue[0] is ticket:
            return ()
        return tuple(_ahead(ticket, queue))


@dataclass(frozen=True, slots=True)
class LaneAware:
    """A full-stage ticket passes tickets of lanes that hold the stage already.

    Repairs the published deadlock, since the head of a busy lane no longer blocks; but a ticket
    that was refused behind an idle lane's ticket becomes admissible when that lane is admitted,
    and an admission wakes nobody. A queued EP wave is never overtaken.
    """

    name: str = "lane_aware"
    ticket_at: Literal["arrival", "attempt"] = "arrival"

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],
    ) -> tuple[StageAdmissionTicket, ...]:
        """Waves ahead, and full-stage tickets ahead whose lane holds no active ticket."""
        if queue[0] is ticket:
            return ()
        ahead = _ahead(ticket, queue)
        if ticket.scope == EP_WAVE:
            return tuple(ahead)
        holding = {lane_of(owner.operation_id) for owner in active}
        return tuple(
            t for t in ahead if t.scope == EP_WAVE or lane_of(t.operation_id) not in holding
        )


@dataclass(frozen=True, slots=True)
class EpOrdered:
    """Full-stage tickets wait only for EP waves queued ahead; a wave waits for all ahead of it.

    Order among full-stage tickets is left to the lanes' heaps. At capacity 1 the context itself
    therefore no longer keeps arrival order among them (PROTOCOL.md section 6).
    """

    name: str = "ep_ordered"
    ticket_at: Literal["arrival", "attempt"] = "arrival"

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],  # noqa: ARG002 - one signature for all rules
    ) -> tuple[StageAdmissionTicket, ...]:
        """For a wave everything ahead, for a full-stage ticket the waves ahead."""
        if queue[0] is ticket:
            return ()
        ahead = _ahead(ticket, queue)
        if ticket.scope == EP_WAVE:
            return tuple(ahead)
        return tuple(t for t in ahead if t.scope == EP_WAVE)


@dataclass(frozen=True, slots=True)
class LateTicket(StrictFifo):
    """Strict FIFO, but a batch takes its place at its lane's first admission attempt.

    A busy lane then has no ticket in the FIFO, so the published cycle cannot form; a refused lane
    keeps its place, and its turn may come when nobody is left to wake it.
    """

    name: str = "late_ticket"
    ticket_at: Literal["arrival", "attempt"] = "attempt"


ADMISSION_RULES: Final[dict[str, AdmissionRule]] = {
    rule.name: rule for rule in (StrictFifo(), LaneAware(), EpOrdered(), LateTicket())
}
"""The rules of PROTOCOL.md section 3 by name."""
