"""Stand-in rules: when a placeholder counts for an absent lane (PROTOCOL.md section 3)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from frontier.admission import lane_of
from frontier.lanes import LaneStageScheduler


class QueuedOperation(Protocol):
    """What a stand-in rule reads of a queued ticket."""

    @property
    def operation_id(self) -> Hashable:
        """Operation that the ticket admits."""
        ...


class StageView(Protocol):
    """What a stand-in rule reads of a stage execution context."""

    @property
    def forward_group_sealed(self) -> bool:
        """Whether the bound forward group takes no more owners."""
        ...

    @property
    def queued_tickets(self) -> Sequence[QueuedOperation]:
        """The ready FIFO, head first."""
        ...


class StandInRule(Protocol):
    """A named policy for placeholders."""

    @property
    def name(self) -> str:
        """Name used in scenarios, reports and the command line."""
        ...

    @property
    def withdraws_joined(self) -> bool:
        """Whether placeholders of lanes that have become busy are removed before counting."""
        ...

    def allows(self, lane: int, scheduler: LaneStageScheduler, context: StageView) -> bool:
        """Whether a room of this stage may hold a placeholder for the lane now."""
        ...


@dataclass(frozen=True, slots=True)
class Standard:
    """A lane that is not busy and will not be: nothing queued, or the group sealed against it.

    A placeholder, once stored, stays: a lane that is admitted afterwards was already counted.
    """

    name: str = "standard"
    withdraws_joined: bool = False

    def allows(self, lane: int, scheduler: LaneStageScheduler, context: StageView) -> bool:  # noqa: ARG002
        """Not busy, and the queue empty or the group sealed."""
        return scheduler.running is None and (not scheduler.queue or context.forward_group_sealed)


@dataclass(frozen=True, slots=True)
class WithdrawJoined(Standard):
    """As ``standard``, but a placeholder is withdrawn once its lane has become busy here."""

    name: str = "withdraw_joined"
    withdraws_joined: bool = True


@dataclass(frozen=True, slots=True)
class BlockedIsIdle(Standard):
    """As ``standard``, and a lane held up behind another lane's ticket counts as idle.

    It breaks the published cycle in the room instead of the FIFO; the lane it counted as idle may
    be admitted before the wave is dispatched.
    """

    name: str = "blocked_is_idle"

    def allows(self, lane: int, scheduler: LaneStageScheduler, context: StageView) -> bool:
        """As ``standard``, or not busy with another lane's ticket at the FIFO head."""
        if scheduler.running is not None:
            return False
        if not scheduler.queue or context.forward_group_sealed:
            return True
        fifo = context.queued_tickets
        return bool(fifo) and lane_of(fifo[0].operation_id) != lane


STAND_IN_RULES: Final[dict[str, StandInRule]] = {
    rule.name: rule for rule in (Standard(), WithdrawJoined(), BlockedIsIdle())
}
"""The rules of PROTOCOL.md section 3 by name."""
