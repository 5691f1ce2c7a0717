"""Exhaustive breadth-first search over packed states, level by level, on all cores.

A level is worked off in rounds. In each round the threads first expand a fixed number of ranges of
the level into blocks, then insert the blocks into the shards they own. What belongs to which range
and the order of insertion are fixed, so the numbering of states, the parents and therefore the
reported schedule are the same for any number of threads.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from verify.limits import Limits, memory_bytes, private_bytes
from verify.packed.kernels import SHARDS
from verify.packed.model import Block, End, PackedModel
from verify.packed.store import MOST_STATES, Routing, Shard

SPAN = 4096
"""Rows of a range."""

BLOCK = 1 << 14
"""Successors of a range that are held at a time; what does not fit is expanded in a later round."""

RANGES = 8
"""Ranges of a round, and so the most threads that can help."""

SMALL_ROUND = 512
"""Rows below which a second thread costs more than it brings."""

INTERRUPTED = "interrupted from the keyboard"

PACE_S = 5.0
"""Seconds over which the recent rate is taken."""

Range = tuple[int, int, int]
"""Shard, first number, last number + 1: states still to be expanded at this level."""


def ranges_between(first: list[int], last: list[int]) -> list[Range]:
    """Cut each shard's states from ``first`` to ``last - 1`` into ranges."""
    return [
        (shard, at, min(at + SPAN, last[shard]))
        for shard in range(SHARDS)
        for at in range(first[shard], last[shard], SPAN)
    ]


@dataclass
class Tally:
    """What a search has seen so far; with the store, all that a checkpoint holds.

    ``ends`` lists, per violating :class:`End`, the ids of such states in the order of expansion;
    ``levels`` the number of states at each depth, ``bounds`` the shards' counts around each.
    """

    depth: int = 0
    transitions: int = 0
    expanded: int = 0
    complete: int = 0
    reached: int = 0
    seconds: float = 0.0
    ends: dict[End, list[int]] = field(default_factory=lambda: {End.DRAINED: [], End.FAILED: []})
    levels: list[int] = field(default_factory=list)
    bounds: list[list[int]] = field(default_factory=lambda: [[0] * SHARDS])
    work: list[Range] = field(default_factory=list)

    @property
    def level_end(self) -> list[int]:
        """Per shard, the end of the level that is being expanded."""
        return self.bounds[-1]


Hook = Callable[["Search"], None]
"""Called between two rounds: progress, checkpoints."""


class _Interrupt:
    """Turns the first Ctrl-C into a note, so that a round is never left half done.

    The second one interrupts at once. Outside the main thread nothing is changed.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: Any = None

    def __enter__(self) -> _Interrupt:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True


class Search:
    """One search; :meth:`run` goes on from wherever ``tally`` and the store are.

    ``intact`` is False once a round was broken off half done: what is known then must not be saved.

    Parameters
    ----------
    model
        The packed transition system.
    threads
        Threads to use; all cores unless given.
    compact
        Keep 64-bit hashes instead of rows: a state may be missed (see :meth:`omission_bound`).
    spill
        Folder for keys and parents once ``max_memory_gb`` is reached; the search then goes on.
    """

    def __init__(
        self,
        model: PackedModel,
        *,
        threads: int | None = None,
        compact: bool = False,
        spill: Path | None = None,
    ) -> None:
        self.model = model
        self.compact = compact
        self.threads = max(1, min(threads or os.cpu_count() or 1, RANGES))
        self.shards = [Shard(s, model.width, compact=compact) for s in range(SHARDS)]
        self.spill = spill
        self.spilled = False
        self.tally = Tally()
        self.intact = True
        self._pace = [(0.0, 0)]
        capacity = max(BLOCK, model.most_choices)
        self._blocks = [Block.of(model.width, capacity, SPAN) for _ in range(RANGES)]
        self._routings = [Routing(capacity) for _ in range(RANGES)]
        self._expanders = [model.expander() for _ in range(self.threads)]
        self._pool: ThreadPoolExecutor | None = None

    # ---------------------------------------------------------------- what is known

    @property
    def states(self) -> int:
        """Distinct states found."""
        return sum(shard.count for shard in self.shards)

    @property
    def stored_bytes(self) -> int:
        """Bytes of the visited set, parents and table together, reserves included."""
        return sum(shard.nbytes for shard in self.shards)

    @property
    def finished(self) -> bool:
        """Whether every state that was found has been expanded."""
        return bool(self.tally.levels) and not self.tally.work and not any(self._next_ranges())

    @property
    def recent_rate(self) -> float | None:
        """New states a second over the last seconds; None at the start."""
        (before, had), (now, has) = self._pace[0], self._pace[-1]
        return (has - had) / (now - before) if now > before else None

    def _note_pace(self) -> None:
        self._pace.append((self.tally.seconds, self.states))
        while len(self._pace) > 2 and self._pace[1][0] < self.tally.seconds - PACE_S:
            del self._pace[0]

    @property
    def omission_bound(self) -> float:
        """Bound on the probability that hash compaction merged two states: n(n-1)/2 / 2**64."""
        n = self.states
        return n * (n - 1) / 2 / 2.0**64 if self.compact else 0.0

    # ---------------------------------------------------------------- searching

    def run(self, limits: Limits | None = None, hooks: Sequence[Hook] = ()) -> str | None:
        """Search until everything is expanded or a limit is reached.

        Returns
        -------
        str or None
            The limit that ended the search early, or None when it is complete.
        """
        started = time.monotonic() - self.tally.seconds
        with ThreadPoolExecutor(self.threads) as pool, _Interrupt() as interrupt:
            self._pool = pool if self.threads > 1 else None
            try:
                return self._search(limits or Limits(), hooks, started, interrupt)
            except KeyboardInterrupt:
                self.intact = False
                return INTERRUPTED
            except MemoryError:
                self.intact = False
                return "the system has no more memory to give"
            except OSError as error:
                self.intact = False
                return f"cannot spill to {self.spill}: {error.strerror}"
            finally:
                self._pool = None
                self.tally.seconds = time.monotonic() - started

    def _search(
        self, limits: Limits, hooks: Sequence[Hook], started: float, interrupt: _Interrupt
    ) -> str | None:
        if not self.tally.levels:
            self._add_initial()
        while self.tally.work or self._next_level():
            self.tally.seconds = time.monotonic() - started
            self._note_pace()
            for hook in hooks:
                hook(self)
            limit = INTERRUPTED if interrupt.noted else None
            limit = limit or self._no_room(limits)
            limit = limit or limits.exceeded(self.states, self.tally.seconds, self.memory)
            if limit is not None:
                return limit
            self._round()
        return None

    def _add_initial(self) -> None:
        rows = self.model.initial_rows()
        block, routing = self._blocks[0], self._routings[0]
        block.rows[: len(rows)] = rows
        block.sources[: len(rows)] = 0
        block.count = len(rows)
        routing.fill(block)
        for shard in self.shards:
            shard.reserve(len(routing.share(shard.number)))
            shard.insert(block, routing, 0, 0)

    def _next_ranges(self) -> list[Range]:
        return ranges_between(self.tally.level_end, [shard.count for shard in self.shards])

    def _next_level(self) -> bool:
        """Turn what was found into the work of the next level; False if nothing was found."""
        tally = self.tally
        work = self._next_ranges()
        if not work:
            return False
        tally.depth = len(tally.levels)
        tally.levels.append(sum(last - first for _, first, last in work))
        tally.bounds.append([shard.count for shard in self.shards])
        tally.work = work[::-1]
        for shard in self.shards:
            shard.next_level()
        return True

    def _no_room(self, limits: Limits) -> str | None:
        if max(shard.count for shard in self.shards) + RANGES * BLOCK > MOST_STATES:
            return f"the engine's limit of {MOST_STATES * SHARDS} states was reached"
        if limits.max_memory_gb is None or not self._is_tight(limits.max_memory_gb):
            return None
        if self.spill is not None and not self.spilled:
            for shard in self.shards:
                shard.spill(self.spill)
            self.spilled = True
            if not self._is_tight(limits.max_memory_gb):
                return None
        return f"the limit of {limits.max_memory_gb:g} GB of memory was reached"

    def _is_tight(self, gigabytes: float) -> bool:
        """Whether the next round could take more memory than the limit leaves."""
        growth = [s.bytes_after(RANGES * BLOCK // SHARDS) - s.memory for s in self.shards]
        return self.memory + sum(growth) > gigabytes * 1e9

    @property
    def memory(self) -> int:
        """Memory of the process, without pages that the system can write back to spilled files."""
        return private_bytes() if self.spilled else memory_bytes()

    def _round(self) -> None:
        work = self.tally.work
        ranges = [work.pop() for _ in range(min(RANGES, len(work)))]
        rows = sum(last - first for _, first, last in ranges)
        threads = self.threads if rows >= SMALL_ROUND else 1
        self._in_parallel(threads, lambda t: self._expand(ranges, t, threads))
        left = [self._account(ranges[i], self._blocks[i]) for i in range(len(ranges))]
        work.extend(piece for piece in reversed(left) if piece[1] < piece[2])
        self._in_parallel(threads, lambda t: self._insert(ranges, t, threads))

    def _in_parallel(self, threads: int, task: Callable[[int], None]) -> None:
        if threads == 1 or self._pool is None:
            task(0)
        else:
            for done in [self._pool.submit(task, t) for t in range(threads)]:
                done.result()

    def _expand(self, ranges: list[Range], thread: int, threads: int) -> None:
        expander = self._expanders[thread]
        for i in range(thread, len(ranges), threads):
            shard, first, last = ranges[i]
            expander(self.shards[shard].rows(first, last), self._blocks[i])
            self._routings[i].fill(self._blocks[i])

    def _account(self, piece: Range, block: Block) -> Range:
        """Count what a block shows; return the part of its range that was not expanded."""
        shard, first, last = piece
        tally = self.tally
        ends = block.ends[: block.first]
        tally.expanded += block.first
        tally.transitions += block.count
        tally.reached |= block.reached
        if ends.any():
            tally.complete += int(np.count_nonzero(ends == End.COMPLETE))
            for end, found in tally.ends.items():
                found.extend((first + int(i)) * SHARDS + shard for i in np.flatnonzero(ends == end))
        return shard, first + block.first, last

    def _insert(self, ranges: list[Range], thread: int, threads: int) -> None:
        blocks = range(len(ranges))
        for s in range(thread, SHARDS, threads):
            shard = self.shards[s]
            extra = sum(len(self._routings[i].share(s)) for i in blocks)
            if extra:
                shard.reserve(extra)
                for i in blocks:
                    source_shard, first, _ = ranges[i]
                    shard.insert(self._blocks[i], self._routings[i], first, source_shard)
