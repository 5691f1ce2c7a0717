"""Schedules: carried over as ranks, replayed, encoded, written and read."""

import pytest

from models.scenario import Scenario
from models.schedule import (
    encode_schedule,
    play,
    play_exactly,
    ranks_of,
    schedule_of_json,
    schedule_to_json,
    walk_path,
)
from verify.path import PathError, decode

from .schedules import burst_run, poisson_run

RUNS = [
    poisson_run(3, stages=2, layers=3),
    poisson_run(4, stages=1, layers=1, stand_in="withdraw_joined"),
    burst_run(lanes=3, stages=2, batches=(2, 1, 3)),
    burst_run(lanes=2, stages=2, batches=(2, 2), admission="strict_fifo"),
]


@pytest.mark.parametrize(("scenario", "schedule"), RUNS)
def test_on_its_own_scenario_a_schedule_reproduces_itself(scenario, schedule):
    played = play(scenario, ranks_of(schedule, scenario.lanes))
    assert played.schedule == schedule
    exactly = play_exactly(scenario, schedule)
    assert played.run.state() == exactly.run.state()


@pytest.mark.parametrize(("scenario", "schedule"), RUNS)
def test_json_gives_the_schedule_back(scenario, schedule):
    assert schedule_of_json(scenario, schedule_to_json(schedule)) == schedule


def test_an_encoded_schedule_walks_to_the_same_state():
    scenario, schedule = burst_run(lanes=3, stages=2, batches=(2, 1, 3))
    path = decode(encode_schedule(scenario, schedule))
    walked = walk_path(Scenario.of(path.scenario), path)
    assert walked.schedule == schedule
    assert walked.outcome == "complete"


def test_too_many_ties_cannot_be_encoded():
    scenario, schedule = RUNS[0]
    with pytest.raises(PathError, match="shrink the schedule first"):
        encode_schedule(scenario, schedule)


def test_a_tie_is_no_path_without_ties():
    _, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    assert len(schedule[0]) == 2
    with pytest.raises(PathError, match="ties off"):
        encode_schedule(Scenario(stages=1, batches=(1, 1), ties=False), schedule)


def test_an_event_that_is_not_pending_is_refused():
    scenario, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    with pytest.raises(PathError, match="instant 1: wave_end"):
        play_exactly(scenario, schedule[1:])


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "stage_end", "lane": 2, "batch": 0, "stage": 0},
        {"kind": "stage_end", "lane": 0, "batch": 7, "stage": 0},
        {"kind": "stage_end", "lane": 0, "batch": -1, "stage": 0},
        {"kind": "request"},
        {"kind": "lane_schedule", "lane": 0},
        "stage_end",
    ],
)
def test_foreign_events_are_refused(values):
    with pytest.raises(PathError, match=r"instant 1: .* is no event that is pending there"):
        schedule_of_json(Scenario(), [[values]])
