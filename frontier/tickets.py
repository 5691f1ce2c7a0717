"""Admission tickets and refusals: the values that a stage execution context hands out."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Literal

FULL_STAGE_WORLD: Final = "full_stage_world"
"""Scope of an operation that occupies the stage for one lane (PROTOCOL.md section 2)."""

EP_WAVE: Final = "ep_wave"
"""Scope of one expert-parallel dispatch, compute and combine of all EP participants."""

SCOPES: Final = frozenset({FULL_STAGE_WORLD, EP_WAVE})


@dataclass(frozen=True, slots=True)
class StageAdmissionTicket:
    """The right of one operation to enter, or to hold, one stage (PROTOCOL.md section 2).

    ``admission_seq`` is unique in the life of its context; ``participant_ep_ids`` is
    ``(0, ..., ep_size - 1)`` for an EP wave and empty for a full-stage operation.
    """

    replica_id: int
    stage_id: int
    admission_seq: int
    operation_id: Hashable
    scope: str
    participant_ep_ids: tuple[int, ...] = ()


RefusalReason = Literal["ep_wave_active", "owners_active", "capacity", "sealed", "behind"]
"""Why a queued ticket is not admitted: a wave holds the stage; a wave cannot enter while owners
do; all owner slots are taken; the forward group is sealed; tickets ahead that may not be passed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One obstacle between a queued ticket and the stage, with the tickets that must move first.

    ``mode`` says whether the obstacle is gone once *all* blockers have moved (a sealed group, the
    tickets ahead) or once *any* of them has (a capacity slot).
    """

    reason: RefusalReason
    blockers: tuple[StageAdmissionTicket, ...]

    @property
    def mode(self) -> Literal["all", "any"]:
        """``any`` for a capacity slot, else ``all``."""
        return "any" if self.reason == "capacity" else "all"
