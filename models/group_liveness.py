"""Liveness of a ``DECODE_FFN`` stage: its schedulers in the place of lanes (issue 7)."""

from __future__ import annotations

from collections.abc import Sequence

from frontier.ffn import FfnConfig, FfnSnapshot
from frontier.tickets import EP_WAVE
from models.group_view import name_of_scheduler
from models.liveness import LaneGraph
from models.quiescent import ProtocolState
from verify.fairness import Edges


class GroupGraph(LaneGraph):
    """The explored graph of one stage; a lane is a scheduler, and waves queue for themselves."""

    queues_waves = True
    work = "group"

    def __init__(self, edges: Edges, states: Sequence[ProtocolState], config: FfnConfig) -> None:
        self._config = config
        super().__init__(edges, states, config.schedulers, 1)

    def _read(self, index: int, state: ProtocolState) -> None:
        snapshot = state.system
        if not isinstance(snapshot, FfnSnapshot):
            raise TypeError(
                f"expected the state of a DECODE_FFN stage, got {type(snapshot).__name__}"
            )
        for number, (running, queue) in enumerate(snapshot.schedulers):
            self.queued[number, 0, index] = bool(queue)
            self.waiting[number, 0, index] = bool(queue) and running is None
            self.in_flight[number, index] = bool(queue) or running is not None
        if any(scope == EP_WAVE for scope, _ in snapshot.context.queued):
            self.wave_waited = True
        self.wave[0, index] = any(scope == EP_WAVE for scope, _ in snapshot.context.active)

    def who(self, lane: int) -> str:
        """Name of a scheduler in messages."""
        return name_of_scheduler(self._config, lane)
