"""Event logs: what a timed run did, instant by instant, as a file (issue 5).

JSON lines. The header names the scenario, how the run ended and the number of instants, so that a
log that was cut is refused; each further line is one instant: its time in nanoseconds and the
timed events that fell due, in order of creation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from frontier.events import ARRIVE, KV_TRANSFER, REQUEST, Batch, Event
from models.scenario import Scenario
from models.schedule import Played, Schedule, event_to_json, play_exactly, schedule_of_json
from verify.path import PathError

FORMAT: Final = "frontier-verify"
VERSION: Final = 1


ARRIVALS: Final = frozenset({REQUEST, KV_TRANSFER})
"""Kinds by which a request comes to a replica of lanes."""


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


def write_event_log(log: EventLog, outcome: str) -> str:
    """Return a log as text; ``outcome`` is how the run ended, in the simulator's words."""
    rows = [
        {"t": time, "due": [event_to_json(event) for event in instant]}
        for time, instant in zip(log.times, log.schedule, strict=True)
    ]
    scenario = log.scenario.to_json()
    header = {
        "events": FORMAT,
        "version": VERSION,
        "scenario": scenario,
        "outcome": outcome,
        "instants": len(log.schedule),
        "digest": _digest(scenario, rows),
    }
    return "".join(_compact(row) + "\n" for row in (header, *rows))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _digest(scenario: object, rows: object) -> str:
    """Twelve digits that tell whether scenario and instants still belong together."""
    return hashlib.sha256(_compact([scenario, rows]).encode()).hexdigest()[:12]


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
    if header.get("digest") != _digest(header["scenario"], rows):
        raise EventLogError("the log was changed: its digest differs; record the run again")
    try:
        times = tuple(int(row["t"]) for row in rows)
        schedule = schedule_of_json(scenario, [row["due"] for row in rows])
    except PathError as error:
        raise EventLogError(f"the log does not fit its scenario: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise EventLogError(f"an instant cannot be read: {error}") from None
    if any(later <= time for time, later in pairwise((-1, *times))):
        raise EventLogError(f"the times of the instants must increase from 0 on, got {times[:9]}")
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


# -------------------------------------------------------------------- recording


class RunRecorder:
    """An observer of the discrete-event loop that records what fell due, and batches formed.

    Parameters
    ----------
    role
        Role whose replica is recorded, of a system of several: as a system of its own, to which
        requests come by their arrival or by the transfer of their KV.

    Attributes
    ----------
    instants
        ``(time in ns, timed events)`` in order.
    formed
        ``(number of instants so far, batch)`` for every batch, in order of formation.
    """

    def __init__(self, role: str = "") -> None:
        self._role = role
        self.instants: list[tuple[int, list[Event]]] = []
        self.formed: list[tuple[int, Batch]] = []

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:
        """Note one handled event, if it is one of the role's."""
        if event.role != self._role:
            return
        if not event.is_urgent:
            self.due(now, event._replace(role=""))
        for arrival in follow:
            if arrival.kind == ARRIVE and arrival.stage == 0 and arrival.batch is not None:
                self.formed.append((len(self.instants), arrival.batch))

    def due(self, now: int, event: Event) -> None:
        """Note a timed event, handled or rejected."""
        if not self.instants or self.instants[-1][0] != now:
            self.instants.append((now, []))
        self.instants[-1][1].append(event)

    @property
    def schedule(self) -> Schedule:
        """What fell due, instant by instant."""
        return tuple(tuple(events) for _, events in self.instants)

    @property
    def times(self) -> tuple[int, ...]:
        """Times of the instants in nanoseconds."""
        return tuple(time for time, _ in self.instants)

    def log(self, scenario: Scenario) -> EventLog:
        """Return the log of a run of this very scenario."""
        return EventLog(scenario, self.schedule, self.times)

    def protocol_log(
        self, scenario: Scenario, placed: Mapping[int, int], classification: str | None
    ) -> EventLog:
        """Return the log of a request-level run as one of the protocol's own workload.

        Where every request is one batch, the requests are the scenario's batches, with their
        arrivals. Otherwise the batches that the run formed are, waiting from the start if that
        gives the same run, else arriving at the instants at which they were formed.

        Parameters
        ----------
        scenario
            Shape and rules of the run; its batches are replaced.
        placed
            Lane of each request.
        classification
            Class of the violation that the run ended in, None if it completed.

        Raises
        ------
        EventLogError
            If none of these gives a run that ends the same way.
        """
        lanes = range(scenario.lanes)
        per_request = [["prefill"] * sum(at == lane for at in placed.values()) for lane in lanes]
        batches = [batch for _, batch in self.formed]
        per_batch = [[b.phase for b in batches if b.lane == lane] for lane in lanes]
        for phases, arrivals in ((per_request, self._placed(placed)), (per_batch, self._formed())):
            shape = _with_batches(scenario, phases)
            for kind, requests in (("burst", {}), ("open", arrivals)):
                log = EventLog(replace(shape, arrivals=kind), *self._instants(requests))
                played = _ending_as(log, classification)
                if played is not None:
                    return replace(log, schedule=played.schedule)
        raise EventLogError(
            "the run depends on how requests become batches: with the same batches arriving at the "
            "instants at which they were formed, the protocol goes another way"
        )

    def _placed(self, placed: Mapping[int, int]) -> dict[int, list[int]]:
        """Lanes of the requests that arrive in each instant."""
        return {
            number: [placed[event.request] for event in events if event.kind in ARRIVALS]
            for number, (_, events) in enumerate(self.instants, start=1)
        }

    def _formed(self) -> dict[int, list[int]]:
        """Lanes of the batches that are formed in each instant."""
        lanes: dict[int, list[int]] = {}
        for number, batch in self.formed:
            lanes.setdefault(number, []).append(batch.lane)
        return lanes

    def _instants(self, requests: Mapping[int, list[int]]) -> tuple[Schedule, tuple[int, ...]]:
        rows = list(self._rows(requests))
        return tuple(events for _, events in rows), tuple(time for time, _ in rows)

    def _rows(self, requests: Mapping[int, list[int]]) -> Iterator[tuple[int, tuple[Event, ...]]]:
        """Instants with these requests, lane by lane, instead of the run's own."""
        for number, (time, events) in enumerate([(0, list[Event]()), *self.instants]):
            kept = tuple(event for event in events if event.kind not in ARRIVALS)
            arriving = tuple(Event(REQUEST, lane) for lane in sorted(requests.get(number, ())))
            if arriving or kept:
                yield time, arriving + kept


def _with_batches(scenario: Scenario, phases: Sequence[Sequence[str]]) -> Scenario:
    plain = all(phase == "prefill" for own in phases for phase in own)
    named = None if plain else tuple(tuple(own) for own in phases)
    return replace(scenario, batches=tuple(map(len, phases)), phases=named)


def _ending_as(log: EventLog, classification: str | None) -> Played | None:
    """Replay a log; None unless it is a run of its own scenario that ends in this violation."""
    try:
        played = replay_event_log(log)
    except EventLogError:
        return None
    ended = not played.run.pending and played.classification == classification
    return played if ended else None
