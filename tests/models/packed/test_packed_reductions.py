"""Reductions: refused where they are unsound, and nothing is lost where they are applied."""

import random
from dataclasses import replace
from itertools import combinations

import pytest
from packed_lockstep import packed, projected_ends, random_scenario, reduced_ends, rows_of

from models.packed.bridge import Bridge
from models.packed.kernel import MET_OTHERWISE, STOOD_STILL
from models.packed.lanes import PackedLanes
from models.packed.reductions import _OBSTACLES, REDUCTIONS, parse_reductions, plan
from models.quiescent import QuiescentModel
from models.scenario import Scenario, ScenarioError
from verify.cli.engines import replay_on_core
from verify.packed.search import Search
from verify.packed.trace import lift, trace

SUBSETS = [subset for size in range(1, 6) for subset in combinations(REDUCTIONS, size)]


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(
    "wanted",
    [
        ("canonical",),
        ("canonical", "symmetry"),
        ("canonical", "por"),
        REDUCTIONS,
        ("por",),
        ("ties", "canonical"),
    ],
)
def test_the_ends_of_random_scenarios_are_kept(wanted, part):
    rng = random.Random(f"reductions {part}")
    for _ in range(14):
        scenario = random_scenario(rng)
        applied = PackedLanes(scenario, wanted).plan.applied
        if not applied or scenario.lanes * scenario.stages > 6:
            continue
        assert projected_ends(scenario, applied) == reduced_ends(scenario, applied), scenario


@pytest.mark.parametrize("wanted", SUBSETS, ids=",".join)
def test_any_choice_of_reductions_keeps_the_ends(wanted):
    """Whatever is asked for together: what would be unsound without another is refused."""
    rng = random.Random(f"subsets {wanted}")
    for _ in range(24):
        scenario = random_scenario(rng)
        applied = PackedLanes(scenario, wanted).plan.applied
        if not applied or scenario.lanes * scenario.stages > 6:
            continue
        assert projected_ends(scenario, applied) == reduced_ends(scenario, applied), scenario


QUOTIENTS = [
    ("canonical",),
    ("canonical", "symmetry"),
    ("canonical", "rendezvous"),
    ("canonical", "symmetry", "rendezvous"),
]


@pytest.mark.parametrize("part", range(3))
def test_quotients_reach_exactly_the_projected_states(part):
    """Not only ends: the reduced graph's states are those that the unreduced one projects to."""
    rng = random.Random(f"quotients {part}")
    compared = 0
    while compared < 10:
        scenario = replace(
            random_scenario(rng),
            ties=False,
            model="moe",
            admission="ep_ordered",
            stand_in="withdraw_joined",
            rooms="shared",
            phases=None,
        )
        if scenario.lanes * scenario.stages > 6 or sum(scenario.batches) > 7:
            continue
        compared += 1
        model = PackedLanes(scenario)
        full = Search(model, threads=1)
        full.run()
        for wanted in QUOTIENTS:
            reduced = PackedLanes(scenario, wanted)
            assert reduced.plan.applied == wanted
            search = Search(reduced, threads=1)
            search.run()
            assert not search.tally.reached & (MET_OTHERWISE | STOOD_STILL)
            project = model.projection(reduced)
            assert {project(row).tobytes() for row in rows_of(full)} == {
                row.tobytes() for row in rows_of(search)
            }, (scenario, wanted)


def test_a_group_that_meets_otherwise_is_noticed(monkeypatch):
    """``rendezvous`` checks its own assumption: forced on ``standard``, it proves nothing."""
    monkeypatch.setitem(_OBSTACLES, "rendezvous", lambda _: None)
    scenario = Scenario(
        lanes=3, stages=1, batches=(1, 1, 1), arrivals="open", admission="strict_fifo", ties=False
    )
    other = replace(scenario, batches=(2, 2, 2))
    noticed = 0
    for candidate in (scenario, other, replace(other, admission="lane_aware", stages=2)):
        search = Search(PackedLanes(candidate, ("canonical", "rendezvous")))
        search.run()
        noticed |= search.tally.reached & MET_OTHERWISE
    assert noticed


def test_six_lanes_four_stages_are_proved_in_seconds():
    """Towards the shapes people deploy (issue 6), with every reduction."""
    scenario = Scenario(lanes=6, stages=4, batches=(2,) * 6, stand_in="withdraw_joined", ties=False)
    search = Search(PackedLanes(scenario, REDUCTIONS))
    search.run()
    assert search.tally.complete == 1
    assert not any(search.tally.ends.values())


@pytest.mark.parametrize(
    ("lanes", "stages", "states", "transitions"),
    [(3, 3, 28_522, 84_166), pytest.param(4, 3, 982_256, 3_319_572)],
)
def test_canonical_counts(lanes, stages, states, transitions):
    """Issue 6: the same transition system in Promela has 28,522 and 982,256 states."""
    scenario = Scenario(
        lanes=lanes, stages=stages, batches=(2,) * lanes, stand_in="withdraw_joined", ties=False
    )
    search = Search(PackedLanes(scenario, ("canonical",)))
    search.run()
    assert (search.states, search.tally.transitions) == (states, transitions)


def test_depth_is_kept_by_quotients():
    """Canonical order and symmetry are bisimulations: the shortest schedule keeps its length."""
    scenario = Scenario(lanes=3, stages=2, batches=(2, 2, 2), ties=False)
    depth = packed(scenario).depth
    assert depth == 20
    assert packed(scenario, ("canonical",)).depth == depth
    assert packed(scenario, ("canonical", "symmetry")).depth == depth


@pytest.mark.parametrize(
    ("changes", "reduction", "reason"),
    [
        ({"ties": True}, "canonical", "order of creation"),
        ({"ties": True}, "symmetry", "creation order"),
        ({"ties": True}, "por", "ties"),
        ({"admission": "strict_fifo"}, "symmetry", "FIFO order"),
        ({"admission": "lane_aware"}, "symmetry", "order of their numbers"),
        ({"admission": "late_ticket"}, "symmetry", "order of their numbers"),
        ({"stand_in": "blocked_is_idle"}, "symmetry", "FIFO head"),
        ({"stand_in": "standard"}, "rendezvous", "withdraw_joined"),
        ({"stand_in": "withdraw_joined", "rooms": "by_phase"}, "rendezvous", "shared rooms"),
        ({"admission": "late_ticket"}, "rendezvous", "kept out"),
        ({"model": "dense"}, "rendezvous", "no rooms"),
        ({"ties": True}, "rendezvous", "very instant"),
        ({"stand_in": "withdraw_joined"}, "rendezvous", "needs canonical"),
        ({}, "symmetry", "needs canonical"),
        ({"ties": True}, "ties", "needs canonical"),
        ({"ties": True, "admission": "strict_fifo"}, "ties", "order of tickets and wake-ups"),
        ({"ties": True, "rooms": "by_phase"}, "ties", "rooms by phase"),
    ],
)
def test_refused_with_the_reason(changes, reduction, reason):
    found = plan(Scenario(**{"ties": False, **changes}), (reduction,))
    assert not found.applied
    ((name, why),) = found.refused
    assert name == reduction
    assert reason in why


def test_forcing_symmetry_on_a_fifo_rule_would_be_wrong(monkeypatch):
    """The refusal is needed: sorting lanes under ``lane_aware`` changes what is reachable."""
    scenario = Scenario(lanes=3, stages=1, batches=(2, 2, 2), admission="lane_aware", ties=False)
    monkeypatch.setitem(_OBSTACLES, "symmetry", lambda _: None)
    reductions = ("canonical", "symmetry")
    assert projected_ends(scenario, reductions) != reduced_ends(scenario, reductions)


def test_names():
    assert parse_reductions("none") == ()
    assert parse_reductions("all") == REDUCTIONS
    assert parse_reductions("por, canonical") == ("canonical", "por")
    with pytest.raises(ScenarioError, match="unknown reduction 'fast'"):
        parse_reductions("fast")


@pytest.mark.parametrize("wanted", [(), ("canonical",), ("canonical", "symmetry"), REDUCTIONS])
def test_every_violating_path_is_lifted_and_replays_on_the_core(wanted):
    scenario = Scenario(lanes=3, stages=2, batches=(2, 2, 2), ties=False)
    model = PackedLanes(scenario, wanted)
    search = Search(model)
    search.run()
    core = QuiescentModel(scenario.make_replica, scenario.ties)
    unreduced = PackedLanes(scenario)
    drained = next(iter(search.tally.ends.values()))
    assert drained
    for state in drained[:12]:
        path = lift(trace(search, state), unreduced, unreduced.projection(model))
        actions, last = replay_on_core(core, unreduced, path)
        assert len(actions) == len(path.choices)
        assert not core.actions(last)
        assert not core.is_complete(last)


def test_a_path_through_meetings_is_lifted_step_by_step():
    """One step of the rendezvous model is several of the real one."""
    scenario = Scenario(lanes=2, stages=2, layers=2, stand_in="withdraw_joined", ties=False)
    model = PackedLanes(scenario, ("canonical", "symmetry", "rendezvous"))
    search = Search(model)
    search.run()
    unreduced = PackedLanes(scenario)
    (bounds, after) = search.tally.bounds[-2:]
    last = next(number * 8 + shard for shard, number in enumerate(bounds) if number < after[shard])
    path = trace(search, last)
    real = lift(path, unreduced, unreduced.projection(model))
    assert len(real.choices) > 2 * len(path.choices)
    core = QuiescentModel(scenario.make_replica, scenario.ties)
    bridge = Bridge(unreduced)
    (state,) = core.initial_states()
    for choice, row in zip(real.choices, real.rows[1:], strict=True):
        state = core.step(state, bridge.action_of(state, choice))
        assert (bridge.row_of(state) == row).all()
    assert core.is_complete(state)
