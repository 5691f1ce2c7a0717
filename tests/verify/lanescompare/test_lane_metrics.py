"""M3 to M5 and the decomposition on small runs, and against brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verify.lanescompare.decomposition import decompose
from verify.lanescompare.metrics import (
    busy_times,
    co_execution,
    measure,
    measure_stage,
    overlap,
)
from verify.lanescompare.runs import Forward, LaneRun


def lane(number: int, *spans: tuple[float, float]) -> tuple[Forward, ...]:
    return tuple(
        Forward(start, end, number, 0, (2 * place + number,))
        for place, (start, end) in enumerate(spans)
    )


def test_two_lanes_in_step() -> None:
    found = measure_stage([lane(0, (0, 2), (2, 4)), lane(1, (0, 2), (2, 4))])
    assert found.pairing == (((0,), (1,)), ((2,), (3,)))
    assert (found.co_start, found.co_execution, found.median_duration) == (0, 1, 2)
    assert not found.self_overlap


def test_pairing_takes_the_largest_overlap_and_the_earliest_among_equals() -> None:
    found = measure_stage([lane(0, (0, 4), (4, 8)), lane(1, (3, 6), (6, 8), (8, 9))])
    assert found.pairing == (((0,), (1,)), ((2,), (1,)))


def test_touching_forwards_are_no_pair() -> None:
    found = measure_stage([lane(0, (0, 2)), lane(1, (2, 4))])
    assert found.pairing == (((0,), None),)
    assert found.co_execution == 0


def test_three_lanes() -> None:
    found = measure_stage([lane(0, (0, 2)), lane(1, (1, 3)), lane(2, (4, 6))])
    assert found.pairing == (((0,), (1,), None),)
    assert found.co_start == 2
    assert found.co_execution == pytest.approx(1 / 5)


def test_a_lane_without_forwards() -> None:
    found = measure_stage([lane(0, (0, 2)), ()])
    assert (found.pairing, found.co_start, found.co_execution) == ((((0,), None),), None, 0)
    empty = measure_stage([(), ()])
    assert (empty.co_start, empty.co_execution, empty.median_duration) == (None, None, None)


def test_self_overlap() -> None:
    assert measure_stage([lane(0, (0, 2), (1, 3)), lane(1, (0, 1))]).self_overlap


def test_order_is_by_start_not_by_record() -> None:
    late, early = Forward(2, 3, 0, 0, (2,)), Forward(0, 1, 0, 0, (0,))
    run = LaneRun(2, 1, 3, 3, (late, early), {})
    assert measure(run).sequences == {(0, 0): ((0,), (2,)), (1, 0): ()}


spans = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 6)).map(lambda s: (s[0], s[0] + s[1])), max_size=6
)


@given(st.lists(spans, min_size=2, max_size=3))
def test_busy_times_equal_counting_unit_cells(lanes: list[list[tuple[float, float]]]) -> None:
    busy = [
        sum(any(s <= cell < e for s, e in intervals) for intervals in lanes) for cell in range(30)
    ]
    assert busy_times(lanes) == (sum(b >= 2 for b in busy), sum(b >= 1 for b in busy))


@given(spans, spans)
def test_decomposition_accounts_for_every_second(
    one: list[tuple[float, float]], other: list[tuple[float, float]]
) -> None:
    found = decompose(lane(0, *sorted(one)), lane(1, *sorted(other)))
    several, anyone = busy_times([one, other])
    counted = found.from_starts + found.from_ends + found.from_disjoint + found.from_unpaired
    assert counted - found.covered == pytest.approx(anyone - several)
    assert found.covered >= 0
    assert found.pairs + found.unpaired_forwards == max(len(one), len(other))
    assert found.observed == co_execution([one, other])


def test_offsets_disjoint_and_unpaired_are_told_apart() -> None:
    found = decompose(
        lane(0, (0, 4), (10, 12), (20, 21)),
        lane(1, (1, 6), (13, 14)),
    )
    assert (found.pairs, found.disjoint_pairs, found.unpaired_forwards) == (2, 1, 1)
    assert (found.from_starts, found.from_ends) == (1, 2)
    assert (found.from_disjoint, found.from_unpaired, found.covered) == (3, 1, 0)
    assert found.later_starts == pytest.approx(3 / 9)
    assert found.equal_durations == pytest.approx(3 / (5 + 4 + 1))


def test_decomposition_of_nothing() -> None:
    found = decompose((), ())
    assert (found.pairs, found.observed, found.median_duration) == (0, None, None)


@given(spans, spans)
def test_pairing_equals_the_largest_overlap_of_all(
    one: list[tuple[float, float]], other: list[tuple[float, float]]
) -> None:
    lanes = [lane(0, *sorted(one)), lane(1, *sorted(other))]
    for (requests, partner), forward in zip(measure_stage(lanes).pairing, lanes[0], strict=True):
        best = max(lanes[1], key=lambda f: overlap(forward, f), default=None)
        none = best is None or overlap(forward, best) <= 0
        assert requests == forward.requests
        assert partner == (None if none or best is None else best.requests)
