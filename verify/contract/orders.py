"""Reference orders: what each admission rule of PROTOCOL.md section 3 lets pass.

Written from the page and independent of any implementation, so that a defect in a rule's code
cannot hide in the reference it is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from verify.contract.clauses import CLAUSE, Clause
from verify.contract.operations import Operation


class Order(Protocol):
    """Order of one ready FIFO, as clauses."""

    @property
    def rule(self) -> str:
        """Name of the admission rule."""
        ...

    @property
    def passing(self) -> Clause | None:
        """Clause that lets a ticket pass others, None where nothing passes."""
        ...

    def kept_out_by(
        self, operation: Operation, ahead: Sequence[Operation], active: Collection[Operation]
    ) -> Clause | None:
        """Clause that keeps the operation waiting for one of those ``ahead``, None for none."""
        ...


@dataclass(frozen=True, slots=True)
class HeadOnly:
    """Only the FIFO head (``strict_fifo``, and ``late_ticket`` whose tickets come later)."""

    rule: str
    passing: Clause | None = None

    def kept_out_by(
        self,
        operation: Operation,  # noqa: ARG002 - one signature for all orders
        ahead: Sequence[Operation],
        active: Collection[Operation],  # noqa: ARG002
    ) -> Clause | None:
        """Name anything ahead."""
        return CLAUSE["head_only"] if ahead else None


@dataclass(frozen=True, slots=True)
class LaneAware:
    """A full-stage ticket waits for waves, and for full-stage tickets of lanes without one."""

    rule: str = "lane_aware"
    passing: Clause | None = CLAUSE["busy_lane"]

    def kept_out_by(
        self, operation: Operation, ahead: Sequence[Operation], active: Collection[Operation]
    ) -> Clause | None:
        """Name a wave ahead, or a full-stage ticket ahead whose lane holds no active ticket."""
        if operation.is_wave:
            return CLAUSE["wave_as_head"] if ahead else None
        if any(other.is_wave for other in ahead):
            return CLAUSE["wave_ahead"]
        holding = {owner.lane for owner in active}
        return CLAUSE["idle_lane"] if any(other.lane not in holding for other in ahead) else None


@dataclass(frozen=True, slots=True)
class EpOrdered:
    """A full-stage ticket waits for waves only."""

    rule: str = "ep_ordered"
    passing: Clause | None = CLAUSE["no_full_stage"]

    def kept_out_by(
        self,
        operation: Operation,
        ahead: Sequence[Operation],
        active: Collection[Operation],  # noqa: ARG002
    ) -> Clause | None:
        """Name a wave ahead; for a wave, anything ahead."""
        if operation.is_wave:
            return CLAUSE["wave_as_head"] if ahead else None
        return CLAUSE["wave_ahead"] if any(other.is_wave for other in ahead) else None


ORDERS: Final[dict[str, Order]] = {
    "strict_fifo": HeadOnly("strict_fifo"),
    "lane_aware": LaneAware(),
    "ep_ordered": EpOrdered(),
    "late_ticket": HeadOnly("late_ticket"),
}
"""Reference order of each admission rule."""
