"""Execution times, their files, and the figures of a run: limits and edges, value by value."""

import math

import pytest

from frontier.durations import (
    MILLISECOND,
    ConstantDurations,
    DurationError,
    EventKey,
    RandomDurations,
    RecordedDurations,
    TableDurations,
    WithArrivals,
    WithRequestTimes,
)
from frontier.durations_io import read_recording, read_table, write_recording
from frontier.events import Batch, Event
from frontier.ledger import LaneOverlap, StageLedger, StageRow, lane_overlap, seconds
from frontier.metrics import RequestMetrics, RequestTimes, _rate, _summary
from frontier.requests import (
    MOST_REQUESTS,
    _require_few,
    poisson_times,
    read_requests_csv,
    uniform_requests,
)
from frontier.system import ServingSpec, ServingSystem
from models.serving import ServingRun

ATTENTION = Event("attention_done", 1, Batch(1, 4), 0, 2)
REQUEST = Event("request", 0, request=0)
WAVE = Event("wave_end", -1, None, 0, 0, members=(Batch(0, 3, "decode"), Batch(1, 5)))


def message(call, *args):
    with pytest.raises(ValueError, match=r".+") as caught:
        call(*args)
    return str(caught.value)


# ---------------------------------------------------------------- models


def test_a_request_of_the_start_arrives_at_zero():
    assert ConstantDurations(True, 1).of(REQUEST) == 0
    assert RandomDurations(5, 9, seed=1).of(REQUEST) == 0
    assert TableDurations([]).of(REQUEST) == 0


def test_published_constants():
    constant = ConstantDurations(True, 3)
    events = ("attention_done", "wave_end", "kv_transfer", "group", "ffn_return", "combine_end")
    assert [constant.of(Event(kind)) // MILLISECOND for kind in events] == [8, 6, 1, 1, 1, 1]
    assert constant.of(Event("stage_end", role="DECODE_ATTN")) == 8 * MILLISECOND
    assert ConstantDurations(False, 2).of(Event("stage_end")) == 36 * MILLISECOND
    assert ConstantDurations(False, 2).of(Event("stage_end", role="DECODE_ATTN")) == 8 * MILLISECOND
    assert message(constant.of, Event("arrive", 2)) == (
        "arrive is not a timed event: arrive(lane 2)"
    )


def test_given_arrivals_by_lane_and_by_request():
    by_lane = WithArrivals(RandomDurations(4, 4, seed=0), [[7, 9], [], [3]])
    asked = [by_lane.of(Event("request", lane)) for lane in (0, 2, 0)]
    assert asked == [7, 3, 9]
    assert by_lane.of(ATTENTION) == 4
    by_number = WithRequestTimes(RandomDurations(4, 4, seed=0), [7, 9])
    assert [by_number.of(Event("request", 0, request=n)) for n in (1, 0, 1)] == [9, 7, 9]
    assert by_number.of(ATTENTION) == 4


def test_random_bounds_may_be_equal_and_start_at_one():
    assert RandomDurations(1, 1, seed=0).of(ATTENTION) == 1
    assert message(RandomDurations, 0, 3, 1) == (
        "random times need 1 ns <= LO <= HI, got 0 and 3 ns"
    )


def test_keys_of_waves_and_of_events_without_a_batch():
    assert EventKey.of(WAVE) == EventKey("wave_end", "", None, 0, 0, 3, "decode", None)
    assert EventKey.of(REQUEST) == EventKey("request", "", 0, None, None, None, "", 0)
    far = Event("kv_transfer", 0, request=1, role="DECODE")
    assert EventKey.of(far) == EventKey("kv_transfer", "DECODE", 0, None, None, None, "", 1)


def test_of_rows_that_name_as_much_the_last_counts():
    rows = [
        (EventKey("wave_end"), 5),
        (EventKey("wave_end", phase="decode"), 6),
        (EventKey("wave_end", batch=3), 7),
        (EventKey("wave_end", batch=4, stage=0), 8),
    ]
    assert TableDurations(rows).of(WAVE) == 7
    assert TableDurations(rows[:2]).of(WAVE) == 6
    assert TableDurations([(EventKey("wave_end"), 1)]).of(WAVE) == 1
    assert message(TableDurations, [(EventKey("wave_end"), 0)]) == (
        f"a time must be at least 1 ns, got 0 for {EventKey('wave_end')}"
    )
    most = [(EventKey("wave_end", phase="decode", batch=3), 9), *rows[:3]]
    assert TableDurations(most).of(WAVE) == 9
    with pytest.raises(DurationError, match=r"^the table of times has no row that fits wave_end\("):
        TableDurations([(EventKey("stage_end"), 5)]).of(WAVE)


def test_recorded_times_run_out_by_name():
    times = RecordedDurations([(EventKey.of(WAVE), 5), (EventKey.of(WAVE), 4)])
    assert [times.of(WAVE), times.of(WAVE)] == [5, 4]
    assert message(times.of, WAVE) == f"the recorded times have no (further) entry for {WAVE}"
    assert message(times.of, ATTENTION).endswith(f"entry for {ATTENTION}")


# ---------------------------------------------------------------- files


def test_a_table_with_blanks_and_every_column():
    header = "kind, role, lane, stage, layer, batch, phase, request, s"
    (row,) = read_table(f"{header}\nwave_end, PREFILL, 1, 2, 3, 4, decode, 5, 0.25\n")
    assert row == (EventKey("wave_end", "PREFILL", 1, 2, 3, 4, "decode", 5), 250_000_000)
    assert read_table("kind, lane, ns\nstage_end, , 7\n") == [(EventKey("stage_end"), 7)]
    assert read_table("kind,ns\nstage_end,0.2\n") == [(EventKey("stage_end"), 1)]
    assert read_table("kind,ns\nstage_end, 7\nwave_end,8\n")[1] == (EventKey("wave_end"), 8)


def test_bad_tables_word_by_word():
    columns = "a table of times has the columns kind, one of ms, s, ns, and any of "
    columns += "role, lane, stage, layer, batch, phase, request; got "
    assert message(read_table, "") == columns + "[]"
    assert message(read_table, "kind\n") == columns + "['kind']"
    assert message(read_table, "ms\n") == columns + "['ms']"
    assert message(read_table, "kind,ms,s\n") == columns + "['kind', 'ms', 's']"
    assert message(read_table, "kind,ms,colour\n") == columns + "['kind', 'ms', 'colour']"
    kinds = (
        "attention_done, child_done, combine_end, ffn_return, group, kv_transfer, request, "
        "stage_end, wave_end"
    )
    assert message(read_table, "kind,ms\nwave_end,1\nlunch,1\n") == (
        f"row 3: kind must be one of {kinds}, got 'lunch'"
    )
    assert message(read_table, "kind,ms\n,1\n") == f"row 2: kind must be one of {kinds}, got None"
    assert message(read_table, "kind,lane,ms\nwave_end,-1,1\n") == (
        "row 2: lane must be a number, got '-1'"
    )
    for text in ("0", "-1", "inf", "nan", "soon", ""):
        assert message(read_table, f"kind,ms\nwave_end,{text}\n") == (
            f"row 2: a time must be a positive number, got {text!r}"
        )


def test_recordings_word_by_word():
    assert write_recording([(EventKey.of(WAVE), 5), (EventKey.of(REQUEST), 1)]) == (
        '{"kind": "wave_end", "stage": 0, "layer": 0, "batch": 3, "phase": "decode", "ns": 5}\n'
        '{"kind": "request", "lane": 0, "request": 0, "ns": 1}\n'
    )
    again = read_recording('\n{"kind": "wave_end", "lane": "3", "ns": 5}\n\n')
    assert again == [(EventKey("wave_end", lane=3), 5)]
    assert message(read_recording, "\n[]").startswith("line 2 must be an object with a whole num")
    assert message(read_recording, "\n{").startswith("line 2 is no JSON: ")
    assert message(read_recording, '{"kind": "wave_end", "ns": "5"}') == (
        "line 1 must be an object with a whole number ns, got {'kind': 'wave_end', 'ns': '5'}"
    )
    assert message(read_recording, '{"kind": "wave_end", "ns": 0}') == (
        "line 1: a time must be a positive number, got 0"
    )
    assert message(read_recording, '{"kind": "wave_end", "stage": "x", "ns": 1}') == (
        "line 1: stage must be a number, got 'x'"
    )


# ---------------------------------------------------------------- requests


def test_request_traces_word_by_word():
    trace = "the trace has no requests; expected a header and one row per request"
    assert message(read_requests_csv, "", 1, 1) == trace
    assert message(read_requests_csv, "arrival_s\n , \n", 1, 1) == trace
    assert message(read_requests_csv, "lane,size\n1,2\n", 1, 1) == (
        "the trace needs a column arrival_s or arrival_ms, got ['lane', 'size']"
    )
    for text in ("-1", "soon", "inf", ""):
        assert message(read_requests_csv, f"size,arrival_s\n7,{text}\n", 1, 1) == (
            f"row 2 of the trace: expected a time of at least 0, got {text!r}"
        )
    assert message(read_requests_csv, "arrival_s\n0\n", None, 1) == (
        "the trace has no column prefill_tokens, and no size was given for all"
    )
    assert message(read_requests_csv, "arrival_s\n0\n", 1, None) == (
        "the trace has no column decode_tokens, and no size was given for all"
    )
    assert message(read_requests_csv, "arrival_s,decode_tokens\n0,1\n1,1.5\n", 1, 1) == (
        "row 3 of the trace: decode_tokens must be a whole number of at least 1, got '1.5'"
    )


def test_traces_without_header_with_blanks_and_out_of_order():
    found = read_requests_csv(" Arrival_MS , NUM_decode_tokens\n\n2, 5 \n0.5,6\n", 7, None)
    assert [(r.number, r.arrival_ns, r.prefill_tokens, r.decode_tokens) for r in found] == [
        (0, 500_000, 7, 6),
        (1, 2_000_000, 7, 5),
    ]
    assert [r.arrival_ns for r in read_requests_csv("0.5\n0\n", 1, 1)] == [0, 500_000_000]
    by_second_column = read_requests_csv("prefill_tokens,time\n3,0\n", None, 2)
    assert [(r.arrival_ns, r.prefill_tokens) for r in by_second_column] == [(0, 3)]


def test_requests_word_by_word():
    assert message(uniform_requests, 0, 1, 1) == "requests must be at least 1, got 0"
    assert message(uniform_requests, 1, 0, 1) == "prefill_tokens must be at least 1, got 0"
    assert message(uniform_requests, 1, 1, 0) == "decode_tokens must be at least 1, got 0"
    order = "arrival times must be one per request, in order and not negative: "
    assert message(uniform_requests, 2, 1, 1, (5, 3)) == order + "2 requests, times [5, 3]"
    assert message(uniform_requests, 2, 1, 1, (5,)) == order + "2 requests, times [5]"
    assert message(uniform_requests, 1, 1, 1, (-1,)) == order + "1 requests, times [-1]"
    assert message(uniform_requests, 9, 1, 1, tuple(range(9, 0, -1))) == (
        order + "9 requests, times [9, 8, 7, 6, 5, 4, 3, 2]"
    )
    assert [r.arrival_ns for r in uniform_requests(2, 1, 1)] == [0, 0]


def test_requests_of_one_run_are_bounded():
    _require_few(MOST_REQUESTS)
    for call in (poisson_times, uniform_requests):
        assert message(call, MOST_REQUESTS + 1, 1, 1) == (
            "requests must be at most 1,000,000, got 1000001"
        )


def test_poisson_rates_have_limits():
    assert len(poisson_times(2, 1e9, seed=1)) == 2
    assert len(poisson_times(1, 1e-6, seed=1)) == 1
    for rate in (0.0, 9e-7, 1.1e9, math.inf, math.nan):
        assert "must be positive" in message(poisson_times, 1, rate, 1)


# ---------------------------------------------------------------- figures


def test_summaries_use_the_nearest_rank():
    values = [float(v) for v in range(200, 0, -1)]
    assert _summary([None, *values, None]) == {
        "mean": 100.5, "p50": 100.0, "p90": 180.0, "p99": 198.0, "max": 200.0,
    }  # fmt: skip
    assert _summary([4.0]) == {"mean": 4.0, "p50": 4.0, "p90": 4.0, "p99": 4.0, "max": 4.0}
    assert _summary([1.0, 2.0])["p50"] == 1.0
    assert _summary([0.1, 0.2, 0.2])["mean"] == 0.166666667
    assert _summary([None]) is None


def test_times_that_do_not_exist_are_none():
    spec = ServingSpec("co-location", 1, 1, 1, False, uniform_requests(4, 1, 3))
    metrics = RequestMetrics(ServingSystem(spec))
    metrics.times = [
        RequestTimes(100),
        RequestTimes(100, 300, None, 2),
        RequestTimes(100, 300, 700, 3),
        RequestTimes(100, 300, 300, 1),
    ]
    names = ("first_token_s", "end_s", "ttft_s", "e2e_s", "tpot_s")
    assert [tuple(row[name] for name in names) for row in metrics.rows()] == [
        (None, None, None, None, None),
        (3e-07, None, 2e-07, None, None),
        (3e-07, 7e-07, 2e-07, 6e-07, 2e-07),
        (3e-07, 3e-07, 2e-07, 2e-07, None),
    ]
    assert metrics.request_end_s == [None, None, 7e-07, 3e-07]
    assert metrics.makespan == 700


def test_rates_and_seconds_are_rounded():
    assert _rate(1, 3 * 10**9) == 0.333333
    assert _rate(2, 10**9) == 2.0
    assert _rate(2, 0) is None
    assert (seconds(1), seconds(1_500_000_000), seconds(0)) == (1e-09, 1.5, 0.0)


@pytest.mark.parametrize("follow", [Event("attention_done", 0, None, 0), Event("stage_end", 0)])
def test_a_stage_starts_with_a_batch(follow):
    spec = ServingSpec("co-location", 1, 1, 1, True, uniform_requests(1, 1, 1))
    with pytest.raises(TypeError, match=f"^{follow.kind} needs a batch"):
        StageLedger(ServingSystem(spec))(0, Event("stage_schedule", 0, None, 0), [follow])


@pytest.mark.parametrize(
    ("architecture", "layers"),
    [
        ("co-location", {"MONOLITHIC": {-1}}),
        ("pd-af", {"PREFILL": {-1}, "DECODE_ATTN": {0, 1, -1}, "DECODE_FFN": {0, 1}}),
    ],
)
def test_a_row_has_a_layer_where_a_stage_is_visited_once_a_layer(architecture, layers):
    """The last visit to a decode attention stage runs its tail, which belongs to no layer."""
    found = {}
    spec = ServingSpec(architecture, 1, 1, 2, True, uniform_requests(1, 1, 2))
    ServingRun(spec, None, (lambda r: found.setdefault(r.role, set()).add(r.layer),)).run()
    assert found == layers


def test_a_row_names_its_layer_only_where_it_has_one():
    row = StageRow("DECODE_FFN", 0, 1, 2, 3, "expert", 10, 30, (4, 5), 6, 7)
    plain = {
        "role": "DECODE_FFN",
        "replica": 0,
        "stage": 1,
        "lane": 2,
        "batch": 3,
        "phase": "expert",
        "start_s": 1e-08,
        "end_s": 3e-08,
        "requests": [4, 5],
        "prefill_tokens": 6,
        "decode_tokens": 7,
    }
    assert row.to_json() == plain
    assert row._replace(layer=0).to_json() == {**plain, "layer": 0}


def test_overlap_of_half_open_intervals():
    assert lane_overlap([]) == LaneOverlap(0, 0, 0, False)
    assert lane_overlap([(0, 5, 0), (5, 9, 1)]) == LaneOverlap(0, 9, 1, False)
    assert lane_overlap([(0, 5, 0), (4, 9, 1), (20, 21, 0)]) == LaneOverlap(1, 10, 2, False)
    assert lane_overlap([(0, 5, 0), (3, 4, 0)]) == LaneOverlap(0, 5, 1, True)
    assert lane_overlap([(3, 3, 0), (4, 2, 1)]) == LaneOverlap(0, 0, 0, False)
    three = lane_overlap([(0, 3, 0), (0, 3, 1), (1, 2, 2)])
    assert three == LaneOverlap(3, 3, 3, False)
    assert LaneOverlap(1, 3, 2, True).to_json() == {
        "multi_lane_busy_time_s": 1e-09,
        "busy_time_s": 3e-09,
        "co_execution_fraction": 0.333333333,
        "peak_lanes": 2,
        "self_overlap": True,
    }
    assert LaneOverlap(0, 0, 0, False).co_execution_fraction == 0.0
