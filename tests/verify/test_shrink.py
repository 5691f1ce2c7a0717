"""The shrinking engine: one gate, strictly simpler, to a common fixpoint."""

from collections.abc import Iterator

import pytest

from verify.shrink import Pass, Proposal, Rejection, Shrinker


def dropping(value: tuple[int, ...]) -> Iterator[Proposal[tuple[int, ...]]]:
    """Drop one number; the sum must stay at least 10."""
    for at in range(len(value)):
        smaller = value[:at] + value[at + 1 :]
        yield Proposal(
            f"number {at}",
            lambda s=smaller: s if sum(s) >= 10 else Rejection("the sum is too small", True),
        )


def test_shrinks_to_a_local_minimum_and_says_why_it_is_one():
    shrinker = Shrinker((1, 2, 3, 4, 5, 6, 7), lambda v: (len(v), v))
    drop = Pass("numbers", dropping)
    assert shrinker.shrink([drop]) == (6, 7)
    obstacles = shrinker.obstacles([drop])
    assert [o.rejection for o in obstacles] == [Rejection("the sum is too small", True)] * 2


def test_nothing_that_is_not_simpler_passes_the_gate():
    shrinker = Shrinker(3, lambda v: v)
    rejection = shrinker.consider("none", Proposal("same", lambda: 3))
    assert rejection is not None
    assert not rejection.proved
    assert shrinker.best == 3
    assert shrinker.steps == []


def test_a_value_that_can_still_shrink_is_no_minimum():
    shrinker = Shrinker((5, 5, 5), lambda v: (len(v), v))
    with pytest.raises(AssertionError, match="number 0 still works"):
        shrinker.obstacles([Pass("numbers", dropping)])


def test_a_success_starts_again_from_the_first_pass():
    seen: list[str] = []

    def named(name: str, allowed: int) -> Pass[int]:
        def proposals(value: int) -> Iterator[Proposal[int]]:
            seen.append(name)
            if value > allowed:
                yield Proposal("one", lambda: value - 1)

        return Pass(name, proposals)

    assert Shrinker(3, lambda v: v).shrink([named("a", 2), named("b", 1)]) == 1
    # a: 3 -> 2, a fails; b: 2 -> 1, b fails; then from the first pass again: a, b.
    assert seen == ["a", "a", "a", "b", "b", "a", "b"]
