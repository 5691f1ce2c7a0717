"""Compiled parts of the search: hashing, routing to shards, exact insertion, merging of runs.

A *slot* of the visited table is one ``uint32``: its low ``bits`` hold a row number plus one (0 is
empty), the rest a tag of the row's hash. ``2**bits`` is the table's size. A tag only saves work: a
state counts as visited when the full row is equal, never because hashes agree.
"""

import numpy as np

from verify.packed.jit import Array, jit

SHARD_BITS = 3
SHARDS = 1 << SHARD_BITS


@jit
def hash_row(row: Array) -> np.uint64:
    """Mix the words of a row into 64 bits."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for i in range(row.shape[0]):
        h = (h ^ np.uint64(row[i])) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@jit
def route(rows: Array, count: int, hashes: Array, order: Array, offsets: Array, at: Array) -> None:
    """Hash ``rows[:count]`` and group their numbers by shard, each group in order.

    ``order[offsets[s]:offsets[s + 1]]`` are the rows of shard ``s``; ``at`` is scratch memory.
    """
    shift = np.uint64(64 - SHARD_BITS)
    offsets[:] = 0
    for i in range(count):
        hashes[i] = hash_row(rows[i])
        offsets[np.int64(hashes[i] >> shift) + 1] += 1
    for s in range(SHARDS):
        offsets[s + 1] += offsets[s]
    for s in range(SHARDS):
        at[s] = offsets[s]
    for i in range(count):
        shard = np.int64(hashes[i] >> shift)
        order[at[shard]] = i
        at[shard] += 1


@jit
def insert(
    rows: Array,
    hashes: Array,
    order: Array,
    sources: Array,
    first_source: int,
    shard: int,
    kept: Array,
    parents: Array,
    count: int,
    slots: Array,
    bits: int,
    fresh: Array,
) -> int:
    """Insert the rows numbered ``order`` that are not in the table yet; return the new count.

    The caller has made room: ``kept`` and ``slots`` can take all of them. The parent of a new row
    is the state ``(first_source + sources[i]) * SHARDS + shard``; the numbers of the new rows are
    written to ``fresh``, in order.
    """
    mask = np.int64(slots.shape[0] - 1)
    low = np.int64((1 << bits) - 1)
    width = rows.shape[1]
    before = count
    for j in range(order.shape[0]):
        i = order[j]
        h = hashes[i]
        tag = np.int64((h >> np.uint64(29)) & np.uint64(0xFFFFFFFF)) & ~low
        at = np.int64(h) & mask
        while True:
            slot = np.int64(slots[at])
            if slot == 0:
                for c in range(width):
                    kept[count, c] = rows[i, c]
                parents[count] = (first_source + sources[i]) * SHARDS + shard
                fresh[count - before] = i
                count += 1
                slots[at] = tag | count
                break
            if slot & ~low == tag:
                number = (slot & low) - 1
                equal = True
                for c in range(width):
                    if kept[number, c] != rows[i, c]:
                        equal = False
                        break
                if equal:
                    break
            at = (at + 1) & mask
    return count


@jit
def locate(
    rows: Array, hashes: Array, order: Array, kept: Array, slots: Array, bits: int, numbers: Array
) -> None:
    """Write to ``numbers[j]`` which kept row equals row ``order[j]``, or -1."""
    mask = np.int64(slots.shape[0] - 1)
    low = np.int64((1 << bits) - 1)
    for j in range(order.shape[0]):
        i = order[j]
        h = hashes[i]
        tag = np.int64((h >> np.uint64(29)) & np.uint64(0xFFFFFFFF)) & ~low
        at = np.int64(h) & mask
        numbers[j] = -1
        while slots[at]:
            slot = np.int64(slots[at])
            number = (slot & low) - 1
            if slot & ~low == tag:
                equal = True
                for c in range(rows.shape[1]):
                    if kept[number, c] != rows[i, c]:
                        equal = False
                        break
                if equal:
                    numbers[j] = number
                    break
            at = (at + 1) & mask


@jit
def rebuild(kept: Array, count: int, slots: Array, bits: int) -> None:
    """Fill an empty table from the kept rows, which are distinct."""
    mask = np.int64(slots.shape[0] - 1)
    low = np.int64((1 << bits) - 1)
    for i in range(count):
        h = hash_row(kept[i])
        at = np.int64(h) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = np.int64((h >> np.uint64(29)) & np.uint64(0xFFFFFFFF)) & ~low | (i + 1)


@jit
def rebuild_compact(kept: Array, count: int, slots: Array, bits: int) -> None:
    """As :func:`rebuild`, where what is kept is the two words of the hash itself."""
    mask = np.int64(slots.shape[0] - 1)
    low = np.int64((1 << bits) - 1)
    for i in range(count):
        h = np.uint64(kept[i, 0]) | np.uint64(kept[i, 1]) << np.uint64(32)
        at = np.int64(h) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = np.int64((h >> np.uint64(29)) & np.uint64(0xFFFFFFFF)) & ~low | (i + 1)
