"""Exhaustive breadth-first search over packed states, level by level, on all cores.

A level is worked off in rounds. In each round the threads first expand a fixed number of ranges of
the level into blocks, then insert the blocks into the shards they own. What belongs to which range
and the order of insertion are fixed, so the numbering of states, the parents and therefore the
reported schedule are the same for any number of threads.

All rounds and levels run in compiled code (:func:`verify.packed.kernels.lead`). This module looks
at limits, progress and checkpoints every now and then, and makes room when arrays are full.
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

from verify.limits import AT_VIOLATION, INTERRUPTED, Limits, memory_bytes, private_bytes
from verify.packed import kernels
from verify.packed.jit import Array
from verify.packed.kernels import RANGES, SHARDS
from verify.packed.model import Block, End, PackedModel
from verify.packed.native import HEADER_SIZE
from verify.packed.store import MOST_STATES, Routing, Shard

SPAN = 1024
"""Rows of a range."""

BLOCK = 1 << 12
"""Successors of a range that are held at a time; what does not fit is expanded in a later round."""

FIRST_BUDGET = 1 << 12
"""Rows that are expanded before limits and hooks are looked at for the second time."""

MOST_BUDGET = 1 << 24

PACE_OF_LOOKS_S = (0.05, 0.2)
"""Time between two looks that is aimed at."""

LEVELS_AT_ONCE = 256

MOST = (1 << 62) - 1

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
    ``levels`` the number of states at each depth, ``bounds`` the shards' counts around each. Still
    to be expanded are the ranges ``at_hand``, and the level from the ``cursor`` on: a shard, and
    the number of a state of it.
    """

    transitions: int = 0
    expanded: int = 0
    complete: int = 0
    reached: int = 0
    seconds: float = 0.0
    ends: dict[End, list[int]] = field(default_factory=lambda: {End.DRAINED: [], End.FAILED: []})
    levels: list[int] = field(default_factory=list)
    bounds: list[list[int]] = field(default_factory=lambda: [[0] * SHARDS])
    at_hand: list[Range] = field(default_factory=list)
    cursor: tuple[int, int] = (SHARDS, 0)

    @property
    def depth(self) -> int:
        """Depth of the states that are being expanded."""
        return max(0, len(self.levels) - 1)

    @property
    def level_end(self) -> list[int]:
        """Per shard, the end of the level that is being expanded."""
        return self.bounds[-1]

    @property
    def unexpanded(self) -> int:
        """States of the level that are still to be expanded."""
        shard, at = self.cursor
        ahead = 0
        if shard < SHARDS:
            ahead = sum(self.level_end[shard:]) - sum(self.bounds[-2][shard + 1 :]) - at
        return ahead + sum(last - first for _, first, last in self.at_hand)


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
        self._headers: Array = np.zeros((RANGES, HEADER_SIZE), np.int64)
        self._blocks = [Block.of(model.width, capacity, SPAN, at) for at in self._headers]
        self._routings = [Routing(capacity) for _ in range(RANGES)]
        self._routes: Array = np.array([routing.addresses for routing in self._routings])
        self._expanders = [model.expander() for _ in range(self.threads)]
        self._shared: Array = np.zeros(kernels.C_SIZE, np.int64)
        self._shared[kernels.WIDTH] = model.width
        self._shared[kernels.KEY_WIDTH] = self.shards[0].keys.shape[1]
        self._table: Array = np.zeros((SHARDS, kernels.T_SIZE), np.int64)
        self._pieces: Array = np.zeros((RANGES, 3), np.int64)
        self._bounds: Array = np.zeros((LEVELS_AT_ONCE, SHARDS), np.int64)
        self._ended: Array = np.zeros((2 * RANGES * SPAN, 2), np.int64)
        self._budget = FIRST_BUDGET

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
        found = [shard.count for shard in self.shards]
        begun = bool(self.tally.levels)
        return begun and not self.tally.unexpanded and found == self.tally.level_end

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

    def prepare(self) -> None:
        """Compile what :meth:`run` needs, unless that was done before; nothing is searched."""
        budget, self._budget = self._budget, 0
        with ThreadPoolExecutor(self.threads) as pool:
            self._begin(Limits())
            self._rounds(pool)
        self._budget = budget

    def run(self, limits: Limits | None = None, hooks: Sequence[Hook] = ()) -> str | None:
        """Search until everything is expanded or a limit is reached.

        Returns
        -------
        str or None
            The limit that ended the search early, or None when it is complete.
        """
        started = time.monotonic() - self.tally.seconds
        with ThreadPoolExecutor(self.threads) as pool, _Interrupt() as interrupt:
            try:
                return self._search(limits or Limits(), hooks, started, interrupt, pool)
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
                self.tally.seconds = time.monotonic() - started

    def _search(
        self,
        limits: Limits,
        hooks: Sequence[Hook],
        started: float,
        interrupt: _Interrupt,
        pool: ThreadPoolExecutor,
    ) -> str | None:
        if not self.states:
            self._add_initial()
        self._begin(limits)
        while True:
            self.tally.seconds = time.monotonic() - started
            self._note_pace()
            for hook in hooks:
                hook(self)
            limit = INTERRUPTED if interrupt.noted else None
            if limits.first_violation and any(self.tally.ends.values()):
                limit = AT_VIOLATION
            limit = limit or self._no_room(limits)
            limit = limit or limits.exceeded(self.states, self.tally.seconds, self.memory)
            if limit is not None:
                return limit
            reason = self._rounds(pool)
            while reason == kernels.NO_ROOM:
                limit = self._make_room(limits, pool)
                if limit is not None:
                    return limit
                reason = self._rounds(pool)
            if reason == kernels.DONE:
                return None
            if reason == kernels.ASK:
                self._set_pace(time.monotonic() - started - self.tally.seconds)

    def _add_initial(self) -> None:
        rows = self.model.initial_rows()
        block, routing = self._blocks[0], self._routings[0]
        block.rows[: len(rows)] = rows
        block.sources[: len(rows)] = 0
        block.report(0, len(rows))
        routing.fill(block)
        for shard in self.shards:
            shard.reserve(len(routing.share(shard.number)))
            shard.insert(block, routing, 0, 0)

    # ---------------------------------------------------------------- compiled rounds

    def _begin(self, limits: Limits) -> None:
        """Tell the compiled search where it is."""
        c, tally = self._shared, self.tally
        c[kernels.PHASE] = kernels.EXPANDING
        c[kernels.STOP_AT] = MOST if limits.max_states is None else limits.max_states
        c[kernels.PIECES] = len(tally.at_hand)
        for i, piece in enumerate(tally.at_hand):
            self._pieces[i] = piece
        c[kernels.CURSOR_SHARD], c[kernels.CURSOR] = tally.cursor
        for shard, row in zip(self.shards, self._table, strict=True):
            shard.publish(row)
            row[kernels.LEVEL_END] = tally.level_end[shard.number]
            row[kernels.LEVEL] = tally.bounds[-2][shard.number] if tally.levels else 0

    def _rounds(self, pool: ThreadPoolExecutor) -> int:
        """Let all threads search until Python is needed; return why."""
        c = self._shared
        c[kernels.BUDGET], c[kernels.QUIT], c[kernels.FAILED] = self._budget, 0, 0
        seen = int(c[kernels.ROUND])
        common = (c, self._table, self._pieces, self._headers, self._routes)
        helpers = [
            pool.submit(kernels.help_out, t, *common, e.address, e.context, seen)
            for t, e in enumerate(self._expanders)
            if t
        ]
        leader = self._expanders[0]
        reason = int(
            kernels.lead(
                self.threads, *common, leader.address, leader.context, self._bounds, self._ended
            )
        )
        for helper in helpers:
            helper.result()
        if reason == kernels.BROKEN:
            self.intact = False
            for expander in self._expanders:
                expander.fail()
        self._take_over()
        return reason

    def _take_over(self) -> None:
        """Add what the compiled search has counted to the tally."""
        c, tally = self._shared, self.tally
        tally.transitions += int(c[kernels.TRANSITIONS])
        tally.expanded += int(c[kernels.EXPANDED])
        tally.complete += int(c[kernels.COMPLETE_STATES])
        tally.reached |= int(c[kernels.CLAIMS])
        for end, state in self._ended[: c[kernels.ENDED]].tolist():
            tally.ends[End(end)].append(state)
        for counts in self._bounds[: c[kernels.LEVELS]].tolist():
            tally.levels.append(sum(counts) - sum(tally.level_end))
            tally.bounds.append(counts)
        if c[kernels.LEVELS]:
            for shard, row in zip(self.shards, self._table, strict=True):
                shard.count = int(row[kernels.STATES])
                shard.forget_before(int(row[kernels.LEVEL]))
                shard.publish(row)
        for shard, row in zip(self.shards, self._table, strict=True):
            shard.count = int(row[kernels.STATES])
        tally.at_hand = [tuple(p) for p in self._pieces[: c[kernels.PIECES]].tolist()]
        tally.cursor = (int(c[kernels.CURSOR_SHARD]), int(c[kernels.CURSOR]))
        c[[kernels.TRANSITIONS, kernels.EXPANDED, kernels.COMPLETE_STATES]] = 0
        c[[kernels.ENDED, kernels.LEVELS]] = 0

    def _set_pace(self, seconds: float) -> None:
        least, most = PACE_OF_LOOKS_S
        if seconds < least:
            self._budget = min(MOST_BUDGET, self._budget * (8 if seconds < least / 8 else 2))
        elif seconds > most:
            self._budget = max(FIRST_BUDGET, self._budget // 2)

    def _make_room(self, limits: Limits, pool: ThreadPoolExecutor) -> str | None:
        """Let arrays grow for what was expanded; or say which limit forbids it.

        In that case nothing of the round is kept, and it is still to be done.
        """
        extra = [
            sum(len(self._routings[i].share(s)) for i in range(self._shared[kernels.PIECES]))
            for s in range(SHARDS)
        ]
        limit = self._no_room(limits, max(extra))
        if limit is None:
            list(pool.map(lambda s: s.reserve(extra[s.number] + s.count // 32), self.shards))
            for shard, row in zip(self.shards, self._table, strict=True):
                shard.publish(row)
        return limit

    def _no_room(self, limits: Limits, extra: int = SPAN) -> str | None:
        """Say which limit forbids that shards grow by so many states; spill if that helps."""
        if max(shard.count for shard in self.shards) + extra > MOST_STATES:
            return f"the engine's limit of {MOST_STATES * SHARDS} states was reached"
        if limits.max_memory_gb is None or not self._is_tight(limits.max_memory_gb, extra):
            return None
        if self.spill is not None and not self.spilled:
            for shard, row in zip(self.shards, self._table, strict=True):
                shard.spill(self.spill)
                shard.publish(row)
            self.spilled = True
            if not self._is_tight(limits.max_memory_gb, extra):
                return None
        return f"the limit of {limits.max_memory_gb:g} GB of memory was reached"

    def _is_tight(self, gigabytes: float, extra: int) -> bool:
        """Whether growing could take more memory than the limit leaves."""
        growth = [s.bytes_after(extra + s.count // 32) - s.memory for s in self.shards]
        return self.memory + sum(growth) > gigabytes * 1e9

    @property
    def memory(self) -> int:
        """Memory of the process, without pages that the system can write back to spilled files."""
        return private_bytes() if self.spilled else memory_bytes()
