"""A second implementation of PROTOCOL.md, written from its text alone and sharing no code.

Worlds are plain lists and sets that are deep-copied for every transition: slow, and simple enough
to be read beside the page. ``graph(world)`` explores one; the tests compare what they count.
"""

from copy import deepcopy
from itertools import combinations

import networkx as nx

WAVE = "wave"


class Stage:
    """One stage execution context (section 2): who is active, and who queues."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.queue = []  # ("full", lane, batch) or (WAVE, group)
        self.active = []
        self.sealed = False

    def refused(self, ticket, rule):
        """Whether the context, or the admission rule (section 3), keeps a queued ticket out."""
        waves = [t for t in self.active if t[0] == WAVE]
        if ticket[0] == WAVE and self.active:
            return True
        if ticket[0] != WAVE and (waves or len(self.active) >= self.capacity or self.sealed):
            return True
        ahead = self.queue[: self.queue.index(ticket)]
        if rule in ("strict_fifo", "late_ticket") or ticket[0] == WAVE:
            return bool(ahead)
        if rule == "ep_ordered":
            return any(t[0] == WAVE for t in ahead)
        holders = {t[1] for t in self.active}
        return any(t[0] == WAVE or t[1] not in holders for t in ahead)

    def admit(self, ticket):
        self.queue.remove(ticket)
        self.active.append(ticket)

    def release(self, ticket):
        self.active.remove(ticket)
        if not self.active:
            self.sealed = False

    def key(self):
        return tuple(self.queue), frozenset(self.active), self.sealed


class World:
    """What lanes and groups share: pending timed events, urgent ones, and an instant."""

    def __init__(self):
        self.pending = []
        self.urgent = []
        self.log = []

    def instant(self, due):
        """Handle the due events in creation order, then urgent ones until none is left."""
        events = [self.pending[i] for i in due]
        self.pending = [e for i, e in enumerate(self.pending) if i not in due]
        for event in events:
            self.handle(event)
        self.settle()

    def settle(self):
        while self.urgent:
            self.handle(self.urgent.pop(0))

    def handle(self, event):
        getattr(self, event[0])(*event[1:])


class Lanes(World):
    """Sections 3 and 4: lanes over stages, with rooms; finite, open or closed work."""

    def __init__(
        self,
        lanes,
        stages,
        layers,
        batches,
        model="moe",
        rule="ep_ordered",
        stand_in="standard",
        by_phase=False,
        arrivals="burst",
        phases=None,
        closed=False,
        capacity=None,
    ):
        super().__init__()
        self.n, self.s, self.y = lanes, stages, layers
        self.moe, self.rule, self.stand_in_rule = model == "moe", rule, stand_in
        self.by_phase, self.phases, self.closed = by_phase, phases, closed
        self.contexts = [Stage(capacity or lanes) for _ in range(stages)]
        self.busy = [[None] * stages for _ in range(lanes)]
        self.heap = [[[] for _ in range(stages)] for _ in range(lanes)]
        self.flight = [[] for _ in range(lanes)]
        self.made = [0] * lanes
        self.waiting = list(batches)
        self.rooms = {}
        if arrivals == "open":
            self.waiting = [0] * lanes
            self.pending = [
                ("request", lane) for lane in range(lanes) for _ in range(batches[lane])
            ]
        else:
            order = [*range(1, lanes), 0]
            self.urgent = [("lane_schedule", lane) for lane in order if self.waiting[lane]]
        self.settle()

    # ---------------------------------------------------------------- section 4, row by row

    def request(self, lane):
        self.waiting[lane] += 1
        self.urgent.append(("lane_schedule", lane))

    def lane_schedule(self, lane):
        while len(self.flight[lane]) < self.s and self.waiting[lane]:
            self.waiting[lane] -= 1
            batch = self.made[lane]
            self.made[lane] += 1
            self.flight[lane].append(batch)
            self.urgent.append(("arrive", lane, batch, 0))

    def arrive(self, lane, batch, stage):
        if self.rule != "late_ticket":
            self.contexts[stage].queue.append(("full", lane, batch))
        self.heap[lane][stage] = sorted([*self.heap[lane][stage], batch])
        if self.busy[lane][stage] is None:
            self.urgent.append(("stage_schedule", lane, stage))

    def stage_schedule(self, lane, stage):
        if self.busy[lane][stage] is not None or not self.heap[lane][stage]:
            return
        context, batch = self.contexts[stage], self.heap[lane][stage][0]
        ticket = ("full", lane, batch)
        if ticket not in context.queue:
            context.queue.append(ticket)
        if context.refused(ticket, self.rule):
            return
        context.admit(ticket)
        self.log.append(("admitted", lane, stage))
        self.heap[lane][stage].pop(0)
        self.busy[lane][stage] = batch
        if self.moe:
            self.pending.append(("attention_done", lane, batch, stage, 0))
        else:
            self.pending.append(("stage_end", lane, batch, stage))

    def _room(self, lane, batch, stage, layer):
        phase = self.phases[lane][batch] if self.by_phase and self.phases else None
        return stage, layer, phase

    def _store(self, room, lane, batch):
        members = self.rooms.setdefault(room, {})
        members[lane] = batch
        if self.stand_in_rule == "withdraw_joined":
            for other in [i for i, b in members.items() if b is None]:
                if self.busy[other][room[0]] is not None:
                    del members[other]

    def _stands_in(self, lane, stage):
        context = self.contexts[stage]
        if self.busy[lane][stage] is not None:
            return False
        if not self.heap[lane][stage] or context.sealed:
            return True
        behind = context.queue and context.queue[0][1] != lane
        return self.stand_in_rule == "blocked_is_idle" and bool(behind)

    def attention_done(self, lane, batch, stage, layer):
        room = self._room(lane, batch, stage, layer)
        self._store(room, lane, batch)
        missing = [i for i in range(self.n) if i not in self.rooms[room]]
        absent = [i for i in missing if self._stands_in(i, stage)]
        for other in absent:
            self._store(room, other, None)
            self.urgent.append(("stand_in", other, room))
        if not absent:
            self._dispatch_if_full(room)

    def stand_in(self, lane, room):
        if room not in self.rooms or self.rooms[room].get(lane) is not None:
            return
        self._store(room, lane, None)
        self._dispatch_if_full(room)

    def _dispatch_if_full(self, room):
        if len(self.rooms[room]) < self.n:
            return
        members = self.rooms.pop(room)
        real = tuple((i, members[i]) for i in sorted(members) if members[i] is not None)
        context = self.contexts[room[0]]
        owners = [("full", *owner) for owner in real]
        others = [t for t in context.active if t not in owners]
        if len(owners) == 1:
            assert not any(t[0] == "full" for t in others), "transition beside other owners"
        else:
            assert not any(t[0] == WAVE for t in others), "promotion beside a wave"
        context.active = [*others, (WAVE, room, real)]
        context.sealed = True
        self.pending.append(("wave_end", room, real))

    def wave_end(self, room, real):
        stage, layer, _ = room
        context = self.contexts[stage]
        context.active.remove((WAVE, room, real))
        self.log.append(("wave_ended", stage))
        context.active += [("full", *owner) for owner in real]
        for lane, batch in real:
            if layer + 1 < self.y:
                self.pending.append(("attention_done", lane, batch, stage, layer + 1))
            else:
                self.pending.append(("stage_end", lane, batch, stage))

    def stage_end(self, lane, batch, stage):
        self.busy[lane][stage] = None
        self.contexts[stage].release(("full", lane, batch))
        if self.heap[lane][stage]:
            self.urgent.append(("stage_schedule", lane, stage))
        for other in range(self.n):
            if other != lane and self.busy[other][stage] is None and self.heap[other][stage]:
                self.urgent.append(("stage_schedule", other, stage))
        if stage + 1 < self.s:
            self.urgent.append(("arrive", lane, batch, stage + 1))
        else:
            self.log.append(("ended", lane))
            self.urgent.append(("batch_end", lane, batch))

    def batch_end(self, lane, batch):
        self.flight[lane].remove(batch)
        if self.closed:
            self.waiting[lane] += 1
        self.urgent.append(("lane_schedule", lane))

    # ---------------------------------------------------------------- what is asked of a state

    def finished(self):
        return not self.closed and not any(self.waiting) and not any(self.flight)

    def starving(self):
        """(lane, stage) where a batch queues."""
        cells = [(i, j) for i in range(self.n) for j in range(self.s)]
        return {(i, j) for i, j in cells if self.heap[i][j]}

    def in_wave(self):
        """Stages whose context an EP wave holds."""
        return {j for j in range(self.s) if any(t[0] == WAVE for t in self.contexts[j].active)}

    def key(self):
        """The state without history: of a closed workload, batches by rank among live ones."""
        name = {}
        for lane in range(self.n):
            for rank, batch in enumerate(sorted(self.flight[lane])):
                name[lane, batch] = rank if self.closed else batch

        def renamed(value, lane=None):
            if isinstance(value, tuple):
                if len(value) >= 3 and value[0] in ("full", "attention_done", "stage_end"):
                    return (value[0], value[1], name[value[1], value[2]], *value[3:])
                if value and value[0] in (WAVE, "wave_end"):
                    return (*value[:-1], tuple((i, name[i, b]) for i, b in value[-1]))
            return value

        contexts = tuple(
            (
                tuple(renamed(t) for t in c.queue),
                frozenset(renamed(t) for t in c.active),
                c.sealed,
            )
            for c in self.contexts
        )
        lanes = tuple(
            (
                self.waiting[i],
                len(self.flight[i]),
                None if self.closed else self.made[i],
                tuple(None if b is None else name[i, b] for b in self.busy[i]),
                tuple(tuple(name[i, b] for b in heap) for heap in self.heap[i]),
            )
            for i in range(self.n)
        )
        rooms = frozenset(
            (room, frozenset((i, None if b is None else name[i, b]) for i, b in members.items()))
            for room, members in self.rooms.items()
        )
        return contexts, lanes, rooms, tuple(renamed(e) for e in self.pending)


class Groups(World):
    """Section 7: the ``DECODE_FFN`` context fed by producers of groups."""

    def __init__(self, groups, ep_size, rule="ep_ordered"):
        super().__init__()
        self.ep, self.rule = ep_size, rule
        self.context = Stage(1)
        self.left = [list(producer) for producer in groups]
        self.heap = [[] for _ in range(ep_size + 1)]
        self.busy = [None] * (ep_size + 1)
        self.done = {}
        self.made = 0
        self.pending = [("group", p) for p, producer in enumerate(groups) if producer]

    def group(self, producer):
        kind, number = self.left[producer].pop(0), self.made
        self.made += 1
        lanes = [self.ep] if kind == "d" else range(self.ep)
        ticket = ("full", self.ep, number) if kind == "d" else (WAVE, number)
        self.context.queue.append(ticket)
        for i in lanes:
            self.heap[i].append(number)
            if self.busy[i] is None:
                self.urgent.append(("stage_schedule", i))
        if self.left[producer]:
            self.pending.append(("group", producer))

    def stage_schedule(self, i):
        if self.busy[i] is not None or not self.heap[i]:
            return
        number = self.heap[i][0]
        ticket = ("full", i, number) if i == self.ep else (WAVE, number)
        if ticket not in self.context.active:
            if self.context.refused(ticket, self.rule):
                return
            self.context.admit(ticket)
        self.heap[i].pop(0)
        self.busy[i] = number
        if i == self.ep:
            self.pending.append(("stage_end", number))
        else:
            self.pending.append(("child_done", number, i))

    def child_done(self, number, i):
        self.done.setdefault(number, set()).add(i)
        if len(self.done[number]) == self.ep:
            del self.done[number]
            self.pending.append(("combine_end", number))

    def combine_end(self, number):
        self._end(list(range(self.ep)), (WAVE, number))

    def stage_end(self, number):
        self._end([self.ep], ("full", self.ep, number))

    def _end(self, own, ticket):
        for i in own:
            self.busy[i] = None
        self.context.release(ticket)
        others = [i for i in range(self.ep + 1) if i not in own]
        for i in [*own, *others]:
            if self.busy[i] is None and self.heap[i]:
                self.urgent.append(("stage_schedule", i))

    def finished(self):
        return (
            not any(self.left) and not any(self.heap) and not any(b is not None for b in self.busy)
        )

    def key(self):
        running = [g for g in self.busy if g is not None]
        live = sorted({*running, *(g for heap in self.heap for g in heap)})
        name = {number: rank for rank, number in enumerate(live)}

        def renamed(event):
            return event if event[0] == "group" else (event[0], name[event[1]], *event[2:])

        def ticket(t):
            return (*t[:-1], name[t[-1]])

        return (
            tuple(tuple(kinds) for kinds in self.left),
            tuple(tuple(name[g] for g in heap) for heap in self.heap),
            tuple(None if g is None else name[g] for g in self.busy),
            frozenset((name[g], frozenset(done)) for g, done in self.done.items()),
            tuple(ticket(t) for t in self.context.queue),
            frozenset(ticket(t) for t in self.context.active),
            tuple(renamed(e) for e in self.pending),
        )


class TooLargeError(Exception):
    """More states than were asked for."""


class Graph:
    """Everything reachable: ``edges[source]`` is a list of ``(fired positions, log, target)``."""

    def __init__(self, world, ties, most):
        index = {world.key(): 0}
        self.worlds, self.edges, self.depth = [world], [], [0]
        self.drained, self.first = set(), None
        for source, at in enumerate(self.worlds):
            if source > most:
                raise TooLargeError
            places = range(len(at.pending))
            sizes = range(1, len(at.pending) + 1) if ties else [1]
            fired = {}
            for size in sizes:
                for due in combinations(places, size):
                    fired.setdefault(tuple(at.pending[i] for i in due), due)
            out = []
            for due in fired.values():
                after = deepcopy(at)
                after.log = []
                after.instant(due)
                key = after.key()
                if key not in index:
                    index[key] = len(self.worlds)
                    self.worlds.append(after)
                    self.depth.append(self.depth[source] + 1)
                out.append((due, after.log, index[key]))
            self.edges.append(out)
            if not at.pending and not at.finished():
                self.drained.add(source)
                self.first = self.depth[source] if self.first is None else self.first

    def counts(self):
        return len(self.worlds), sum(map(len, self.edges)), len(self.drained), self.first

    # ---------------------------------------------------------------- for ever (issue 7)

    def _unfair(self, members, allowed):
        """Whether some event stays pending in a component and never fires in it."""
        pending, fired = [], set()
        for source in members:
            events = [_without_batches(e) for e in self.worlds[source].pending]
            pending.append(set(events))
            for due, _, target in allowed(source):
                if target in members:
                    fired.update(events[i] for i in due)
        return bool(set.intersection(*pending) - fired)

    def avoids(self, trigger, goal):
        """Whether some weakly fair run has the trigger true and the goal never fired after it.

        ``trigger(world)`` must stay true until the goal fires; ``goal(log)`` judges a transition.
        """
        rest = nx.DiGraph()
        rest.add_nodes_from(i for i, world in enumerate(self.worlds) if trigger(world))

        def allowed(source):
            return [e for e in self.edges[source] if not goal(e[1]) and e[2] in rest]

        for source in list(rest):
            rest.add_edges_from((source, target) for _, _, target in allowed(source))
        for members in nx.strongly_connected_components(rest):
            ends = all(not self.edges[i] for i in members)
            turns = any(e[2] in members for i in members for e in allowed(i))
            if ends or (turns and not self._unfair(members, allowed)):
                return True
        return False


def _without_batches(event):
    """What names a pending event while it waits: a lane runs one batch at a stage."""
    return event[:2] if event[0] == "wave_end" else (*event[:2], *event[3:])
