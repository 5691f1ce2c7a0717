"""Stale work: one batch invalidated anywhere, and the four ways to handle it (issue 7)."""

import random

import pytest

from frontier.events import ENVIRONMENT
from models.groups import GroupScenario
from models.quiescent import QuiescentModel
from models.scenario import Scenario, ScenarioError
from verify.cli.checking import Question, check_scenario

ONE_LANE = {"lanes": 1, "stages": 1, "batches": 2}
TWO_TICKETS = {"lanes": 2, "stages": 1, "batches": 1, "capacity": 1, "model": "dense"}
ROOMS = {"lanes": 2, "stages": 2, "batches": 2}


def check(asked=None, **fields):
    scenario = Scenario.of(fields)
    return check_scenario(scenario, question=Question.of(scenario, asked)).to_json()


@pytest.mark.parametrize("shape", [ONE_LANE, TWO_TICKETS, ROOMS], ids=["lane", "tickets", "rooms"])
def test_proper_handling_holds(shape):
    data = check(stale="proper", **shape)
    assert data["verdict"] == "holds"
    assert data["acyclic"]
    assert data["reached"]["a stale batch was dropped"]


def test_a_batch_is_invalidated_wherever_it_is():
    reached = check(stale="proper", **ROOMS)["reached"]
    for where in ("queued", "active", "in a room", "in a wave"):
        assert reached[f"a batch was invalidated {where}"]


def test_no_cancel_leaves_an_orphan_ticket():
    data = check(stale="no_cancel", **ONE_LANE)
    assert (data["violation"], data["classification"]) == ("orphan_ticket", "orphan_ticket")
    assert "its batch is gone" in data["explanation"]
    queued = check(stale="no_cancel", **TWO_TICKETS)
    assert queued["classification"] == "orphan_ticket"
    assert "stands in the FIFO" in queued["explanation"]


def test_no_wake_loses_the_wake_up():
    data = check(stale="no_wake", **TWO_TICKETS)
    assert (data["violation"], data["classification"]) == ("drained", "lost_wakeup")
    assert data["depth"] == 2


def test_wrong_lane_breaks_ownership_and_leaves_its_lane_stuck():
    assert check(stale="wrong_lane", **ROOMS)["classification"] == "invariant_violation"
    closed = {"workload": "closed", "slots": 1, "stages": 1, "model": "dense"}
    data = check("progress", stale="wrong_lane", **closed)
    assert (data["violation"], data["classification"]) == ("progress", "partial_deadlock")
    assert data["lasso"]["cycle"]
    assert "runs a batch that no event will end" in data["explanation"]


@pytest.mark.parametrize(("interruptions", "classification"), [("forever", "livelock"), (2, None)])
def test_preemption_without_end_is_a_livelock(interruptions, classification):
    data = check(lanes=1, stages=1, workload="closed", slots=1, stale="proper",
                 interruptions=interruptions)  # fmt: skip
    assert data["classification"] == classification


@pytest.mark.parametrize(("stale", "classification"), [
    ("proper", None), ("no_cancel", "orphan_ticket"), ("no_wake", "lost_wakeup"),
    ("wrong_lane", "invariant_violation"),
])  # fmt: skip
@pytest.mark.parametrize("groups", ["e,e", "d,d", "d,e;e,d"])
def test_stale_groups_and_their_siblings(groups, stale, classification):
    scenario = GroupScenario.of({"groups": groups, "stale": stale})
    data = check_scenario(scenario).to_json()
    assert data["classification"] == classification
    assert (data["verdict"] == "holds") == (stale == "proper")


def test_work_dropped_from_the_queue_is_owed_nothing():
    assert check("all", stale="proper", **TWO_TICKETS)["verdict"] == "holds"


def test_without_invalidation_the_graph_is_the_old_one_at_its_heart():
    """Every path without an invalidation is a path of the scenario without stale work."""
    plain = Scenario.of(ROOMS)
    stale = Scenario.of({**ROOMS, "stale": "no_wake"})
    one, other = (QuiescentModel(s.make_replica, True).begin() for s in (plain, stale))
    chance = random.Random(3)
    while one.pending:
        timed = [e for e in other.pending if e.kind not in ENVIRONMENT]
        assert timed == one.pending
        action = (chance.randrange(len(timed)),)
        one.fire(action)
        other.fire(action)
    assert not other.pending
    assert other.system.is_complete


def test_interruptions_and_closed_workloads_walk_together():
    scenario = Scenario.of({"workload": "closed", "stale": "no_cancel", "interruptions": 3})
    model = QuiescentModel(scenario.make_replica, ties=True)
    chance = random.Random(7)
    for _ in range(8):
        run = model.begin()
        state = run.state()
        for _ in range(60):
            actions = model.actions(state)
            if not actions:
                break
            action = chance.choice(actions)
            run.fire(action)
            state = model.step(state, action)
            assert run.state() == state


@pytest.mark.parametrize(("fields", "message"), [
    ({"stale": "never"}, "unknown stale 'never'"),
    ({"interruptions": 2}, "need a rule for stale work"),
    ({"stale": "proper", "interruptions": 0}, "or 'forever', got 0"),
])  # fmt: skip
def test_bad_scenarios(fields, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.of(fields)
