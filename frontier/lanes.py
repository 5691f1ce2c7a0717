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

    def take_head(self) -> Batch:
        """Take the heap's head without running it."""
        return heapq.heappop(self.queue)

    def remove(self, batch: Batch) -> None:
        """Take a queued batch out of the heap, wherever it stands."""
        self.queue.remove(batch)
        heapq.heapify(self.queue)

    def run_head(self) -> Batch:
        """Take the heap's head and run it."""
        self.running = self.take_head()
        return self.running

    def restore(self, running: Batch | None, queue: tuple[Batch, ...]) -> None:
        """Become the scheduler with this batch running and these queued in order."""
        self.running = running
        self.queue = list(queue)

    @property
    def in_order(self) -> tuple[Batch, ...]:
        """Queued batches, the next one first."""
        return tuple(sorted(self.queue))


class FifoStageScheduler(LaneStageScheduler):
    """A scheduler that serves batches in the order in which they came.

    For a stage that a batch visits again and again: by batch number a returning batch would pass
    those that wait, against the order of their tickets.
    """

    __slots__ = ()

    def push(self, batch: Batch) -> None:
        """Queue a batch behind the others."""
        self.queue.append(batch)

    def take_head(self) -> Batch:
        """Take the batch that came first without running it."""
        return self.queue.pop(0)

    def remove(self, batch: Batch) -> None:
        """Take a queued batch out, wherever it stands; the others keep their order."""
        self.queue.remove(batch)

    @property
    def in_order(self) -> tuple[Batch, ...]:
        """Queued batches, the next one first."""
        return tuple(self.queue)
