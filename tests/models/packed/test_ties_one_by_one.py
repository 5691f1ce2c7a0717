"""What the reduction of ties rests on, seen on the core itself (docs/packed_engine.md, ties).

Under ``ep_ordered`` an instant of several events ends where its events end one after the other:
first the entries at open stages, then requests, then the rest, as created. Only the order in which
the events that follow were created may differ.
"""

import random
from dataclasses import replace
from itertools import permutations

import pytest
from packed_lockstep import packed, projected_ends, random_scenario, reduced_ends, rows_of

from frontier.events import ATTENTION_DONE, REQUEST
from models.packed.lanes import PackedLanes
from models.packed.reductions import _OBSTACLES, plan
from models.quiescent import QuiescentModel
from models.scenario import Scenario
from verify.explorer import explore
from verify.limits import Limits
from verify.packed.search import Search

TIES = ("ties", "canonical")


def one_by_one(model, state, events):
    """State after the events, each an instant of its own; None if one is not pending any more."""
    for event in events:
        if event not in state.pending:
            return None
        state = model.step(state, (state.pending.index(event),))
    return state


def without_order(state):
    return state.system, frozenset(state.pending), len(state.pending), state.failed


def argued_order(state, due):
    """Order of the argument: entries at open stages, requests, the rest."""

    def rank(event):
        if event.kind == REQUEST:
            return 1
        sealed = state.system.stages[event.stage].context.sealed
        return 0 if event.kind == ATTENTION_DONE and not sealed else 2

    return sorted(due, key=rank)


def joint_instants(scenario, most):
    """Every instant of several events in the reachable states, with the model."""
    model = QuiescentModel(scenario.make_replica, ties=True)
    for state in explore(model, (), limits=Limits(max_states=most)).states:
        for action in model.actions(state):
            if len(action) > 1:
                yield model, state, action


def sound(scenario):
    return "ties" in plan(replace(scenario, ties=True), TIES)


def scenarios(seed, count, accepts, **changes):
    rng = random.Random(seed)
    while count:
        scenario = replace(random_scenario(rng), ties=True, **changes)
        if accepts(scenario) and scenario.lanes * scenario.stages <= 6:
            count -= 1
            yield scenario


CASES = [
    *(
        Scenario(lanes=lanes, stages=stages, layers=layers, batches=(batches,) * lanes, stand_in=s)
        for s in ("standard", "withdraw_joined", "blocked_is_idle")
        for lanes, stages, layers, batches in [
            (2, 2, 1, 3),
            (3, 1, 2, 2),
            (4, 1, 1, 2),
            (2, 3, 1, 2),
        ]
    ),
    *(
        Scenario(lanes=lanes, stages=1, batches=(1,) * lanes, arrivals="open", stand_in=s)
        for s in ("standard", "withdraw_joined", "blocked_is_idle")
        for lanes in (3, 4)
    ),
]


def name(scenario):
    return " ".join(f"{key}={value}" for key, value in scenario.to_compact().items())


@pytest.mark.parametrize(
    "scenario",
    [
        *CASES,
        *scenarios("ties", 20, sound),
        *(pytest.param(s, marks=pytest.mark.heavy) for s in scenarios("more ties", 300, sound)),
    ],
    ids=name,
)
def test_an_instant_of_several_ends_where_its_events_end_one_by_one(scenario):
    for model, state, action in joint_instants(scenario, 1500):
        together = model.step(state, action)
        due = argued_order(state, [state.pending[position] for position in action])
        alone = one_by_one(model, state, due)
        assert alone is not None
        assert without_order(alone) == without_order(together), (state, action)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(lanes=2, batches=(3, 3), admission="strict_fifo", stand_in="blocked_is_idle"),
        Scenario(lanes=2, stages=2, admission="late_ticket"),
        Scenario(lanes=3, batches=(2, 2, 2), admission="lane_aware", model="dense"),
    ],
    ids=["strict_fifo", "late_ticket", "lane_aware"],
)
def test_the_other_rules_have_instants_that_are_no_sequence(scenario):
    """The refusal is needed: no order of the events, one by one, ends where they end together."""
    assert not sound(scenario)
    assert any(
        without_order(model.step(state, action))
        not in {
            without_order(alone)
            for order in permutations(state.pending[position] for position in action)
            if (alone := one_by_one(model, state, order)) is not None
        }
        for model, state, action in joint_instants(scenario, 1500)
        if len(action) <= 3
    )


@pytest.mark.parametrize("part", range(3))
def test_the_reduced_graph_has_the_states_of_the_unreduced_one(part):
    """Not only its ends: one row for all orders of pending events."""
    small = scenarios(f"states with ties {part}", 8, sound)
    for scenario in small:
        full = PackedLanes(scenario)
        unreduced, reduced = Search(full, threads=1), PackedLanes(scenario, TIES)
        unreduced.run()
        project = full.projection(reduced)
        assert reduced.plan.applied == TIES
        assert {project(row).tobytes() for row in rows_of(unreduced)} == packed(scenario, TIES).rows


def test_forcing_it_on_another_rule_loses_ends(monkeypatch):
    scenario = Scenario(admission="late_ticket")
    monkeypatch.setitem(_OBSTACLES, "ties", lambda _: None)
    assert projected_ends(scenario, TIES) != reduced_ends(scenario, TIES)
