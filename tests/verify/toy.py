"""Small transition systems with known graphs."""

from collections.abc import Hashable, Sequence


class Toy:
    """A model given by its edges; state 0 is initial unless said otherwise."""

    def __init__(self, edges: dict[int, list[int]], initial: Sequence[int] = (0,)) -> None:
        self._edges = edges
        self._initial = initial

    def initial_states(self) -> Sequence[int]:
        return self._initial

    def actions(self, state: int) -> Sequence[int]:
        return self._edges.get(state, [])

    def step(self, state: Hashable, action: int) -> int:
        return action


class Counter:
    """Counts for ever: an infinite graph."""

    def initial_states(self) -> Sequence[int]:
        return (0,)

    def actions(self, state: int) -> Sequence[str]:
        return ("up",)

    def step(self, state: int, action: str) -> int:
        return state + 1


class Interrupted(Counter):
    """Is interrupted from the keyboard at a state."""

    def step(self, state: int, action: str) -> int:
        if state == 1000:
            raise KeyboardInterrupt
        return state + 1
