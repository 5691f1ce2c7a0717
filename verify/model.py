"""What the engine knows of a system: states, actions, steps.

The engine never learns what a lane is. States are hashable values without history: equal states
have equal futures (PROTOCOL.md section 5).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol, TypeVar

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")


class Model(Protocol[S, A]):
    """A transition system with numbered actions.

    ``actions(state)[i]`` is action ``i`` of the state; the numbering must be a function of the
    state alone, because a path is stored as action numbers (:mod:`verify.path`).
    """

    def initial_states(self) -> Sequence[S]:
        """States to start from, at least one."""
        ...

    def actions(self, state: S) -> Sequence[A]:
        """Distinct actions enabled in a state; none at a terminal one."""
        ...

    def step(self, state: S, action: A) -> S:
        """State after an action."""
        ...
