"""Event logs: written whole, read back, refused when cut, changed or foreign."""

import json

import pytest

from frontier.durations import ConstantDurations
from models.eventlog import (
    EventLog,
    EventLogError,
    is_event_log,
    read_event_log,
    replay_event_log,
    write_event_log,
)
from models.scenario import Scenario
from models.witness import run_timed

SCENARIO = Scenario(lanes=3, stages=2, batches=(2, 1, 2))


@pytest.fixture(scope="module")
def text() -> str:
    run = run_timed(SCENARIO, ConstantDurations(True, 1))
    return write_event_log(EventLog(SCENARIO, run.schedule, run.times), "complete")


def test_a_log_is_read_back_and_replays_to_the_end(text):
    log = read_event_log(text)
    assert log.scenario == SCENARIO
    assert replay_event_log(log).outcome == "complete"
    assert write_event_log(log, "complete") == text
    assert is_event_log(text)


def change_row(text: str, row: int, **fields: object) -> str:
    lines = text.splitlines()
    lines[row] = json.dumps({**json.loads(lines[row]), **fields})
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: "", "line 1 is no JSON"),
        (lambda t: t[: len(t) // 2], "cut or changed|instants, but"),
        (lambda t: "\n".join(t.splitlines()[:-1]), "the log was cut: its header says"),
        (lambda t: change_row(t, 0, version=2), "version 2"),
        (lambda t: change_row(t, 0, scenario={"lanes": 3, "stages": 2}), "digest differs"),
        (lambda t: change_row(t, 0, scenario={"lanes": 0}), "lanes must be"),
        (lambda t: change_row(t, 2, t=5), "digest differs"),
        (lambda t: change_row(t, 0, instants="x"), "header cannot be read"),
        (lambda t: t.replace('"t"', "t", 1), "line 2 is no JSON"),
    ],
)
def test_broken_logs_are_refused(text, change, message):
    with pytest.raises(EventLogError, match=message):
        read_event_log(change(text))


def test_a_log_of_another_protocol_is_refused(text):
    log = read_event_log(text)
    other = EventLog(Scenario(lanes=3, stages=2, batches=(1, 1, 2)), log.schedule, log.times)
    with pytest.raises(EventLogError, match="does not fit its scenario"):
        replay_event_log(other)


@pytest.mark.parametrize("times", [(5, 5), (5, 4), (-1, 3)])
def test_times_that_do_not_increase_are_refused(times):
    run = run_timed(SCENARIO, ConstantDurations(True, 1))
    log = EventLog(SCENARIO, run.schedule, (*times, *run.times[2:]))
    with pytest.raises(EventLogError, match="must increase from 0 on"):
        read_event_log(write_event_log(log, "complete"))
