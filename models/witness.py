"""Timed witnesses: times under which the simulator itself does a given schedule (issue 5).

A schedule says what falls due together and in which order. Its timing constraints are linear: the
instants follow each other, an event lies as far after its creation as it takes, events of one
instant end together. They are solved in whole milliseconds, for the earliest end and then the
smallest times, under assumptions about the execution times, the most regular first:

* ``published``: the constant times of PROTOCOL.md section 6; only arrivals are free;
* ``by_kind``: one time for every attention, one for every wave, one for every stage tail;
* ``per_event``: each event has its own time. This always has a solution.

Invalidations come from outside, at any time; groups arrive at any time. Of a lasso the cycle is
unrolled :data:`ROUNDS` times and must be periodic: each round's instants lie one period after
those of the round before, so that the same times do it for ever. A schedule whose violation is a
state on the way (a broken invariant) ends there, with events still to come.

A schedule without a solution under an assumption says something about the assumption (the
contradictory constraints are named), never about the simulated system.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from frontier.des import Observer, Simulation
from frontier.durations import MILLISECOND, ConstantDurations, Durations, WithArrivals
from frontier.events import DECODE_FFN, ENVIRONMENT, GROUP, REQUEST, CoreError, Event
from frontier.stale import WithInvalidations
from models.eventlog import RunRecorder
from models.quiescent import CheckableSystem, ProtocolState, QuiescentRun
from models.scenario import Scenario, ScenarioError
from models.schedule import (
    Instant,
    Schedule,
    event_to_json,
    play_exactly,
    positions_of,
    schedule_of_json,
    schedule_to_json,
)
from models.subjects import AnyScenario, scenario_of
from verify.path import PathError

ASSUMPTIONS: Final = ("published", "by_kind", "per_event")

FORMAT: Final = "frontier-verify"
VERSION: Final = 1


ROUNDS: Final = 3
"""Rounds of a cycle that a witness unrolls."""

ANY_TIME: Final = ENVIRONMENT | {REQUEST, GROUP}
"""Kinds that come at any time: no assumption says when."""

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
    """A timed event: created after this many instants, due at instant ``due`` (None: never).

    An invalidation counts as created at the start.
    """

    event: Event
    created: int
    due: int | None


def lives(scenario: AnyScenario, schedule: Schedule) -> list[Life]:
    """Creation and due instant of every timed event of a schedule, in order of creation.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    born = [0] * len(_timed(run))
    found: list[Life] = []
    for number, instant in enumerate(schedule, start=1):
        positions = positions_of(instant, run.pending, number)
        outside = [run.pending[at] for at in positions if at >= len(born)]
        positions_timed = [at for at in positions if at < len(born)]
        found += [Life(event, 0, number) for event in outside]
        found += [Life(run.pending[at], born[at], number) for at in positions_timed]
        born = [b for at, b in enumerate(born) if at not in positions]
        run.fire(positions)
        born += [number] * (len(_timed(run)) - len(born))
    found += [Life(e, b, None) for e, b in zip(_timed(run), born, strict=True)]
    return sorted(found, key=lambda life: life.created)


def _timed(run: QuiescentRun) -> list[Event]:
    """Pending events but those from outside, which stand behind them."""
    return [event for event in run.pending if event.kind not in ENVIRONMENT]


def unrolled(
    scenario: AnyScenario, schedule: Schedule, repeats: int, rounds: int = ROUNDS
) -> Schedule:
    """Repeat the last instants of a lasso's schedule, the cycle, this many times in all.

    Raises
    ------
    WitnessError
        If the cycle does not lead back to the state in which it began.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    fired: list[Instant] = []
    cycle: list[tuple[int, ...]] = []
    entry: ProtocolState | None = None
    for number, instant in enumerate(schedule, start=1):
        if number == len(schedule) - repeats + 1:
            entry = run.state()
        positions = positions_of(instant, run.pending, number)
        if entry is not None:
            cycle.append(positions)
        fired.append(_fire(run, positions))
    for _ in range(rounds - 1):
        fired += [_fire(run, positions) for positions in cycle]
    if run.state() != entry:
        raise WitnessError("the cycle does not lead back to the state in which it began")
    return tuple(fired)


def _fire(run: QuiescentRun, positions: tuple[int, ...]) -> Instant:
    instant = tuple(run.pending[at] for at in positions)
    run.fire(positions)
    return instant


def _instant(number: int) -> str:
    return f"instant {number}"


def _group(event: Event, assumption: str) -> str:
    """Name of the variable that an event's duration is."""
    free = assumption == "per_event" or event.kind in ANY_TIME
    return f"duration of {event}" if free else event.kind


def _constant(scenario: AnyScenario, event: Event) -> int:
    """Return the published time of an event in milliseconds."""
    if isinstance(scenario, Scenario):
        times = ConstantDurations(scenario.model == "moe", scenario.layers)
        return times.of(event) // MILLISECOND
    return ConstantDurations(True, 1).of(event._replace(role=DECODE_FFN)) // MILLISECOND


def _constraints(
    scenario: AnyScenario,
    schedule: Schedule,
    events: Sequence[Life],
    assumption: str,
    repeats: int = 0,
) -> Iterator[Constraint]:
    for number in range(1, len(schedule) + 1):
        only_requests = all(event.kind == REQUEST for event in schedule[number - 1])
        least = 0 if number == 1 and only_requests else 1
        weights = {_instant(number): 1}
        if number > 1:
            weights[_instant(number - 1)] = -1
        before = _instant(number - 1) if number > 1 else "the start"
        yield Constraint(weights, least, False, f"instant {number} comes after {before}")
    yield from _periodic(len(schedule), repeats)
    for life in events:
        if life.event.kind in ANY_TIME and life.event.kind != GROUP:
            continue
        if life.due is None and (assumption == "per_event" or life.event.kind == GROUP):
            continue
        yield _takes(scenario, life, assumption, len(schedule))


def _periodic(instants: int, repeats: int) -> Iterator[Constraint]:
    """Each instant of a round lies one period after the same instant of the round before."""
    if not repeats:
        return
    first = instants - ROUNDS * repeats
    for number in range(first + repeats + 1, instants + 1):
        weights = {_instant(number): 1, _instant(number - repeats): -1, "the period": -1}
        reason = f"instant {number} comes one period after instant {number - repeats}"
        yield Constraint(weights, 0, True, reason)


def _takes(scenario: AnyScenario, life: Life, assumption: str, last: int) -> Constraint:
    """Say what an event's time demands of the instants of its creation and its end."""
    due = last if life.due is None else life.due
    weights = {_instant(due): 1}
    if life.created:
        weights[_instant(life.created)] = weights.get(_instant(life.created), 0) - 1
    begin = _instant(life.created) if life.created else "the start"
    if assumption == "published" and life.event.kind not in ANY_TIME:
        takes = _constant(scenario, life.event)
        words = f"{life.event} takes {takes} ms"
    else:
        takes = 0
        weights[_group(life.event, assumption)] = -1
        words = f"{life.event} takes the time of every {life.event.kind}"
    if life.due is None:
        flipped = {name: -weight for name, weight in weights.items()}
        reason = f"{words}, from {begin}, and is still pending at {_instant(due)}"
        return Constraint(flipped, 1 - takes, False, reason)
    return Constraint(weights, takes, True, f"{words}, from {begin} to {_instant(due)}")


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


# -------------------------------------------------------------------- schedules with times


@dataclass(frozen=True)
class TimedSchedule:
    """A schedule with the time of every event, in nanoseconds: the simulator does it again.

    ``instants`` are the times of the schedule's instants; ``arrivals`` per lane those of its
    requests in order; ``durations`` the times of all other timed events from their creation.
    ``stops`` says that the run is looked at in its last instant, with events still to come.
    """

    scenario: AnyScenario
    schedule: Schedule
    instants: tuple[int, ...]
    arrivals: tuple[tuple[int, ...], ...]
    durations: tuple[tuple[Event, int], ...]
    stops: bool = False

    @property
    def until(self) -> int | None:
        """Time in nanoseconds at which the run is looked at, None for its end."""
        if not self.stops:
            return None
        return self.instants[-1] if self.instants else 0

    def model(self) -> Durations:
        """Execution-time model for one run."""
        return WithArrivals(EventDurations(self.durations), self.arrivals)

    def simulation(
        self, replica: CheckableSystem, observers: Sequence[Observer] = ()
    ) -> Simulation:
        """Return the discrete-event loop over a new replica, before its first event."""
        outside = [event for event, _ in self.durations if event.kind in ENVIRONMENT]
        return Simulation(WithInvalidations(replica, outside), self.model(), observers)


class EventDurations:
    """An execution-time model that gives each event of one run its own time in nanoseconds.

    Of equal events (a closed workload repeats them) each creation takes the next time.
    """

    def __init__(self, durations: Sequence[tuple[Event, int]]) -> None:
        self._times: dict[Event, deque[int]] = {}
        for event, takes in durations:
            self._times.setdefault(event, deque()).append(takes)

    def of(self, event: Event) -> int:
        """Nanoseconds of this very event.

        Raises
        ------
        WitnessError
            If there is no time for it: the run is not the one that the times are of.
        """
        times = self._times.get(event)
        if not times:
            raise WitnessError(f"the witness has no time for {event}")
        return times.popleft()


def times_of_run(
    scenario: AnyScenario, schedule: Schedule, instants: Sequence[int]
) -> TimedSchedule:
    """Read the time of every event off the times of the instants, in nanoseconds.

    Raises
    ------
    WitnessError
        If with these times the simulator does another schedule.
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    end = instants[-1] if instants else 0
    events = lives(scenario, schedule)
    arrivals: list[list[int]] = [[] for _ in _lanes_of(scenario)]
    durations = []
    for life in events:
        due = end + 1 if life.due is None else instants[life.due - 1]
        if life.event.kind == REQUEST:
            arrivals[life.event.lane].append(due)
        else:
            durations.append(
                (life.event, due - (instants[life.created - 1] if life.created else 0))
            )
    timed = TimedSchedule(
        scenario,
        schedule,
        tuple(instants),
        tuple(tuple(sorted(own)) for own in arrivals),
        tuple(durations),
        stops=any(life.due is None for life in events),
    )
    confirm(timed)
    return timed


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
    requests in order; ``durations`` the times of all other timed events, of invalidations from
    the start. The schedule of a lasso has its cycle, the last ``repeats`` instants, unrolled
    :data:`ROUNDS` times, one every ``period`` milliseconds. ``stops`` says that the violation is
    reached with events still to come: the run is looked at there.
    """

    scenario: AnyScenario
    schedule: Schedule
    assumption: str
    instants: tuple[int, ...]
    arrivals: tuple[tuple[int, ...], ...]
    durations: tuple[TimedEvent, ...]
    repeats: int = 0
    stops: bool = False

    @property
    def period(self) -> int | None:
        """Milliseconds of one round of a lasso, None if nothing repeats."""
        return self.instants[-1] - self.instants[-1 - self.repeats] if self.repeats else None

    @property
    def timed(self) -> TimedSchedule:
        """The same in nanoseconds, as the simulator takes it."""
        return TimedSchedule(
            self.scenario,
            self.schedule,
            tuple(time * MILLISECOND for time in self.instants),
            tuple(tuple(time * MILLISECOND for time in lane) for lane in self.arrivals),
            tuple((timed.event, timed.milliseconds * MILLISECOND) for timed in self.durations),
            self.stops,
        )


@dataclass(frozen=True)
class NoWitness:
    """Under this assumption the schedule has no times: these constraints contradict each other."""

    assumption: str
    contradiction: tuple[str, ...]


def solve_times(
    scenario: AnyScenario, schedule: Schedule, assumption: str, repeats: int = 0
) -> Witness | NoWitness:
    """Find the smallest whole milliseconds under which the simulator does a schedule.

    Parameters
    ----------
    scenario, schedule
        What is to be done.
    assumption
        One of :data:`ASSUMPTIONS`.
    repeats
        The last instants of a lasso's schedule that repeat for ever.
    """
    if assumption not in ASSUMPTIONS:
        raise ScenarioError(
            f"unknown assumption {assumption!r} about times; expected one of: "
            f"{', '.join(ASSUMPTIONS)}"
        )
    if repeats:
        schedule = unrolled(scenario, schedule, repeats)
    events = lives(scenario, schedule)
    held = _held_back(events, len(schedule), repeats)
    if held is not None:
        reason = f"{held} is held back for ever, but in the simulator every event falls due"
        return NoWitness(assumption, (reason,))
    constraints = list(_constraints(scenario, schedule, events, assumption, repeats))
    values = _solve(constraints, _instant(len(schedule)))
    if values is None:
        return NoWitness(assumption, _contradiction(constraints))
    instants = tuple(values[_instant(number)] for number in range(1, len(schedule) + 1))
    return _witness(scenario, schedule, assumption, events, instants, repeats, values)


def _held_back(events: Sequence[Life], last: int, repeats: int) -> Event | None:
    """Event that a lasso's rounds never fire, None if there is none: created before them all."""
    first = last - ROUNDS * repeats
    stuck = (e.event for e in events if repeats and e.due is None and e.created <= first + repeats)
    return next(stuck, None)


def _witness(
    scenario: AnyScenario,
    schedule: Schedule,
    assumption: str,
    events: Sequence[Life],
    instants: tuple[int, ...],
    repeats: int,
    values: Mapping[str, int],
) -> Witness:
    """Read the times of a solution."""
    end = instants[-1] if instants else 0
    arrivals: list[list[int]] = [[] for _ in _lanes_of(scenario)]
    durations = []
    ends = _ends(events, instants, len(schedule), repeats)
    for life, due in zip(events, ends, strict=True):
        if life.event.kind == REQUEST:
            arrivals[life.event.lane].append(end + 1 if due is None else due)
            continue
        begin = instants[life.created - 1] if life.created else 0
        takes = end + 1 - begin if due is None else due - begin
        if due is None and life.event.kind not in ANY_TIME:
            if assumption == "published":
                takes = _constant(scenario, life.event)
            elif assumption == "by_kind":
                takes = values[_group(life.event, assumption)]
        durations.append(TimedEvent(life.event, takes))
    return Witness(
        scenario,
        schedule,
        assumption,
        instants,
        tuple(tuple(sorted(own)) for own in arrivals),
        tuple(durations),
        repeats,
        stops=any(life.due is None for life in events),
    )


def _lanes_of(scenario: AnyScenario) -> range:
    """Lanes to which requests come; groups come from producers, as events of their own."""
    return range(scenario.lanes if isinstance(scenario, Scenario) else 0)


def _ends(
    events: Sequence[Life], instants: Sequence[int], last: int, repeats: int
) -> list[int | None]:
    """Time at which each event falls due, None if the schedule does not say.

    In a cycle an event falls due one period after its counterpart of the round before, also where
    that is beyond the last round.
    """
    due: list[int | None] = [None if e.due is None else instants[e.due - 1] for e in events]
    if not repeats:
        return due
    period = instants[-1] - instants[-1 - repeats]
    places: dict[int, list[int]] = {}
    for at, life in enumerate(events):
        if life.event.kind not in ENVIRONMENT:
            places.setdefault(life.created, []).append(at)
    for created in range(last - (ROUNDS - 1) * repeats + 1, last + 1):
        before, here = places.get(created - repeats, []), places.get(created, [])
        order = [sorted(own, key=lambda at: _place(events[at])) for own in (before, here)]
        for earlier, later in zip(*order, strict=False):
            known = due[earlier]
            if due[later] is None and known is not None:
                due[later] = known + period
    return due


def _place(life: Life) -> tuple[Any, ...]:
    """Order in which counterparts of different rounds match: all but the batches' numbers."""
    event = life.event
    return (event.kind, event.lane, event.stage, event.layer, tuple(b.lane for b in event.members))


def find_witness(
    scenario: AnyScenario,
    schedule: Schedule,
    assumptions: Sequence[str] = ASSUMPTIONS,
    repeats: int = 0,
) -> tuple[Witness | None, tuple[NoWitness, ...]]:
    """Solve under the first assumption that has a solution; also why those before it have none."""
    refused: list[NoWitness] = []
    for assumption in assumptions:
        result = solve_times(scenario, schedule, assumption, repeats)
        if isinstance(result, Witness):
            confirm(result.timed)
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


def run_timed(scenario: AnyScenario, durations: Durations) -> TimedRun:
    """Run the discrete-event loop to its end and record its instants."""
    replica = scenario.make_replica()
    recorder = RunRecorder()
    return _recorded(replica, Simulation(replica, durations, (recorder,)), recorder, None)


def _recorded(
    replica: CheckableSystem, simulation: Simulation, recorder: RunRecorder, until: int | None
) -> TimedRun:
    ended = QuiescentRun(replica)
    try:
        simulation.run(until)
    except CoreError as error:
        ended.failure = error
        recorder.due(simulation.now, error.event)
    ended.pending = [e for e in simulation.created if not e.is_urgent]
    return TimedRun(recorder.schedule, recorder.times, ended.state())


def rerun(timed: TimedSchedule) -> TimedRun:
    """Run the simulator on a timed schedule, up to where its violation is reached."""
    replica = timed.scenario.make_replica()
    recorder = RunRecorder()
    simulation = timed.simulation(replica, (recorder,))
    return _recorded(replica, simulation, recorder, timed.until)


def confirm(timed: TimedSchedule) -> TimedRun:
    """Run the simulator on a timed schedule and check that it does it, instant by instant.

    Raises
    ------
    WitnessError
        If it does anything else, naming the first difference.
    """
    done = rerun(timed)
    for number, (want, have) in enumerate(zip(timed.schedule, done.schedule, strict=False), 1):
        if want != have:
            raise WitnessError(
                f"instant {number}: the witness says {_words(want)}, the simulator does "
                f"{_words(have)}"
            )
    if len(done.schedule) != len(timed.schedule):
        raise WitnessError(
            f"the witness has {len(timed.schedule)} instants, the simulator does "
            f"{len(done.schedule)}"
        )
    expected = play_exactly(timed.scenario, timed.schedule).run
    if done.state.failed is None and _compared(done.state) != _compared(expected.state()):
        raise WitnessError("the simulator ends in another state than the schedule")
    return done


def _compared(state: ProtocolState) -> tuple[Any, tuple[Event, ...]]:
    """State without what may come from outside: a run has no more of it than was planned."""
    return state.system, tuple(e for e in state.pending if e.kind not in ENVIRONMENT)


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
        "repeats": witness.repeats,
        "period_ms": witness.period,
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
        scenario = scenario_of(values["scenario"])
        arrivals = tuple(tuple(_whole(time, 0) for time in lane) for lane in values["arrivals_ms"])
        instants = tuple(_whole(time, 0) for time in values["instants_ms"])
        schedule = schedule_of_json(scenario, values["schedule"])
        known = lives(scenario, schedule)
        durations = _durations_of_json(known, values["durations_ms"])
        assumption = str(values["assumption"])
        repeats = _whole(values.get("repeats", 0), 0)
    except KeyError as error:
        raise WitnessError(f"the witness lacks {error.args[0]!r}") from None
    except (ScenarioError, PathError, TypeError) as error:
        raise WitnessError(f"the witness cannot be read: {error}") from None
    wanted = [0] * len(_lanes_of(scenario))
    if isinstance(scenario, Scenario) and scenario.arrivals == "open":
        wanted = list(scenario.batches)
    if [len(lane) for lane in arrivals] != wanted:
        raise WitnessError(
            f"arrivals_ms must have {wanted} times per lane, got {[len(lane) for lane in arrivals]}"
        )
    if ROUNDS * repeats > len(schedule):
        raise WitnessError(f"{repeats} instants that repeat {ROUNDS} times are not in the schedule")
    stops = any(life.due is None for life in known)
    return Witness(scenario, schedule, assumption, instants, arrivals, durations, repeats, stops)


def _durations_of_json(known: Sequence[Life], rows: object) -> tuple[TimedEvent, ...]:
    """Read the times of a run's events, which are recognised by what the file says of them."""
    if not isinstance(rows, list):
        raise TypeError("durations_ms must be a list")
    events: dict[str, Event] = {_words_of(event_to_json(life.event)): life.event for life in known}
    found = []
    for row in rows:
        if not isinstance(row, Mapping):
            raise TypeError(f"a duration must be an object, got {row!r}")
        said = {name: value for name, value in row.items() if name != "ms"}
        event = events.get(_words_of(said))
        if event is None:
            raise ScenarioError(f"{said!r} is no timed event of this schedule")
        found.append(TimedEvent(event, _whole(row["ms"], 1)))
    return tuple(found)


def _words_of(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True)


def _whole(value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TypeError(f"a time must be a whole number of at least {least} ms, got {value!r}")
    return value
