"""Judging real cases before and after the change, and planted faults (issue 3)."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from frontier.durations import ConstantDurations, Recording
from frontier.durations_io import write_recording
from models import matrix_case
from models.matrix import load_set, published_differences
from models.matrix_case import run_case
from verify.matrix.compare import EXPLAIN, PASS, STOP, judge
from verify.matrix.root import CaseRecord

CASES = {case.case_id: case for case in load_set("published").cases}
UNCHANGED = "G4-dense-dp2-pp1-n4"
LIVENESS = "G3a-moe-dp2-pp2-n4"
TIMING = "G4-dense-dp2-pp2-n8"


def record(case_id, rule):
    result = run_case(CASES[case_id], rule)
    return CaseRecord(
        case_id, dict(CASES[case_id].inputs), {}, result["outcome"], result["files"], ()
    )


def pair(case_id):
    return record(case_id, "strict_fifo"), record(case_id, "ep_ordered")


@pytest.mark.parametrize(
    ("case_id", "verdict"), [(UNCHANGED, PASS), (LIVENESS, PASS), (TIMING, EXPLAIN)]
)
def test_the_change_as_published(case_id, verdict):
    judgement = judge(*pair(case_id))
    assert (judgement.verdict, judgement.path) == (verdict, CASES[case_id].path)
    assert bool(judgement.reasons) == (verdict == EXPLAIN)


def test_identical_timing_passes_unless_it_is_a_witness():
    before = record(TIMING, "strict_fifo")
    judgement = judge(before, before)
    assert judgement.verdict == STOP
    assert judgement.reasons == ("a contention witness must change, but nothing moved",)
    plain = replace(before, inputs={**before.inputs, "contention_witness": False})
    assert judge(plain, plain).verdict == PASS


class SlowLane:
    """A planted fault: the stages of one lane take 1 ms more."""

    def __init__(self, durations, lane):
        self.durations, self.lane = durations, lane

    def of(self, event):
        more = 1_000_000 if event.kind == "stage_end" and event.lane == self.lane else 0
        return self.durations.of(event) + more


@pytest.mark.parametrize("case_id", [UNCHANGED, TIMING])
def test_a_slower_lane_stops(case_id, monkeypatch):
    before, _ = pair(case_id)
    monkeypatch.setattr(
        matrix_case,
        "Recording",
        lambda durations: Recording(SlowLane(durations, 1)),
    )
    judgement = judge(before, record(case_id, "ep_ordered"))
    assert judgement.verdict == STOP
    expected = "component durations differ" if case_id == TIMING else "differs"
    assert any(expected in reason for reason in judgement.reasons)


@pytest.mark.parametrize("case_id", [LIVENESS, TIMING])
def test_a_lost_request_stops(case_id):
    before, after = pair(case_id)
    lost = {**after.outcome, "requests_completed": after.outcome["requests_completed"] - 1}
    assert judge(before, replace(after, outcome=lost)).verdict == STOP
    rows = json.loads(after.metrics["requests.json"])
    rows[0]["end_s"] = None
    hidden = replace(after, metrics={**after.metrics, "requests.json": json.dumps(rows)})
    assert judge(before, hidden).verdict == STOP


def test_other_batches_and_damage_and_wrong_ends_stop():
    before, after = pair(TIMING)
    lines = after.metrics["stages.jsonl"].splitlines(keepends=True)
    fewer = replace(after, metrics={**after.metrics, "stages.jsonl": "".join(lines[1:])})
    assert "the batches differ" in judge(before, fewer).reasons[0]
    damaged = replace(after, damage=("requests.csv does not match its recorded sha256",))
    assert judge(before, damaged).verdict == STOP
    assert judge(after, replace(after, inputs={**after.inputs, "seed": 9})).verdict == STOP
    first, second = pair(LIVENESS)
    assert judge(second, second).verdict == STOP, "there was no deadlock to repair"
    assert judge(first, first).verdict == STOP, "the deadlock is not repaired"


def test_a_lane_that_overlaps_itself_stops():
    before, after = pair(TIMING)
    overlap = {
        stage: {**value, "self_overlap": True}
        for stage, value in after.outcome["lane_overlap"].items()
    }
    broken = replace(after, outcome={**after.outcome, "lane_overlap": overlap})
    assert any("two batches at once" in reason for reason in judge(before, broken).reasons)


def test_components_are_recorded_with_their_events():
    times = Recording(ConstantDurations(True, 1))
    assert write_recording(times.rows) == ""
    lines = record(UNCHANGED, "ep_ordered").metrics["components.jsonl"].splitlines()
    assert json.loads(lines[0]) == {
        "kind": "stage_end",
        "lane": 1,
        "stage": 0,
        "batch": 0,
        "phase": "prefill",
        "ns": 92_000_000,
    }


def test_published_differences_are_named():
    case = CASES[TIMING]
    found = run_case(case, "ep_ordered")["outcome"]
    assert published_differences(case, "ep_ordered", found) == []
    found["lane_overlap"]["1"]["peak_lanes"] = 1
    found["decode_tokens"] = 23
    assert published_differences(case, "ep_ordered", found) == [
        "published decode_tokens 24, found 23",
        "published stage 1 peak_lanes 2, found 1",
    ]
    assert published_differences(case, "lane_aware", found) == []


def test_the_whole_list_has_no_stop_and_every_deadlock_is_repaired():
    judgements = [judge(*pair(case_id)) for case_id in CASES]
    assert Counter(j.verdict for j in judgements) == {PASS: 51, EXPLAIN: 8}
    repaired = [j for j in judgements if j.before == "admission_deadlock"]
    assert len(repaired) == 22
    assert {j.after for j in judgements} == {"success"}
