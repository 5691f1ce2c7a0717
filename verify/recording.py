"""A model whose states remember what was shown on the way to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from verify.model import A, Model, S

H = TypeVar("H", bound=Hashable)


@dataclass(frozen=True)
class Recorded(Generic[S, H]):
    """A state with every label shown on the way to it, its own included."""

    state: S
    history: frozenset[H]


class RecordingModel(Generic[S, A, H]):
    """The product of a model with the set of labels shown so far; its paths are the model's.

    Parameters
    ----------
    model
        The transition system.
    labels
        Labels that a state shows.
    """

    def __init__(self, model: Model[S, A], labels: Callable[[S], Collection[H]]) -> None:
        self._model = model
        self._labels = labels

    def initial_states(self) -> Sequence[Recorded[S, H]]:
        """Return the initial states of the model, with the labels they show."""
        return [Recorded(s, frozenset(self._labels(s))) for s in self._model.initial_states()]

    def actions(self, state: Recorded[S, H]) -> Sequence[A]:
        """Return the actions of the model."""
        return self._model.actions(state.state)

    def step(self, state: Recorded[S, H], action: A) -> Recorded[S, H]:
        """Step the model and add the labels of the new state."""
        after = self._model.step(state.state, action)
        return Recorded(after, state.history | frozenset(self._labels(after)))
