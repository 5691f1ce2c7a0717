"""Shortest paths: fewest transitions first, then least weight."""

from collections.abc import Sequence

from verify.shortest import Found, GaveUp, NoneExists, TooWideError, shortest_path


class Grid:
    """States are numbers; an action adds its number."""

    def __init__(self, steps: Sequence[int], last: int) -> None:
        self.steps, self.last = steps, last

    def initial_states(self) -> Sequence[int]:
        return (0,)

    def actions(self, state: int) -> Sequence[int]:
        return [step for step in self.steps if state + step <= self.last]

    def step(self, state: int, action: int) -> int:
        return state + action


def test_fewest_transitions_win_over_weight():
    found = shortest_path(Grid((1, 3), 6), lambda s: s == 6, lambda a: 10 * a, 100)
    assert found == Found(0, (1, 1), 60, found.states)


def test_among_shortest_the_least_weight():
    # 0 -> 5 in two steps: 1 + 4, 2 + 3, 3 + 2, 4 + 1; 3 costs nothing, 2 one.
    weights = {1: 5, 2: 1, 3: 0, 4: 5}
    found = shortest_path(Grid((1, 2, 3, 4), 5), lambda s: s == 5, weights.__getitem__, 100)
    assert isinstance(found, Found)
    assert (len(found.actions), found.weight) == (2, 1)


def test_a_goal_that_is_initial_needs_no_action():
    assert shortest_path(Grid((1,), 3), lambda s: s == 0, lambda a: a, 100) == Found(0, (), 0, 1)


def test_none_exists_only_after_everything_was_seen():
    assert shortest_path(Grid((1,), 3), lambda s: s == 9, lambda a: a, 100) == NoneExists(4)


def test_giving_up_is_not_none():
    result = shortest_path(Grid((1,), 1000), lambda s: s == 999, lambda a: a, 50)
    assert isinstance(result, GaveUp)


def test_a_wide_state_gives_up():
    class Wide(Grid):
        def actions(self, state: int) -> Sequence[int]:
            if state == 2:
                raise TooWideError
            return super().actions(state)

    result = shortest_path(Wide((1,), 9), lambda s: s == 9, lambda a: a, 50)
    assert isinstance(result, GaveUp)
