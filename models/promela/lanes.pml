/* PROTOCOL.md sections 3 to 5 for a burst: ep_ordered, withdraw_joined, moe, one layer, ties off,
 * pending events in canonical order. One process; each option of its loop fires one timed event and
 * then handles the urgent events in the order they were created, in one step.
 *
 * LANES, STAGES, SLOTS (of a FIFO), URGENT, the initial values and the options come from models/promela/__init__.py.
 */
#define CELLS (LANES * STAGES)
#define AT(l, s) ((l) * STAGES + (s))

#define IDLE 0
#define TAIL 1
#define ATTENTION 2
#define IN_ROOM 3
#define IN_WAVE 4

#define SCHEDULE 0
#define ARRIVE 1
#define STAND_IN 2
#define BATCH_END 3

/*STATE*/

hidden byte kind[URGENT], of_lane[URGENT], of_stage[URGENT];
hidden byte head, tail, lane, stage, i, j, k, m;
hidden byte found, stored, filled;

inline emit(what, l, s) {
    assert(tail < URGENT);
    kind[tail] = what; of_lane[tail] = l; of_stage[tail] = s; tail++
}

/* any lane busy at the stage */
inline is_held(s) {
    found = false;
    i = 0;
    do
    :: i < LANES -> if :: status[AT(i, s)] != IDLE -> found = true; break :: else -> i++ fi
    :: else -> break
    od
}

/* withdraw the placeholders of lanes that are busy here, then: is every lane in the room? */
inline withdraw_and_count(s) {
    filled = true;
    i = 0;
    do
    :: i < LANES ->
        if :: status[AT(i, s)] != IDLE -> room[s] = room[s] & ~(1 << i) :: else fi;
        if :: status[AT(i, s)] != IN_ROOM && !(room[s] >> i & 1) -> filled = false :: else fi;
        i++
    :: else -> break
    od
}

inline dispatch(s) {
    k = 0;                                /* members that are real */
    m = 0;                                /* owners that are not in the room */
    i = 0;
    do
    :: i < LANES ->
        if
        :: status[AT(i, s)] == IN_ROOM -> status[AT(i, s)] = IN_WAVE; k++
        :: status[AT(i, s)] == IN_WAVE -> assert(false)
        :: status[AT(i, s)] == ATTENTION || status[AT(i, s)] == TAIL -> m++
        :: else
        fi;
        i++
    :: else -> break
    od;
    assert(k > 1 || m == 0);
    room[s] = 0;
    sealed[s] = 1
}

inline schedule(l, s) {
    if
    :: status[AT(l, s)] == IDLE && queued[AT(l, s)] > 0 && !sealed[s] ->
        status[AT(l, s)] = ATTENTION;
        queued[AT(l, s)]--;
        i = 0;
        do :: fifo[(s) * SLOTS + i] == l + 1 -> break :: else -> i++ od;
        do
        :: i + 1 < SLOTS -> fifo[(s) * SLOTS + i] = fifo[(s) * SLOTS + i + 1]; i++
        :: else -> break
        od;
        fifo[(s) * SLOTS + SLOTS - 1] = 0
    :: else
    fi
}

inline arrive(l, s) {
    i = 0;
    do :: fifo[(s) * SLOTS + i] == 0 -> break :: else -> i++ od;
    fifo[(s) * SLOTS + i] = l + 1;
    queued[AT(l, s)]++;
    if :: status[AT(l, s)] == IDLE -> emit(SCHEDULE, l, s) :: else fi
}

inline stand_in(l, s) {
    found = false;
    i = 0;
    do
    :: i < LANES -> if :: status[AT(i, s)] == IN_ROOM -> found = true; break :: else -> i++ fi
    :: else -> break
    od;
    if
    :: found && status[AT(l, s)] != IN_ROOM ->
        room[s] = room[s] | (1 << l);
        withdraw_and_count(s);
        if :: filled -> dispatch(s) :: else fi
    :: else
    fi
}

inline batch_end(l) {
    k = 0;                                /* in flight */
    i = 0;
    do
    :: i < STAGES ->
        k = k + queued[AT(l, i)];
        if :: status[AT(l, i)] != IDLE -> k++ :: else fi;
        i++
    :: else -> break
    od;
    do
    :: k < STAGES && waiting[l] > 0 -> waiting[l]--; k++; emit(ARRIVE, l, 0)
    :: else -> break
    od
}

inline attention_done(l, s) {
    status[AT(l, s)] = IN_ROOM;
    room[s] = room[s] & ~(1 << l);
    withdraw_and_count(s);
    stored = false;
    j = 0;
    do
    :: j < LANES ->
        if
        :: status[AT(j, s)] == IDLE && !(room[s] >> j & 1) && (queued[AT(j, s)] == 0 || sealed[s]) ->
            room[s] = room[s] | (1 << j);
            emit(STAND_IN, j, s);
            stored = true
        :: else
        fi;
        j++
    :: else -> break
    od;
    if :: !stored && filled -> dispatch(s) :: else fi
}

inline wave_end(s) {
    i = 0;
    do
    :: i < LANES ->
        if :: status[AT(i, s)] == IN_WAVE -> status[AT(i, s)] = TAIL :: else fi;
        i++
    :: else -> break
    od
}

inline stage_end(l, s) {
    status[AT(l, s)] = IDLE;
    is_held(s);
    if :: !found -> sealed[s] = 0 :: else fi;
    if :: queued[AT(l, s)] > 0 -> emit(SCHEDULE, l, s) :: else fi;
    j = 0;
    do
    :: j < LANES ->
        if
        :: j != l && status[AT(j, s)] == IDLE && queued[AT(j, s)] > 0 -> emit(SCHEDULE, j, s)
        :: else
        fi;
        j++
    :: else -> break
    od;
    if
    :: (s) + 1 < STAGES -> emit(ARRIVE, l, (s) + 1)
    :: else -> emit(BATCH_END, l, 0)
    fi
}

inline settle() {
    do
    :: head < tail ->
        lane = of_lane[head]; stage = of_stage[head];
        if
        :: kind[head] == SCHEDULE -> schedule(lane, stage)
        :: kind[head] == ARRIVE -> arrive(lane, stage)
        :: kind[head] == STAND_IN -> stand_in(lane, stage)
        :: kind[head] == BATCH_END -> batch_end(lane)
        fi;
        head++
    :: else -> break
    od
}

/* drained: something is left, but no event is pending; that is what the assertion forbids */
inline never_drained() {
    found = true;                         /* nothing is left */
    stored = false;                       /* something is pending */
    i = 0;
    do
    :: i < CELLS ->
        if :: status[i] != IDLE || queued[i] > 0 -> found = false :: else fi;
        if :: status[i] != IDLE && status[i] != IN_ROOM -> stored = true; break :: else fi;
        i++
    :: else -> break
    od;
    assert(stored || found)
}

inline fire(l, s) {
    head = 0;
    tail = 0;
    if
    :: status[AT(l, s)] == ATTENTION -> attention_done(l, s)
    :: status[AT(l, s)] == IN_WAVE -> wave_end(s)
    :: status[AT(l, s)] == TAIL -> stage_end(l, s)
    fi;
    settle();
    never_drained()
}

active proctype timed() {
end:
    do
/*OPTIONS*/
    od
}
