"""Liveness on the stored graph: what must happen again and again, and the lasso where it does not.

A property says that each trigger is followed by a goal: ``leads to``; with every state a trigger
it is ``always eventually``. It is violated by a *lasso*: a stem to a trigger, then a fair cycle
(or a terminal state) without the goal. Judging states one by one, or marking obligations along
the search tree, is wrong where paths join and where they cycle; here the goal's transitions are
taken out of the graph and what is left is searched for fair components (issue 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify.fairness import Edges, Fairness, FairPart, Index, Mask, fair_part

ENTRIES = 32
"""Ends of shortest stems that are tried for the shortest cycle."""


@dataclass(frozen=True)
class LeadsTo:
    """From every trigger state on, some goal transition is eventually taken.

    ``trigger`` is per state, ``goal`` per transition; ``message`` says what a violation means.
    """

    name: str
    message: str
    trigger: Mask
    goal: Mask


def always_eventually(name: str, message: str, edges: Edges, goal: Mask) -> LeadsTo:
    """Goal transitions are taken again and again."""
    return LeadsTo(name, message, np.ones(edges.states, dtype=np.bool_), goal)


@dataclass(frozen=True)
class Lasso:
    """A run that violates a property: ``stem`` once, then ``cycle`` for ever.

    Both are action numbers; ``entry`` is the state where the cycle starts and ends. With an empty
    cycle the run ends there: the state is terminal, or the run may stop (no fairness).
    """

    initial: int
    stem: tuple[int, ...]
    cycle: tuple[int, ...]
    entry: int


def find_lasso(
    edges: Edges, prop: LeadsTo, fairness: Fairness, *, ends: bool = True
) -> Lasso | None:
    """Return a lasso of shortest stem that violates the property, or None if it holds.

    Where a run may stop anywhere, a lasso with a real cycle is preferred, if there is one.
    Without ``ends`` only runs that go on for ever count, none that ends or stops.
    """
    part = fair_part(edges, ~prop.goal, fairness)
    for_ever = part.component >= 0
    if not ends:
        return _lasso_into(edges, prop, fairness, part, for_ever)
    lasso = _lasso_into(edges, prop, fairness, part, for_ever | edges.terminal)
    if lasso is None and fairness.may_stop:
        stopping = np.ones(edges.states, dtype=np.bool_)
        lasso = _lasso_into(edges, prop, fairness, part, stopping)
    return lasso


def path_to_transition(edges: Edges, wanted: Mask) -> Lasso | None:
    """Return a shortest path that ends with a wanted transition, or None if there is none."""
    found = np.flatnonzero(wanted)
    if not len(found):
        return None
    depth = np.array(edges.graph.depth, dtype=np.int64)
    edge = int(found[np.argmin(depth[edges.sources[found]])])
    initial, stem = edges.graph.path_to(int(edges.sources[edge]))
    return Lasso(initial, (*stem, int(edges.numbers[edge])), (), int(edges.targets[edge]))


def _lasso_into(
    edges: Edges, prop: LeadsTo, fairness: Fairness, part: FairPart, accepting: Mask
) -> Lasso | None:
    stems = _Stems(edges, prop.trigger, ~prop.goal)
    entries = stems.nearest(accepting)
    if not len(entries):
        return None
    candidates = [(entry, _cycle(edges, fairness, part, entry)) for entry in entries[:ENTRIES]]
    entry, cycle = min(candidates, key=lambda found: len(found[1]))
    initial, stem = stems.path_to(entry)
    return Lasso(initial, stem, tuple(edges.numbers[cycle].tolist()), entry)


def _successors(edges: Edges, states: Index, allowed: Mask) -> Index:
    """Transitions out of these states that are allowed."""
    starts, ends = edges.offsets[states], edges.offsets[states + 1]
    lengths = ends - starts
    first = np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    out: Index = first + np.arange(int(lengths.sum()))
    return out[allowed[out]]


class _Stems:
    """Shortest paths that reach a trigger and then avoid the goal, from the initial states on.

    Breadth-first by total length: a trigger state starts at its own depth in the graph, so a stem
    is the search's shortest path to a trigger followed by goal-free transitions.
    """

    def __init__(self, edges: Edges, trigger: Mask, goal_free: Mask) -> None:
        self.edges = edges
        self.goal_free = goal_free
        depth = np.array(edges.graph.depth, dtype=np.int64)
        triggers = np.flatnonzero(trigger)
        order = np.argsort(depth[triggers], kind="stable")
        self.triggers, self.depths = triggers[order], depth[triggers][order]
        self.via = np.full(edges.states, -2, dtype=np.int64)
        """Per state: -2 not reached, -1 a trigger, else the transition it was reached by."""

    def _levels(self) -> Iterator[Index]:
        reached: Index = np.empty(0, dtype=np.int64)
        at = 0
        level = int(self.depths[0]) if len(self.depths) else 0
        while len(reached) or at < len(self.triggers):
            if not len(reached):
                level = max(level, int(self.depths[at]))
            upto = int(np.searchsorted(self.depths, level, side="right"))
            fresh = self.triggers[at:upto]
            fresh = fresh[self.via[fresh] == -2]
            self.via[fresh] = -1
            at = upto
            states = np.concatenate((fresh, reached))
            yield states
            out = _successors(self.edges, states, self.goal_free)
            out = out[self.via[self.edges.targets[out]] == -2]
            reached, first = np.unique(self.edges.targets[out], return_index=True)
            self.via[reached] = out[first]
            level += 1

    def nearest(self, accepting: Mask) -> list[int]:
        """Return the accepting states with the shortest stem, all of one length."""
        for states in self._levels():
            found = states[accepting[states]]
            if len(found):
                return [int(state) for state in found]
        return []

    def path_to(self, state: int) -> tuple[int, tuple[int, ...]]:
        """Return the initial state's index and the action numbers of the stem to a state."""
        tail: list[int] = []
        while self.via[state] >= 0:
            edge = int(self.via[state])
            tail.append(int(self.edges.numbers[edge]))
            state = int(self.edges.sources[edge])
        initial, head = self.edges.graph.path_to(state)
        return initial, (*head, *reversed(tail))


def _cycle(edges: Edges, fairness: Fairness, part: FairPart, entry: int) -> list[int]:
    """Transitions of a short fair cycle through a state of a fair component; none elsewhere."""
    number = part.component[entry]
    if number < 0:
        return []
    inside = part.edges & (part.component[edges.sources] == number)
    demands = [demand.edges for demand in fairness.justice]
    while True:
        cycle = _closed_walk(edges, inside, entry, demands)
        missed = [
            pair.then
            for pair in fairness.compassion
            if pair.when[cycle].any() and not pair.then[cycle].any()
        ]
        if not missed:
            return cycle
        demands += missed


def _closed_walk(edges: Edges, inside: Mask, entry: int, demands: Sequence[Mask]) -> list[int]:
    """Walk from a state back to itself that takes a transition of each demand."""
    walk: list[int] = []
    state = entry
    for demand in demands:
        if not any(demand[edge] for edge in walk):
            walk += _shortest(edges, inside, state, demand)
            state = int(edges.targets[walk[-1]])
    if not walk or state != entry:
        walk += _shortest(edges, inside, state, edges.targets == entry)
    return walk


def _shortest(edges: Edges, allowed: Mask, start: int, last: Mask) -> list[int]:
    """Shortest path from a state whose last transition is one of ``last``."""
    via = {start: -1}
    level: Index = np.array([start], dtype=np.int64)
    while True:
        out = _successors(edges, level, allowed)
        ends = out[last[out]]
        if len(ends):
            path = [int(ends[0])]
            state = int(edges.sources[path[0]])
            while via[state] >= 0:
                path.append(via[state])
                state = int(edges.sources[path[-1]])
            return path[::-1]
        fresh = []
        for edge in out.tolist():
            target = int(edges.targets[edge])
            if target not in via:
                via[target] = edge
                fresh.append(target)
        if not fresh:
            raise AssertionError("a strongly connected component has a state that is not reached")
        level = np.array(fresh, dtype=np.int64)
