"""The trace of a run: marks, slices and arrows, each record as the module says."""

import json
from dataclasses import replace

import pytest

from frontier.chrome import ChromeTrace
from frontier.clusters import FfnShape
from frontier.events import Batch, Event
from frontier.ledger import StageRow
from frontier.requests import Request
from frontier.system import ServingSpec, ServingSystem
from models.serving import ServingRun

REQUESTS = (Request(0, 3, 2, 0), Request(1, 2, 3, 1_500_000))
SPEC = ServingSpec("co-location", 2, 1, 1, True, REQUESTS)
PD_AF = replace(SPEC, architecture="pd-af", lanes=1, ffn=FfnShape(ep_size=2))
HERE, THERE = Batch(0, 0), Batch(1, 0)


def trace_of(spec, *seen):
    """Trace of a system that was seen to do these things: ``(now, event, follow)``."""
    trace = ChromeTrace(ServingSystem(spec))
    for now, event, follow in seen:
        trace(now, event, follow)
    return trace


def records(trace, end=100_000):
    return [r for r in json.loads(trace.text(end))["traceEvents"] if r["ph"] != "M"]


def arrows(trace):
    """Name, and (process, track, microseconds) of both ends, of each arrow."""
    ends = {}
    for record in records(trace):
        if record["ph"] in "sf":
            at = (record["pid"], record["tid"], record["ts"])
            ends.setdefault((record["id"], record["name"]), []).append(at)
    return [(name, *own) for (_, name), own in ends.items()]


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_every_request_has_a_mark_at_its_arrival_where_it_arrives(architecture):
    lanes = 1 if architecture == "pd-af" else 2
    traces = []
    run = ServingRun(
        replace(SPEC, architecture=architecture, lanes=lanes, burst=False),
        observers=(lambda serving: traces.append(ChromeTrace(serving)) or traces[0],),
    )
    run.run()
    mark = {"ph": "i", "s": "p", "cat": "arrival", "pid": 1, "tid": 0}
    assert [r for r in records(traces[0]) if r["ph"] == "i"] == [
        {**mark, "name": "request 0 arrives", "ts": 0.0},
        {**mark, "name": "request 1 arrives", "ts": 1500.0},
    ]


def test_a_row_is_drawn_though_no_start_was_seen():
    trace = trace_of(SPEC)
    trace.row(StageRow("MONOLITHIC", 0, 0, 1, 4, "decode", 1_000, 3_500, (1,), 0, 1))
    (drawn,) = records(trace)
    assert drawn == {
        "ph": "X", "name": "batch 4 (decode)", "cat": "batch", "pid": 1, "tid": 2,
        "ts": 1.0, "dur": 2.5, "args": {"requests": [1], "prefill_tokens": 0, "decode_tokens": 1},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("left", "drawn"),
    [(4_000, []), (5_000, []), (7_000, [("waited for the stage", (1, 1, 6.999), (1, 2, 9.0))])],
)
def test_a_batch_waited_for_the_lane_that_left_after_it_had_come(left, drawn):
    start = Event("attention_done", 1, THERE, 0, 0)
    end = Event("stage_end", 0, HERE, 0)
    came = (5_000, Event("arrive", 1, THERE, 0), [])
    gone = (left, end, [])
    trace = trace_of(
        SPEC,
        (1_000, Event("wave_end", -1, None, 0, 0, members=(HERE,)), [end]),
        *([came, gone] if left > 5_000 else [gone, came]),
        (9_000, Event("stage_schedule", 1, None, 0), [start]),
    )
    assert arrows(trace) == drawn


def test_a_batch_waited_for_the_attention_of_another_of_its_lane():
    """In ``DECODE_ATTN`` a batch leaves the stage when its attention ends."""
    first, second = Batch(0, 0, "decode"), Batch(0, 1, "decode")
    role = {"role": "DECODE_ATTN"}
    ends = Event("attention_done", 0, first, 0, 0, **role)
    trace = trace_of(
        PD_AF,
        (1_000, Event("stage_schedule", 0, None, 0, **role), [ends]),
        (2_000, Event("arrive", 0, second, 0, **role), []),
        (9_000, ends, []),
        (9_000, Event("stage_schedule", 0, None, 0, **role), [ends._replace(batch=second)]),
    )
    assert arrows(trace) == [("waited for the stage", (2, 1, 8.999), (2, 1, 9.0))]


def test_a_group_waited_for_a_combine_that_is_drawn_to_leave_from_ep_lane_0():
    wave, dense = Batch(-1, 0, "expert"), Batch(2, 1, "dense")
    role = {"role": "DECODE_FFN"}
    combine = Event("combine_end", -1, wave, 0, **role)
    trace = trace_of(
        PD_AF,
        (1_000, Event("child_done", 1, wave, 0, **role), [combine]),
        (2_000, Event("arrive", 2, dense, 0, **role), []),
        (9_000, combine, []),
        (
            9_000,
            Event("stage_schedule", 2, None, 0, **role),
            [Event("stage_end", 2, dense, 0, **role)],
        ),
    )
    assert arrows(trace) == [("waited for the stage", (3, 1, 8.999), (3, 3, 9.0))]


def test_waits_in_a_room_end_in_an_arrow_to_the_wave():
    """The lane that came last did not wait: it has the arrow, but no slice."""
    done = [Event("attention_done", b.lane, b, 0, 0) for b in (HERE, THERE)]
    wave = Event("wave_end", -1, None, 0, 0, members=(HERE, THERE))
    trace = trace_of(
        SPEC,
        (1, Event("stage_schedule", 0, None, 0), done[:1]),
        (1, Event("stage_schedule", 1, None, 0), done[1:]),
        (2_000, done[0], []),
        (5_000, done[1], [wave]),
    )
    waits = [r for r in records(trace) if r["name"] == "waits in the room of layer 0"]
    assert [(w["tid"], w["ts"], w["dur"]) for w in waits] == [(1, 2.0, 3.0)]
    assert arrows(trace) == [
        ("waited in the room", (1, 1, 1.999), (1, 1000, 5.0)),
        ("waited in the room", (1, 2, 4.999), (1, 1000, 5.0)),
    ]


def test_what_comes_from_outside_is_not_drawn():
    assert records(trace_of(SPEC, (5, Event("invalidate", 0, HERE), []))) == []


def test_at_one_instant_the_longest_slice_comes_first_and_marks_last():
    trace = trace_of(replace(SPEC, burst=False), (2_000, Event("request", request=1), []))
    for end in (2_100, 2_900):
        trace.row(StageRow("MONOLITHIC", 0, 0, 0, end, "decode", 2_000, end, (), 0, 0))
    names = [r["name"] for r in records(trace)]
    assert names == ["batch 2900 (decode)", "batch 2100 (decode)", "request 1 arrives"]
