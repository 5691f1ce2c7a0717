"""One code, three drivers, for serving systems too: decode steps, PDD and PD-AF (issue 3).

Timed runs with short random times, ties included, are replayed instant by instant on the model of
PROTOCOL.md section 5, once live and once through stored states; where the whole graph is small
enough, the states of the run are states of the explored graph.
"""

import random
import re
from dataclasses import replace

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape
from frontier.des import Simulation
from frontier.events import CoreError
from frontier.metrics import ConservationCheck
from frontier.placement import parse_placement
from frontier.requests import Request
from frontier.rooms import ROOM_RULES
from frontier.standin import STAND_IN_RULES
from frontier.system import ServingSpec, ServingSystem
from models.quiescent import QuiescentModel
from verify.explorer import explore
from verify.limits import Limits

RUNS = 80


class ShortTimes:
    """Times of 1 to 3 ns, arrivals at 0 to 5 ns."""

    def __init__(self, rng):
        self._rng = rng

    def of(self, event):
        return self._rng.randint(0, 5) if event.kind == "request" else self._rng.randint(1, 3)


def random_spec(rng, architecture, largest=5):
    lanes = 1 if architecture == "pd-af" else rng.randint(1, 3)
    requests = tuple(
        Request(number, rng.randint(1, 6), rng.randint(1, 4))
        for number in range(rng.randint(1, largest))
    )
    return ServingSpec(
        architecture=architecture,
        lanes=lanes,
        stages=rng.randint(1, 2),
        layers=rng.randint(1, 2),
        moe=rng.random() < 0.7,
        requests=requests,
        admission=ADMISSION_RULES[rng.choice(sorted(ADMISSION_RULES))],
        stand_in=STAND_IN_RULES[rng.choice(["standard", "withdraw_joined"])],
        rooms=ROOM_RULES[rng.choice(sorted(ROOM_RULES))],
        batching=BatchingConfig(rng.randint(2, 6), rng.randint(1, 3), 2, rng.randint(5, 6)),
        placement=parse_placement(
            rng.choice(["round_robin", "least_outstanding", "random"]), lanes, seed=1
        ),
        burst=rng.random() < 0.5,
        ffn=FfnShape(rng.randint(1, 2), dense_layers=rng.randint(0, 1)),
        micro_batches=rng.randint(1, 2) if architecture == "pd-af" else 1,
    )


def instants_of_a_run(spec, rng):
    """Run the DES; return the timed events of each instant, and the system at the end."""
    serving = ServingSystem(spec)
    system = serving.system
    instants = []

    def observe(now, event, follow):
        if not event.is_urgent:
            if not instants or instants[-1][0] != now:
                instants.append((now, []))
            instants[-1][1].append(event)

    simulation = Simulation(system, ShortTimes(rng), [observe, ConservationCheck(serving)])
    try:
        simulation.run()
    except CoreError:
        return None, system
    return [events for _, events in instants], system


def positions(pending, events):
    places, start = [], 0
    for event in events:
        start = pending.index(event, start)
        places.append(start)
        start += 1
    return tuple(places)


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_every_run_is_a_path(architecture):
    rng = random.Random(architecture)
    complete = ties = preempted = 0
    for _ in range(RUNS):
        spec = random_spec(rng, architecture)
        instants, end = instants_of_a_run(spec, rng)
        if instants is None:
            continue
        model = QuiescentModel(lambda spec=spec: ServingSystem(spec).system, ties=True)
        run = model.begin()
        state = run.state()
        for events in instants:
            action = positions(run.pending, events)
            assert action in model.actions(state)
            state = model.step(state, action)
            run.fire(action)
            assert run.state() == state, "a step from the stored state must be the live one"
            ties += len(events) > 1
            preempted += bool(re.search("computed=0, generated=[123]", repr(state.system)))
        assert run.pending == []
        assert state.system == end.snapshot()
        assert run.system.is_complete == end.is_complete == model.is_complete(state)
        complete += end.is_complete
    assert complete > RUNS / 3
    assert ties > 10
    assert preempted > 0, "the runs must exercise preemption"


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_states_of_a_run_are_states_of_the_graph(architecture):
    rng = random.Random(f"graph of {architecture}")
    explored = 0
    while explored < 5:
        spec = replace(random_spec(rng, architecture, largest=2), layers=1)
        model = QuiescentModel(lambda spec=spec: ServingSystem(spec).system, ties=True)
        graph = explore(model, [], limits=Limits(max_states=1500))
        if not graph.verdict.stats.complete or len(graph.states) < 20:
            continue
        explored += 1
        states = set(graph.states)
        instants, _ = instants_of_a_run(spec, rng)
        run = model.begin()
        for events in instants:
            run.fire(positions(run.pending, events))
            assert run.state() in states
