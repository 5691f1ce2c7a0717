"""Every figure of the published before/after matrix, by the timed simulator (issue 3)."""

import pytest

from frontier.durations import ConstantDurations
from models.matrix import load_set
from models.serving import ServingRun

CASES = load_set("published").cases
RULES = ("strict_fifo", "ep_ordered")
BY_ID = pytest.mark.parametrize("case", CASES, ids=lambda case: case.case_id)
BY_RULE = pytest.mark.parametrize("rule", RULES)


@BY_ID
@BY_RULE
def test_outcome_totals_and_timing(case, rule):
    run = ServingRun(case.spec(rule))
    assert run.run() == case.published[f"outcome_{rule}"]
    found = run.to_json()
    if found["outcome"] == "success":
        totals = case.published["totals"]
        assert found["requests_completed"] == totals["requests"]
        assert found["prefill_tokens"] == totals["prefill_tokens"]
        assert found["decode_tokens"] == totals["decode_tokens"]
        assert found["wait_for"] is None
    else:
        assert found["classification"] == "circular_wait"
        assert found["wait_for"]["cycle"]
    for stage, overlap in case.published.get("lane_overlap", {}).get(rule, {}).items():
        ours = found["lane_overlap"][stage]
        assert ours["multi_lane_busy_time_s"] == pytest.approx(
            overlap["multi_lane_busy_time_s"], abs=1e-6
        )
        assert ours["co_execution_fraction"] == pytest.approx(
            overlap["co_execution_fraction"], abs=1e-4
        )
        assert ours["peak_lanes"] == overlap["peak_lanes"]
        assert ours["self_overlap"] is False
    starts = case.published.get("first_stage0_start_s", {}).get(rule)
    if starts is not None:
        assert found["first_start_s"]["0"] == pytest.approx(starts, abs=1e-6)


def test_a_figure_that_is_off_is_seen():
    """The comparison can fail: a wave of 7 ms instead of 6 ms changes a published figure."""
    case = next(case for case in CASES if case.case_id == "G4-dense-dp2-pp2-n4")
    wrong = ServingRun(case.spec("ep_ordered"), ConstantDurations(False, 3, wave=7_000_000))
    wrong.run()
    published = case.published["lane_overlap"]["ep_ordered"]["0"]["multi_lane_busy_time_s"]
    assert wrong.to_json()["lane_overlap"]["0"]["multi_lane_busy_time_s"] != pytest.approx(
        published, abs=1e-6
    )
