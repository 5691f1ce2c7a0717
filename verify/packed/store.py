"""Visited states in memory: keys, parents, and an exact hash table, in shards.

A shard holds the states whose hash starts with its number, in the order they were found. A state's
id is ``number * SHARDS + shard``. Threads work on different shards, so nothing is locked, and the
numbering does not depend on how many threads there are.

The *key* of a state is its full row. Under hash compaction it is the row's 64-bit hash, and rows
are kept only of the level that is being expanded and of the one that is being found.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import IO

import numpy as np

from verify.packed import kernels
from verify.packed.jit import Array
from verify.packed.kernels import (
    LOAD,
    SHARDS,
    insert,
    locate,
    rebuild,
    rebuild_compact,
    route,
)
from verify.packed.model import Block

GROWTH = ((1 << 12, 4.0), (1 << 16, 1.5))
"""Below so many states arrays grow by this factor; later by a quarter (the allocator moves pages,
not bytes)."""

FIRST_BITS = 14
FIRST_STATES = int(LOAD * (1 << FIRST_BITS))
"""A shard's room at first: enough that small graphs are searched without a stop to make more."""

MOST_STATES = (1 << 32) // SHARDS
"""States of a shard that a four-byte id can name."""

HASH_WORDS = 2
"""Words of a key under hash compaction."""


class Routing:
    """The successors of one block, grouped by the shard they belong to."""

    def __init__(self, capacity: int) -> None:
        self.hashes: Array = np.zeros(capacity, np.uint64)
        self.order: Array = np.zeros(capacity, np.int32)
        self.offsets: Array = np.zeros(SHARDS + 1, np.int64)
        self._at: Array = np.zeros(SHARDS, np.int64)
        arrays = (self.hashes, self.order, self.offsets, self._at)
        self.addresses = [array.ctypes.data for array in arrays]

    def fill(self, block: Block) -> None:
        """Group the block's successors."""
        route(block.rows, block.count, self.hashes, self.order, self.offsets, self._at)

    def share(self, shard: int) -> Array:
        """Numbers of the successors that belong to a shard, in order."""
        return self.order[self.offsets[shard] : self.offsets[shard + 1]]


def _unnamed_file(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder, prefix="spill-")


class Shard:
    """One part of the visited set.

    Parameters
    ----------
    number
        Which part.
    width
        Words of a row.
    compact
        Keep 64-bit hashes instead of rows.
    """

    def __init__(self, number: int, width: int, *, compact: bool = False) -> None:
        self.number = number
        self.compact = compact
        self.count = 0
        size = FIRST_STATES
        self.keys: Array = np.zeros((size, HASH_WORDS if compact else width), np.uint32)
        self.parents: Array = np.zeros(size, np.uint32)
        self.bits = FIRST_BITS
        self.slots: Array = np.zeros(1 << FIRST_BITS, np.uint32)
        self._folder: Path | None = None
        self._files: dict[str, IO[bytes]] = {}
        # under hash compaction: rows of the level being expanded and of the one being found
        self.window: Array = np.zeros((size if compact else 0, width), np.uint32)
        self.window_first = 0

    @property
    def memory(self) -> int:
        """Bytes that only memory holds: all of them, or the table once keys are in files."""
        return self.nbytes if self._folder is None else self.slots.nbytes + self.window.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes held: keys, parents, table and rows, used or not."""
        return self.keys.nbytes + self.parents.nbytes + self.slots.nbytes + self.window.nbytes

    def bytes_after(self, extra: int) -> int:
        """Most bytes of memory held while making room for ``extra`` more states."""
        need = self.count + extra
        total = self.memory
        if need > len(self.keys) and self._folder is None:
            per_state = self.keys.itemsize * self.keys.shape[1] + self.parents.itemsize
            total += (self._capacity(need, len(self.keys)) - len(self.keys)) * per_state
        if need > LOAD * len(self.slots):
            total += self.slots.itemsize << self._bits(need)
        if self.compact and need - self.window_first > len(self.window):
            rows = self._capacity(need - self.window_first, len(self.window)) - len(self.window)
            total += rows * self.window[:1].nbytes
        return total

    def reserve(self, extra: int) -> None:
        """Make room for ``extra`` more states."""
        need = self.count + extra
        if need > len(self.keys):
            self.resize(self._capacity(need, len(self.keys)))
        if self.compact and need - self.window_first > len(self.window):
            rows = self._capacity(need - self.window_first, len(self.window))
            self.window.resize((rows, self.window.shape[1]), refcheck=False)
        if need > LOAD * len(self.slots):
            self.bits = self._bits(need)
            self.rebuild()

    def resize(self, capacity: int) -> None:
        """Give the arrays this capacity."""
        if self._folder is not None:
            self.keys = self._mapped("keys", (capacity, self.keys.shape[1]))
            self.parents = self._mapped("parents", (capacity,))
            return
        self.keys.resize((capacity, self.keys.shape[1]), refcheck=False)
        self.parents.resize(capacity, refcheck=False)

    def spill(self, folder: Path) -> None:
        """Move keys and parents into files of a folder, mapped into memory.

        The table stays in memory: its tags answer most look-ups without touching a key. The files
        have no names any more once this returns, so nothing is left behind however the run ends.

        Raises
        ------
        OSError
            If the folder cannot be written or the disk is full.
        """
        keys, parents = self.keys[: self.count], self.parents[: self.count]
        capacity = len(self.keys)
        self._folder = folder
        self._files = {part: _unnamed_file(folder) for part in ("keys", "parents")}
        for file in self._files.values():
            weakref.finalize(self, file.close)
        self.keys = self._mapped("keys", (capacity, keys.shape[1]))
        self.parents = self._mapped("parents", (capacity,))
        self.keys[: self.count] = keys
        self.parents[: self.count] = parents

    def _mapped(self, part: str, shape: tuple[int, ...]) -> Array:
        file = self._files[part]
        os.posix_fallocate(file.fileno(), 0, int(np.prod(shape)) * 4)
        return np.asarray(np.memmap(file, np.uint32, "r+", shape=shape))

    def rebuild(self) -> None:
        """Build the table anew, with ``2**bits`` slots."""
        self.slots = np.zeros(1 << self.bits, np.uint32)
        fill = rebuild_compact if self.compact else rebuild
        fill(self.keys, self.count, self.slots, self.bits)

    @staticmethod
    def _capacity(need: int, held: int) -> int:
        factor = next((factor for size, factor in GROWTH if held < size), 1.25)
        return max(need, int(held * factor))

    def _bits(self, need: int) -> int:
        bits = self.bits
        while need > LOAD * (1 << bits):
            bits += 1
        return bits

    def insert(self, block: Block, routing: Routing, first_source: int, source_shard: int) -> None:
        """Insert this shard's share of a block; room has been made.

        ``first_source`` and ``source_shard`` name the state that row 0 of the block's range is.
        """
        self.count = insert(
            self._keys_of(block, routing),
            routing.hashes,
            routing.share(self.number),
            block.sources,
            first_source,
            source_shard,
            self.keys,
            self.parents,
            self.count,
            self.slots,
            self.bits,
            block.rows,
            self.window,
            self.window_first,
        )

    def publish(self, t: Array) -> None:
        """Say where everything is, for the compiled search; but not where a level begins."""
        t[kernels.KEYS], t[kernels.PARENTS] = self.keys.ctypes.data, self.parents.ctypes.data
        t[kernels.SLOTS], t[kernels.BITS] = self.slots.ctypes.data, self.bits
        t[kernels.WINDOW] = self.window.ctypes.data if self.compact else 0
        t[kernels.WINDOW_ROWS], t[kernels.WINDOW_FIRST] = len(self.window), self.window_first
        t[kernels.ROOM], t[kernels.STATES] = len(self.keys), self.count

    def locate(self, block: Block, routing: Routing) -> Array:
        """Numbers of the states that this shard's share of a block are; -1 where unknown."""
        share = routing.share(self.number)
        numbers: Array = np.zeros(len(share), np.int64)
        locate(
            self._keys_of(block, routing),
            routing.hashes,
            share,
            self.keys,
            self.slots,
            self.bits,
            numbers,
        )
        return numbers

    def _keys_of(self, block: Block, routing: Routing) -> Array:
        if self.compact:
            return routing.hashes.view(np.uint32).reshape(-1, HASH_WORDS)
        return block.rows

    def forget_before(self, first: int) -> None:
        """Under hash compaction: drop the rows of states before number ``first``."""
        if self.compact:
            kept = self.window[first - self.window_first : self.count - self.window_first].copy()
            self.window[: len(kept)] = kept
            self.window_first = first

    def rows(self, first: int, last: int) -> Array:
        """Rows of the states numbered ``first`` to ``last - 1`` of the level being expanded."""
        if self.compact:
            return self.window[first - self.window_first : last - self.window_first]
        return self.keys[first:last]
