"""What a model can show: labels of reachable states, and what one model shows that another cannot.

Generic: a label is any hashable value that a function reads off a state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from verify.explorer import explore
from verify.limits import Limits
from verify.model import A, Model, S
from verify.verdict import Stats, Undetermined

L = TypeVar("L", bound=Hashable)


@dataclass(frozen=True)
class Witness:
    """A shortest path to a state that shows a label (initial state's index, action numbers)."""

    initial: int
    actions: tuple[int, ...]


@dataclass(frozen=True)
class Shown(Generic[L]):
    """Every label of a model's reachable states with its witness, in order of depth.

    ``limit`` says why the set may be incomplete; None if every reachable state was seen.
    """

    witnesses: dict[L, Witness]
    stats: Stats
    limit: str | None


def shown_labels(
    model: Model[S, A],
    labels: Callable[[S, bool], Collection[L]],
    *,
    limits: Limits | None = None,
) -> Shown[L]:
    """Explore `model` and collect ``labels(state, terminal)`` of every reachable state."""
    exploration = explore(model, (), limits=limits, must_terminate=False)
    graph, witnesses = exploration.graph, dict[L, Witness]()
    for index in range(graph.expanded):
        terminal = graph.offsets[index] == graph.offsets[index + 1]
        for label in labels(exploration.states[index], terminal):
            if label not in witnesses:
                witnesses[label] = Witness(*graph.path_to(index))
    verdict = exploration.verdict
    limit = verdict.limit if isinstance(verdict, Undetermined) else None
    return Shown(witnesses, verdict.stats, limit)


def only_in(one: Shown[L], other: Shown[L]) -> dict[L, Witness]:
    """Return the labels of `one` that `other` lacks, in order of depth.

    Raises
    ------
    ValueError
        If `other` may be incomplete: what it lacks is then not known.
    """
    if other.limit is not None:
        raise ValueError(f"the other model was not explored completely: {other.limit}")
    return {label: w for label, w in one.witnesses.items() if label not in other.witnesses}
