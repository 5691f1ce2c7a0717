"""Whether two models are one graph: a lockstep search that ends at the first difference."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Generic

from verify.graph import Graph
from verify.limits import INTERRUPTED, Limits, memory_bytes
from verify.model import A, Model, S


@dataclass(frozen=True)
class Same:
    """Both models have the same initial states, and the same actions and steps everywhere."""

    states: int
    transitions: int


@dataclass(frozen=True)
class Differ(Generic[S]):
    """A shortest schedule after which the models are in different states.

    ``initial`` and ``actions`` are the same in both; the last action leads to ``one`` in the
    first model and to ``other`` in the second. ``states`` were found equal before.
    """

    initial: int
    actions: tuple[int, ...]
    one: S
    other: S
    states: int
    transitions: int


@dataclass(frozen=True)
class Undecided:
    """A limit was reached before a difference."""

    limit: str
    states: int
    transitions: int


def compare(
    one: Model[S, A], other: Model[S, A], limits: Limits | None = None
) -> Same | Differ[S] | Undecided:
    """Walk both models together from their initial states.

    Two models are the same graph if every reachable state has the same actions, and each action
    leads to the same state in both. The first difference, breadth-first, is a shortest schedule
    that tells them apart.
    """
    limits = limits or Limits()
    graph, index, states = Graph(), dict[S, int](), list[S]()
    start = time.monotonic()

    def add(state: S, parent: int, number: int) -> None:
        if state not in index:
            index[state] = graph.add_state(parent, number)
            states.append(state)

    first, second = one.initial_states(), other.initial_states()
    for number, (state, counterpart) in enumerate(zip(first, second, strict=True)):
        if state != counterpart:
            return Differ(number, (), state, counterpart, 0, 0)
        add(state, -1, number)
    transitions = source = 0
    try:
        while source < len(states):
            state = states[source]
            if source % 256 == 0 or len(states) > (limits.max_states or len(states)):
                limit = limits.exceeded(len(states), time.monotonic() - start, memory_bytes())
                if limit is not None:
                    return Undecided(limit, len(states), transitions)
            actions = one.actions(state)
            if list(actions) != list(other.actions(state)):
                initial, path = graph.path_to(source)
                return Differ(initial, path, state, state, len(states), transitions)
            for number, action in enumerate(actions):
                target, counterpart = one.step(state, action), other.step(state, action)
                transitions += 1
                if target != counterpart:
                    initial, path = graph.path_to(source)
                    return Differ(
                        initial, (*path, number), target, counterpart, len(states), transitions
                    )
                add(target, source, number)
            source += 1
    except KeyboardInterrupt:
        return Undecided(INTERRUPTED, len(states), transitions)
    return Same(len(states), transitions)
