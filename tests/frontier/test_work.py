"""Arrivals, placement, execution times: what a run is given (issue 3)."""

import random

import pytest

from frontier.durations import (
    ConstantDurations,
    DurationError,
    EventKey,
    RandomDurations,
    RecordedDurations,
    Recording,
    TableDurations,
)
from frontier.durations_io import read_recording, read_table, write_recording
from frontier.events import Batch, Event
from frontier.placement import parse_placement
from frontier.requests import Request, poisson_times, read_requests_csv, uniform_requests


def test_poisson_times_are_seeded_and_have_the_rate():
    times = poisson_times(4000, 100.0, seed=3)
    assert times == poisson_times(4000, 100.0, seed=3)
    assert times != poisson_times(4000, 100.0, seed=4)
    assert list(times) == sorted(times)
    assert times[-1] / 1e9 == pytest.approx(40.0, rel=0.1)
    with pytest.raises(ValueError, match="must be positive"):
        poisson_times(3, 0.0, seed=0)


def test_uniform_requests_check_their_arguments():
    assert uniform_requests(2, 16, 3) == (Request(0, 16, 3), Request(1, 16, 3))
    for arguments in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="must be at least 1"):
            uniform_requests(*arguments)
    with pytest.raises(ValueError, match="in order"):
        uniform_requests(2, 1, 1, (5, 3))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0\n0.002\n0.008\n", [(0, 16, 1), (2_000_000, 16, 1), (8_000_000, 16, 1)]),
        ("arrival_ms,decode_tokens\n8,3\n0,2\n", [(0, 16, 2), (8_000_000, 16, 3)]),
        (
            "arrived_at,num_prefill_tokens,num_decode_tokens\n0.5,100,7\n",
            [(500_000_000, 100, 7)],
        ),
    ],
)
def test_request_traces(text, expected):
    found = read_requests_csv(text, 16, 1)
    assert [(r.arrival_ns, r.prefill_tokens, r.decode_tokens) for r in found] == expected
    assert [r.number for r in found] == list(range(len(found)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no requests"),
        ("lane\n1\n", "needs a column arrival_s"),
        ("arrival_s\n-1\n", "row 2 of the trace: expected a time"),
        ("arrival_s\nsoon\n", "row 2 of the trace"),
        ("arrival_s,prefill_tokens\n0,0\n", "prefill_tokens must be a whole number"),
        ("arrival_s,prefill_tokens\n0\n", "got ''"),
    ],
)
def test_bad_traces_name_the_place(text, message):
    with pytest.raises(ValueError, match=message):
        read_requests_csv(text, 16, 1)


def test_placement_rules():
    loads = [3, 1, 1]
    assert [parse_placement("round_robin", 3).lane(i, loads) for i in range(4)] == [0, 1, 2, 0]
    assert parse_placement("least-outstanding", 3).lane(7, loads) == 1
    assert [parse_placement("fixed:0,2", 3).lane(i, loads) for i in range(3)] == [0, 2, 0]
    drawn = [parse_placement("random", 3, seed=5).lane(i, loads) for i in range(200)]
    assert set(drawn) == {0, 1, 2}
    assert drawn == [parse_placement("random", 3, seed=5).lane(i, loads) for i in range(200)]
    for text, message in (
        ("fixed:0,3", "names lane 3"),
        ("fixed:", "must be"),
        ("nearest", "unknown placement"),
        ("random:3", "unknown placement"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_placement(text, 3)


ATTENTION = Event("attention_done", 1, Batch(1, 4), 0, 2)


def test_the_row_that_names_most_counts():
    table = TableDurations(
        read_table(
            "kind, lane, layer, ms\nattention_done,,,8\nattention_done,1,,9\n"
            "attention_done,1,2,9.5\nattention_done,0,2,3\n"
        )
    )
    assert table.of(ATTENTION) == 9_500_000
    assert table.of(ATTENTION._replace(layer=1)) == 9_000_000
    assert table.of(ATTENTION._replace(lane=2)) == 8_000_000
    with pytest.raises(DurationError, match="no row that fits"):
        table.of(Event("wave_end", -1, None, 0, 0, members=(Batch(0, 0),)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind,lane\nwave_end,1\n", "columns kind, one of ms"),
        ("kind,ms,colour\nwave_end,1,red\n", "got"),
        ("kind,ms\nlunch,1\n", "row 2: kind must be one of"),
        ("kind,ms\nwave_end,0\n", "row 2: a time must be a positive number"),
        ("kind,lane,ms\nwave_end,x,1\n", "row 2: lane must be a number"),
    ],
)
def test_bad_tables_name_the_place(text, message):
    with pytest.raises(ValueError, match=message):
        read_table(text)


def test_recorded_times_come_back_in_order():
    recording = Recording(RandomDurations(1, 10**9, seed=2))
    events = [ATTENTION, ATTENTION, Event("wave_end", -1, None, 0, 0, members=(Batch(0, 0),))]
    said = [recording.of(event) for event in events]
    again = RecordedDurations(read_recording(write_recording(recording.rows)))
    assert [again.of(event) for event in events] == said
    with pytest.raises(DurationError, match="have no"):
        again.of(ATTENTION)
    with pytest.raises(ValueError, match="line 1 is no JSON"):
        read_recording("{")
    with pytest.raises(ValueError, match="whole number ns"):
        read_recording('{"kind": "wave_end"}')


def test_random_times_are_seeded_and_within_bounds():
    times = [RandomDurations(5, 9, seed=1).of(ATTENTION) for _ in range(3)]
    assert len(set(times)) == 1
    draws = RandomDurations(5, 9, seed=1)
    assert {draws.of(ATTENTION) for _ in range(100)} == set(range(5, 10))
    with pytest.raises(ValueError, match="LO <= HI"):
        RandomDurations(9, 5, seed=1)


def test_constants_by_role():
    moe = ConstantDurations(True, 3)
    assert moe.of(Event("stage_end", 0, Batch(0, 0), 0)) == 8_000_000
    assert ConstantDurations(False, 3).of(Event("stage_end", 0, Batch(0, 0), 0)) == 50_000_000
    assert moe.of(Event("stage_end", 2, Batch(2, 0), 0, role="DECODE_FFN")) == 6_000_000
    child = moe.of(Event("child_done", 0, role="DECODE_FFN"))
    assert child + moe.of(Event("combine_end", 0, role="DECODE_FFN")) == 6_000_000
    with pytest.raises(DurationError, match="is not a timed event"):
        moe.of(Event("arrive"))


def test_keys_hold_what_an_event_has():
    assert EventKey.of(ATTENTION) == EventKey("attention_done", "", 1, 0, 2, 4, "prefill", None)


def test_generators_do_not_share_state():
    random.seed(1)
    before = random.getstate()
    poisson_times(5, 1.0, 0)
    assert random.getstate() == before
