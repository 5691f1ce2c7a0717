"""Search for a simplest path to a goal: fewest transitions, then least weight.

Level by level, so that a path found is a shortest one; among the shortest, the one of least
total weight of actions. Every prefix of a shortest path is a shortest path itself, so keeping the
least weight per state and level is enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from verify.model import A, Model, S


class TooWideError(Exception):
    """Raised by a model's ``actions`` that will not enumerate a state's actions: too many."""


@dataclass(frozen=True)
class Found:
    """A simplest path: initial state's index, action numbers, total weight; states looked at."""

    initial: int
    actions: tuple[int, ...]
    weight: int
    states: int


@dataclass(frozen=True)
class NoneExists:
    """Every reachable state was looked at, and none is a goal."""

    states: int


@dataclass(frozen=True)
class GaveUp:
    """Not decided: more states than allowed, or a state with too many actions."""

    states: int


class _Levels(Generic[S, A]):
    """States by index, each with its level and the least weight known on that level."""

    def __init__(self, model: Model[S, A], weight: Callable[[A], int]) -> None:
        self.model = model
        self.weigh = weight
        self.index: dict[S, int] = {}
        self.states: list[S] = []
        self.weight: list[int] = []
        self.origin: list[tuple[int, int]] = []
        for number, state in enumerate(model.initial_states()):
            self._reach(state, 0, -1, number, first=0)

    def _reach(self, state: S, weight: int, parent: int, action: int, first: int) -> None:
        """Note a path to a state; ``first`` is the first index of the level being filled."""
        known = self.index.get(state)
        if known is None:
            self.index[state] = len(self.states)
            self.states.append(state)
            self.weight.append(weight)
            self.origin.append((parent, action))
        elif known >= first and weight < self.weight[known]:
            self.weight[known] = weight
            self.origin[known] = (parent, action)

    def expand(self, source: int, first: int) -> None:
        state, weight = self.states[source], self.weight[source]
        for number, action in enumerate(self.model.actions(state)):
            successor = self.model.step(state, action)
            self._reach(successor, weight + self.weigh(action), source, number, first)

    def path(self, target: int) -> Found:
        actions = []
        at = target
        while self.origin[at][0] >= 0:
            at, action = self.origin[at]
            actions.append(action)
        found = tuple(reversed(actions))
        return Found(self.origin[at][1], found, self.weight[target], len(self.states))


def shortest_path(
    model: Model[S, A],
    is_goal: Callable[[S], bool],
    weight: Callable[[A], int],
    max_states: int,
) -> Found | NoneExists | GaveUp:
    """Find a path to a goal with the fewest transitions and, among those, the least weight.

    Parameters
    ----------
    model
        The transition system; its ``actions`` may raise :class:`TooWideError`.
    is_goal
        Whether a state is one that is looked for.
    weight
        Non-negative weight of an action.
    max_states
        Give up once more states than this were reached.
    """
    levels = _Levels(model, weight)
    first = 0
    try:
        while first < len(levels.states):
            last = len(levels.states)
            goals = [i for i in range(first, last) if is_goal(levels.states[i])]
            if goals:
                return levels.path(min(goals, key=lambda i: (levels.weight[i], i)))
            for source in range(first, last):
                if len(levels.states) > max_states:
                    return GaveUp(len(levels.states))
                levels.expand(source, last)
            first = last
    except TooWideError:
        return GaveUp(len(levels.states))
    return NoneExists(len(levels.states))
