"""Fates: from which states a run can still complete, and where a path loses that (issue 5).

Computed on the whole graph: a state can complete if a path leads from it to a completed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from verify.graph import Graph


@dataclass(frozen=True)
class Fates:
    """Per state of a graph, whether and how a run can still complete.

    ``toward[i]`` is the next state on a shortest way from state ``i`` to a completed one: ``i``
    itself if it is completed, -1 if no continuation completes.
    """

    toward: npt.NDArray[np.int64]

    def can_complete(self, state: int) -> bool:
        """Whether some continuation of the state completes."""
        return bool(self.toward[state] >= 0)

    def way(self, state: int) -> tuple[int, ...]:
        """States after this one on a shortest way to a completed one."""
        states = []
        while self.toward[state] != state:
            state = int(self.toward[state])
            if state < 0:
                raise ValueError("no continuation of the state completes")
            states.append(state)
        return tuple(states)


def fates_of(graph: Graph, completed: Sequence[int]) -> Fates:
    """Compute the fates of every state of a fully expanded graph.

    Parameters
    ----------
    graph
        Transitions of every reachable state.
    completed
        States in which all work has ended.

    Raises
    ------
    ValueError
        If some state was not expanded: nothing is known of its future.
    """
    states = graph.states
    if graph.expanded != states:
        raise ValueError(f"only {graph.expanded} of {states} states were expanded")
    toward = np.full(states, -1, dtype=np.int64)
    if not completed:
        return Fates(toward)
    sources = np.repeat(np.arange(states), np.diff(np.array(graph.offsets)))
    targets = np.array(graph.targets, dtype=np.int64)
    goal = states
    backwards_from = np.concatenate([targets, np.full(len(completed), goal)])
    backwards_to = np.concatenate([sources, np.array(completed, dtype=np.int64)])
    ones = np.ones(len(backwards_from), dtype=np.int8)
    matrix = csr_matrix((ones, (backwards_from, backwards_to)), shape=(states + 1, states + 1))
    order, before = breadth_first_order(matrix, goal, directed=True)
    reached = order[1:]
    toward[reached] = before[reached]
    toward[np.array(completed, dtype=np.int64)] = completed
    return Fates(toward)


def states_along(graph: Graph, initial: int, actions: Sequence[int]) -> tuple[int, ...]:
    """States of a path, from an initial state on."""
    states = [initial]
    for action in actions:
        states.append(graph.targets[graph.offsets[states[-1]] + action])
    return tuple(states)


def point_of_no_return(fates: Fates, path: Sequence[int]) -> int | None:
    """Position on a path of the first state from which nothing completes, None if there is none."""
    return next((at for at, state in enumerate(path) if not fates.can_complete(state)), None)
