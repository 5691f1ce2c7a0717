"""Timed runs as schedules, for tests."""

import random

from frontier.durations import ConstantDurations, WithArrivals
from models.eventlog import RunRecorder
from models.scenario import Scenario
from models.schedule import Schedule
from models.witness import run_timed

__all__ = ["RunRecorder", "burst_run", "poisson_run"]


def poisson_run(seed: int, rate: float = 100.0, requests: int = 24, **fields: object):
    """A scenario with Poisson arrivals on its lanes in turn, and what its timed run did."""
    draw = random.Random(seed)
    lanes = int(str(fields.setdefault("lanes", 4)))
    now = 0.0
    times: list[list[int]] = [[] for _ in range(lanes)]
    for number in range(requests):
        now += draw.expovariate(rate)
        times[number % lanes].append(round(now * 1e9))
    scenario = Scenario(batches=tuple(map(len, times)), arrivals="open", **fields)
    durations = WithArrivals(ConstantDurations(True, scenario.layers), times)
    return scenario, run_timed(scenario, durations).schedule


def burst_run(**fields: object) -> tuple[Scenario, Schedule]:
    """A burst under the published constants, and what its timed run did."""
    scenario = Scenario(**fields)
    return scenario, run_timed(scenario, ConstantDurations(True, scenario.layers)).schedule
