"""The ``DECODE_ATTN`` replica: attention here, FFN in another cluster (issue 3, PD-AF).

A batch visits its stage once per layer and holds the stage only while its attention runs: the
ticket is released when the batch is sent to the FFN cluster, so that another batch of the lane
may run meanwhile. After the last layer one more visit runs the stage's tail. Visits are served in
the order of their tickets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from frontier.events import ATTENTION_DONE, FFN_RETURN, STAGE_END, STAGE_SCHEDULE, Batch, Event
from frontier.lanes import FifoStageScheduler
from frontier.replica import Replica, ReplicaConfig, ReplicaSnapshot, batch_of
from frontier.workload import Workload

FfnLink = Callable[[Batch, int, int], list[Event]]
"""Sends a batch to the FFN cluster: batch, stage, layer of the stage; returns what follows."""


class AttentionSnapshot(NamedTuple):
    """A replica's snapshot, and the next layer of each batch at each stage."""

    replica: ReplicaSnapshot
    layers: tuple[tuple[tuple[int, Batch], int], ...]


class AttentionReplica(Replica):
    """One lane whose layers end in a transfer to the FFN cluster.

    Parameters
    ----------
    config
        Shape and rules; one lane, and full-stage capacity 1 (PROTOCOL.md section 1).
    workload
        Source of batches.
    send
        Link to the FFN cluster; ``ffn_return`` brings a batch back.

    Raises
    ------
    ValueError
        If the configuration has more than one lane.
    """

    def __init__(self, config: ReplicaConfig, workload: Workload, send: FfnLink) -> None:
        if config.lanes != 1:
            raise ValueError(f"DECODE_ATTN takes one lane, got {config.lanes} lanes")
        super().__init__(config, workload)
        self.schedulers = [[FifoStageScheduler()] for _ in range(config.stages)]
        self._send = send
        self.layer_of: dict[tuple[int, Batch], int] = {}
        self._handlers[FFN_RETURN] = self._ffn_return

    def _run(self, lane: int, batch: Batch, stage: int) -> list[Event]:
        layer = self.layer_of.setdefault((stage, batch), 0)
        if layer < self.config.layers:
            return [Event(ATTENTION_DONE, lane, batch, stage, layer)]
        del self.layer_of[stage, batch]
        return [Event(STAGE_END, lane, batch, stage)]

    def _attention_done(self, event: Event) -> list[Event]:
        lane, batch, stage = event.lane, batch_of(event), event.stage
        scheduler = self.schedulers[stage][lane]
        scheduler.running = None
        self.contexts[stage].release(self.tickets[stage].pop(batch))
        wake = [Event(STAGE_SCHEDULE, lane, None, stage)] if scheduler.queue else []
        return wake + self._send(batch, stage, event.layer)

    def _ffn_return(self, event: Event) -> list[Event]:
        self.layer_of[event.stage, batch_of(event)] = event.layer + 1
        return self._arrive(event)

    def snapshot(self) -> AttentionSnapshot:  # type: ignore[override]
        """Return what the future depends on."""
        return AttentionSnapshot(super().snapshot(), tuple(sorted(self.layer_of.items())))

    def restore(self, snapshot: AttentionSnapshot) -> None:  # type: ignore[override]
        """Become the replica of a snapshot, whatever this one was before."""
        super().restore(snapshot.replica)
        self.layer_of = dict(snapshot.layers)
