"""What a model can show: labels of reachable states, and what one model shows that another cannot.

Generic: a label is any hashable value that a function reads off a state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

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


class Recorded(NamedTuple):
    """A state with every label shown on the way to it."""

    state: Hashable
    history: frozenset[Hashable]


class RecordingModel(Generic[S, A]):
    """A model whose states remember the labels of the run; its paths are those of `model`."""

    def __init__(self, model: Model[S, A], labels: Callable[[S], Collection[Hashable]]) -> None:
        self._model = model
        self._labels = labels

    def initial_states(self) -> Sequence[Recorded]:
        """Return the initial states of the model, with the labels they show."""
        return [Recorded(s, frozenset(self._labels(s))) for s in self._model.initial_states()]

    def actions(self, state: Recorded) -> Sequence[A]:
        """Return the actions of the model."""
        return self._model.actions(state.state)  # type: ignore[arg-type]

    def step(self, state: Recorded, action: A) -> Recorded:
        """Step the model and add the labels of the new state."""
        after = self._model.step(state.state, action)  # type: ignore[arg-type]
        return Recorded(after, state.history | frozenset(self._labels(after)))
