"""Closed workloads proved and refuted: the "Must show" list of liveness (issue 7)."""

import pytest

from models.scenario import Scenario, ScenarioError
from verify.cli.checking import Question, check_scenario


def check(asked=None, fairness=None, **fields):
    scenario = Scenario.of({"workload": "closed", **fields})
    return check_scenario(scenario, question=Question.of(scenario, asked, fairness))


def test_ep_ordered_keeps_every_lane_going_for_ever():
    result = check(lanes=2, stages=2, slots=2, admission="ep_ordered")
    data = result.to_json()
    assert data["verdict"] == "holds"
    assert (data["states"], data["transitions"]) == (422, 1914)
    assert data["acyclic"] is False
    assert {row["property"] for row in data["liveness"]} == {"progress", "starvation"}
    assert all(row["without_fairness"] == "violated" for row in data["liveness"])
    assert data["overtaken"]["bound"] == 1


def test_strict_fifo_drains():
    data = check(lanes=2, stages=2, slots=2, admission="strict_fifo").to_json()
    assert (data["verdict"], data["violation"]) == ("violated", "drained")
    assert (data["classification"], data["depth"]) == ("circular_wait", 1)
    # A bad state is told first; that no lane ends a batch again follows, and is said too.
    assert data["lasso"] is None
    assert {row["verdict"] for row in data["liveness"] if row["property"] == "progress"} == {
        "violated"
    }


@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "late_ticket"])
def test_rules_that_keep_arrival_order_starve_nobody_at_capacity_1(rule):
    data = check(model="dense", capacity=1, admission=rule).to_json()
    assert data["verdict"] == "holds"
    assert data["overtaken"] == {"bound": 0, "unbounded": False, "lanes": [[0, 0], [0, 0]]}


def test_ep_ordered_starves_a_lane_at_capacity_1():
    result = check(model="dense", capacity=1, admission="ep_ordered")
    data = result.to_json()
    assert (data["verdict"], data["violation"]) == ("violated", "starvation")
    assert data["classification"] == "starvation"
    assert data["overtaken"]["unbounded"]
    assert (len(data["lasso"]["stem"]), len(data["lasso"]["cycle"])) == (1, 2)
    assert {e["lane"] for instant in data["lasso"]["cycle"] for e in instant} == {1}
    assert "lane 1's own retry comes before lane 0's" in data["explanation"]
    assert "lane 0 is refused: capacity" in data["explanation"]


def test_strong_fairness_of_admission_would_starve_nobody():
    assert check("all", "strong", model="dense", capacity=1).verdict_word == "holds"


@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered", "late_ticket"])
def test_one_stage_starves_nobody(rule):
    data = check(model="dense", capacity=1, stages=1, admission=rule).to_json()
    assert data["verdict"] == "holds"
    assert all(row["without_fairness"] == "violated" for row in data["liveness"])


@pytest.mark.parametrize(("stand_in", "verdict"), [("standard", "violated"),
                                                   ("withdraw_joined", "holds")])  # fmt: skip
def test_three_lanes_two_stages_need_the_withdrawal(stand_in, verdict):
    data = check(lanes=3, stages=2, slots=2, stand_in=stand_in, ties=False).to_json()
    assert data["verdict"] == verdict
    assert data["violation"] == (None if verdict == "holds" else "drained")


def test_progress_alone_finds_the_drain_too():
    data = check("progress", admission="strict_fifo").to_json()
    assert (data["violation"], data["classification"]) == ("progress", "circular_wait")
    assert data["lasso"]["cycle"] == []


def test_without_fairness_a_lane_may_be_left_alone():
    data = check("progress", "none", model="dense").to_json()
    assert (data["verdict"], data["violation"]) == ("violated", "progress")
    assert data["lasso"]["cycle"]


def test_finite_work_is_asked_the_same_questions():
    scenario = Scenario.of({"lanes": 2, "stages": 2, "batches": 2})
    result = check_scenario(scenario, question=Question.of(scenario, "all"))
    assert result.verdict_word == "holds"
    assert result.to_json()["acyclic"] is True
    lost = Scenario.of({"lanes": 2, "stages": 2, "batches": 2, "admission": "lane_aware"})
    starving = check_scenario(lost, question=Question.of(lost, "starvation")).to_json()
    assert (starving["violation"], starving["classification"]) == ("starvation", "lost_wakeup")


def test_steps_and_more_slots_than_stages():
    assert check(steps=2, slots=1).verdict_word == "holds"
    assert check(steps="forever", rooms="by_phase", slots=1).verdict_word == "violated"
    two, three = (check(slots=slots).to_json() for slots in (2, 3))
    # The third slot of a lane always waits: at most `stages` batches are in flight.
    assert (two["states"], two["transitions"]) == (three["states"], three["transitions"])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"slots": 0}, "slots must be a whole number of at least 1"),
        ({"steps": "often"}, "or 'forever', got 'often'"),
        ({"capacity": 0}, "or 'lanes', got 0"),
        ({"arrivals": "late"}, "unknown arrivals 'late'"),
        ({"phases": "p;p"}, "phases are of a finite workload"),
        ({"workload": "finite", "slots": 3}, "slots are of a closed workload"),
        ({"workload": "endless"}, "unknown workload 'endless'"),
        ({"batches": 5}, "a closed one has slots"),
    ],
)
def test_bad_scenarios(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.of({"workload": "closed", **fields})


def test_bad_questions():
    for asked, fairness in (("fairness", None), (None, "unfair")):
        with pytest.raises(ScenarioError, match="unknown"):
            Question.of(Scenario(), asked, fairness)


def test_a_lane_whose_tickets_are_dropped_one_by_one_starves_none_of_them():
    # Lane 0 may never be admitted, because each of its tickets is preempted before: none waits on.
    fields = {"lanes": 2, "stages": 1, "slots": 1, "model": "dense", "capacity": 1, "ties": False}
    stale = {"admission": "strict_fifo", "stale": "proper", "interruptions": "forever"}
    assert check("starvation", **fields, **stale).verdict_word == "holds"
    progress = check("progress", **fields, **stale).to_json()
    assert progress["verdict"] == "violated"
    assert check("starvation", **fields, **{**stale, "stale": "no_wake"}).verdict_word == "violated"
