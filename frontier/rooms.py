"""Sync rooms: where a stage's lanes meet before an EP wave (PROTOCOL.md section 3).

A room is a mapping from lane to the real batch that entered, or to None for a placeholder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from frontier.events import Batch

Room = dict[int, Batch | None]


class RoomKey(NamedTuple):
    """Which room: stage, layer within the stage, and the phase where rooms are split by phase."""

    stage: int
    layer: int
    phase: str = ""


class RoomRule(Protocol):
    """A named policy that says which batches meet in one room."""

    @property
    def name(self) -> str:
        """Name used in scenarios, reports and the command line."""
        ...

    def key(self, stage: int, layer: int, batch: Batch) -> RoomKey:
        """Room that a batch enters after its attention of a layer."""
        ...


@dataclass(frozen=True, slots=True)
class SharedRooms:
    """One room per stage and layer: prefill and decode batches ride the same wave."""

    name: str = "shared"

    def key(self, stage: int, layer: int, batch: Batch) -> RoomKey:  # noqa: ARG002
        """Room of the stage and layer."""
        return RoomKey(stage, layer)


@dataclass(frozen=True, slots=True)
class RoomsByPhase:
    """A prefill and a decode room per stage and layer, so lanes of different phase never meet."""

    name: str = "by_phase"

    def key(self, stage: int, layer: int, batch: Batch) -> RoomKey:
        """Room of the stage, layer and the batch's phase."""
        return RoomKey(stage, layer, batch.phase)


ROOM_RULES: Final[dict[str, RoomRule]] = {
    rule.name: rule for rule in (SharedRooms(), RoomsByPhase())
}
"""The rules of PROTOCOL.md section 3 by name."""
