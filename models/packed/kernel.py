"""The lanes protocol (PROTOCOL.md sections 3 to 5) compiled: rows in, successor rows out.

An independent implementation of the rules the core simulates: it shares no code with ``frontier``
and earns its trust by lockstep with it (docs/packed_engine.md).

A state lives in one ``uint16`` work array ``w``; ``g`` holds the scenario's geometry and switches,
``u`` the urgent events in the order they were created. Every constant the kernels use is defined in
this file on purpose: numba's on-disk cache is keyed by the file of a function, so a constant
imported from elsewhere could change and leave a stale kernel behind.
"""

from typing import Any

import numpy as np

from verify.packed.jit import Array, jit, jit_views, part
from verify.packed.native import (
    CAPACITY,
    CHOICES,
    COUNT,
    ENDS,
    FIRST,
    REACHED,
    ROWS,
    SOURCES,
    SPAN,
    bytes_at,
    halves_at,
    ints_at,
    long_rows_at,
    longs_at,
    rows_at,
    ulongs_at,
    words_at,
)

# --- geometry ``g``: what the scenario fixes -----------------------------------------------------
(
    LANES,
    STAGES,
    LAYERS,
    PHASES,  # rooms per (stage, layer): 1 shared, 2 by phase
    ADMISSION,
    STAND_IN,
    MOE,
    OPEN,  # open arrivals
    KEY_STATUS,  # bits of a lane's sorting key: per status,
    KEY_HEAP,  # per heap,
    KEY_BATCHES,  # per count of batches
    TIES,
    ORDERED,  # pending events keep their creation order
    FIFO,  # FIFO order is part of the state
    SYMMETRY,  # lanes of one class are interchangeable
    PARTIAL,  # partial-order reduction
    MEET,  # a stage's group meets, rides its waves and reaches its tails in one step
    FIELDS,  # packed fields: w[0:FIELDS]
    SIZE,  # all of w: packed fields, then derived ones
    AT_STATUS,  # per lane and stage
    AT_QUEUED,  # per lane and stage: batches in the heap
    AT_WAITING,  # per lane: batches not created yet
    AT_REQUESTS,  # per lane: requests still to come (open arrivals)
    AT_SEALED,  # per stage
    AT_ROOM,  # per stage, layer and phase: lanes that a placeholder stands in for
    AT_FIFO,  # per stage: lanes of the queued tickets, plus one, head first
    FIFO_SLOTS,
    AT_PENDING,  # cells (lane, stage) of the pending events, plus one, in creation order
    PENDING_SLOTS,
    AT_FAILED,  # 0, or the event that the core rejects, plus one
    AT_IN_FLIGHT,  # per lane; derived, and packed where a failing state may lose a batch
    AT_ADMITTED,  # per lane and stage: batches admitted so far; as above
    AT_BUSY,  # derived, per stage: lanes that hold an active ticket
    AT_WAVE,  # derived, per stage: lanes in the active EP wave
    AT_BACKLOG,  # derived, per stage: lanes with queued work
    AT_FIFO_LENGTH,  # derived, per stage
    AT_PENDING_LENGTH,  # derived
    AT_REACHED,  # derived: claims reached by the last transition, as bits
    PARTS,  # successors are put together from remembered moves of single stages
    PART_BITS,  # bits of a stage's part of a row; stage s has those from s * PART_BITS on
    CONTROL_BITS,  # of these, bits before the FIFO
    FIFO_WIDTH,  # bits of a ticket in the FIFO
    COUNTED,  # of the FIFO, only each lane's tickets matter to moves; and with how many bits, or 0
    PENDING_AT,  # first bit of the pending events,
    PENDING_WIDTH,  # bits of each
    G_SIZE,
) = range(46)

STRICT_FIFO, LANE_AWARE, EP_ORDERED, LATE_TICKET = range(4)
STANDARD, WITHDRAW_JOINED, BLOCKED_IS_IDLE = range(3)

# --- status of (lane, stage): not busy, stage tail, and three codes per layer --------------------
IDLE, TAIL, ATTENTION, IN_ROOM, IN_WAVE = range(5)
PER_LAYER = 3

# --- urgent events: kind in the low three bits, then lane, stage and room ------------------------
LANE_SCHEDULE, ARRIVE, STAGE_SCHEDULE, STAND_IN_EVENT, BATCH_END = range(5)

# --- rows of the table ``bits``: where field f lies, and what a step of its value is worth --------
WORD, SHIFT, MASK, KIND, FLOOR = range(5)
OTHER, COUNTS, RUNS = range(3)

WHOLE_WORD = (1 << 32) - 1
MOST_BITS = 62
"""Widest part of a row that is handled as one number."""

# --- what is remembered of a stage's part of a row: its content, then three numbers per move -----
M_VIEW, M_STAGE, M_DUE, M_LOAD, M_MOVES = range(5)
LOAD_BITS, LOAD_MASK = 4, 15
KNOWN, LEAVES, ODD = 1, 2, 4  # of a move; an odd one is always worked out the long way
CLAIMS_AT, CLAIMS_MASK, PENDS_AT, PENDS_MASK = 4, 1023, 16, 31
TAKES_AT, TAKES_MASK, CLIMB_AT = 24, 32767, 40

# --- addresses and sizes of an expander's memory, in its ``context`` -----------------------------
(
    C_GEOMETRY,
    C_BITS,
    C_PHASES,
    C_PHASE_COLUMNS,
    C_BATCHES,
    C_CLASSES,
    C_BASE,
    C_WORK,
    C_WORK_SIZE,
    C_URGENT,
    C_URGENT_SIZE,
    C_EVENTS,
    C_EVENTS_SIZE,
    C_KEYS,
    C_MEMO,
    C_MEMO_ENTRIES,
    C_MEMO_WIDTH,
    C_INDEX,
    C_INDEX_SIZE,
    C_USED,
    C_ROW,
    C_OUT,
    C_WIDTH,
    C_PARTS,
    C_ENTRIES,
    C_LANE_OF,
    C_SIZE,
) = range(27)

Moves = tuple[Array, ...]
"""Memory of :func:`expand_parts`; :func:`expand_parts_at` says what is where."""

# --- ends of a run -------------------------------------------------------------------------------
GOING, COMPLETE, DRAINED, FAILED = range(4)

# --- refusals, as bits ---------------------------------------------------------------------------
DURING_WAVE, SEALED, BEHIND = 1, 2, 4

# --- claims, as bits, in the order of the core's list --------------------------------------------
BATCH_ENDED, STAGE_SHARED, WAVE_JOINED, WAVE_STOOD_IN, LATE_JOIN = 1, 2, 4, 8, 16
REFUSED_BEHIND, REFUSED_SEALED, REFUSED_DURING_WAVE = 32, 64, 128
STOOD_STILL = 256  # no claim: a transition did not raise the measure, so termination is unproved
MET_OTHERWISE = 512  # no claim: a group did not meet as the reduction assumes, so nothing is proved


@part
def emit(u: Array, kind: int, lane: int, stage: int, room: int) -> None:
    """Append an urgent event; ``u[0]`` is the next to handle, ``u[1]`` the end."""
    u[u[1]] = kind | lane << 3 | stage << 8 | room << 13
    u[1] += 1


@part
def set_status(w: Array, g: Array, lane: int, stage: int, status: int) -> None:
    """Set what ``lane`` does at ``stage`` and keep the derived masks true."""
    w[g[AT_STATUS] + lane * g[STAGES] + stage] = status
    bit = 1 << lane
    if status == IDLE:
        w[g[AT_BUSY] + stage] &= ~bit
    else:
        w[g[AT_BUSY] + stage] |= bit
    if status > TAIL and (status - ATTENTION) % PER_LAYER == IN_WAVE - ATTENTION:
        w[g[AT_WAVE] + stage] |= bit
    else:
        w[g[AT_WAVE] + stage] &= ~bit


@part
def pend(w: Array, g: Array, lane: int, stage: int) -> None:
    """Append the timed event that ``lane`` now waits for at ``stage``."""
    if g[ORDERED]:
        w[g[AT_PENDING] + w[g[AT_PENDING_LENGTH]]] = 1 + lane * g[STAGES] + stage
        w[g[AT_PENDING_LENGTH]] += 1


@part
def mint(w: Array, g: Array, lane: int, stage: int) -> None:
    """Append a ticket of ``lane`` to the ready FIFO (its tickets are in batch order)."""
    if g[FIFO]:
        w[g[AT_FIFO] + stage * g[FIFO_SLOTS] + w[g[AT_FIFO_LENGTH] + stage]] = 1 + lane
        w[g[AT_FIFO_LENGTH] + stage] += 1


@part
def position(w: Array, g: Array, lane: int, stage: int) -> int:
    """Place of the lane's first ticket in the FIFO, or -1."""
    at = g[AT_FIFO] + stage * g[FIFO_SLOTS]
    for i in range(w[g[AT_FIFO_LENGTH] + stage]):
        if w[at + i] == 1 + lane:
            return i
    return -1


@part
def refusals(w: Array, g: Array, lane: int, stage: int) -> int:
    """Why the lane's first ticket is kept out now; 0 admits it (PROTOCOL.md sections 2 and 3).

    The capacity is one owner per lane, so a lane that is not busy always finds room.
    """
    reasons = 0
    if w[g[AT_WAVE] + stage]:
        reasons |= DURING_WAVE
    if w[g[AT_SEALED] + stage]:
        reasons |= SEALED
    if g[ADMISSION] == EP_ORDERED:  # no EP wave is ever queued here: rooms promote owners
        return reasons
    mine = position(w, g, lane, stage)
    if g[ADMISSION] == LANE_AWARE:
        holding = w[g[AT_BUSY] + stage] & ~w[g[AT_WAVE] + stage]
        at = g[AT_FIFO] + stage * g[FIFO_SLOTS]
        for i in range(mine):
            if not holding >> (w[at + i] - 1) & 1:
                reasons |= BEHIND
    elif mine > 0:
        reasons |= BEHIND
    return reasons


@part
def take_ticket(w: Array, g: Array, lane: int, stage: int) -> None:
    """Remove the lane's first ticket from the FIFO."""
    if g[FIFO]:
        at = g[AT_FIFO] + stage * g[FIFO_SLOTS]
        last = w[g[AT_FIFO_LENGTH] + stage] - 1
        for i in range(position(w, g, lane, stage), last):
            w[at + i] = w[at + i + 1]
        w[at + last] = 0
        w[g[AT_FIFO_LENGTH] + stage] = last


@part
def phase_of(w: Array, g: Array, phases: Array, lane: int, stage: int) -> int:
    """Room column of the batch that runs at (lane, stage); 0 when rooms are shared."""
    if g[PHASES] == 1:
        return 0
    column: int = phases[lane, w[g[AT_ADMITTED] + lane * g[STAGES] + stage] - 1]
    return column


@part
def arrive(w: Array, g: Array, u: Array, lane: int, stage: int) -> None:
    """``arrive``: mint the ticket, queue the batch, try at once when the lane is not busy."""
    if g[ADMISSION] != LATE_TICKET:
        mint(w, g, lane, stage)
    w[g[AT_QUEUED] + lane * g[STAGES] + stage] += 1
    w[g[AT_BACKLOG] + stage] |= 1 << lane
    if not w[g[AT_BUSY] + stage] >> lane & 1:
        emit(u, STAGE_SCHEDULE, lane, stage, 0)


@part
def stage_schedule(w: Array, g: Array, lane: int, stage: int) -> None:
    """``stage_schedule``: present the heap's head; a refusal leaves nothing behind."""
    at = lane * g[STAGES] + stage
    if w[g[AT_BUSY] + stage] >> lane & 1 or not w[g[AT_QUEUED] + at]:
        return
    if g[ADMISSION] == LATE_TICKET and position(w, g, lane, stage) < 0:
        mint(w, g, lane, stage)
    refused = refusals(w, g, lane, stage)
    if refused:
        note_refusal(w, g, refused)
        return
    take_ticket(w, g, lane, stage)
    w[g[AT_QUEUED] + at] -= 1
    if not w[g[AT_QUEUED] + at]:
        w[g[AT_BACKLOG] + stage] &= ~(1 << lane)
    w[g[AT_ADMITTED] + at] += 1
    set_status(w, g, lane, stage, ATTENTION if g[MOE] else TAIL)
    pend(w, g, lane, stage)
    note_admission(w, g, lane, stage)


@part
def note_refusal(w: Array, g: Array, refused: int) -> None:
    """Claims about refusals."""
    if refused & BEHIND:
        w[g[AT_REACHED]] |= REFUSED_BEHIND
    if refused & SEALED:
        w[g[AT_REACHED]] |= REFUSED_SEALED
    if refused & DURING_WAVE:
        w[g[AT_REACHED]] |= REFUSED_DURING_WAVE


@part
def note_admission(w: Array, g: Array, lane: int, stage: int) -> None:
    """Claims about admissions: the stage is shared; a placeholder already stands for the lane."""
    busy = w[g[AT_BUSY] + stage]
    if busy & (busy - 1):
        w[g[AT_REACHED]] |= STAGE_SHARED
    if g[MOE]:
        rooms = g[LAYERS] * g[PHASES]
        for room in range(stage * rooms, (stage + 1) * rooms):
            if w[g[AT_ROOM] + room] >> lane & 1:
                w[g[AT_REACHED]] |= LATE_JOIN


@part
def lane_schedule(w: Array, g: Array, u: Array, lane: int) -> None:
    """``lane_schedule``: create batches while in flight < stages and work waits."""
    while w[g[AT_IN_FLIGHT] + lane] < g[STAGES] and w[g[AT_WAITING] + lane]:
        w[g[AT_WAITING] + lane] -= 1
        w[g[AT_IN_FLIGHT] + lane] += 1
        emit(u, ARRIVE, lane, 0, 0)


@part
def may_stand_in(w: Array, g: Array, lane: int, stage: int) -> bool:
    """May an idle placeholder be filled in for ``lane``, absent from a room (section 3)."""
    if w[g[AT_BUSY] + stage] >> lane & 1:
        return False
    if not w[g[AT_BACKLOG] + stage] >> lane & 1 or w[g[AT_SEALED] + stage]:
        return True
    if g[STAND_IN] == BLOCKED_IS_IDLE:
        head = w[g[AT_FIFO] + stage * g[FIFO_SLOTS]]
        other: bool = head != 0 and head != 1 + lane
        return other
    return False


@part
def real_members(w: Array, g: Array, phases: Array, stage: int, layer: int, phase: int) -> int:
    """Mask of the lanes whose batch is stored in the room."""
    members = 0
    for lane in range(g[LANES]):
        if w[g[AT_STATUS] + lane * g[STAGES] + stage] == IN_ROOM + PER_LAYER * layer and (
            g[PHASES] == 1 or phase_of(w, g, phases, lane, stage) == phase
        ):
            members |= 1 << lane
    return members


@part
def withdraw(w: Array, g: Array, at: int, stage: int) -> None:
    """``withdraw_joined``: placeholders of lanes that are busy here leave before the count."""
    if g[STAND_IN] == WITHDRAW_JOINED:
        w[at] &= ~w[g[AT_BUSY] + stage]


@part
def dispatch(w: Array, g: Array, room: int, real: int, lane: int, entered: int) -> None:
    """Close the full room; its owners become one EP wave, or an error (section 4).

    ``lane`` and ``entered`` name the event that filled the room: the lane's batch entered, or its
    placeholder.
    """
    layer = room // g[PHASES] % g[LAYERS]
    stage = room // g[PHASES] // g[LAYERS]
    several = real & (real - 1) != 0
    if w[g[AT_WAVE] + stage] or (not several and w[g[AT_BUSY] + stage] != real):
        w[g[AT_FAILED]] = 1 + 2 * (room * g[LANES] + lane) + entered
        return
    w[g[AT_REACHED]] |= WAVE_JOINED if several else 0
    w[g[AT_REACHED]] |= WAVE_STOOD_IN if w[g[AT_ROOM] + room] else 0
    w[g[AT_ROOM] + room] = 0
    first = -1
    for member in range(g[LANES]):
        if real >> member & 1:
            set_status(w, g, member, stage, IN_WAVE + PER_LAYER * layer)
            if first < 0:
                first = member
    w[g[AT_SEALED] + stage] = 1
    pend(w, g, first, stage)


@part
def attention_done(
    w: Array, g: Array, u: Array, phases: Array, lane: int, stage: int, layer: int
) -> None:
    """``attention_done``: enter the room; let idle lanes stand in, or dispatch."""
    phase = phase_of(w, g, phases, lane, stage)
    room = (stage * g[LAYERS] + layer) * g[PHASES] + phase
    at = g[AT_ROOM] + room
    set_status(w, g, lane, stage, IN_ROOM + PER_LAYER * layer)
    w[at] &= ~(1 << lane)
    withdraw(w, g, at, stage)
    real = real_members(w, g, phases, stage, layer, phase)
    missing = ((1 << g[LANES]) - 1) & ~(real | w[at])
    stored = False
    for other in range(g[LANES]):
        if missing >> other & 1 and may_stand_in(w, g, other, stage):
            w[at] |= 1 << other
            emit(u, STAND_IN_EVENT, other, stage, room)
            stored = True
    if not stored and missing == 0:
        dispatch(w, g, room, real, lane, 1)


@part
def stand_in(w: Array, g: Array, phases: Array, lane: int, stage: int, room: int) -> None:
    """``stand_in``: store the placeholder unless the room closed or the lane itself is there."""
    at = g[AT_ROOM] + room
    phase = room % g[PHASES]
    layer = room // g[PHASES] % g[LAYERS]
    real = real_members(w, g, phases, stage, layer, phase)
    if real == 0 or real >> lane & 1:  # an open room holds a batch, a closed one none
        return
    w[at] |= 1 << lane
    withdraw(w, g, at, stage)
    if real | w[at] == (1 << g[LANES]) - 1:
        dispatch(w, g, room, real, lane, 0)


@part
def wave_end(w: Array, g: Array, stage: int, layer: int) -> None:
    """``wave_end``: one full-stage owner per real batch; each goes on alone, in lane order."""
    wave = w[g[AT_WAVE] + stage]
    following = ATTENTION + PER_LAYER * (layer + 1) if layer + 1 < g[LAYERS] else TAIL
    for lane in range(g[LANES]):
        if wave >> lane & 1:
            set_status(w, g, lane, stage, following)
            pend(w, g, lane, stage)


@part
def stage_end(w: Array, g: Array, u: Array, lane: int, stage: int) -> None:
    """``stage_end``: release, wake own work, wake the other lanes in order, hand the batch on."""
    set_status(w, g, lane, stage, IDLE)
    if not w[g[AT_BUSY] + stage]:
        w[g[AT_SEALED] + stage] = 0
    backlog = w[g[AT_BACKLOG] + stage]
    if backlog >> lane & 1:
        emit(u, STAGE_SCHEDULE, lane, stage, 0)
    ready = backlog & ~w[g[AT_BUSY] + stage] & ~(1 << lane)
    for other in range(g[LANES]):
        if ready >> other & 1:
            emit(u, STAGE_SCHEDULE, other, stage, 0)
    if stage + 1 < g[STAGES]:
        emit(u, ARRIVE, lane, stage + 1, 0)
    else:
        emit(u, BATCH_END, lane, 0, 0)


@part
def handle_timed(w: Array, g: Array, u: Array, phases: Array, event: int) -> None:
    """Handle one due event: a request, or what (lane, stage) waits for by its status."""
    cells = g[LANES] * g[STAGES]
    if event >= cells:
        lane = event - cells
        w[g[AT_REQUESTS] + lane] -= 1
        w[g[AT_WAITING] + lane] += 1
        emit(u, LANE_SCHEDULE, lane, 0, 0)
        return
    lane = event // g[STAGES]
    stage = event % g[STAGES]
    status = w[g[AT_STATUS] + event]
    if status == TAIL:
        stage_end(w, g, u, lane, stage)
        return
    layer = (status - ATTENTION) // PER_LAYER
    if (status - ATTENTION) % PER_LAYER == 0:
        attention_done(w, g, u, phases, lane, stage, layer)
    else:
        wave_end(w, g, stage, layer)


@part
def handle_urgent(w: Array, g: Array, u: Array, phases: Array) -> None:
    """Handle the next urgent event."""
    event = u[u[0]]
    u[0] += 1
    kind = event & 7
    lane = event >> 3 & 31
    stage = event >> 8 & 31
    if kind == STAGE_SCHEDULE:
        stage_schedule(w, g, lane, stage)
    elif kind == ARRIVE:
        arrive(w, g, u, lane, stage)
    elif kind == STAND_IN_EVENT:
        stand_in(w, g, phases, lane, stage, event >> 13)
    elif kind == BATCH_END:
        w[g[AT_IN_FLIGHT] + lane] -= 1
        w[g[AT_REACHED]] |= BATCH_ENDED
        emit(u, LANE_SCHEDULE, lane, 0, 0)
    else:
        lane_schedule(w, g, u, lane)


@part
def settle(w: Array, g: Array, u: Array, phases: Array) -> None:
    """Handle urgent events in the order they were created until none is left, or an error."""
    while u[0] < u[1] and not w[g[AT_FAILED]]:
        handle_urgent(w, g, u, phases)


@part
def field_of(row: Array, bits: Array, f: int) -> int:
    """Value of a packed field; it may lie in two words."""
    word, shift, mask = bits[WORD, f], bits[SHIFT, f], bits[MASK, f]
    value = np.int64(row[word]) >> shift
    if mask << shift > WHOLE_WORD:
        value |= np.int64(row[word + 1]) << (32 - shift)
    return int(value & mask)


@part
def bits_of(row: Array, at: int, length: int) -> int:
    """Read the ``length`` bits of a row from bit ``at`` on; at most :data:`MOST_BITS`."""
    word, shift = at >> 5, at & 31
    value = np.int64(row[word]) >> shift
    have = 32 - shift
    if have < length:
        value |= np.int64(row[word + 1]) << have
        if have + 32 < length:
            rest = np.int64(row[word + 2]) & ((1 << (length - have - 32)) - 1)
            value = (value & ((1 << (have + 32)) - 1)) | rest << (have + 32)
    return int(value & ((1 << length) - 1))


@part
def flip(row: Array, at: int, change: int) -> None:
    """Flip the bits of a row, from bit ``at`` on, that are set in ``change``."""
    word, shift = at >> 5, at & 31
    row[word] ^= np.uint32((change & (WHOLE_WORD >> shift)) << shift)
    rest = change >> (32 - shift)
    if rest:
        row[word + 1] ^= np.uint32(rest & WHOLE_WORD)
        rest >>= 32
        if rest:
            row[word + 2] ^= np.uint32(rest)


@part
def read_fifo(w: Array, g: Array, stage: int) -> None:
    """Derive a FIFO's length; and each lane's batches, which are its tickets but for late ones."""
    at = g[AT_FIFO] + stage * g[FIFO_SLOTS]
    length = 0
    while length < g[FIFO_SLOTS] and w[at + length]:
        if g[ADMISSION] != LATE_TICKET:
            w[g[AT_QUEUED] + (w[at + length] - 1) * g[STAGES] + stage] += 1
        length += 1
    w[g[AT_FIFO_LENGTH] + stage] = length


@part
def unpack(row: Array, w: Array, g: Array, bits: Array, batches: Array) -> None:
    """Spread a packed row over ``w`` and derive the rest. ``bits[:, f]``: word, shift, mask, …."""
    for f in range(g[FIELDS]):
        w[f] = field_of(row, bits, f)
    for i in range(g[FIELDS], g[SIZE]):
        w[i] = 0
    if g[FIFO]:
        for stage in range(g[STAGES]):
            read_fifo(w, g, stage)
    for lane in range(g[LANES]):
        created = batches[lane] - np.int64(w[g[AT_WAITING] + lane])
        if g[OPEN]:
            created -= w[g[AT_REQUESTS] + lane]
        entered = created  # batches of the lane that have reached the stage's heap
        for stage in range(g[STAGES]):
            at = lane * g[STAGES] + stage
            entered -= w[g[AT_QUEUED] + at]
            w[g[AT_ADMITTED] + at] = entered
            if w[g[AT_STATUS] + at]:
                set_status(w, g, lane, stage, w[g[AT_STATUS] + at])
                entered -= 1
            if w[g[AT_QUEUED] + at]:
                w[g[AT_BACKLOG] + stage] |= 1 << lane
        w[g[AT_IN_FLIGHT] + lane] = created - entered
    if g[ORDERED]:
        while (
            w[g[AT_PENDING_LENGTH]] < g[PENDING_SLOTS]
            and w[g[AT_PENDING] + w[g[AT_PENDING_LENGTH]]]
        ):
            w[g[AT_PENDING_LENGTH]] += 1


@part
def pack(w: Array, row: Array, g: Array, bits: Array) -> None:
    """Gather ``w`` into a packed row; injective, because every field fits its bits."""
    for i in range(row.shape[0]):
        row[i] = 0
    for f in range(g[FIELDS]):
        flip(row, 32 * bits[WORD, f] + bits[SHIFT, f], np.int64(w[f]) & bits[MASK, f])


@part
def climb_of(bits: Array, field: int, before: int, after: int, tail: int) -> int:
    """How far work moves on when a field changes, but for batches that end.

    ``tail`` is the height of a stage's tail above the stage's heap.
    """
    kind, floor = bits[KIND, field], bits[FLOOR, field]
    if kind == COUNTS:
        steps: int = (after - before) * floor
        return steps
    if kind == RUNS:
        climb = 0
        if after != IDLE:
            climb += floor + (tail if after == TAIL else after - 1)
        if before != IDLE:
            climb -= floor + (tail if before == TAIL else before - 1)
        return climb
    return 0


@part
def pack_change(
    row: Array, base: Array, w: Array, base4: Array, w4: Array, out: Array, g: Array, bits: Array
) -> int:
    """Pack ``w`` into ``out``, given that ``row`` packs ``base``; return how far work moved on.

    ``base4`` and ``w4`` are the same memory, four fields at a time, because few fields differ.

    A batch climbs from request over waiting, then at each stage queued, and per layer attention,
    room and wave, then the stage's tail. Every transition moves some batch up and none down, so
    the sum of steps rises, and the graph has no cycle. That is checked on every transition.
    """
    for i in range(row.shape[0]):
        out[i] = row[i]
    climb = 0
    tail = PER_LAYER * g[LAYERS] + 1
    for four in range((g[FIELDS] + 3) // 4):
        if w4[four] != base4[four]:
            for f in range(4 * four, min(4 * four + 4, g[FIELDS])):
                if w[f] != base[f]:
                    before, after = int(np.int64(base[f])), int(np.int64(w[f]))
                    change = (before ^ after) & bits[MASK, f]
                    flip(out, 32 * bits[WORD, f] + bits[SHIFT, f], change)
                    climb += climb_of(bits, f, before, after, tail)
    for lane in range(g[LANES]):
        ended = np.int64(base[g[AT_IN_FLIGHT] + lane]) - np.int64(w[g[AT_IN_FLIGHT] + lane])
        ended += np.int64(base[g[AT_WAITING] + lane]) - np.int64(w[g[AT_WAITING] + lane])
        if g[OPEN]:
            ended += np.int64(base[g[AT_REQUESTS] + lane]) - np.int64(w[g[AT_REQUESTS] + lane])
        climb += ended * (tail + 1) * g[STAGES]
    return climb


@part
def collect(w: Array, g: Array, events: Array) -> int:
    """List the pending timed events in creation order (requests are created first)."""
    count = 0
    cells = g[LANES] * g[STAGES]
    if g[OPEN]:
        for lane in range(g[LANES]):
            for _ in range(w[g[AT_REQUESTS] + lane]):
                events[count] = cells + lane
                count += 1
    if g[ORDERED]:
        for i in range(w[g[AT_PENDING_LENGTH]]):
            events[count] = w[g[AT_PENDING] + i] - 1
            count += 1
        return count
    return collect_due(w, g, events, count)


@part
def collect_due(w: Array, g: Array, events: Array, count: int) -> int:
    """Append the events that statuses say are pending, by lane and stage; return their end."""
    at = 0
    for lane in range(g[LANES]):
        for stage in range(g[STAGES]):
            status = w[g[AT_STATUS] + at]
            if status == TAIL:
                pending = True
            elif status > TAIL:
                kind = (status - ATTENTION) % PER_LAYER
                # a wave's event goes by its lowest lane
                pending = kind == 0 or (
                    kind == IN_WAVE - ATTENTION and w[g[AT_WAVE] + stage] & ((1 << lane) - 1) == 0
                )
            else:
                pending = False
            if pending:
                events[count] = at
                count += 1
            at += 1
    return count


@part
def forget_lost_events(w: Array, g: Array) -> None:
    """In a failing state, an event that fell due and was never handled is in no list any more.

    What its lane was waiting for is then no part of the state, so it must not tell states apart.
    """
    for cell in range(g[LANES] * g[STAGES]):
        status = w[g[AT_STATUS] + cell]
        if status == IDLE or (status > TAIL and (status - ATTENTION) % PER_LAYER != 0):
            continue
        lost = True
        for i in range(w[g[AT_PENDING_LENGTH]]):
            if w[g[AT_PENDING] + i] == 1 + cell:
                lost = False
        if lost:
            w[g[AT_STATUS] + cell] = TAIL


@part
def fire(
    base4: Array,
    w: Array,
    w4: Array,
    g: Array,
    u: Array,
    phases: Array,
    events: Array,
    count: int,
    chosen: int,
) -> None:
    """Fire the events whose bits are set in ``chosen`` at one instant, from the base into ``w``."""
    for i in range(w4.shape[0]):
        w4[i] = base4[i]
    w[g[AT_REACHED]] = 0
    if g[ORDERED]:
        keep = 0
        cells = g[LANES] * g[STAGES]
        for i in range(count):
            if events[i] < cells and not chosen >> i & 1:
                w[g[AT_PENDING] + keep] = 1 + events[i]
                keep += 1
        for i in range(keep, w[g[AT_PENDING_LENGTH]]):
            w[g[AT_PENDING] + i] = 0
        w[g[AT_PENDING_LENGTH]] = keep
    u[0] = 2
    u[1] = 2
    for i in range(count):
        if chosen >> i & 1:
            handle_timed(w, g, u, phases, events[i])
            if w[g[AT_FAILED]]:
                break
    settle(w, g, u, phases)
    if w[g[AT_FAILED]] and g[ORDERED]:
        forget_lost_events(w, g)


@part
def is_choice(events: Array, count: int, chosen: int) -> bool:
    """Equal events (requests of one lane) are taken first come first: one transition, not many."""
    for i in range(1, count):
        if chosen >> i & 1 and events[i] == events[i - 1] and not chosen >> (i - 1) & 1:
            return False
    return True


@part
def lane_key(w: Array, g: Array, lane: int) -> int:
    """All that a state says of one lane, as one number (the layout checks that it fits)."""
    key: int = 0
    key = key << g[KEY_BATCHES] | w[g[AT_WAITING] + lane]
    if g[OPEN]:
        key = key << g[KEY_BATCHES] | w[g[AT_REQUESTS] + lane]
    for at in range(lane * g[STAGES], (lane + 1) * g[STAGES]):
        key = key << g[KEY_STATUS] | w[g[AT_STATUS] + at]
        key = key << g[KEY_HEAP] | w[g[AT_QUEUED] + at]
    if g[MOE] and not g[MEET]:
        for room in range(g[STAGES] * g[LAYERS] * g[PHASES]):
            key = key << 1 | (w[g[AT_ROOM] + room] >> lane & 1)
    return key


@part
def swap_lanes(w: Array, g: Array, a: int, b: int) -> None:
    """Exchange all that a state says of two lanes."""
    w[g[AT_WAITING] + a], w[g[AT_WAITING] + b] = w[g[AT_WAITING] + b], w[g[AT_WAITING] + a]
    if g[OPEN]:
        at = g[AT_REQUESTS]
        w[at + a], w[at + b] = w[at + b], w[at + a]
    for stage in range(g[STAGES]):
        i, j = a * g[STAGES] + stage, b * g[STAGES] + stage
        w[g[AT_STATUS] + i], w[g[AT_STATUS] + j] = w[g[AT_STATUS] + j], w[g[AT_STATUS] + i]
        w[g[AT_QUEUED] + i], w[g[AT_QUEUED] + j] = w[g[AT_QUEUED] + j], w[g[AT_QUEUED] + i]
    if g[MOE]:
        for room in range(g[AT_ROOM], g[AT_ROOM] + g[STAGES] * g[LAYERS] * g[PHASES]):
            if (w[room] >> a ^ w[room] >> b) & 1:
                w[room] ^= 1 << a | 1 << b
    if w[g[AT_FAILED]]:
        failed = (w[g[AT_FAILED]] - 1) // 2
        lane, rest = failed % g[LANES], failed // g[LANES] * g[LANES]
        lane = b if lane == a else a if lane == b else lane
        w[g[AT_FAILED]] = 1 + 2 * (rest + lane) + (w[g[AT_FAILED]] - 1) % 2


@part
def sort_lanes(w: Array, g: Array, classes: Array, keys: Array) -> None:
    """Go to the orbit's representative: within each class of lanes, keys ascend.

    ``classes[lane]`` is the next higher lane of the same class, or -1. A state consists of the
    lanes' keys and of the stages' seals, which no permutation of lanes touches; so two states are
    in one orbit exactly when sorting makes them equal.
    """
    for lane in range(g[LANES]):
        keys[lane] = lane_key(w, g, lane)
    for first in range(g[LANES]):
        least = first
        other = classes[first]
        while other >= 0:
            if keys[other] < keys[least]:
                least = other
            other = classes[other]
        if least != first:
            swap_lanes(w, g, first, least)
            keys[first], keys[least] = keys[least], keys[first]


@part
def has_work_above(w: Array, g: Array, lane: int, stage: int) -> bool:
    """May another batch of the lane still arrive at the stage."""
    if w[g[AT_WAITING] + lane] or (g[OPEN] and w[g[AT_REQUESTS] + lane]):
        return True
    for at in range(lane * g[STAGES], lane * g[STAGES] + stage):
        if w[g[AT_STATUS] + at] or w[g[AT_QUEUED] + at]:
            return True
    return False


@part
def alone_wave(w: Array, g: Array, stage: int) -> bool:
    """``wave_end`` commutes: no owner outside the wave can enter a room before it."""
    for lane in range(g[LANES]):
        status = w[g[AT_STATUS] + lane * g[STAGES] + stage]
        if status > TAIL and (status - ATTENTION) % PER_LAYER == 0:
            return False
    return True


@part
def alone_attention(w: Array, g: Array, stage: int, layer: int) -> bool:
    """``attention_done`` commutes with all that may come before it.

    Every busy lane is in this layer's attention or room, and no other lane can become busy, or
    change whether it may stand in.
    """
    if g[PHASES] > 1 or w[g[AT_WAVE] + stage]:
        return False
    busy = w[g[AT_BUSY] + stage]
    if w[g[AT_ROOM] + stage * g[LAYERS] + layer] & busy:
        return False
    for lane in range(g[LANES]):
        at = lane * g[STAGES] + stage
        status = w[g[AT_STATUS] + at]
        if busy >> lane & 1:
            if status != ATTENTION + PER_LAYER * layer and status != IN_ROOM + PER_LAYER * layer:
                return False
        elif not w[g[AT_SEALED] + stage] and (
            w[g[AT_QUEUED] + at] or has_work_above(w, g, lane, stage)
        ):
            return False
    return True


@part
def alone_tail(w: Array, g: Array, lane: int, stage: int) -> bool:
    """``stage_end`` commutes with all that may come before it.

    Dense: always. MoE: at the last stage, where nothing else can happen but tails ending and
    arrivals, and no batch waits for the slot that it frees.
    """
    if g[ADMISSION] != EP_ORDERED:
        return False
    if not g[MOE]:
        return True
    if stage + 1 < g[STAGES] or not w[g[AT_SEALED] + stage]:
        return False
    if w[g[AT_WAITING] + lane] or (g[OPEN] and w[g[AT_REQUESTS] + lane]):
        return False
    for other in range(g[LANES]):
        status = w[g[AT_STATUS] + other * g[STAGES] + stage]
        if status > TAIL and (status - ATTENTION) % PER_LAYER != IN_ROOM - ATTENTION:
            return False
    return True


@part
def is_tail(w: Array, g: Array, event: int) -> bool:
    """Whether a pending event is a ``stage_end``."""
    tail: bool = event < g[LANES] * g[STAGES] and w[g[AT_STATUS] + event] == TAIL
    return tail


@part
def commutes_alone(w: Array, g: Array, event: int) -> bool:
    """Whether a pending event commutes with all that may come before it."""
    if event >= g[LANES] * g[STAGES]:
        return False
    lane, stage = event // g[STAGES], event % g[STAGES]
    status = w[g[AT_STATUS] + event]
    if status == TAIL:
        return alone_tail(w, g, lane, stage)
    if (status - ATTENTION) % PER_LAYER == 0:
        return alone_attention(w, g, stage, (status - ATTENTION) // PER_LAYER)
    return alone_wave(w, g, stage)


@part
def nothing_arrives(w: Array, g: Array, stage: int) -> bool:
    """Whether no batch is left that could still arrive at the stage."""
    possible = False
    for lane in range(g[LANES]):
        possible = possible or has_work_above(w, g, lane, stage)
    return not possible


@part
def segment_end(w: Array, g: Array, events: Array, count: int, first: int) -> int:
    """Last stage of the run of stages from ``first`` on that hand batches on now, or -1.

    A stage with a tail due hands a batch to the next, so that one belongs to the run. -1 when the
    run would go round: a batch that ends makes room for one that waits.
    """
    last = first
    while True:
        hands_on = False
        for i in range(count):
            if is_tail(w, g, events[i]) and events[i] % g[STAGES] == last:
                hands_on = True
                lane = events[i] // g[STAGES]
                if last + 1 == g[STAGES] and (
                    w[g[AT_WAITING] + lane] or (g[OPEN] and w[g[AT_REQUESTS] + lane])
                ):
                    return -1
        if not hands_on or last + 1 == g[STAGES]:
            return last
        last += 1


@part
def step_of(w: Array, g: Array, events: Array, count: int, i: int) -> int:
    """Events that fire together with event ``i`` when groups meet in one step, as bits.

    A request or tail goes alone; the first attention of a stage stands for all of them, and the
    others for nothing (0).
    """
    cells = g[LANES] * g[STAGES]
    if events[i] >= cells or w[g[AT_STATUS] + events[i]] == TAIL:
        return 1 << i
    group = 0
    for j in range(count):
        if (
            events[j] < cells
            and events[j] % g[STAGES] == events[i] % g[STAGES]
            and w[g[AT_STATUS] + events[j]] != TAIL
        ):
            if j < i:
                return 0
            group |= 1 << j
    return group


@part
def meet(base: Array, w: Array, g: Array, u: Array, phases: Array, stage: int) -> bool:
    """Fire a stage's events, in lane order, until every owner has its tail left; from ``base``.

    Returns whether it went as the reduction's argument says: all owners become one wave together,
    and all are at their tails in the end.
    """
    for i in range(g[SIZE]):
        w[i] = base[i]
    owners = w[g[AT_BUSY] + stage]
    for _ in range(2 * g[LAYERS]):
        for lane in range(g[LANES]):
            cell = lane * g[STAGES] + stage
            status = w[g[AT_STATUS] + cell]
            if status > TAIL and (status - ATTENTION) % PER_LAYER != IN_ROOM - ATTENTION:
                u[0] = 2
                u[1] = 2
                handle_timed(w, g, u, phases, cell)
                settle(w, g, u, phases)
                if w[g[AT_WAVE] + stage]:
                    if w[g[AT_WAVE] + stage] != owners:
                        return False
                    break
    for lane in range(g[LANES]):
        expected = TAIL if owners >> lane & 1 else IDLE
        if w[g[AT_STATUS] + lane * g[STAGES] + stage] != expected:
            return False
    return w[g[AT_BUSY] + stage] == owners and not w[g[AT_FAILED]]


@part
def persistent(w: Array, g: Array, events: Array, count: int) -> int:
    """Choose a persistent set of pending events, as bits; all of them if none is smaller.

    One event that commutes alone, else all events of a run of stages that nothing outside can
    influence before one of them fires (docs/packed_engine.md argues each case).
    """
    everything = (1 << count) - 1
    for i in range(count):
        if commutes_alone(w, g, events[i]):
            return 1 << i
    if g[ADMISSION] != EP_ORDERED:
        return everything
    best, fewest = everything, count
    cells = g[LANES] * g[STAGES]
    for first in range(g[STAGES]):
        if not w[g[AT_SEALED] + first] and not nothing_arrives(w, g, first):
            continue
        last = segment_end(w, g, events, count, first)
        chosen, size = 0, 0
        for i in range(count):
            if events[i] < cells and first <= events[i] % g[STAGES] <= last:
                chosen |= 1 << i
                if not g[MEET] or step_of(w, g, events, count, i):
                    size += 1
        if 0 < size < fewest:
            best, fewest = chosen, size
    return best


@part
def end_of(w: Array, g: Array) -> int:
    """Without pending events: complete when every batch has ended, else drained."""
    for lane in range(g[LANES]):
        if w[g[AT_WAITING] + lane]:
            return DRAINED
    for stage in range(g[STAGES]):
        if w[g[AT_BUSY] + stage] or w[g[AT_BACKLOG] + stage]:
            return DRAINED
    return COMPLETE


@part
def find_entry(memo: Array, index: Array, stage: int, view: int) -> int:
    """Place in the index of the entry for this view of a stage, or of the gap where it belongs."""
    low, high = view & 0x7FFFFFFF, view >> 31
    h = low * 0x2C9277B5 + high * 0x1B873593 + stage * 0x1E3779B1
    at: int = (h >> 29 ^ h >> 13 ^ h) & (index.shape[0] - 1)
    while index[at]:
        if memo[index[at] - 1, M_VIEW] == view and memo[index[at] - 1, M_STAGE] == stage:
            break
        at = (at + 1) & (index.shape[0] - 1)
    return at


@part
def entry_of(moves: Moves, stage: int, view: int, g: Array, bits: Array, batches: Array) -> int:
    """Find or make the entry that remembers what can happen at a stage of which this is seen."""
    memo, index, used = moves[0], moves[1], moves[2]
    at = find_entry(memo, index, stage, view)
    if not index[at]:
        index[at] = used[0] + 1
        describe(moves, used[0], stage, view, g, bits, batches)
        used[0] += 1
    number: int = index[at] - 1
    return number


@part
def view_of(part: int, g: Array) -> int:
    """Return what moves depend on: the part itself, or with the FIFO's tickets counted per lane."""
    if not g[COUNTED]:
        return part
    fifo = part >> g[CONTROL_BITS]
    view = part & ((1 << g[CONTROL_BITS]) - 1)
    ticket = (1 << g[FIFO_WIDTH]) - 1
    while fifo:
        view += 1 << g[CONTROL_BITS] + ((fifo & ticket) - 1) * g[COUNTED]
        fifo >>= g[FIFO_WIDTH]
    return int(view)


@part
def part_with(view: int, g: Array) -> int:
    """Return a part that has this view."""
    if not g[COUNTED]:
        return view
    part = view & ((1 << g[CONTROL_BITS]) - 1)
    at = g[CONTROL_BITS]
    for lane in range(g[LANES]):
        tickets = view >> g[CONTROL_BITS] + lane * g[COUNTED] & ((1 << g[COUNTED]) - 1)
        for _ in range(tickets):
            part |= 1 + lane << at
            at += g[FIFO_WIDTH]
    return int(part)


@part
def part_after(part: int, following: int, info: int, arrives: int, g: Array) -> int:
    """Part of a stage after a move: ``following`` itself, or its FIFO is worked out.

    Lanes that were admitted lose their first ticket (which goes first is the same); ``arrives`` is
    0, or 1 and the lane whose new ticket is last.
    """
    if not g[COUNTED]:
        return following
    width = g[FIFO_WIDTH]
    ticket = (1 << width) - 1
    fifo = part >> g[CONTROL_BITS]
    if arrives:
        at = 0
        while fifo >> at:
            at += width
        fifo |= arrives << at
    takes = info >> TAKES_AT & TAKES_MASK
    lane = 1
    while takes:
        if takes & 1:
            at = 0
            while fifo >> at and fifo >> at & ticket != lane:
                at += width
            fifo = fifo & ((1 << at) - 1) | fifo >> (at + width) << at
        takes >>= 1
        lane += 1
    return int(following | fifo << g[CONTROL_BITS])


@part
def load_part(moves: Moves, stage: int, view: int, g: Array, bits: Array, batches: Array) -> None:
    """Unpack a state in which only this stage is not empty."""
    row, base = moves[3], moves[5]
    for i in range(row.shape[0]):
        row[i] = 0
    flip(row, stage * g[PART_BITS], part_with(view, g))
    unpack(row, base, g, bits, batches)


@part
def learn(
    moves: Moves,
    number: int,
    lane: int,
    arrives: int,
    g: Array,
    bits: Array,
    phases: Array,
    u: Array,
) -> None:
    """Work a move out: the lane's event falls due, or a batch of it arrives; from the loaded part.

    What happens at one stage depends on nothing outside it (no ties, one room for both phases).
    A batch that leaves is handed on last, when the stage is settled; ``LEAVES`` says so.
    """
    memo, row, out, base, w = moves[0], moves[3], moves[4], moves[5], moves[6]
    stage = memo[number, M_STAGE]
    for i in range(g[SIZE]):
        w[i] = base[i]
    u[0] = 2
    u[1] = 2
    if arrives:
        emit(u, ARRIVE, lane, stage, 0)
        handle_urgent(w, g, u, phases)
    else:
        handle_timed(w, g, u, phases, lane * g[STAGES] + stage)
    leaves = 0
    while u[0] < u[1] and not w[g[AT_FAILED]] and not leaves:
        kind = u[u[0]] & 7
        if kind in (ARRIVE, BATCH_END):
            leaves = LEAVES
        else:
            handle_urgent(w, g, u, phases)
    climb = pack_change(row, base, w, moves[7], moves[8], out, g, bits)
    pends = 0
    count = np.int64(w[g[AT_PENDING_LENGTH]])
    odd = w[g[AT_FAILED]] != 0 or (leaves != 0 and u[0] + 1 != u[1])
    if count * g[PENDING_WIDTH] > MOST_BITS:
        odd = True
    else:
        for i in range(count):
            pends |= np.int64(w[g[AT_PENDING] + i]) << i * g[PENDING_WIDTH]
    takes = 0
    for other in range(g[LANES]):
        cell = g[AT_QUEUED] + other * g[STAGES] + stage
        if w[cell] < base[cell] + (arrives if other == lane else 0):
            takes |= 1 << other
    at = M_MOVES + 3 * (lane + g[LANES] * arrives)
    seen = g[CONTROL_BITS] if g[COUNTED] else g[PART_BITS]
    memo[number, at] = bits_of(out, stage * g[PART_BITS], seen)
    memo[number, at + 1] = (
        KNOWN
        | leaves
        | (ODD if odd else 0)
        | np.int64(w[g[AT_REACHED]]) << CLAIMS_AT
        | count << PENDS_AT
        | takes << TAKES_AT
        | climb << CLIMB_AT
    )
    memo[number, at + 2] = pends


@part
def describe(
    moves: Moves, number: int, stage: int, view: int, g: Array, bits: Array, batches: Array
) -> None:
    """Fill a new entry: due events as cells, batches of each lane; no move is known yet."""
    memo, base, events = moves[0], moves[5], moves[9]
    load_part(moves, stage, view, g, bits, batches)
    for i in range(memo.shape[1]):
        memo[number, i] = 0
    memo[number, M_VIEW] = view
    memo[number, M_STAGE] = stage
    for i in range(collect_due(base, g, events, 0)):
        memo[number, M_DUE] |= 1 << events[i]
    for lane in range(g[LANES]):
        at = lane * g[STAGES] + stage
        load = np.int64(base[g[AT_QUEUED] + at]) + (1 if base[g[AT_STATUS] + at] else 0)
        memo[number, M_LOAD] |= load << LOAD_BITS * lane


@part
def learn_with_others(
    moves: Moves,
    number: int,
    lane: int,
    arrives: int,
    g: Array,
    bits: Array,
    phases: Array,
    batches: Array,
    u: Array,
) -> None:
    """Work out a lane's move, and with it those of the other lanes: they are asked for as well.

    Loading the part is the greater share of the work.
    """
    memo = moves[0]
    stage = memo[number, M_STAGE]
    load_part(moves, stage, memo[number, M_VIEW], g, bits, batches)
    for other in range(g[LANES]):
        load = memo[number, M_LOAD] >> LOAD_BITS * other & LOAD_MASK
        due = memo[number, M_DUE] >> (other * g[STAGES] + stage) & 1
        possible = load < min(g[STAGES], batches[other]) if arrives else due != 0
        if other == lane or possible:
            learn(moves, number, other, arrives, g, bits, phases, u)


@part
def take_waiting(out: Array, g: Array, bits: Array, lane: int, load: int) -> int:
    """``lane_schedule`` on packed rows: 1 if a waiting batch goes to stage 0, else 0; 2 if more do.

    ``out`` has the count of waiting batches that is true before; ``load`` is what is in flight.
    """
    f = g[AT_WAITING] + lane
    waiting = field_of(out, bits, f)
    if not waiting or load >= g[STAGES]:
        return 0
    if waiting > 1 and load + 1 < g[STAGES]:
        return 2
    flip(out, 32 * bits[WORD, f] + bits[SHIFT, f], waiting ^ (waiting - 1))
    return 1


@part
def fire_packed(
    rows: Array,
    i: int,
    moves: Moves,
    g: Array,
    bits: Array,
    phases: Array,
    batches: Array,
    u: Array,
    events: Array,
    count: int,
    c: int,
    out: Array,
) -> int:
    """Fire event ``c`` alone, the long way, from row ``i`` into ``out``; return the claims."""
    row, base, w = rows[i], moves[5], moves[6]
    unpack(row, base, g, bits, batches)
    fire(moves[7], w, moves[8], g, u, phases, events, count, 1 << c)
    climb = pack_change(row, base, w, moves[7], moves[8], out, g, bits)
    reached: int = w[g[AT_REACHED]]
    if climb <= 0 and not w[g[AT_FAILED]]:
        reached |= STOOD_STILL
    return reached


@part
def list_events(row: Array, g: Array, bits: Array, due: int, pending: int, events: Array) -> int:
    """As :func:`collect`, from a packed row; ``due`` has the cells whose event is pending."""
    count = 0
    cells = g[LANES] * g[STAGES]
    if g[OPEN]:
        for lane in range(g[LANES]):
            for _ in range(field_of(row, bits, g[AT_REQUESTS] + lane)):
                events[count] = cells + lane
                count += 1
    if g[ORDERED]:
        mask = (1 << g[PENDING_WIDTH]) - 1
        while pending:
            events[count] = (pending & mask) - 1
            pending >>= g[PENDING_WIDTH]
            count += 1
        return count
    cell = 0
    while due:
        if due & 1:
            events[count] = cell
            count += 1
        due >>= 1
        cell += 1
    return count


@part
def end_of_row(row: Array, g: Array, bits: Array, load: int) -> int:
    """As :func:`end_of`, from a packed row and what is in flight."""
    for lane in range(g[LANES]):
        if field_of(row, bits, g[AT_WAITING] + lane):
            return DRAINED
    return DRAINED if load else COMPLETE


@part
def expand_parts(
    rows: Array,
    g: Array,
    bits: Array,
    phases: Array,
    batches: Array,
    moves: Moves,
    u: Array,
    events: Array,
    out_rows: Array,
    out_source: Array,
    out_choice: Array,
    ends: Array,
) -> tuple[int, int, int]:
    """As :func:`expand`, putting successors together from moves of single stages.

    An event changes its own stage, and the next one (or the first) if a batch is handed on. Both
    moves are looked up by the stage's part of the row, compared in full; each is worked out once.
    """
    memo, used, parts, entries = moves[0], moves[2], moves[10], moves[11]
    lanes, stages, size = g[LANES], g[STAGES], g[PART_BITS]
    cells = lanes * stages
    width = rows.shape[1]
    tail = PER_LAYER * g[LAYERS] + 1
    pending_at, pending_width = g[PENDING_AT], g[PENDING_WIDTH]
    pending_bits = pending_width * g[PENDING_SLOTS]
    n = 0
    reached = 0
    for i in range(rows.shape[0]):
        row = rows[i]
        if used[0] + stages + lanes > memo.shape[0]:
            moves[1][:] = 0
            used[0] = 0
        due, load = 0, 0
        for stage in range(stages):
            parts[stage] = bits_of(row, stage * size, size)
            entries[stage] = entry_of(moves, stage, view_of(parts[stage], g), g, bits, batches)
            due |= memo[entries[stage], M_DUE]
            load += memo[entries[stage], M_LOAD]
        if g[AT_FAILED] < g[FIELDS] and field_of(row, bits, g[AT_FAILED]):
            ends[i] = FAILED
            continue
        pending = bits_of(row, pending_at, pending_bits) if g[ORDERED] else 0
        count = list_events(row, g, bits, due, pending, events)
        ends[i] = GOING if count else end_of_row(row, g, bits, load)
        if n + count > out_source.shape[0]:
            return i, n, reached
        requests = 0
        while requests < count and events[requests] >= cells:
            requests += 1
        for c in range(count):
            event = events[c]
            if c and event == events[c - 1]:
                continue
            for word in range(width):
                out_rows[n, word] = row[word]
            out = out_rows[n]
            odd = False
            climb, claims, pends, pended, to = 0, 0, 0, 0, -1
            if event >= cells:
                lane, stage = event - cells, -1
                f = g[AT_REQUESTS] + lane
                left = field_of(row, bits, f)
                flip(out, 32 * bits[WORD, f] + bits[SHIFT, f], left ^ (left - 1))
                f = g[AT_WAITING] + lane
                left = field_of(row, bits, f)
                flip(out, 32 * bits[WORD, f] + bits[SHIFT, f], left ^ (left + 1))
                taken = take_waiting(out, g, bits, lane, load >> LOAD_BITS * lane & LOAD_MASK)
                odd = taken > 1
                to = taken - 1
                climb = 1 + taken
            else:
                lane = moves[12][event]
                stage = event - lane * stages
                number = entries[stage]
                at = M_MOVES + 3 * lane
                if not memo[number, at + 1]:
                    learn_with_others(moves, number, lane, 0, g, bits, phases, batches, u)
                info = memo[number, at + 1]
                odd = info & ODD != 0
                part = parts[stage]
                flip(out, stage * size, part ^ part_after(part, memo[number, at], info, 0, g))
                climb = info >> CLIMB_AT
                claims = info >> CLAIMS_AT & CLAIMS_MASK
                pends, pended = memo[number, at + 2], info >> PENDS_AT & PENDS_MASK
                if info & LEAVES:
                    to = stage + 1
                    if to == stages:
                        in_flight = (load >> LOAD_BITS * lane & LOAD_MASK) - 1
                        taken = take_waiting(out, g, bits, lane, in_flight)
                        odd = odd or taken > 1
                        to = taken - 1
                        climb += (tail + 1) * stages + taken
                        claims |= BATCH_ENDED
            if to >= 0 and not odd:
                part, number = parts[to], entries[to]
                if to == stage:
                    part = bits_of(out, stage * size, size)
                    number = entry_of(moves, stage, view_of(part, g), g, bits, batches)
                at = M_MOVES + 3 * (lane + lanes)
                if not memo[number, at + 1]:
                    learn_with_others(moves, number, lane, 1, g, bits, phases, batches, u)
                info = memo[number, at + 1]
                odd = info & (ODD | LEAVES) != 0
                flip(out, to * size, part ^ part_after(part, memo[number, at], info, 1 + lane, g))
                climb += info >> CLIMB_AT
                claims |= info >> CLAIMS_AT & CLAIMS_MASK
                pends |= memo[number, at + 2] << pended * pending_width
                pended += info >> PENDS_AT & PENDS_MASK
            if g[ORDERED]:
                length, kept = count - requests, pending
                if event < cells:
                    before = (c - requests) * pending_width
                    after = kept >> (before + pending_width) << before
                    kept = kept & ((1 << before) - 1) | after
                    length -= 1
                flip(out, pending_at, pending ^ (kept | pends << length * pending_width))
            if odd:
                claims = fire_packed(
                    rows, i, moves, g, bits, phases, batches, u, events, count, c, out
                )
            elif climb <= 0:
                claims |= STOOD_STILL
            reached |= claims
            out_source[n] = i
            out_choice[n] = 1 << c
            n += 1
    return rows.shape[0], n, reached


@part
def expand(
    rows: Array,
    g: Array,
    bits: Array,
    phases: Array,
    batches: Array,
    classes: Array,
    base: Array,
    w: Array,
    base4: Array,
    w4: Array,
    u: Array,
    events: Array,
    keys: Array,
    out_rows: Array,
    out_source: Array,
    out_choice: Array,
    ends: Array,
) -> tuple[int, int, int]:
    """Write all successors of ``rows`` while they fit.

    Returns the first row that was not expanded, the number of successors, and the claims reached.
    """
    n = 0
    reached = 0
    for i in range(rows.shape[0]):
        unpack(rows[i], base, g, bits, batches)
        if base[g[AT_FAILED]]:
            ends[i] = FAILED
            continue
        count = collect(base, g, events)
        ends[i] = GOING if count else end_of(base, g)
        choices = (1 << count) - 1 if g[TIES] else count
        if n + choices > out_source.shape[0]:
            return i, n, reached
        follow = persistent(base, g, events, count) if g[PARTIAL] else -1
        for c in range(choices):
            chosen = c + 1 if g[TIES] else 1 << c
            if g[MEET]:
                chosen = step_of(base, g, events, count, c)
            if not chosen & follow or not is_choice(events, count, chosen):
                continue
            if g[MEET] and not is_tail(base, g, events[c]) and events[c] < g[LANES] * g[STAGES]:
                if not meet(base, w, g, u, phases, events[c] % g[STAGES]):
                    reached |= MET_OTHERWISE
            else:
                fire(base4, w, w4, g, u, phases, events, count, chosen)
            reached |= w[g[AT_REACHED]]
            climb = pack_change(rows[i], base, w, base4, w4, out_rows[n], g, bits)
            if climb <= 0 and not w[g[AT_FAILED]]:
                reached |= STOOD_STILL
            if g[SYMMETRY]:
                sort_lanes(w, g, classes, keys)
                pack(w, out_rows[n], g, bits)
            out_source[n] = i
            out_choice[n] = chosen
            n += 1
    return rows.shape[0], n, reached


@jit_views
def scenario_at(context: int) -> Any:
    """Geometry, field table, phases, batches and urgent events of an expander's memory."""
    at = longs_at(context, C_SIZE)
    g = longs_at(at[C_GEOMETRY], G_SIZE)
    return (
        g,
        long_rows_at(at[C_BITS], FLOOR + 1, g[FIELDS]),
        long_rows_at(at[C_PHASES], g[LANES], at[C_PHASE_COLUMNS]),
        longs_at(at[C_BATCHES], g[LANES]),
        longs_at(at[C_URGENT], at[C_URGENT_SIZE]),
    )


@jit_views
def work_at(context: int) -> Any:
    """Working arrays of an expander's memory: base and successor, then both by four."""
    at = longs_at(context, C_SIZE)
    size = at[C_WORK_SIZE]
    return (
        halves_at(at[C_BASE], size),
        halves_at(at[C_WORK], size),
        ulongs_at(at[C_BASE], size // 4),
        ulongs_at(at[C_WORK], size // 4),
    )


@jit_views
def block_at(address: int, width: int) -> Any:
    """Rows, sources, choices and ends of a block."""
    header = longs_at(address, REACHED + 1)
    capacity = header[CAPACITY]
    return (
        rows_at(header[ROWS], capacity, width),
        longs_at(header[SOURCES], capacity),
        longs_at(header[CHOICES], capacity),
        bytes_at(header[ENDS], header[SPAN]),
    )


@jit_views
def report(address: int, first: int, count: int, reached: int) -> None:
    """Say in a block's header what was expanded."""
    header = longs_at(address, REACHED + 1)
    header[FIRST] = first
    header[COUNT] = count
    header[REACHED] = reached


def expand_at(context: int, rows: int, count: int, header: int) -> int:
    """Expand rows into a block: a C function for :class:`verify.packed.native.Expander`."""
    at = longs_at(context, C_SIZE)
    g, bits, phases, batches, u = scenario_at(context)
    base, w, base4, w4 = work_at(context)
    out_rows, out_source, out_choice, ends = block_at(header, at[C_WIDTH])
    first, n, reached = expand(
        rows_at(rows, count, at[C_WIDTH]),
        g,
        bits,
        phases,
        batches,
        longs_at(at[C_CLASSES], g[LANES]),
        base,
        w,
        base4,
        w4,
        u,
        longs_at(at[C_EVENTS], at[C_EVENTS_SIZE]),
        longs_at(at[C_KEYS], g[LANES]),
        out_rows,
        out_source,
        out_choice,
        ends,
    )
    report(header, first, n, reached)
    return 0


def expand_parts_at(context: int, rows: int, count: int, header: int) -> int:
    """As :func:`expand_at`, by :func:`expand_parts`; a function of its own, to compile less."""
    at = longs_at(context, C_SIZE)
    g, bits, phases, batches, u = scenario_at(context)
    base, w, base4, w4 = work_at(context)
    events = longs_at(at[C_EVENTS], at[C_EVENTS_SIZE])
    out_rows, out_source, out_choice, ends = block_at(header, at[C_WIDTH])
    moves = (
        long_rows_at(at[C_MEMO], at[C_MEMO_ENTRIES], at[C_MEMO_WIDTH]),
        ints_at(at[C_INDEX], at[C_INDEX_SIZE]),
        longs_at(at[C_USED], 1),
        words_at(at[C_ROW], at[C_WIDTH]),
        words_at(at[C_OUT], at[C_WIDTH]),
        base,
        w,
        base4,
        w4,
        events[at[C_EVENTS_SIZE] // 2 :],
        longs_at(at[C_PARTS], g[STAGES]),
        longs_at(at[C_ENTRIES], g[STAGES]),
        longs_at(at[C_LANE_OF], g[LANES] * g[STAGES]),
    )
    first, n, reached = expand_parts(
        rows_at(rows, count, at[C_WIDTH]),
        g,
        bits,
        phases,
        batches,
        moves,
        u,
        events,
        out_rows,
        out_source,
        out_choice,
        ends,
    )
    report(header, first, n, reached)
    return 0


@jit
def start(
    w: Array, row: Array, g: Array, bits: Array, u: Array, phases: Array, batches: Array
) -> int:
    """Pack the initial quiescent state; return the claims reached on the way.

    A burst wakes lanes 1, 2, …, 0; open arrivals wait for their requests (section 4).
    """
    for i in range(g[SIZE]):
        w[i] = 0
    u[0] = 2
    u[1] = 2
    for i in range(g[LANES]):
        lane = (i + 1) % g[LANES]
        if g[OPEN]:
            w[g[AT_REQUESTS] + lane] = batches[lane]
        elif batches[lane]:
            w[g[AT_WAITING] + lane] = batches[lane]
            emit(u, LANE_SCHEDULE, lane, 0, 0)
    settle(w, g, u, phases)
    pack(w, row, g, bits)
    reached: int = w[g[AT_REACHED]]
    return reached


@part
def gather(w: Array, g: Array) -> None:
    """Map every owner to where its group is before or after the step that :func:`meet` takes.

    Before the seal: all in their first attention. After it: all at their tails. No placeholder is
    remembered: the next to enter the room would store or withdraw it anyway.
    """
    for cell in range(g[LANES] * g[STAGES]):
        if w[g[AT_STATUS] + cell] != IDLE:
            sealed = w[g[AT_SEALED] + cell % g[STAGES]]
            w[g[AT_STATUS] + cell] = TAIL if sealed else ATTENTION
    for room in range(g[STAGES] * g[LAYERS] * g[PHASES]):
        w[g[AT_ROOM] + room] = 0


@jit
def project(
    row: Array,
    w: Array,
    reduced: Array,
    out: Array,
    g: Array,
    bits: Array,
    to: Array,
    to_bits: Array,
    batches: Array,
    classes: Array,
    keys: Array,
) -> None:
    """Map a row of the unreduced layout ``g`` to its representative in the layout ``to``."""
    unpack(row, w, g, bits, batches)
    for i in range(to[SIZE]):
        reduced[i] = 0
    for i in range(g[LANES] * g[STAGES]):
        reduced[to[AT_STATUS] + i] = w[g[AT_STATUS] + i]
        reduced[to[AT_QUEUED] + i] = w[g[AT_QUEUED] + i]
    for i in range(g[LANES]):
        reduced[to[AT_WAITING] + i] = w[g[AT_WAITING] + i]
        if g[OPEN]:
            reduced[to[AT_REQUESTS] + i] = w[g[AT_REQUESTS] + i]
    for i in range(g[STAGES]):
        reduced[to[AT_SEALED] + i] = w[g[AT_SEALED] + i]
    if g[MOE]:
        for i in range(g[STAGES] * g[LAYERS] * g[PHASES]):
            reduced[to[AT_ROOM] + i] = w[g[AT_ROOM] + i]
    if to[FIFO]:
        for i in range(g[STAGES] * g[FIFO_SLOTS]):
            reduced[to[AT_FIFO] + i] = w[g[AT_FIFO] + i]
    if to[ORDERED]:
        for i in range(g[PENDING_SLOTS]):
            reduced[to[AT_PENDING] + i] = w[g[AT_PENDING] + i]
    reduced[to[AT_FAILED]] = w[g[AT_FAILED]]
    if to[MEET]:
        gather(reduced, to)
    if to[SYMMETRY]:
        sort_lanes(reduced, to, classes, keys)
    pack(reduced, out, to, to_bits)
