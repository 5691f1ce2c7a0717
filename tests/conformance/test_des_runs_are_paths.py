"""One code, three drivers: every DES run is a path of the explored graph (PROTOCOL.md section 5).

Random small scenarios run through the discrete-event loop with random durations from a small
range, so that ties are frequent. The instants of the run, fired one after the other, must be
transitions of the graph and visit its states.
"""

import random

import pytest

from frontier.des import Simulation
from frontier.events import CoreError, Event
from models.quiescent import QuiescentModel
from models.scenario import Scenario
from verify.cli.checking import check_scenario, open_path
from verify.explorer import explore
from verify.limits import Limits
from verify.path import fingerprint

SCENARIOS = 300
RUNS_EACH = 3
RULES = {
    "admission": ["strict_fifo", "lane_aware", "ep_ordered", "late_ticket"],
    "stand_in": ["standard", "withdraw_joined", "blocked_is_idle"],
    "rooms": ["shared", "by_phase"],
    "arrivals": ["burst", "open"],
    "model": ["moe", "moe", "moe", "dense"],
}


class RandomDurations:
    """Durations of 1 to 3 ns, arrivals at 0 to 5 ns."""

    def __init__(self, rng):
        self._rng = rng

    def of(self, event):
        if event.kind == "request":
            return self._rng.randint(0, 5)
        return self._rng.randint(1, 3)


def random_scenario(rng):
    lanes = rng.randint(1, 3)
    phases = [[rng.choice("pd") for _ in range(rng.randint(0, 2))] for _ in range(lanes)]
    return Scenario.of(
        {
            "lanes": lanes,
            "stages": rng.randint(1, 2),
            "layers": rng.randint(1, 2),
            "phases": phases,
            **{name: rng.choice(values) for name, values in RULES.items()},
        }
    )


def instants_of_a_run(scenario, rng):
    """Run the DES; return the timed events of each instant, and the replica at the end."""
    replica = scenario.make_replica()
    instants: list[tuple[int, list[Event]]] = []

    def observe(now, event, follow):
        if not event.is_urgent:
            if not instants or instants[-1][0] != now:
                instants.append((now, []))
            instants[-1][1].append(event)

    simulation = Simulation(replica, RandomDurations(rng), [observe])
    try:
        simulation.run()
    except CoreError:
        pytest.fail("no scenario of this range makes the core reject a call")
    return [events for _, events in instants], replica


@pytest.mark.parametrize("seed", range(10))
def test_every_run_is_a_path(seed):
    rng = random.Random(seed)
    checked = ties = drained = 0
    while checked < SCENARIOS // 10:
        scenario = random_scenario(rng)
        model = QuiescentModel(scenario.make_replica, ties=True)
        graph = explore(model, [], limits=Limits(max_states=3000))
        if not graph.verdict.stats.complete:
            continue
        checked += 1
        states = set(graph.states)
        for _ in range(RUNS_EACH):
            instants, replica = instants_of_a_run(scenario, rng)
            run = model.begin()
            assert run.state() == graph.states[0]
            for events in instants:
                action = positions(run.pending, events)
                assert action in model.actions(run.state())
                run.fire(action)
                assert run.state() in states
                ties += len(events) > 1
            assert run.pending == []
            assert run.state().system == replica.snapshot()
            assert run.system.is_complete == replica.is_complete
            drained += not replica.is_complete
    assert ties > 50, "the runs must exercise ties"
    assert drained > 0, "the runs must exercise drained ends"


def positions(pending, events):
    """Positions of an instant's events, which must fire in the order of creation."""
    places, start = [], 0
    for event in events:
        start = pending.index(event, start)
        places.append(start)
        start += 1
    return tuple(places)


@pytest.mark.parametrize("seed", range(5))
def test_every_witness_replays_from_its_path(seed):
    rng = random.Random(1000 + seed)
    replayed = 0
    while replayed < 10:
        scenario = random_scenario(rng)
        result = check_scenario(scenario, limits=Limits(max_states=2000), all_violations=True)
        for witness in result.witnesses:
            again, path = open_path(witness.path)
            assert again == scenario
            model = QuiescentModel(again.make_replica, again.ties)
            run = model.begin()
            for number in path.actions:
                run.fire(model.actions(run.state())[number])
            reached = run.state()
            assert reached == result.exploration.states[witness.violation.state_index]
            assert fingerprint(reached) == path.fingerprint
            replayed += 1
