"""Fairness: which infinite runs count (issue 7).

A run is an infinite path of the graph. A fairness assumption names transitions: *justice* demands
that some transition of a set is taken again and again; *compassion* demands it only of runs that
meet an opportunity again and again. A finite run is fair where it ends in a terminal state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from verify.graph import Graph

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Justice:
    """Transitions of which one is taken infinitely often."""

    name: str
    edges: Mask


@dataclass(frozen=True)
class Compassion:
    """If transitions of ``when`` are taken infinitely often, then so are some of ``then``."""

    name: str
    when: Mask
    then: Mask


@dataclass(frozen=True)
class Fairness:
    """A named assumption.

    ``may_stop`` says that a run may also stop in any state for ever, although events are pending:
    the absence of every assumption.
    """

    name: str
    justice: tuple[Justice, ...] = ()
    compassion: tuple[Compassion, ...] = ()
    may_stop: bool = False


class Edges:
    """The transitions of a completely explored graph as arrays.

    Attributes
    ----------
    sources, targets
        Per transition, shape (transitions,).
    numbers
        Per transition, the number of its action in its source.
    offsets
        Transitions of state ``i`` are ``offsets[i] ... offsets[i + 1] - 1``.
    terminal
        Per state, whether it has no transition.
    """

    def __init__(self, graph: Graph) -> None:
        if graph.expanded != graph.states:
            raise ValueError(
                f"only {graph.expanded} of {graph.states} states were expanded: nothing is known "
                f"of the others' future"
            )
        self.graph = graph
        self.states = graph.states
        self.offsets: Index = np.array(graph.offsets, dtype=np.int64)
        self.targets: Index = np.array(graph.targets, dtype=np.int64)
        out = np.diff(self.offsets)
        self.sources: Index = np.repeat(np.arange(self.states, dtype=np.int64), out)
        self.numbers: Index = np.arange(len(self.targets)) - self.offsets[self.sources]
        self.terminal: Mask = out == 0

    def walk(self, state: int, numbers: Sequence[int]) -> list[int]:
        """Transitions that these action numbers take from a state on."""
        taken = []
        for number in numbers:
            taken.append(int(self.offsets[state]) + number)
            state = int(self.targets[taken[-1]])
        return taken

    def labelled(self, chosen: Callable[[object], bool]) -> Mask:
        """Transitions whose label is chosen; every label is looked at once."""
        if len(self.graph.labels) != len(self.targets):
            raise ValueError("the graph's transitions have no labels")
        verdicts = np.array([chosen(label) for label in self.graph.alphabet], dtype=np.bool_)
        if not len(verdicts):
            return np.zeros(0, dtype=np.bool_)
        found: Mask = verdicts[np.array(self.graph.labels, dtype=np.int64)]
        return found

    def components(self, mask: Mask) -> Index:
        """Strongly connected component of each state, by the transitions of the mask alone."""
        kept = np.flatnonzero(mask)
        weights = np.ones(len(kept), dtype=np.int8)
        shape = (self.states, self.states)
        matrix = csr_matrix((weights, (self.sources[kept], self.targets[kept])), shape=shape)
        _, component = connected_components(matrix, connection="strong")
        return np.asarray(component, dtype=np.int64)


@dataclass(frozen=True)
class FairPart:
    """Where a fair run can stay for ever.

    ``component`` is per state the number of the fair component it lies in, or -1; ``edges`` are
    the transitions inside the components, of which a fair run can take all infinitely often.
    """

    component: Index
    edges: Mask


def fair_part(edges: Edges, within: Mask, fairness: Fairness) -> FairPart:
    """Find every maximal strongly connected part that some fair run takes all of for ever.

    A component without a transition of some justice set holds no fair run. One that meets an
    opportunity of compassion but never takes it is searched again without those opportunities:
    a fair run in it must avoid them (the algorithm of Emerson and Lei for Streett conditions).
    """
    component = np.full(edges.states, -1, dtype=np.int64)
    fair = np.zeros(len(edges.targets), dtype=np.bool_)
    numbered = 0
    while within.any():
        found = edges.components(within)
        inside = within & (found[edges.sources] == found[edges.targets])
        owner = found[edges.sources]
        count = int(found.max()) + 1

        def holding(
            mask: Mask, owner: Index = owner, inside: Mask = inside, count: int = count
        ) -> Mask:
            holds: Mask = np.bincount(owner[inside & mask], minlength=count) > 0
            return holds

        alive = holding(inside)
        for demand in fairness.justice:
            alive &= holding(demand.edges)
        retry = np.zeros(count, dtype=np.bool_)
        removed = np.zeros(len(edges.targets), dtype=np.bool_)
        for pair in fairness.compassion:
            broken = alive & holding(pair.when) & ~holding(pair.then)
            retry |= broken
            removed |= inside & pair.when & broken[owner]
        accepted = inside & (alive & ~retry)[owner]
        states = edges.sources[accepted]
        component[states] = found[states] + numbered
        fair |= accepted
        numbered += count
        within = inside & retry[owner] & ~removed
    return FairPart(component, fair)
