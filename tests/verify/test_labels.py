"""Labels of reachable states, and the product with the history, on a counter."""

import pytest

from verify.labels import only_in, shown_labels
from verify.limits import Limits
from verify.recording import Recorded, RecordingModel


class Counter:
    """Counts to `top` by ones, and by `stride`; a label at every count."""

    def __init__(self, top: int, stride: int) -> None:
        self.top, self.stride = top, stride

    def initial_states(self) -> list[int]:
        return [0]

    def actions(self, state: int) -> list[int]:
        return [step for step in (1, self.stride) if state + step <= self.top]

    def step(self, state: int, action: int) -> int:
        return state + action


def test_every_label_with_a_shortest_witness() -> None:
    shown = shown_labels(Counter(6, 3), lambda s, terminal: [s, "end"] if terminal else [s])
    assert shown.limit is None
    assert set(shown.witnesses) == {*range(7), "end"}
    assert shown.witnesses[4].actions == (0, 1)
    assert shown.witnesses["end"] == shown.witnesses[6]
    assert shown.witnesses[6].actions == (1, 1)


def test_what_one_shows_alone() -> None:
    even = shown_labels(Counter(4, 2), lambda s, _: [s % 2])
    shown = shown_labels(Counter(4, 2), lambda s, _: [s])
    assert list(only_in(shown, even)) == [2, 3, 4]
    assert only_in(even, shown) == {}


def test_nothing_is_concluded_from_a_part() -> None:
    part = shown_labels(Counter(40, 2), lambda s, _: [s], limits=Limits(max_states=5))
    whole = shown_labels(Counter(4, 2), lambda s, _: [s])
    assert part.limit is not None
    with pytest.raises(ValueError, match="not explored completely"):
        only_in(whole, part)


def test_history_of_the_run() -> None:
    model = RecordingModel(Counter(3, 2), lambda s: [s])
    ends = shown_labels(
        model, lambda r, terminal: [tuple(sorted(r.history))] if terminal else []
    ).witnesses
    assert set(ends) == {(0, 1, 2, 3), (0, 1, 3), (0, 2, 3)}
    assert model.initial_states() == [Recorded(0, frozenset({0}))]
