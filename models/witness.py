"""Timed witnesses: times under which the simulator itself does a given schedule (issue 5).

A schedule says what falls due together and in which order. Its timing constraints are linear: the
instants follow each other, an event lies as far after its creation as it takes, events of one
instant end together. They are solved in whole milliseconds, for the earliest end and then the
smallest times, under assumptions about the execution times, the most regular first:

* ``published``: the constant times of PROTOCOL.md section 6; only arrivals are free;
* ``by_kind``: one time for every attention, one for every wave, one for every stage tail;
* ``per_event``: each event has its own time. This always has a solution.

A schedule without a solution under an assumption says something about the assumption (the
contradictory constraints are named), never about the simulated system.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from frontier.des import Simulation
from frontier.durations import MILLISECOND, ConstantDurations, Durations, WithArrivals
from frontier.events import REQUEST, CoreError, Event
from models.eventlog import RunRecorder
from models.quiescent import ProtocolState, QuiescentRun
from models.scenario import Scenario, ScenarioError
from models.schedule import (
    Instant,
    Schedule,
    event_of_json,
    event_to_json,
    play_exactly,
    positions_of,
    schedule_of_json,
    schedule_to_json,
)

ASSUMPTIONS: Final = ("published", "by_kind", "per_event")

FORMAT: Final = "frontier-verify"
VERSION: Final = 1


MOST_EXPLAINED: Final = 100
"""Constraints up to which a smallest contradiction is looked for."""


class WitnessError(ValueError):
    """A witness file that cannot be read, or that does not do what it says."""


# -------------------------------------------------------------------- constraints


@dataclass(frozen=True)
class Constraint:
    """``sum(weights[variable] * value) >= least`` (or ``== least``), with its reason in words."""

    weights: Mapping[str, int]
    least: int
    equal: bool
    reason: str


@dataclass(frozen=True)
class Life:
    """A timed event: created after this many instants, due at instant ``due`` (None: never)."""

    event: Event
    created: int
    due: int | None


def lives(scenario: Scenario, schedule: Schedule) -> list[Life]:
    """Creation and due instant of every timed event of a schedule, in order of creation.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    born = [0] * len(run.pending)
    found: list[Life] = []
    for number, instant in enumerate(schedule, start=1):
        positions = positions_of(instant, run.pending, number)
        found += [Life(run.pending[at], born[at], number) for at in positions]
        born = [b for at, b in enumerate(born) if at not in positions]
        run.fire(positions)
        born += [number] * (len(run.pending) - len(born))
    found += [Life(e, b, None) for e, b in zip(run.pending, born, strict=True)]
    return sorted(found, key=lambda life: life.created)


def _instant(number: int) -> str:
    return f"instant {number}"


def _group(event: Event, assumption: str) -> str:
    """Name of the variable that an event's duration is."""
    return event.kind if assumption == "by_kind" else f"duration of {event}"


def _constraints(
    scenario: Scenario, schedule: Schedule, events: Sequence[Life], assumption: str
) -> Iterator[Constraint]:
    constant = ConstantDurations(scenario.model == "moe", scenario.layers)
    for number in range(1, len(schedule) + 1):
        only_requests = all(event.kind == REQUEST for event in schedule[number - 1])
        least = 0 if number == 1 and only_requests else 1
        weights = {_instant(number): 1}
        if number > 1:
            weights[_instant(number - 1)] = -1
        before = _instant(number - 1) if number > 1 else "the start"
        yield Constraint(weights, least, False, f"instant {number} comes after {before}")
    for life in events:
        if life.event.kind == REQUEST or (life.due is None and assumption == "per_event"):
            continue
        due = len(schedule) if life.due is None else life.due
        weights = {_instant(due): 1}
        if life.created:
            weights[_instant(life.created)] = -1
        begin = _instant(life.created) if life.created else "the start"
        if assumption == "published":
            takes, words = constant.of(life.event) // MILLISECOND, ""
            words = f"{life.event} takes {takes} ms"
        else:
            takes = 0
            weights[_group(life.event, assumption)] = -1
            words = f"{life.event} takes the time of every {life.event.kind}"
        if life.due is None:
            flipped = {name: -weight for name, weight in weights.items()}
            reason = f"{words}, from {begin}, and is still pending at {_instant(due)}"
            yield Constraint(flipped, 1 - takes, False, reason)
        else:
            yield Constraint(weights, takes, True, f"{words}, from {begin} to {_instant(due)}")


class _System:
    """Linear constraints over whole milliseconds, and their smallest solution."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        names = dict.fromkeys(name for c in constraints for name in c.weights)
        self.names = list(names)
        self.index = {name: at for at, name in enumerate(names)}

    def _linear(self, constraints: Sequence[Constraint]) -> LinearConstraint:
        rows = [row for row, c in enumerate(constraints) for _ in c.weights]
        columns = [self.index[name] for c in constraints for name in c.weights]
        weights = [weight for c in constraints for weight in c.weights.values()]
        shape = (len(constraints), len(self.names))
        matrix = csr_matrix((weights, (rows, columns)), shape=shape)
        low = [c.least for c in constraints]
        high = [c.least if c.equal else np.inf for c in constraints]
        return LinearConstraint(matrix, low, high)

    def minimise(
        self, constraints: Sequence[Constraint], costs: Mapping[str, int]
    ) -> dict[str, int] | None:
        """Return the solution of least cost, or None if there is none."""
        if not self.names:
            return {}
        cost = np.array([costs.get(name, 0) for name in self.names], dtype=float)
        least = [0 if name.startswith("instant ") else 1 for name in self.names]
        result = milp(
            cost,
            constraints=self._linear(constraints) if constraints else None,
            integrality=np.ones(len(self.names), dtype=np.int64),
            bounds=Bounds(np.array(least, dtype=float), np.inf),
        )
        if result.x is None:
            return None
        return {name: round(value) for name, value in zip(self.names, result.x, strict=True)}


def _solve(constraints: Sequence[Constraint], last: str) -> dict[str, int] | None:
    """Smallest solution: earliest end first, then the least sum of all times."""
    system = _System(constraints)
    first = system.minimise(constraints, {last: 1})
    if first is None:
        return None
    if last not in first:
        return first
    fixed = Constraint({last: 1}, first[last], True, "the earliest end")
    return system.minimise([*constraints, fixed], dict.fromkeys(system.names, 1))


def _contradiction(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Reasons of a smallest set of constraints that cannot hold together (by deletion)."""
    if len(constraints) > MOST_EXPLAINED:
        return (f"{len(constraints)} constraints contradict each other; shrink the schedule first",)
    kept = list(constraints)
    for constraint in constraints:
        fewer = [other for other in kept if other is not constraint]
        if _System(fewer).minimise(fewer, {}) is None:
            kept = fewer
    return tuple(constraint.reason for constraint in kept)


# -------------------------------------------------------------------- the witness


@dataclass(frozen=True)
class TimedEvent:
    """One event's time from its creation, in milliseconds."""

    event: Event
    milliseconds: int


@dataclass(frozen=True)
class Witness:
    """Times in milliseconds under which the simulator does a schedule.

    ``instants`` are the times of the schedule's instants; ``arrivals`` per lane those of its
    requests in order; ``durations`` the times of all other timed events.
    """

    scenario: Scenario
    schedule: Schedule
    assumption: str
    instants: tuple[int, ...]
    arrivals: tuple[tuple[int, ...], ...]
    durations: tuple[TimedEvent, ...]

    def model(self) -> Durations:
        """Execution-time model for one run."""
        arrivals = [[time * MILLISECOND for time in lane] for lane in self.arrivals]
        return WithArrivals(EventDurations(self.durations), arrivals)


@dataclass(frozen=True)
class NoWitness:
    """Under this assumption the schedule has no times: these constraints contradict each other."""

    assumption: str
    contradiction: tuple[str, ...]


class EventDurations:
    """An execution-time model that gives each event of one run its own time.

    Of equal events (a closed workload repeats them) each creation takes the next time.
    """

    def __init__(self, durations: Sequence[TimedEvent]) -> None:
        self._times: dict[Event, deque[int]] = {}
        for timed in durations:
            times = self._times.setdefault(timed.event, deque())
            times.append(timed.milliseconds * MILLISECOND)

    def of(self, event: Event) -> int:
        """Nanoseconds of this very event.

        Raises
        ------
        WitnessError
            If the witness has no time for it: the run is not the one it was made for.
        """
        times = self._times.get(event)
        if not times:
            raise WitnessError(f"the witness has no time for {event}")
        return times.popleft()


def solve_times(scenario: Scenario, schedule: Schedule, assumption: str) -> Witness | NoWitness:
    """Find the smallest whole milliseconds under which the simulator does a schedule.

    Parameters
    ----------
    scenario, schedule
        What is to be done.
    assumption
        One of :data:`ASSUMPTIONS`.
    """
    if assumption not in ASSUMPTIONS:
        raise ScenarioError(
            f"unknown assumption {assumption!r} about times; expected one of: "
            f"{', '.join(ASSUMPTIONS)}"
        )
    events = lives(scenario, schedule)
    constraints = list(_constraints(scenario, schedule, events, assumption))
    values = _solve(constraints, _instant(len(schedule)))
    if values is None:
        return NoWitness(assumption, _contradiction(constraints))
    instants = tuple(values[_instant(number)] for number in range(1, len(schedule) + 1))
    end = instants[-1] if instants else 0
    arrivals: list[list[int]] = [[] for _ in range(scenario.lanes)]
    durations = []
    constant = ConstantDurations(scenario.model == "moe", scenario.layers)
    for life in events:
        due = end + 1 if life.due is None else instants[life.due - 1]
        if life.event.kind == REQUEST:
            arrivals[life.event.lane].append(due)
            continue
        takes = due - (instants[life.created - 1] if life.created else 0)
        if life.due is None and assumption == "published":
            takes = constant.of(life.event) // MILLISECOND
        elif life.due is None and assumption == "by_kind":
            takes = values[_group(life.event, assumption)]
        durations.append(TimedEvent(life.event, takes))
    sorted_arrivals = tuple(tuple(sorted(own)) for own in arrivals)
    return Witness(scenario, schedule, assumption, instants, sorted_arrivals, tuple(durations))


def find_witness(
    scenario: Scenario, schedule: Schedule, assumptions: Sequence[str] = ASSUMPTIONS
) -> tuple[Witness | None, tuple[NoWitness, ...]]:
    """Solve under the first assumption that has a solution; also why those before it have none."""
    refused: list[NoWitness] = []
    for assumption in assumptions:
        result = solve_times(scenario, schedule, assumption)
        if isinstance(result, Witness):
            confirm(result)
            return result, tuple(refused)
        refused.append(result)
    return None, tuple(refused)


# -------------------------------------------------------------------- the timed run


@dataclass(frozen=True)
class TimedRun:
    """What the simulator did: schedule with the times of its instants in ns, last state."""

    schedule: Schedule
    times: tuple[int, ...]
    state: ProtocolState


def run_timed(scenario: Scenario, durations: Durations) -> TimedRun:
    """Run the discrete-event loop and record its instants."""
    replica = scenario.make_replica()
    recorder = RunRecorder()
    simulation = Simulation(replica, durations, (recorder,))
    ended = QuiescentRun(replica)
    try:
        simulation.run()
    except CoreError as error:
        ended.failure = error
        recorder.due(simulation.now, error.event)
    ended.pending = [event for _, event in simulation.pending if not event.is_urgent]
    log = recorder.log(scenario)
    return TimedRun(log.schedule, log.times, ended.state())


def confirm(witness: Witness) -> TimedRun:
    """Run the simulator on a witness and check that it does the schedule, instant by instant.

    Raises
    ------
    WitnessError
        If it does anything else, naming the first difference.
    """
    done = run_timed(witness.scenario, witness.model())
    for number, (want, have) in enumerate(zip(witness.schedule, done.schedule, strict=False), 1):
        if want != have:
            raise WitnessError(
                f"instant {number}: the witness says {_words(want)}, the simulator does "
                f"{_words(have)}"
            )
    if len(done.schedule) != len(witness.schedule):
        raise WitnessError(
            f"the witness has {len(witness.schedule)} instants, the simulator does "
            f"{len(done.schedule)}"
        )
    expected = play_exactly(witness.scenario, witness.schedule).run
    if done.state.failed is None and done.state.system != expected.state().system:
        raise WitnessError("the simulator ends in another state than the schedule")
    return done


def _words(instant: Instant) -> str:
    return " together with ".join(map(str, instant))


# -------------------------------------------------------------------- files


def witness_to_json(witness: Witness) -> dict[str, Any]:
    """Return a witness as JSON values: what :func:`witness_of_json` reads."""
    return {
        "witness": FORMAT,
        "version": VERSION,
        "scenario": witness.scenario.to_json(),
        "assumption": witness.assumption,
        "instants_ms": list(witness.instants),
        "arrivals_ms": [list(lane) for lane in witness.arrivals],
        "durations_ms": [
            {**event_to_json(timed.event), "ms": timed.milliseconds} for timed in witness.durations
        ],
        "schedule": schedule_to_json(witness.schedule),
    }


def witness_of_json(values: Mapping[str, Any]) -> Witness:
    """Read what :func:`witness_to_json` wrote.

    Raises
    ------
    WitnessError
        If it is of another version, or a field is missing or wrong.
    """
    if values.get("witness") != FORMAT or values.get("version") != VERSION:
        raise WitnessError(
            f"expected a timed witness of version {VERSION}, got witness "
            f"{values.get('witness')!r} version {values.get('version')!r}"
        )
    try:
        scenario = Scenario.of(values["scenario"])
        arrivals = tuple(tuple(_whole(time, 0) for time in lane) for lane in values["arrivals_ms"])
        durations = tuple(
            TimedEvent(event_of_json(scenario, row), _whole(row["ms"], 1))
            for row in values["durations_ms"]
        )
        instants = tuple(_whole(time, 0) for time in values["instants_ms"])
        schedule = schedule_of_json(scenario, values["schedule"])
        assumption = str(values["assumption"])
    except KeyError as error:
        raise WitnessError(f"the witness lacks {error.args[0]!r}") from None
    except (ScenarioError, TypeError) as error:
        raise WitnessError(f"the witness cannot be read: {error}") from None
    wanted = list(scenario.batches) if scenario.arrivals == "open" else [0] * scenario.lanes
    if [len(lane) for lane in arrivals] != wanted:
        raise WitnessError(
            f"arrivals_ms must have {wanted} times per lane, got {[len(lane) for lane in arrivals]}"
        )
    return Witness(scenario, schedule, assumption, instants, arrivals, durations)


def _whole(value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TypeError(f"a time must be a whole number of at least {least} ms, got {value!r}")
    return value
