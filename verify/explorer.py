"""The reference engine: breadth-first exploration of a model, state by state.

Breadth-first, so that the path to the first violating state is a shortest schedule. Every
reachable state is visited even after a violation is found, so that counts are those of the whole
graph and every violating state is known (PROTOCOL.md section 5).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic

from verify.graph import Graph
from verify.limits import (
    AT_VIOLATION,
    INTERRUPTED,
    Limits,
    Progress,
    ProgressCallback,
    memory_bytes,
)
from verify.model import A, Model, S
from verify.properties import Property
from verify.verdict import Holds, Stats, Undetermined, Verdict, Violated, Violation

CHECK_EVERY = 256
"""States expanded between two looks at the limits."""


@dataclass(frozen=True)
class Exploration(Generic[S]):
    """A verdict with what it rests on: the graph, and its states by index."""

    verdict: Verdict
    graph: Graph
    states: tuple[S, ...]


LOOK_AFTER = 4096
"""Actions of one state tried between two looks at the limits."""


class _LimitReachedError(Exception):
    """A limit was reached among the actions of one state."""


class _Search(Generic[S, A]):
    """One breadth-first search; its queue is the tail of the list of states."""

    def __init__(
        self,
        model: Model[S, A],
        properties: Sequence[Property[S]],
        label: Callable[[], Hashable] | None,
        limits: Limits,
    ) -> None:
        self.model = model
        self.properties = properties
        self.label = label
        self.limits = limits
        self.start = time.monotonic()
        self.graph = Graph()
        self.index: dict[S, int] = {}
        self.states: list[S] = []
        self.found: list[tuple[int, str, str]] = []

    def add(self, state: S, parent: int, action: int) -> int:
        known = self.index.get(state)
        if known is not None:
            return known
        index = self.graph.add_state(parent, action)
        self.index[state] = index
        self.states.append(state)
        return index

    def expand(self, source: int) -> None:
        """Add every successor of a state, then check the state."""
        model, state, graph = self.model, self.states[source], self.graph
        actions = model.actions(state)
        for number, action in enumerate(actions):
            if number % LOOK_AFTER == LOOK_AFTER - 1 and self.limit() is not None:
                raise _LimitReachedError
            graph.targets.append(self.add(model.step(state, action), source, number))
            if self.label is not None:
                graph.add_label(self.label())
        graph.offsets.append(len(graph.targets))
        for prop in self.properties:
            message = prop.violation(state, not actions)
            if message is not None:
                self.found.append((source, prop.name, message))

    def limit(self) -> str | None:
        """Say which limit is reached now, or None."""
        seconds = time.monotonic() - self.start
        return self.limits.exceeded(len(self.states), seconds, memory_bytes())

    def violations(self) -> tuple[Violation, ...]:
        return tuple(
            Violation(name, message, index, *self.graph.path_to(index))
            for index, name, message in self.found
        )


def explore(
    model: Model[S, A],
    properties: Sequence[Property[S]],
    *,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    must_terminate: bool = True,
    label: Callable[[], Hashable] | None = None,
) -> Exploration[S]:
    """Visit every reachable state and judge the properties.

    Parameters
    ----------
    model
        The transition system.
    properties
        Conditions on every state.
    limits
        When to give up; a limit without a violation gives :class:`Undetermined`.
    progress
        Called every few hundred states.
    must_terminate
        Whether a cycle is a violation (``termination``): the work is finite.
    label
        Called after each step; what it returns becomes the transition's label in the graph.

    Returns
    -------
    Exploration
        :class:`Holds` only if the whole graph was visited. An interrupt ends
        the search like a limit.
    """
    limits = limits or Limits()
    state_limit = sys.maxsize if limits.max_states is None else limits.max_states
    memory_before = memory_bytes()
    search = _Search(model, properties, label, limits)
    limit: str | None = None
    source = 0
    try:
        for number, state in enumerate(model.initial_states()):
            search.add(state, -1, number)
        while source < len(search.states):
            if source % CHECK_EVERY == 0 or len(search.states) > state_limit:
                seconds, memory = time.monotonic() - search.start, memory_bytes()
                limit = limits.exceeded(len(search.states), seconds, memory)
                if progress is not None:
                    progress(_progress(search, source, seconds, memory))
                if limit is not None:
                    break
            search.expand(source)
            source += 1
            if limits.first_violation and search.found:
                limit = AT_VIOLATION
                break
    except _LimitReachedError:
        limit = search.limit()
    except KeyboardInterrupt:
        limit = INTERRUPTED
    complete = limit is None
    graph = search.graph
    violations = search.violations()
    cycle = graph.state_on_cycle() if complete else None
    if must_terminate and cycle is not None:
        message = "the state can be reached from itself again: the run need not end"
        violations += (Violation("termination", message, cycle, *graph.path_to(cycle)),)
    stats = Stats(
        states=graph.states,
        transitions=graph.transitions,
        max_depth=graph.depth[-1] if graph.states else 0,
        elapsed_s=time.monotonic() - search.start,
        memory_bytes=max(0, memory_bytes() - memory_before),
        complete=complete,
        acyclic=cycle is None if complete else None,
    )
    verdict: Verdict
    if violations:
        verdict = Violated(stats, violations)
    elif limit is None:
        verdict = Holds(stats)
    else:
        verdict = Undetermined(stats, limit)
    return Exploration(verdict, graph, tuple(search.states))


def _progress(search: _Search[S, A], source: int, seconds: float, memory: int) -> Progress:
    states = len(search.states)
    depth = search.graph.depth[source] if states else 0
    transitions, violations = search.graph.transitions, len(search.found)
    return Progress(states, transitions, depth, states - source, violations, seconds, memory)
