"""The explored graph: states by index, the tree of shortest paths, and every transition."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components


@dataclass
class Graph:
    """Transitions of a breadth-first exploration, compactly.

    States are numbered in the order of discovery; ``parent[i]`` and ``action[i]`` are the first
    transition into state ``i`` (parent -1 for an initial state, whose ``action`` is its index
    among them). State ``i`` has its successors at ``targets[offsets[i]:offsets[i + 1]]``, action
    by action, for every ``i`` that was expanded. Where transitions are labelled, transition ``j``
    has the label whose number in ``alphabet`` is ``labels[j]``.
    """

    parent: array[int] = field(default_factory=lambda: array("q"))
    action: array[int] = field(default_factory=lambda: array("q"))
    depth: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    targets: array[int] = field(default_factory=lambda: array("q"))
    labels: array[int] = field(default_factory=lambda: array("i"))
    alphabet: dict[Hashable, int] = field(default_factory=dict)

    def add_label(self, label: Hashable) -> None:
        """Label the transition added last."""
        self.labels.append(self.alphabet.setdefault(label, len(self.alphabet)))

    def add_state(self, parent: int, action: int) -> int:
        """Add a state reached by an action of its parent; return its index."""
        index = len(self.parent)
        self.parent.append(parent)
        self.action.append(action)
        self.depth.append(0 if parent < 0 else self.depth[parent] + 1)
        return index

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.parent)

    @property
    def transitions(self) -> int:
        """Number of transitions of the states expanded so far."""
        return len(self.targets)

    @property
    def expanded(self) -> int:
        """Number of states whose successors are known."""
        return len(self.offsets) - 1

    def path_to(self, index: int) -> tuple[int, tuple[int, ...]]:
        """Shortest path to a state: initial state's index and the action numbers."""
        actions = []
        while self.parent[index] >= 0:
            actions.append(self.action[index])
            index = self.parent[index]
        return self.action[index], tuple(reversed(actions))

    def _matrix(self) -> csr_matrix:
        targets: npt.NDArray[np.int64] = np.array(self.targets, dtype=np.int64)
        weights = np.ones(len(targets), dtype=np.int8)
        offsets = np.array(self.offsets, dtype=np.int64)
        return csr_matrix((weights, targets, offsets), shape=(self.states, self.states))

    def states_on_cycles(self) -> list[int]:
        """States that can be reached from themselves, in the order of discovery.

        Raises
        ------
        ValueError
            If some state was not expanded: nothing is known of its future.
        """
        if self.expanded != self.states:
            raise ValueError(f"only {self.expanded} of {self.states} states were expanded")
        _, component = connected_components(self._matrix(), connection="strong")
        on_cycle = np.bincount(component)[component] > 1
        sources = np.repeat(np.arange(self.states), np.diff(np.array(self.offsets)))
        on_cycle[sources[sources == np.array(self.targets, dtype=np.int64)]] = True
        found: list[int] = np.flatnonzero(on_cycle).tolist()
        return found

    def state_on_cycle(self) -> int | None:
        """Shallowest state that lies on a cycle, or None if the graph is acyclic.

        Raises
        ------
        ValueError
            If some state was not expanded: nothing is known of its future.
        """
        return next(iter(self.states_on_cycles()), None)
