"""The compiled search: hashing, routing to shards, exact insertion, and rounds of it all.

A *slot* of the visited table is one ``uint32``: its low ``bits`` hold a row number plus one (0 is
empty), the rest a tag of the row's hash. ``2**bits`` is the table's size. A tag only saves work: a
state counts as visited when the full row is equal, never because hashes agree.
"""

import numpy as np

from verify.packed.jit import Array, jit, jit_views
from verify.packed.native import (
    CAPACITY,
    COMPLETED,
    COUNT,
    ENDS,
    FIRST,
    REACHED,
    ROWS,
    SOURCES,
    SPAN,
    VIOLATING,
    add,
    bytes_at,
    call,
    ints_at,
    load,
    longs_at,
    prefetch,
    rows_at,
    store,
    ulongs_at,
    wait_for_change,
    words_at,
)

SHARD_BITS = 3
SHARDS = 1 << SHARD_BITS

RANGES = 8
"""Ranges of a round, and so the most threads that can help."""

SMALL_ROUND = 96
"""Rows below which a second thread costs more than it brings."""

LOAD = 0.75
"""A table is enlarged before it is fuller than this."""

# --- what threads share: numbers in ``c``; those that they wait for on cache lines of their own ---
ROUND, ARRIVED, PASSED = 0, 8, 16
(
    QUIT,
    PHASE,
    HELPERS,  # threads of the round
    FAILED,
    INSERTABLE,
    WIDTH,  # words of a row,
    KEY_WIDTH,  # and of a key
    BUDGET,  # rows to expand before Python is asked
    STOP_AT,  # states after which Python is asked
    PIECES,  # ranges at hand
    CURSOR_SHARD,  # where the level goes on after them
    CURSOR,
    LEVELS,  # finished in this call
    TRANSITIONS,
    EXPANDED,
    COMPLETE_STATES,
    CLAIMS,
    ENDED,  # violating states noted in this call
    C_SIZE,
) = range(24, 43)

# --- per shard, numbers in ``t`` -----------------------------------------------------------------
(
    KEYS,  # addresses,
    PARENTS,
    SLOTS,
    WINDOW,  # of rows, if keys are not rows; else 0
    WINDOW_ROWS,
    WINDOW_FIRST,
    ROOM,  # for so many states
    BITS,
    STATES,
    LEVEL,  # first state of the level that is expanded,
    LEVEL_END,  # and last + 1
) = range(11)
T_SIZE = 16

# --- addresses of a block's routing, in ``routes`` -----------------------------------------------
HASHES, ORDER, OFFSETS, SCRATCH = range(4)

EXPANDING, INSERTING = range(2)

GO_ON, DONE, ASK, NEW_LEVEL, NO_ROOM, BROKEN = range(6)
"""Why the search stopped: nothing is left; the budget is spent; a level began, or lists are full;
arrays must grow before what was expanded can be inserted; an expander failed."""

AHEAD, HALFWAY = 16, 8
"""Steps by which memory is asked for before it is needed."""


@jit
def hash_row(row: Array) -> np.uint64:
    """Mix the words of a row, two at a time, into 64 bits."""
    h = np.uint64(0x9E3779B97F4A7C15)
    last = row.shape[0] - 1
    for i in range(0, last, 2):
        pair = np.uint64(row[i]) | np.uint64(row[i + 1]) << np.uint64(32)
        h = (h ^ pair) * np.uint64(0xD6E8FEB86659FD93)
        h ^= h >> np.uint64(32)
    if last & 1 == 0:
        h = (h ^ np.uint64(row[last])) * np.uint64(0xD6E8FEB86659FD93)
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
def tag_of(h: np.uint64, low: int) -> int:
    """Return the part of a hash that a slot keeps beside a number."""
    return int(np.int64((h >> np.uint64(29)) & np.uint64(0xFFFFFFFF)) & ~low)


@jit
def insert(
    keys: Array,
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
    rows: Array,
    window: Array,
    window_first: int,
) -> int:
    """Insert the keys numbered ``order`` that are not in the table yet; return the new count.

    The caller has made room: ``kept`` and ``slots`` can take all of them. The parent of a new state
    is ``(first_source + sources[i]) * SHARDS + shard``. Unless ``window`` is empty, new rows are
    written to it, that of state number n at ``n - window_first``.

    Memory is asked for ahead: a slot some steps before it is looked at, and then the kept row.
    """
    mask = np.int64(slots.shape[0] - 1)
    low = (1 << bits) - 1
    width = keys.shape[1]
    slots_at, kept_at = slots.ctypes.data, kept.ctypes.data
    n = order.shape[0]
    for j in range(n + AHEAD):
        if j < n:
            prefetch(slots_at + 4 * (np.int64(hashes[order[j]]) & mask))
        if HALFWAY <= j < n + HALFWAY:
            slot = np.int64(slots[np.int64(hashes[order[j - HALFWAY]]) & mask])
            if slot:
                prefetch(kept_at + 4 * width * ((slot & low) - 1))
        if j < AHEAD:
            continue
        i = order[j - AHEAD]
        h = hashes[i]
        tag = tag_of(h, low)
        at = np.int64(h) & mask
        while True:
            slot = np.int64(slots[at])
            if slot == 0:
                for c in range(width):
                    kept[count, c] = keys[i, c]
                parents[count] = (first_source + sources[i]) * SHARDS + shard
                if window.shape[0]:
                    for c in range(rows.shape[1]):
                        window[count - window_first, c] = rows[i, c]
                count += 1
                slots[at] = tag | count
                break
            if slot & ~low == tag:
                number = (slot & low) - 1
                equal = True
                for c in range(width):
                    if kept[number, c] != keys[i, c]:
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
    low = (1 << bits) - 1
    for j in range(order.shape[0]):
        i = order[j]
        h = hashes[i]
        tag = tag_of(h, low)
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
    low = (1 << bits) - 1
    for i in range(count):
        h = hash_row(kept[i])
        at = np.int64(h) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = tag_of(h, low) | (i + 1)


@jit
def rebuild_compact(kept: Array, count: int, slots: Array, bits: int) -> None:
    """As :func:`rebuild`, where what is kept is the two words of the hash itself."""
    mask = np.int64(slots.shape[0] - 1)
    low = (1 << bits) - 1
    for i in range(count):
        h = np.uint64(kept[i, 0]) | np.uint64(kept[i, 1]) << np.uint64(32)
        at = np.int64(h) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = tag_of(h, low) | (i + 1)


@jit
def barrier(c_at: int, threads: int) -> None:
    """Wait until all threads of the round are here."""
    passed = load(c_at + 8 * PASSED)
    if add(c_at + 8 * ARRIVED, 1) + 1 == threads:
        store(c_at + 8 * ARRIVED, 0)
        add(c_at + 8 * PASSED, 1)
    else:
        wait_for_change(c_at + 8 * PASSED, passed)


@jit_views
def expand_piece(
    piece: Array, c: Array, t: Array, header: Array, routes: Array, expander: int, context: int
) -> None:
    """Expand one range into its block, count its ends, and group the successors by shard."""
    shard, first, last = piece[0], piece[1], piece[2]
    width = c[WIDTH]
    if t[shard, WINDOW]:
        rows = t[shard, WINDOW] + 4 * width * (first - t[shard, WINDOW_FIRST])
    else:
        rows = t[shard, KEYS] + 4 * width * first
    if call(expander, context, rows, last - first, header.ctypes.data):
        c[FAILED] = 1
        return
    ends = bytes_at(header[ENDS], header[SPAN])
    header[COMPLETED] = 0
    header[VIOLATING] = 0
    for i in range(header[FIRST]):
        if ends[i]:
            header[COMPLETED if ends[i] == 1 else VIOLATING] += 1
    capacity = header[CAPACITY]
    route(
        rows_at(header[ROWS], capacity, width),
        header[COUNT],
        ulongs_at(routes[HASHES], capacity),
        ints_at(routes[ORDER], capacity),
        longs_at(routes[OFFSETS], SHARDS + 1),
        longs_at(routes[SCRATCH], SHARDS),
    )


@jit_views
def insert_share(
    shard: int, pieces: Array, c: Array, t: Array, headers: Array, routes: Array
) -> None:
    """Insert what belongs to a shard, block by block."""
    count = t[shard, STATES]
    size = 1 << t[shard, BITS]
    kept = rows_at(t[shard, KEYS], t[shard, ROOM], c[KEY_WIDTH])
    window = rows_at(t[shard, WINDOW], t[shard, WINDOW_ROWS], c[WIDTH])
    for i in range(c[PIECES]):
        capacity = headers[i, CAPACITY]
        offsets = longs_at(routes[i, OFFSETS], SHARDS + 1)
        hashes = ulongs_at(routes[i, HASHES], capacity)
        rows = rows_at(headers[i, ROWS], capacity, c[WIDTH])
        keys = rows if not t[shard, WINDOW] else rows_at(routes[i, HASHES], capacity, c[KEY_WIDTH])
        count = insert(
            keys,
            hashes,
            ints_at(routes[i, ORDER], capacity)[offsets[shard] : offsets[shard + 1]],
            longs_at(headers[i, SOURCES], capacity),
            pieces[i, 1],
            pieces[i, 0],
            kept,
            words_at(t[shard, PARENTS], t[shard, ROOM]),
            count,
            words_at(t[shard, SLOTS], size),
            t[shard, BITS],
            rows,
            window,
            t[shard, WINDOW_FIRST],
        )
    t[shard, STATES] = count


@jit_views
def has_room(c: Array, t: Array, routes: Array) -> bool:
    """Whether every shard can take all that was expanded, new or not."""
    for shard in range(SHARDS):
        need = t[shard, STATES]
        for i in range(c[PIECES]):
            offsets = longs_at(routes[i, OFFSETS], SHARDS + 1)
            need += offsets[shard + 1] - offsets[shard]
        if need > t[shard, ROOM] or need > LOAD * (1 << t[shard, BITS]):
            return False
        if t[shard, WINDOW] and need - t[shard, WINDOW_FIRST] > t[shard, WINDOW_ROWS]:
            return False
    return True


@jit_views
def commit(pieces: Array, c: Array, headers: Array, ended: Array) -> None:
    """Count what the round's blocks show; what was not expanded for want of room stays at hand."""
    kept = 0
    for i in range(c[PIECES]):
        shard, first, last = pieces[i, 0], pieces[i, 1], pieces[i, 2]
        header = headers[i]
        c[BUDGET] -= header[FIRST]
        c[EXPANDED] += header[FIRST]
        c[TRANSITIONS] += header[COUNT]
        c[CLAIMS] |= header[REACHED]
        c[COMPLETE_STATES] += header[COMPLETED]
        if header[VIOLATING]:
            ends = bytes_at(header[ENDS], header[SPAN])
            for row in range(header[FIRST]):
                if ends[row] > 1:
                    ended[c[ENDED], 0] = ends[row]
                    ended[c[ENDED], 1] = (first + row) * SHARDS + shard
                    c[ENDED] += 1
        if first + header[FIRST] < last:
            pieces[kept, 0] = shard
            pieces[kept, 1] = first + header[FIRST]
            pieces[kept, 2] = last
            kept += 1
    c[PIECES] = kept


@jit_views
def plan_round(pieces: Array, c: Array, t: Array, bounds: Array, ended: Array, span: int) -> int:
    """Choose the ranges of the next round, or say why there is none now."""
    states = 0
    for shard in range(SHARDS):
        states += t[shard, STATES]
    if c[BUDGET] <= 0 or states > c[STOP_AT] or c[ENDED] + RANGES * span > ended.shape[0]:
        return ASK
    count = c[PIECES]
    while count < RANGES and c[CURSOR_SHARD] < SHARDS:
        shard = c[CURSOR_SHARD]
        if c[CURSOR] < t[shard, LEVEL_END]:
            pieces[count, 0] = shard
            pieces[count, 1] = c[CURSOR]
            pieces[count, 2] = min(c[CURSOR] + span, t[shard, LEVEL_END])
            c[CURSOR] = pieces[count, 2]
            count += 1
        else:
            c[CURSOR_SHARD] += 1
            if c[CURSOR_SHARD] < SHARDS:
                c[CURSOR] = t[c[CURSOR_SHARD], LEVEL]
    c[PIECES] = count
    if count:
        return GO_ON
    return next_level(c, t, bounds)


@jit
def next_level(c: Array, t: Array, bounds: Array) -> int:
    """Turn what was found into the next level: ``bounds`` gets the shards' counts before it."""
    found = 0
    for shard in range(SHARDS):
        found += t[shard, STATES] - t[shard, LEVEL_END]
    if not found:
        return DONE
    for shard in range(SHARDS):
        t[shard, LEVEL] = t[shard, LEVEL_END]
        t[shard, LEVEL_END] = t[shard, STATES]
        bounds[c[LEVELS], shard] = t[shard, STATES]
    c[LEVELS] += 1
    c[CURSOR_SHARD] = 0
    c[CURSOR] = t[0, LEVEL]
    return NEW_LEVEL


@jit_views
def help_out(
    thread: int,
    c: Array,
    t: Array,
    pieces: Array,
    headers: Array,
    routes: Array,
    expander: int,
    context: int,
    seen: int,
) -> None:
    """Do a thread's share of every round until the leader ends the search."""
    c_at = c.ctypes.data
    while True:
        seen = wait_for_change(c_at + 8 * ROUND, seen)
        if c[QUIT]:
            return
        if c[PHASE] == EXPANDING:
            for i in range(thread, c[PIECES], c[HELPERS]):
                expand_piece(pieces[i], c, t, headers[i], routes[i], expander, context)
            barrier(c_at, c[HELPERS])
        barrier(c_at, c[HELPERS])
        if c[INSERTABLE]:
            for shard in range(thread, SHARDS, c[HELPERS]):
                insert_share(shard, pieces, c, t, headers, routes)
        barrier(c_at, c[HELPERS])


@jit_views
def lead(
    threads: int,
    c: Array,
    t: Array,
    pieces: Array,
    headers: Array,
    routes: Array,
    expander: int,
    context: int,
    bounds: Array,
    ended: Array,
) -> int:
    """Search on until there is a reason to stop, with the other threads in :func:`help_out`."""
    c_at = c.ctypes.data
    span = headers[0, SPAN]
    reason = GO_ON
    while reason == GO_ON:
        if c[PHASE] == EXPANDING:
            reason = plan_round(pieces, c, t, bounds, ended, span)
            if reason == NEW_LEVEL and not t[0, WINDOW] and c[LEVELS] < bounds.shape[0]:
                reason = GO_ON
                continue
            if reason != GO_ON:
                break
        rows = 0
        for i in range(c[PIECES]):
            rows += pieces[i, 2] - pieces[i, 1]
        together = threads if rows >= SMALL_ROUND else 1
        c[HELPERS] = together
        phase = c[PHASE]
        if together > 1:
            add(c_at + 8 * ROUND, 1)
        if phase == EXPANDING:
            for i in range(0, c[PIECES], together):
                expand_piece(pieces[i], c, t, headers[i], routes[i], expander, context)
            if together > 1:
                barrier(c_at, together)
        c[INSERTABLE] = not c[FAILED] and has_room(c, t, routes)
        if together > 1:
            barrier(c_at, together)
        if c[INSERTABLE]:
            for shard in range(0, SHARDS, together):
                insert_share(shard, pieces, c, t, headers, routes)
        if together > 1:
            barrier(c_at, together)
        if c[FAILED]:
            reason = BROKEN
        elif c[INSERTABLE]:
            c[PHASE] = EXPANDING
            commit(pieces, c, headers, ended)
        else:
            c[PHASE] = INSERTING
            reason = NO_ROOM
    c[QUIT] = 1
    add(c_at + 8 * ROUND, 1)
    return reason
