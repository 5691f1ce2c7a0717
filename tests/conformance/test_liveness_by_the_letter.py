"""Every combination of workload, rule, property and fairness against liveness by the letter."""

import random
from itertools import product

import pytest

from models.groups import GroupScenario
from models.scenario import Scenario
from tests.conformance.literal import Literal, TooLargeError
from verify.cli.checking import Question, check_scenario

RULES = ("strict_fifo", "lane_aware", "ep_ordered", "late_ticket")
FAIRNESS = ("none", "weak", "strong")


def judged_literally(literal, row, fairness):
    if row["property"] == "starvation":
        return literal.starvation(row["lane"], row["stage"], fairness)
    if row["lane"] is None:
        return literal.wave(row["stage"], fairness)
    return literal.progress(row["lane"], fairness)


def same_partial_deadlocks(literal, rows, fairness):
    """A lane that is lost while others go on is told so, or that nobody ends a batch there."""
    for lane in {row["lane"] for row in rows} - {None}:
        kinds = {row["classification"] for row in rows if row["lane"] == lane}
        if literal.partial_deadlock(lane, fairness):
            assert kinds & {"partial_deadlock", "livelock"}
        else:
            assert "partial_deadlock" not in kinds


def compare(scenario, most, fairnesses=FAIRNESS):
    """Each property, under each fairness, comes to the same; return what came out."""
    literal = Literal(scenario, most)
    seen = set()
    for fairness, name in product(fairnesses, ("progress", "starvation")):
        data = check_scenario(scenario, question=Question(name, fairness)).to_json()
        assert data["states"] == len(literal.states)
        if data["liveness"] is None:  # a core error: no property of runs is judged
            assert data["classification"] == "core_error"
            continue
        bad = False
        for row in data["liveness"]:
            if row["property"] == "wave_order":
                continue
            violated = judged_literally(literal, row, fairness)
            assert row["vacuous"] == (not judged_literally(literal, row, "none"))
            assert row["verdict"] == ("violated" if violated else "holds"), (fairness, row)
            bad |= violated
            seen.add((row["property"], fairness, row["verdict"], row["classification"]))
        if name == "progress" and fairness != "none":
            same_partial_deadlocks(literal, data["liveness"], fairness)
        if bad:
            assert data["verdict"] == "violated"
            assert data["violation"] == name
        together = check_scenario(scenario, question=Question("all", fairness)).to_json()
        assert bad <= (together["verdict"] == "violated")
    return seen


def closed_shapes():
    """Fields of every small closed workload."""
    for lanes, stages, slots in product((1, 2), (1, 2), (1, 2)):
        for model, rule, capacity, steps, arrivals, ties in product(
            ("dense", "moe"), RULES, ("lanes", 1), (1, 2, "forever"), ("burst", "open"),
            (False, True),
        ):  # fmt: skip
            rooms = ("shared", "by_phase") if model == "moe" else ("shared",)
            stand_ins = ("standard", "withdraw_joined", "blocked_is_idle")
            for room, stand_in in product(rooms, stand_ins if model == "moe" else stand_ins[:1]):
                yield {
                    "workload": "closed", "lanes": lanes, "stages": stages, "slots": slots,
                    "model": model, "admission": rule, "capacity": capacity, "steps": steps,
                    "arrivals": arrivals, "ties": ties, "rooms": room, "stand_in": stand_in,
                }  # fmt: skip


def stale_fields(pick):
    """Fields of a random workload whose batches become stale."""
    fields = {
        "lanes": pick.choice([2, 2, 3]), "stages": pick.choice([1, 1, 2]),
        "model": pick.choice(["dense", "dense", "moe"]), "admission": pick.choice(RULES),
        "stale": pick.choice(["proper", "no_cancel", "no_wake", "wrong_lane"]),
        "capacity": pick.choice(["lanes", 1, 2]), "ties": pick.random() < 0.3,
        "interruptions": pick.choice([1, 1, 2, "forever"]),
    }  # fmt: skip
    if pick.random() < 0.7:
        return {**fields, "workload": "closed", "slots": pick.choice([1, 2])}
    return {**fields, "batches": 1}


SHAPES = list(closed_shapes())


def try_compare(fields, most, fairnesses=FAIRNESS):
    try:
        return compare(Scenario.of(fields), most, fairnesses)
    except TooLargeError:
        return set()


def test_closed_workloads_by_the_letter():
    seen = set()
    for fields in random.Random(11).sample(SHAPES, 60):
        seen |= try_compare(fields, 120)
    verdicts = {(name, fairness, verdict) for name, fairness, verdict, _ in seen}
    assert verdicts >= set(product(("progress", "starvation"), ("weak", "strong"),
                                   ("holds", "violated")))  # fmt: skip


@pytest.mark.heavy
@pytest.mark.parametrize("part", range(16))
def test_every_small_closed_workload_by_the_letter(part):
    for fields in SHAPES[part::16]:
        try_compare(fields, 700)


def partial_deadlocks(seen):
    return {kind for *_, kind in seen if kind is not None}


def test_stale_work_by_the_letter():
    pick, seen = random.Random(5), set()
    for _ in range(50):
        seen |= try_compare(stale_fields(pick), 150, ("weak", "strong"))
    assert partial_deadlocks(seen) >= {"partial_deadlock", "starvation"}


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(40))
def test_more_stale_work_by_the_letter(seed):
    pick = random.Random(1000 + seed)
    for _ in range(20):
        try_compare(stale_fields(pick), 800, ("weak", "strong"))


@pytest.mark.parametrize("groups", ["d,e", "e,d", "e;d", "d;d,e", "e,e;d"])
@pytest.mark.parametrize("stale", ["none", "no_cancel", "no_wake"])
def test_groups_by_the_letter(groups, stale):
    for rule in RULES:
        scenario = GroupScenario.of({"groups": groups, "admission": rule, "stale": stale,
                                     "ties": False, "full_stages": 2})  # fmt: skip
        compare(scenario, 700, ("none", "weak"))
