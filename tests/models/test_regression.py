"""Kept counterexamples: what their tests demand."""

import pytest

from models.regression import RULES_VARIABLE, Kept, decides, find_repair, parse_rules, with_rules
from models.scenario import Scenario, ScenarioError
from models.schedule import encode_schedule

LATE_JOIN = Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open")


@pytest.fixture(scope="module")
def kept() -> Kept:
    example = decides(LATE_JOIN, 20_000)
    path = encode_schedule(LATE_JOIN, example.schedule)
    repair = {"stand_in": "withdraw_joined"}
    return Kept(LATE_JOIN.to_json(), path, "stranded_rendezvous", repair)


def test_the_defect_is_there_and_the_repair_repairs(kept):
    kept.require_defect()
    kept.require_repair()
    with pytest.raises(AssertionError, match="the recorded schedule ends in stranded_rendezvous"):
        kept.require_no_violation()


def test_rules_in_force_come_from_the_environment(kept, monkeypatch):
    monkeypatch.setenv(RULES_VARIABLE, "stand_in=withdraw_joined")
    kept.require_no_violation()
    monkeypatch.setenv(RULES_VARIABLE, "admission=strict_fifo,stand_in=withdraw_joined")
    with pytest.raises(AssertionError, match="ends in lost_wakeup"):
        kept.require_no_violation()


def test_another_schedule_that_violates_is_found_too(kept):
    """The recorded schedule may complete under rules that still violate."""
    with pytest.raises(AssertionError, match="schedule ends in"):
        kept.require_no_violation({"admission": "lane_aware", "stand_in": "withdraw_joined"})


def test_a_wrong_class_or_scenario_is_noticed(kept):
    with pytest.raises(AssertionError, match="not in lost_wakeup"):
        Kept(kept.scenario, kept.path, "lost_wakeup", {}).require_defect()
    other = Scenario(lanes=3, stages=2, batches=(1, 1, 1), arrivals="open").to_json()
    with pytest.raises(AssertionError, match="another scenario"):
        Kept(other, kept.path, kept.classification, {}).require_defect()


def test_rules_are_parsed_and_checked():
    assert parse_rules("") == {}
    assert parse_rules("a=b, c=d") == {"a": "b", "c": "d"}
    with pytest.raises(ScenarioError, match="must look like"):
        parse_rules("stand_in")
    with pytest.raises(ScenarioError, match="unknown rule 'lanes'"):
        with_rules(LATE_JOIN, {"lanes": "2"})


def test_repairs_are_proved_and_single_where_possible():
    assert find_repair(Scenario(admission="strict_fifo")) == {"admission": "ep_ordered"}
    assert find_repair(LATE_JOIN) == {"stand_in": "withdraw_joined"}
    both = Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open", admission="late_ticket")
    assert find_repair(both) == {"admission": "ep_ordered", "stand_in": "withdraw_joined"}
    assert find_repair(LATE_JOIN, max_states=3) is None


def test_a_context_of_ones_own_can_be_in_force(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(
        "from frontier.context import StageExecutionContext\n"
        "class Mine(StageExecutionContext):\n"
        "    def __init__(self, *, replica_id, stage_id, ep_size, full_stage_capacity=1):\n"
        "        super().__init__(replica_id=replica_id, stage_id=stage_id, ep_size=ep_size,\n"
        "                         full_stage_capacity=full_stage_capacity)\n"
    )
    scenario = Scenario(admission="strict_fifo", batches=(1, 2))
    example = decides(scenario, 1000)
    path = encode_schedule(scenario, example.schedule)
    kept = Kept(scenario.to_json(), path, "circular_wait", {"admission": "ep_ordered"})
    monkeypatch.setenv(RULES_VARIABLE, f"context={file}:Mine")
    kept.require_no_violation()
