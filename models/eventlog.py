"""Event logs: what a timed run did, instant by instant, as a file (issue 5).

JSON lines. The header names the scenario, how the run ended and the number of instants, so that a
log that was cut is refused; each further line is one instant: its time in nanoseconds and the
timed events that fell due, in order of creation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from models.scenario import Scenario
from models.schedule import Played, Schedule, event_of_json, event_to_json, play_exactly
from models.witness import TimedRun
from verify.path import PathError

FORMAT: Final = "frontier-verify"
VERSION: Final = 1


class EventLogError(ValueError):
    """A file that is no event log of this version, or not of its own scenario."""


@dataclass(frozen=True)
class EventLog:
    """A scenario and the schedule that a timed run did, with its times in nanoseconds."""

    scenario: Scenario
    schedule: Schedule
    times: tuple[int, ...]


def is_event_log(text: str) -> bool:
    """Whether a text begins like an event log, of whatever version."""
    first = text.split("\n", 1)[0]
    return first.startswith("{") and '"events"' in first


def write_event_log(scenario: Scenario, run: TimedRun, outcome: str) -> str:
    """Return the log of a timed run."""
    header = {
        "events": FORMAT,
        "version": VERSION,
        "scenario": scenario.to_json(),
        "outcome": outcome,
        "instants": len(run.schedule),
    }
    rows = [
        {"t": time, "due": [event_to_json(event) for event in instant]}
        for time, instant in zip(run.times, run.schedule, strict=True)
    ]
    lines = [json.dumps(row, separators=(",", ":")) for row in (header, *rows)]
    return "\n".join(lines) + "\n"


def _line(number: int, text: str) -> Mapping[str, Any]:
    try:
        values = json.loads(text)
    except json.JSONDecodeError:
        raise EventLogError(f"line {number} is no JSON: the log was cut or changed") from None
    if not isinstance(values, dict):
        raise EventLogError(f"line {number} must be an object, got {text[:60]!r}")
    return values


def read_event_log(text: str) -> EventLog:
    """Read what :func:`write_event_log` wrote.

    Raises
    ------
    EventLogError
        If the log was cut, is of another version, or has events that its scenario has not.
    """
    lines = text.splitlines()
    header = _line(1, lines[0] if lines else "")
    if header.get("events") != FORMAT or header.get("version") != VERSION:
        raise EventLogError(
            f"expected an event log of version {VERSION}, got events {header.get('events')!r} "
            f"version {header.get('version')!r}"
        )
    try:
        scenario = Scenario.of(header["scenario"])
        count = int(header["instants"])
    except (KeyError, TypeError, ValueError) as error:
        raise EventLogError(f"the header cannot be read: {error}") from None
    rows = [_line(number, line) for number, line in enumerate(lines[1:], start=2)]
    if len(rows) != count:
        raise EventLogError(
            f"the log was cut: its header says {count} instants, but {len(rows)} follow"
        )
    try:
        schedule = tuple(tuple(event_of_json(scenario, e) for e in row["due"]) for row in rows)
        times = tuple(int(row["t"]) for row in rows)
    except (KeyError, TypeError, ValueError) as error:
        raise EventLogError(f"an instant cannot be read: {error}") from None
    return EventLog(scenario, schedule, times)


def replay_event_log(log: EventLog) -> Played:
    """Replay a log on the core.

    Raises
    ------
    EventLogError
        If the core does not do what the log says: it is of another scenario or version.
    """
    try:
        return play_exactly(log.scenario, log.schedule)
    except PathError as error:
        raise EventLogError(f"the log does not fit its scenario: {error}") from None
