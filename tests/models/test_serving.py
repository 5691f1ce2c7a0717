"""Serving systems in timed runs: roles, outcomes, order at the FFN, ledger and metrics."""

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.batching import BatchingConfig
from frontier.chrome import ChromeTrace
from frontier.clusters import FfnShape
from frontier.des import Simulation
from frontier.durations import MILLISECOND, ConstantDurations, RandomDurations, WithRequestTimes
from frontier.events import DENSE, EXPERT, Event
from frontier.ffn import FfnConfig, FfnReplica, ScriptedGroups
from frontier.ledger import lane_overlap
from frontier.metrics import ConservationCheck
from frontier.outcome import admission_deadlock
from frontier.requests import Request, uniform_requests
from frontier.serving import ConservationError
from frontier.standin import STAND_IN_RULES
from frontier.system import ConfigurationError, ServingSpec, ServingSystem
from models.serving import ServingRun


def spec(architecture="co-location", lanes=2, stages=2, requests=8, decode=3, **more):
    return ServingSpec(
        architecture=architecture,
        lanes=lanes,
        stages=stages,
        layers=more.pop("layers", 3),
        moe=more.pop("moe", True),
        requests=uniform_requests(requests, 16, decode),
        **more,
    )


def run_of(described, durations=None):
    rows = []
    run = ServingRun(described, durations, (rows.append,))
    run.run()
    return run, rows


# ---------------------------------------------------------------- PD-AF


class SlowStage:
    """Groups arrive every millisecond; each holds the stage for 10 ms and more."""

    def of(self, event):
        return {"group": 1, "child_done": 9, "combine_end": 2, "stage_end": 10}[
            event.kind
        ] * MILLISECOND


@pytest.mark.parametrize("rule", ["strict_fifo", "ep_ordered", "lane_aware"])
def test_full_full_wave_full_in_a_timed_run(rule):
    """The third ticket is a wave: the second passes nothing, the fourth waits for the wave."""
    groups = ScriptedGroups([[DENSE, DENSE, EXPERT, DENSE]])
    replica = FfnReplica(FfnConfig(2, admission=ADMISSION_RULES[rule]), groups)
    history, fifo = [], []

    def observe(now, event, follow):
        if event.kind == "group":
            fifo.append([t.scope for t in replica.context.queued_tickets])
        for started in follow:
            if started.kind in ("child_done", "stage_end"):
                history.append((now // MILLISECOND, started.batch.number, started.lane))

    Simulation(replica, SlowStage(), [observe]).run()
    assert fifo[-1] == ["full_stage_world", "ep_wave", "full_stage_world"]
    assert history == [(1, 0, 2), (11, 1, 2), (21, 2, 0), (21, 2, 1), (32, 3, 2)]
    assert replica.is_complete


@pytest.mark.parametrize("rule", ["strict_fifo", "ep_ordered"])
@pytest.mark.parametrize("seed", range(5))
def test_groups_of_a_pd_af_run_keep_their_order(rule, seed):
    described = spec(
        "pd-af",
        lanes=1,
        stages=2,
        layers=2,
        requests=6,
        admission=ADMISSION_RULES[rule],
        ffn=FfnShape(ep_size=3, dense_layers=1),
        micro_batches=3,
    )
    run, rows = run_of(described, RandomDurations(1, 5 * MILLISECOND, seed))
    assert run.outcome == "success"
    for stage in range(2):
        mine = [row for row in rows if (row.role, row.stage) == ("DECODE_FFN", stage)]
        starts = [row.batch for row in sorted(mine, key=lambda row: row.start)]
        assert starts == sorted(starts)
        kinds = {row.phase for row in mine}
        assert kinds == ({DENSE, EXPERT} if stage == 0 else {EXPERT})
        for row in mine:
            siblings = [other for other in mine if other.batch == row.batch]
            assert len(siblings) == (3 if row.phase == EXPERT else 1)
            assert len({other.end for other in siblings}) == 1, "busy until the combine"
            assert row.requests
        spans = sorted({(row.batch, row.start, row.end) for row in mine}, key=lambda s: s[1])
        by_group = {}
        for group, start, end in spans:
            first, last = by_group.get(group, (start, end))
            by_group[group] = (min(first, start), max(last, end))
        ordered = [by_group[group] for group in sorted(by_group)]
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))


@pytest.mark.parametrize(("micro_batches", "overlaps"), [(1, False), (2, True)])
def test_micro_batches_overlap_attention_and_ffn(micro_batches, overlaps):
    _, rows = run_of(spec("pd-af", lanes=1, stages=1, decode=6, micro_batches=micro_batches))
    numbers = {"DECODE_ATTN": 0, "DECODE_FFN": 1}
    spans = {(r.start, r.end, numbers[r.role]) for r in rows if r.role in numbers}
    assert (lane_overlap(spans).multi_lane_busy > 0) == overlaps


@pytest.mark.parametrize("rule", ["strict_fifo", "ep_ordered"])
def test_the_rule_is_not_seen_in_pd_af(rule):
    run, rows = run_of(spec("pd-af", lanes=1, admission=ADMISSION_RULES[rule]))
    other, others = run_of(spec("pd-af", lanes=1))
    assert rows == others
    assert run.to_json()["request_end_s"] == other.to_json()["request_end_s"]


# ---------------------------------------------------------------- PDD


def test_pdd_moves_each_request_once_after_its_prefill():
    moved = []
    run = ServingRun(
        spec("pdd"),
        observers=(
            lambda _: (
                lambda now, e, f: moved.append(e.request) if e.kind == "kv_transfer" else None
            ),
        ),
    )
    assert run.run() == "success"
    assert sorted(moved) == list(range(8))
    found = run.to_json()
    assert set(found["lane_overlap"]) == {"PREFILL/0", "PREFILL/1", "DECODE/0", "DECODE/1"}
    prefill, decode = run.serving.workloads.values()
    assert (prefill.prefill_tokens, prefill.decode_tokens) == (128, 8)
    assert (decode.prefill_tokens, decode.decode_tokens) == (0, 16)


def test_pdd_with_one_token_needs_no_decode():
    run, rows = run_of(spec("pdd", decode=1))
    assert run.outcome == "success"
    assert {row.role for row in rows} == {"PREFILL"}


# ---------------------------------------------------------------- outcomes


def test_the_deadlock_is_read_from_the_state_and_explained():
    run, rows = run_of(spec(requests=4, decode=1, admission=ADMISSION_RULES["strict_fifo"]))
    assert run.outcome == "admission_deadlock"
    assert rows == []
    found = admission_deadlock(run.serving.replicas["MONOLITHIC"])
    assert (found.stage, found.busy_lane, found.idle_lane) == (0, 1, 0)
    explained = run.to_json()
    assert explained["classification"] == "circular_wait"
    assert explained["wait_for"]["cycle"][0]["from"] == "lane 1 at stage 0"
    assert explained["stages"][0]["rooms"][0]["waits_for"] == [0]


def test_the_signature_is_the_circular_wait_of_strict_fifo():
    """Over random shapes and times the class read from the state and the analysis agree."""
    rng, seen = random.Random(2), Counter()
    for seed in range(200):
        described = spec(
            lanes=rng.randint(2, 4),
            stages=rng.randint(1, 3),
            layers=rng.randint(1, 2),
            requests=rng.randint(2, 12),
            decode=rng.randint(1, 3),
            admission=ADMISSION_RULES["strict_fifo"],
            burst=rng.random() < 0.7,
        )
        run, _ = run_of(described, RandomDurations(1, 6, seed))
        explanation = run.explain()
        circular = explanation is not None and explanation.classification == "circular_wait"
        assert (run.outcome == "admission_deadlock") == circular
        seen[run.outcome] += 1
    assert len(seen) == 3
    assert min(seen.values()) > 20


def late_join(stand_in):
    times = (0, 2 * MILLISECOND, 8 * MILLISECOND)
    return spec(
        lanes=4,
        stages=1,
        layers=6,
        stand_in=STAND_IN_RULES[stand_in],
        burst=False,
    ), tuple(Request(i, 16, 1, at) for i, at in enumerate(times))


@pytest.mark.parametrize(("stand_in", "done"), [("standard", 0), ("withdraw_joined", 3)])
def test_published_late_join(stand_in, done):
    """Three requests at 0, 2 and 8 ms on lanes 0, 1, 2: 0 of 3 complete, with the repair 3."""
    described, requests = late_join(stand_in)
    run, _ = run_of(replace(described, requests=requests))
    found = run.to_json()
    assert found["requests_completed"] == done
    assert found["outcome"] == ("success" if done else "other_failure")
    assert (found["wait_for"] is None) == bool(done)


def test_split_phase_rooms_are_another_failure_with_its_explanation():
    run, _ = run_of(spec(lanes=3, stages=1, layers=6, requests=4, decode=2))
    found = run.to_json()
    assert found["outcome"] == "other_failure"
    assert found["classification"] == "split_rendezvous"


def test_online_fault_places_everything_on_lane_0():
    requests = tuple(Request(i, 16, 1, i * MILLISECOND) for i in range(6))
    for fault, lanes in ((False, {0, 1}), (True, {0})):
        described = replace(spec(), requests=requests, burst=False, online_to_lane_0=fault)
        run, rows = run_of(replace(described, moe=False))
        assert run.outcome == "success"
        assert {row.lane for row in rows} == lanes
    _, rows = run_of(replace(spec(moe=False), online_to_lane_0=True))
    assert {row.lane for row in rows} == {0, 1}, "the fault is about online arrivals only"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "pd-af"}, "one lane per role"),
        ({"architecture": "mesh"}, "unknown architecture"),
        ({"lanes": 0}, "lanes must be at least 1"),
        ({"micro_batches": 2}, "for pd-af only"),
        ({"architecture": "pd-af", "lanes": 1, "ffn": FfnShape(dense_layers=7)}, "dense_layers"),
        ({"ffn": FfnShape(ep_size=0)}, "ep_size must be at least 1"),
        ({"batching": BatchingConfig(num_blocks=1)}, "needs 2 KV blocks"),
    ],
)
def test_shapes_that_a_role_cannot_take(changes, message):
    with pytest.raises(ConfigurationError, match=message):
        ServingSystem(replace(spec(), **changes))


# ---------------------------------------------------------------- conservation


def test_a_lost_chunk_is_seen_at_the_next_event():
    serving = ServingSystem(spec())
    workload = serving.workloads["MONOLITHIC"]
    times = WithRequestTimes(ConstantDurations(True, 3), [0] * 8)
    simulation = Simulation(serving.system, times, [ConservationCheck(serving)])
    while not workload.lanes[1].running:
        simulation.step()
    workload.lanes[1].running[0].scheduled += 1
    with pytest.raises(ConservationError, match="ended, but in flight is"):
        simulation.run()


@pytest.mark.parametrize("loss", ["request", "blocks"])
def test_lost_requests_and_blocks_are_seen(loss):
    serving = ServingSystem(spec(requests=40))
    lane = serving.workloads["MONOLITHIC"].lanes[0]
    check = ConservationCheck(serving)
    serving.system.start()
    event = Event("lane_schedule", 0)
    check(0, event, serving.system.handle(event))
    if loss == "request":
        lane.waiting.pop()
        with pytest.raises(ConservationError, match="40 requests, but"):
            check(0, event, [])
    else:
        lane.free_blocks -= 1
        with pytest.raises(ConservationError, match="holds 2 KV blocks and has 125 free, of 128"):
            check(0, event, [])


# ---------------------------------------------------------------- outputs


def test_lane_overlap_is_half_open_and_by_distinct_lanes():
    overlap = lane_overlap([(0, 10, 0), (10, 20, 1), (15, 25, 0), (30, 40, 2), (30, 40, 2)])
    assert (overlap.multi_lane_busy, overlap.busy, overlap.peak_lanes) == (5, 35, 2)
    assert overlap.self_overlap is True
    assert overlap.co_execution_fraction == pytest.approx(5 / 35)
    empty = lane_overlap([])
    assert (empty.busy, empty.co_execution_fraction, empty.self_overlap) == (0, 0.0, False)


def test_ledger_rows_hold_the_work_of_each_batch():
    run, rows = run_of(spec(moe=False))
    header, *lines = map(json.loads, run.ledger_text(rows).splitlines())
    assert header["ledger"] == "frontier-verify"
    assert header["placement"] == {str(i): i % 2 for i in range(8)}
    assert sum(line["prefill_tokens"] for line in lines) == 2 * 128, "on each of two stages"
    assert sum(line["decode_tokens"] for line in lines) == 2 * 16, "the first by the prefill"
    assert lines[0] == {
        "role": "MONOLITHIC",
        "replica": 0,
        "stage": 0,
        "lane": 1,
        "batch": 0,
        "phase": "prefill",
        "start_s": 0.0,
        "end_s": 0.05,
        "requests": [1],
        "prefill_tokens": 16,
        "decode_tokens": 0,
    }


def everything(described):
    rows, traces = [], []

    def make(serving):
        traces.append(ChromeTrace(serving))
        return traces[0]

    run = ServingRun(
        described,
        RandomDurations(1, 10**7, seed=3),
        (rows.append, lambda row: traces[0].row(row)),
        (make,),
    )
    run.run()
    return {
        **run.metrics_files(),
        "ledger": run.ledger_text(rows),
        "json": json.dumps(run.to_json()),
        "trace": traces[0].text(run.simulation.now),
    }


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_outputs_are_the_same_bytes_again(architecture):
    lanes = 1 if architecture == "pd-af" else 3
    described = spec(architecture, lanes=lanes, rooms=spec().rooms)
    assert everything(described) == everything(described)


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_trace_is_well_formed(architecture):
    described = spec(architecture, lanes=1 if architecture == "pd-af" else 2)
    events = json.loads(everything(described)["trace"])["traceEvents"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    slices = [e for e in events if e["ph"] == "X"]
    assert {(e["pid"], e["tid"]) for e in slices} <= named
    for track in {(e["pid"], e["tid"]) for e in slices}:
        open_until = []
        for e in [e for e in slices if (e["pid"], e["tid"]) == track]:
            while open_until and open_until[-1] <= e["ts"] + 1e-6:
                open_until.pop()
            end = e["ts"] + e["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6, "slices nest"
            open_until.append(end)
    starts = [e["id"] for e in events if e["ph"] == "s"]
    assert starts
    assert sorted(starts) == sorted(e["id"] for e in events if e["ph"] == "f")
    begins = [(e["id"], e["name"]) for e in events if e["ph"] == "b"]
    assert sorted(begins) == sorted((e["id"], e["name"]) for e in events if e["ph"] == "e")


def test_request_metrics():
    run, _ = run_of(spec(lanes=1, stages=1, requests=2, moe=False))
    rows = run.metrics.rows()
    assert [row["first_token_s"] for row in rows] == [0.05, 0.15]
    assert [row["end_s"] for row in rows] == [0.15, 0.25]
    assert rows[0]["tpot_s"] == 0.05
    assert rows[1]["lane_monolithic"] == 0
    system = run.metrics.system()
    assert system["makespan_s"] == 0.25
    assert system["decode_tokens_per_s"] == 24.0
    assert system["e2e_s"]["max"] == 0.25


def size_of(value, seen):
    """Number of objects reachable from a value, but for the run's inputs and its placement."""
    if id(value) in seen or isinstance(value, type | int | str | float | bool | None.__class__):
        return 0
    seen.add(id(value))
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        parts = list(value)
    else:
        fields = [*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ())]
        parts = [
            getattr(value, name)
            for name in fields
            if name not in ("_requests", "placed", "last_ended") and hasattr(value, name)
        ]
    return 1 + sum(size_of(part, seen) for part in parts)


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_memory_does_not_grow_with_finished_requests(architecture):
    """After ten times the requests the system holds as many objects; only metrics keep more."""
    sizes = []
    for requests in (24, 240):
        described = spec(architecture, lanes=1 if architecture == "pd-af" else 2, requests=requests)
        run, _ = run_of(described)
        assert run.outcome == "success"
        sizes.append(size_of(run.serving.system, set()))
    assert sizes[0] == sizes[1] > 50
