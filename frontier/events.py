"""Batches and events: what a replica is told, and what it answers (PROTOCOL.md section 4)."""

from __future__ import annotations

from typing import Final, NamedTuple

DENSE: Final = "dense"
"""Phase of a group that runs as one batch under one full-stage ticket."""

EXPERT: Final = "expert"
"""Phase of a group that runs as one child batch per EP lane under one EP-wave ticket."""

GROUP_KINDS: Final = (DENSE, EXPERT)


class Batch(NamedTuple):
    """One batch of a lane; opaque to the protocol but for its phase.

    ``number`` counts the lane's batches from 0. A batch is also the operation id under which its
    lane holds a stage.
    """

    lane: int
    number: int
    phase: str = "prefill"

    @property
    def is_group(self) -> bool:
        """Whether this is a group of a ``DECODE_FFN`` stage; its lane is then a scheduler."""
        return self.phase in GROUP_KINDS

    @property
    def title(self) -> str:
        """Name without the lane: ``batch 0``, or of a group ``dense group 0``."""
        return f"{self.phase} group {self.number}" if self.is_group else f"batch {self.number}"

    def global_id(self, lanes: int) -> int:
        """Id that orders batches across lanes: ``number * lanes + lane``."""
        return self.number * lanes + self.lane


class WaveOperation(NamedTuple):
    """Operation id of the EP wave that a room's real batches become."""

    layer: int
    batches: tuple[Batch, ...]


LANE_SCHEDULE: Final = "lane_schedule"
ARRIVE: Final = "arrive"
STAGE_SCHEDULE: Final = "stage_schedule"
STAND_IN: Final = "stand_in"
BATCH_END: Final = "batch_end"
BATCH_DROPPED: Final = "batch_dropped"

REQUEST: Final = "request"
KV_TRANSFER: Final = "kv_transfer"
FFN_RETURN: Final = "ffn_return"
ATTENTION_DONE: Final = "attention_done"
WAVE_END: Final = "wave_end"
STAGE_END: Final = "stage_end"

GROUP: Final = "group"
CHILD_DONE: Final = "child_done"
COMBINE_END: Final = "combine_end"

MONOLITHIC: Final = "MONOLITHIC"
PREFILL: Final = "PREFILL"
DECODE: Final = "DECODE"
DECODE_ATTN: Final = "DECODE_ATTN"
DECODE_FFN: Final = "DECODE_FFN"

INVALIDATE: Final = "invalidate"

URGENT: Final = frozenset(
    {LANE_SCHEDULE, ARRIVE, STAGE_SCHEDULE, STAND_IN, BATCH_END, BATCH_DROPPED}
)
"""Kinds without a duration, handled in the order of creation before time moves on."""

TIMED: Final = frozenset(
    {
        REQUEST,
        ATTENTION_DONE,
        WAVE_END,
        STAGE_END,
        KV_TRANSFER,
        FFN_RETURN,
        GROUP,
        CHILD_DONE,
        COMBINE_END,
    }
)
"""Kinds that lie in the future."""


ENVIRONMENT: Final = frozenset({INVALIDATE})
"""Kinds that may come from outside at any time, or never (issue 7)."""


_LANE_WORDS: Final = {GROUP: "producer", CHILD_DONE: "EP lane"}


class Event(NamedTuple):
    """One event of a replica, or of a cluster of them.

    ``lane``, ``stage``, ``layer`` and ``request`` are -1 and ``batch`` is None where the kind has
    none; ``phase`` names the room of a ``stand_in`` under the ``by_phase`` rule; ``members`` are
    the real batches of a wave, in lane order; ``role`` is the cluster role that handles the event
    where a system has several, else empty.
    """

    kind: str
    lane: int = -1
    batch: Batch | None = None
    stage: int = -1
    layer: int = -1
    phase: str = ""
    members: tuple[Batch, ...] = ()
    request: int = -1
    role: str = ""

    @property
    def is_urgent(self) -> bool:
        """Whether the event has no duration."""
        return self.kind in URGENT

    @property
    def _lane_word(self) -> str:
        """What ``lane`` counts: at a ``DECODE_FFN`` stage producers, EP lanes or schedulers."""
        usual = "scheduler" if self.batch is not None and self.batch.is_group else "lane"
        return _LANE_WORDS.get(self.kind, usual)

    def __str__(self) -> str:
        """Short form for schedules: ``attention_done(lane 1, batch 0, stage 0, layer 0)``."""
        parts = []
        if self.role:
            parts.append(self.role)
        if self.request >= 0:
            parts.append(f"request {self.request}")
        if self.lane >= 0:
            parts.append(f"{self._lane_word} {self.lane}")
        if self.batch is not None:
            parts.append(self.batch.title)
        if self.stage >= 0:
            parts.append(f"stage {self.stage}")
        if self.layer >= 0:
            parts.append(f"layer {self.layer}")
        if self.phase:
            parts.append(f"{self.phase} room")
        if self.members:
            parts.append(
                "of " + " + ".join(f"lane {b.lane} batch {b.number}" for b in self.members)
            )
        return f"{self.kind}({', '.join(parts)})"


class CoreError(Exception):
    """A stage context rejected a call that the protocol makes: a failing state.

    Attributes
    ----------
    event
        Event whose handling failed.
    reason
        Message of the context's error.
    """

    def __init__(self, event: Event, reason: str) -> None:
        super().__init__(f"{event}: {reason}")
        self.event = event
        self.reason = reason
