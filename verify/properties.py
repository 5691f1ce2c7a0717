"""Properties: what must be true of every reachable state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from verify.model import S


@dataclass(frozen=True)
class Property(Generic[S]):
    """A named condition on reachable states.

    ``violation(state, terminal)`` returns what is wrong in one sentence, or None; ``terminal``
    says that no action is enabled in the state.
    """

    name: str
    violation: Callable[[S, bool], str | None]


def never_drained(is_complete: Callable[[S], bool]) -> Property[S]:
    """Every terminal state is complete: the chosen definition of "no deadlock"."""

    def violation(state: S, terminal: bool) -> str | None:
        if terminal and not is_complete(state):
            return "no event is left, but work is unfinished"
        return None

    return Property("drained", violation)


def invariant(name: str, broken: Callable[[S], str | None]) -> Property[S]:
    """``broken(state)`` is None in every reachable state."""
    return Property(name, lambda state, _terminal: broken(state))
