"""Lane stage schedulers: per lane and stage, a heap of queued batches and one running batch."""

from __future__ import annotations

import heapq

from frontier.events import Batch


class LaneStageScheduler:
    """What one lane has at one stage (PROTOCOL.md section 1).

    The heap orders by the batch's number, which within a lane is the order of global ids; a
    lane never overtakes itself. ``running`` is the batch that keeps the lane busy, or None.
    """

    __slots__ = ("queue", "running")

    def __init__(self) -> None:
        self.queue: list[Batch] = []
        self.running: Batch | None = None

    @property
    def busy(self) -> bool:
        """Whether the lane runs a batch at this stage."""
        return self.running is not None

    def push(self, batch: Batch) -> None:
        """Queue a batch."""
        heapq.heappush(self.queue, batch)

    def run_head(self) -> Batch:
        """Take the heap's head and run it."""
        self.running = heapq.heappop(self.queue)
        return self.running
