"""The reference engine on graphs that are known by hand."""

import pytest

from tests.verify.toy import Counter, Interrupted, Toy
from verify.explorer import explore
from verify.limits import INTERRUPTED, Limits
from verify.properties import invariant, never_drained
from verify.verdict import Holds, Undetermined, Violated, word

DIAMOND = {0: [1, 2], 1: [3], 2: [3], 3: []}
NO_DEADLOCK = never_drained(lambda state: state == 3)


def test_holds_counts_states_and_transitions():
    verdict = explore(Toy(DIAMOND), [NO_DEADLOCK]).verdict
    assert isinstance(verdict, Holds)
    assert (verdict.stats.states, verdict.stats.transitions) == (4, 4)
    assert (verdict.stats.max_depth, verdict.stats.complete, verdict.stats.acyclic) == (
        2,
        True,
        True,
    )


def test_the_first_violation_is_a_shortest_path_and_all_are_found():
    edges = {0: [1, 2], 1: [4], 4: [5], 2: [5, 3], 5: [], 3: [], 6: []}
    verdict = explore(Toy(edges), [NO_DEADLOCK]).verdict
    assert isinstance(verdict, Violated)
    assert verdict.first.actions == (1, 0), "0 -> 2 -> 5, not 0 -> 1 -> 4 -> 5"
    assert verdict.stats.states == 6, "the rest of the graph is visited after a violation"
    assert len(verdict.violations) == 1


def test_an_unreachable_state_is_not_judged():
    verdict = explore(Toy({0: [3], 9: []}), [NO_DEADLOCK]).verdict
    assert isinstance(verdict, Holds)


def test_an_invariant_is_judged_on_every_state():
    broken = invariant("small", lambda state: "too large" if state == 2 else None)
    verdict = explore(Toy(DIAMOND), [broken]).verdict
    assert isinstance(verdict, Violated)
    assert (verdict.first.property_name, verdict.first.message) == ("small", "too large")
    assert verdict.first.depth == 1


@pytest.mark.parametrize("edges", [{0: [1], 1: [0]}, {0: [1], 1: [1]}, {0: [1, 3], 1: [2], 2: [1]}])
def test_a_cycle_is_non_termination(edges):
    verdict = explore(Toy(edges), [NO_DEADLOCK]).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[-1].property_name == "termination"
    assert not verdict.stats.acyclic
    allowed = explore(Toy(edges), [], must_terminate=False).verdict
    assert isinstance(allowed, Holds)


def test_two_initial_states():
    verdict = explore(Toy({0: [3], 7: [8], 8: []}, initial=(0, 7)), [NO_DEADLOCK]).verdict
    assert isinstance(verdict, Violated)
    assert (verdict.first.initial, verdict.first.actions) == (1, (0,))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(max_states=10), "10 states"),
        (Limits(max_seconds=0.05), "0.05 seconds"),
        (Limits(max_memory_gb=0.001), "0.001 GB"),
    ],
)
def test_a_limit_gives_undetermined_and_says_which(limits, said):
    verdict = explore(Counter(), [], limits=limits).verdict
    assert isinstance(verdict, Undetermined)
    assert said in verdict.limit
    assert verdict.stats.acyclic is None
    assert word(verdict) == "undetermined"


def test_a_limit_of_exactly_the_number_of_states_is_no_limit():
    assert isinstance(explore(Toy(DIAMOND), [], limits=Limits(max_states=4)).verdict, Holds)
    assert isinstance(explore(Toy(DIAMOND), [], limits=Limits(max_states=3)).verdict, Undetermined)


def test_a_violation_found_before_the_limit_counts():
    bad = invariant("small", lambda state: "too large" if state == 5 else None)
    verdict = explore(Counter(), [bad], limits=Limits(max_states=1000)).verdict
    assert isinstance(verdict, Violated)
    assert not verdict.stats.complete


def test_an_interrupt_says_what_is_known():
    verdict = explore(Interrupted(), []).verdict
    assert isinstance(verdict, Undetermined)
    assert verdict.limit == INTERRUPTED
    assert verdict.stats.states == 1001


def test_progress_is_reported():
    seen = []
    explore(Counter(), [], limits=Limits(max_states=2000), progress=seen.append)
    assert [p.states for p in seen] == sorted(p.states for p in seen)
    last = seen[-1]
    assert last.states > 1900
    assert last.rate > 0
    assert last.memory > 0
    assert last.queue >= 1
