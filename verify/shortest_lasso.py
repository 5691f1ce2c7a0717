"""A lasso of least length: the stem and the cycle together (issue 5).

:func:`verify.liveness.find_lasso` finds a shortest stem and then a short cycle, quickly. Here the
sum is minimal, and proved so: for each state in which a fair run can stay, the cheapest way to it,
and the cheapest walk from it back to itself that takes a transition of every demand. What the
walk has taken so far is part of what is searched, so that the walk need not be simple.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from verify.fairness import Edges, Fairness, Index, Mask, fair_part
from verify.liveness import Lasso, LeadsTo

_BEGIN: Final = -1
"""Stands for the entry before the walk has begun."""

ONE: Final = 1 << 32
"""Cost of a transition, far above all weights of a path."""

_Steps = list[list[tuple[int, int, int]]]
"""Per state its allowed transitions as (transition, target, cost)."""


@dataclass(frozen=True)
class ShortestLasso:
    """A lasso, what it costs, and whether it is proved to be one of least cost."""

    lasso: Lasso
    cost: int
    exact: bool


class _Budget:
    """Counts steps; spent once too many were made."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> bool:
        """Take one step; False if none is left."""
        self.left -= 1
        return self.left >= 0


def shortest_lasso(
    edges: Edges, prop: LeadsTo, fairness: Fairness, cost: Index, most_steps: int
) -> ShortestLasso | None:
    """Return a lasso with a real cycle that violates the property at least cost, or None.

    Parameters
    ----------
    edges
        Transitions of a whole graph.
    prop, fairness
        What is violated, and which runs count.
    cost
        Positive cost of each transition, shape (transitions,); stem and cycle are added.
    most_steps
        Steps after which the search for a cheaper one ends; the best so far is returned, not as
        proved.

    Returns
    -------
    ShortestLasso | None
        None only if no fair run violates the property for ever.
    """
    part = fair_part(edges, ~prop.goal, fairness)
    if not (part.component >= 0).any():
        return None
    stems = _Stems(edges, prop, cost)
    entries = [
        (stems.cost[state], state)
        for state in np.flatnonzero(part.component >= 0).tolist()
        if stems.cost[state] >= 0
    ]
    inside = _steps(edges, part.edges, cost)
    demands, budget = _Demands(edges, fairness), _Budget(most_steps)
    best: tuple[int, int, list[int]] | None = None
    for stem, entry in sorted(entries):
        if best is not None and stem + int(cost.min()) >= best[0]:
            break
        most = None if best is None else best[0] - stem
        found = _closed_walk(demands, inside, entry, most, budget)
        if found is not None and (best is None or stem + found[0] < best[0]):
            best = (stem + found[0], entry, found[1])
        if budget.left < 0 and best is not None:
            break
    if best is None:
        return None
    total, entry, cycle = best
    initial, stem_numbers = stems.path_to(entry)
    numbers = tuple(int(edges.numbers[edge]) for edge in cycle)
    return ShortestLasso(Lasso(initial, stem_numbers, numbers, entry), total, budget.left >= 0)


def _steps(edges: Edges, allowed: Mask, cost: Index) -> _Steps:
    steps: _Steps = [[] for _ in range(edges.states)]
    for edge in np.flatnonzero(allowed).tolist():
        target = int(edges.targets[edge])
        steps[int(edges.sources[edge])].append((edge, target, int(cost[edge])))
    return steps


class _Stems:
    """Cheapest ways that reach a trigger and then avoid the goal, to every state.

    Searched are pairs of a state and whether the trigger was met; before it, every transition is
    allowed. ``cost`` is per state, -1 where no such way leads.
    """

    def __init__(self, edges: Edges, prop: LeadsTo, cost: Index) -> None:
        self._edges = edges
        everything = _steps(edges, np.ones(len(edges.targets), dtype=np.bool_), cost)
        safe = _steps(edges, ~prop.goal, cost)
        self._via: dict[tuple[int, bool], tuple[tuple[int, bool], int]] = {}
        self.cost = [-1] * edges.states
        starts = [i for i, parent in enumerate(edges.graph.parent) if parent < 0]
        self._initial = {state: number for number, state in enumerate(starts)}
        heap = [(0, state, bool(prop.trigger[state])) for state in starts]
        known: dict[tuple[int, bool], int] = {(s, met): c for c, s, met in heap}
        heapq.heapify(heap)
        done: set[tuple[int, bool]] = set()
        while heap:
            spent, state, met = heapq.heappop(heap)
            if (state, met) in done:
                continue
            done.add((state, met))
            if met:
                self.cost[state] = spent
            for edge, target, price in (safe if met else everything)[state]:
                after = (target, met or bool(prop.trigger[target]))
                total = spent + price
                if total < known.get(after, total + 1):
                    known[after] = total
                    self._via[after] = ((state, met), edge)
                    heapq.heappush(heap, (total, *after))

    def path_to(self, state: int) -> tuple[int, tuple[int, ...]]:
        """Return the initial state's index and the action numbers of the way to a state."""
        at, numbers = (state, True), []
        while at in self._via:
            at, edge = self._via[at]
            numbers.append(int(self._edges.numbers[edge]))
        return self._initial[at[0]], tuple(reversed(numbers))


class _Demands:
    """What a fair cycle must take, as bits: justice, and per pair of compassion two."""

    def __init__(self, edges: Edges, fairness: Fairness) -> None:
        masks = [demand.edges for demand in fairness.justice]
        self._justice = (1 << len(masks)) - 1
        self._pairs: list[tuple[int, int]] = []
        for pair in fairness.compassion:
            self._pairs.append((1 << len(masks), 1 << len(masks) + 1))
            masks += [pair.when, pair.then]
        self.bits = np.zeros(len(edges.targets), dtype=object)
        for number, mask in enumerate(masks):
            self.bits[mask] |= 1 << number

    def met(self, taken: int) -> bool:
        """Whether a cycle that takes these may repeat for ever."""
        fulfilled = taken & self._justice == self._justice
        return fulfilled and all(not taken & when or taken & then for when, then in self._pairs)


def _closed_walk(
    demands: _Demands, steps: _Steps, entry: int, most: int | None, budget: _Budget
) -> tuple[int, list[int]] | None:
    """Cheapest walk from a state back to it that meets the demands, cheaper than ``most``."""
    start = (_BEGIN, 0)
    known, via = {start: 0}, dict[tuple[int, int], tuple[tuple[int, int], int]]()
    heap = [(0, *start)]
    while heap:
        spent, state, taken = heapq.heappop(heap)
        if spent > known[state, taken]:
            continue
        if state == entry and demands.met(taken):
            return spent, list(_unwound(via, (state, taken), start))
        if not budget.spend() and most is not None:
            return None
        for edge, target, price in steps[entry if state == _BEGIN else state]:
            after, total = (target, taken | demands.bits[edge]), spent + price
            if (most is None or total < most) and total < known.get(after, total + 1):
                known[after] = total
                via[after] = ((state, taken), edge)
                heapq.heappush(heap, (total, *after))
    return None


def _unwound(
    via: dict[tuple[int, int], tuple[tuple[int, int], int]],
    end: tuple[int, int],
    start: tuple[int, int],
) -> Sequence[int]:
    found: list[int] = []
    at = end
    while at != start:
        at, edge = via[at]
        found.append(edge)
    return found[::-1]


def costs_of(edges: Edges, weight: Iterator[int]) -> Index:
    """Costs that count transitions first and then their weights, given in order of transitions."""
    weights: Index = np.fromiter(weight, dtype=np.int64, count=len(edges.targets))
    return weights + ONE
