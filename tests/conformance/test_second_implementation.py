"""Core, both engines and liveness against a second implementation of PROTOCOL.md (3 to 5, 7)."""

import random
from itertools import product

import pytest

from models.groups import GroupScenario
from models.packed.lanes import outside_domain
from models.scenario import Scenario
from tests.conformance.second import Graph, Groups, Lanes, TooLargeError
from verify.cli.checking import Question, check_scenario
from verify.cli.engines import EngineOptions, check_packed
from verify.limits import Limits

RULES = ("strict_fifo", "lane_aware", "ep_ordered", "late_ticket")
STAND_INS = ("standard", "withdraw_joined", "blocked_is_idle")
MOST = 400
"""States of the largest graph compared in the default run."""


def counts(scenario):
    return figures(check_scenario(scenario, question=Question("drained")))


def figures(result):
    data = result.to_json()
    assert data["complete"]
    assert data["violation"] in (None, "drained")
    return data["states"], data["transitions"], data["violating_states"], data["depth"]


def random_lanes(pick):
    """Keyword arguments of the second implementation, and the scenario they stand for."""
    lanes, stages, layers = (
        pick.choice([1, 2, 2, 3]),
        pick.choice([1, 1, 2, 3]),
        pick.choice([1, 1, 2]),
    )
    batches = [pick.randint(0, 2) for _ in range(lanes)]
    phases = [[pick.choice(["prefill", "decode"]) for _ in range(n)] for n in batches]
    model = pick.choice(["moe", "moe", "dense"])
    same = {"lanes": lanes, "stages": stages, "layers": layers, "model": model}
    rule, stand_in = pick.choice(RULES), pick.choice(STAND_INS)
    by_phase, ties = pick.random() < 0.3, pick.random() < 0.6
    arrivals = pick.choice(["burst", "open"])
    capacity = pick.choice([None, None, 1, 2])
    second = dict(
        batches=batches,
        rule=rule,
        stand_in=stand_in,
        by_phase=by_phase,
        arrivals=arrivals,
        phases=phases,
        capacity=capacity,
        **same,
    )
    scenario = Scenario(
        batches=tuple(batches),
        admission=rule,
        stand_in=stand_in,
        arrivals=arrivals,
        ties=ties,
        rooms="by_phase" if by_phase else "shared",
        phases=tuple(map(tuple, phases)),
        capacity=capacity or "lanes",
        **same,
    )
    return second, scenario


def compare_lanes(seed, most):
    pick = random.Random(seed)
    while True:
        second, scenario = random_lanes(pick)
        try:
            graph = Graph(Lanes(**second), scenario.ties, most)
        except TooLargeError:
            continue
        assert counts(scenario) == graph.counts(), scenario
        if outside_domain(scenario) is None:
            packed = check_packed(scenario, EngineOptions("packed"), Limits(), None, False)
            assert figures(packed) == graph.counts(), scenario
        return


@pytest.mark.parametrize("seed", range(60))
def test_random_lanes_have_the_same_graph(seed):
    compare_lanes(seed, MOST)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_more_and_larger_lanes_have_the_same_graph(seed):
    compare_lanes(seed, 4000)


CLOSED = [
    (lanes, stages, slots, model, rule, stand_in, capacity, ties)
    for (lanes, stages, slots), model, rule, stand_in, capacity, ties in product(
        [(1, 2, 2), (2, 1, 1), (2, 1, 2), (2, 2, 1), (2, 2, 2), (3, 1, 1)],
        ("moe", "dense"),
        RULES,
        STAND_INS[:2],
        (None, 1),
        (False, True),
    )
    if not (model == "dense" and stand_in != "standard")
]


def closed_pair(lanes, stages, slots, model, rule, stand_in, capacity, ties):
    world = Lanes(
        lanes,
        stages,
        1,
        [slots] * lanes,
        model=model,
        rule=rule,
        stand_in=stand_in,
        closed=True,
        capacity=capacity,
    )
    scenario = Scenario.of(
        {
            "lanes": lanes,
            "stages": stages,
            "model": model,
            "admission": rule,
            "stand_in": stand_in,
            "workload": "closed",
            "slots": slots,
            "capacity": capacity or "lanes",
            "ties": ties,
        }
    )
    return world, scenario


def compare_closed(case, most):
    world, scenario = closed_pair(*case)
    graph = Graph(world, case[-1], most)
    assert counts(scenario) == graph.counts()
    for name in ("progress", "starvation"):
        found = check_scenario(scenario, question=Question(name)).to_json()["liveness"]
        assert found
        for judged in found:
            avoided = graph.avoids(*trigger_and_goal(name, judged["lane"], judged["stage"]))
            assert judged["verdict"] == ("violated" if avoided else "holds"), judged


def trigger_and_goal(name, lane, stage):
    """What obliges, and what redeems: a lane's batch, a stage's wave, or a queued ticket."""
    if name == "starvation":
        cell = (lane, stage)
        return lambda at: cell in at.starving(), lambda log: ("admitted", *cell) in log
    if lane is None:
        return lambda at: stage in at.in_wave(), lambda log: ("wave_ended", stage) in log
    return lambda _: True, lambda log: ("ended", lane) in log


@pytest.mark.parametrize("case", random.Random(7).sample(CLOSED, 50), ids=str)
def test_closed_workloads_have_the_same_graph_and_liveness(case):
    compare_closed(case, 20_000)


@pytest.mark.heavy
@pytest.mark.parametrize("case", CLOSED, ids=str)
def test_every_closed_workload_has_the_same_graph_and_liveness(case):
    compare_closed(case, 20_000)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("stand_in", STAND_INS)
@pytest.mark.parametrize("shape", [(2, 1, 1), (2, 2, 1), (3, 1, 1)], ids=str)
def test_closed_workloads_whose_first_requests_arrive_have_the_same_graph(shape, stand_in, ties):
    lanes, stages, slots = shape
    for rule in RULES:
        world = Lanes(
            lanes, stages, 1, [slots] * lanes, rule=rule, stand_in=stand_in, closed=True,
            arrivals="open",
        )  # fmt: skip
        scenario = Scenario.of({
            "workload": "closed", "lanes": lanes, "stages": stages, "slots": slots,
            "arrivals": "open", "admission": rule, "stand_in": stand_in, "ties": ties,
        })  # fmt: skip
        assert counts(scenario) == Graph(world, ties, 20_000).counts()


GROUPS = [
    "d",
    "e",
    "de",
    "ed",
    "ee",
    "dd",
    "ded",
    "ede",
    "de;ed",
    "ee;d",
    "dd;ee",
    "e;e",
    "d;d",
    "de;e",
]


@pytest.mark.parametrize("ep_size", [1, 2, 3])
@pytest.mark.parametrize("groups", GROUPS)
def test_groups_have_the_same_graph(groups, ep_size):
    producers = groups.split(";")
    for rule, ties in product(("strict_fifo", "ep_ordered"), (False, True)):
        graph = Graph(Groups(producers, ep_size, rule), ties, 5000)
        scenario = GroupScenario.of(
            {
                "groups": [list(kinds) for kinds in producers],
                "ep_size": ep_size,
                "admission": rule,
                "ties": ties,
            }
        )
        assert counts(scenario) == graph.counts()
