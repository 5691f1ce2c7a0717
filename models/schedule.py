"""Schedules: what falls due, instant by instant, and how one guides another scenario's run.

A schedule of one scenario is carried over to a smaller one as *ranks*: for every event the number
of the instant in which it fell due. The smaller scenario then always fires what has the lowest
rank among what is pending. Events that the smaller scenario does not have are passed over, events
that the old schedule did not have come last, in order of creation; so a run always results, and
on the scenario it came from a schedule reproduces itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from frontier.events import (
    ENVIRONMENT,
    REQUEST,
    Event,
)
from frontier.replica import Replica
from models.quiescent import QuiescentModel, QuiescentRun
from models.scenario import Scenario, ScenarioError
from models.subjects import AnyScenario, waits_of
from models.view import describe_event
from models.waits import CORE_ERROR, classify
from verify.path import EncodedPath, PathError, encode, fingerprint
from verify.waitfor import WaitFor

Instant = tuple[Event, ...]
"""Timed events that fall due together, in order of creation."""

Schedule = tuple[Instant, ...]

OTHER_VERSION: Final = "the path is of another version of the protocol"

UNRANKED: Final = 1 << 60

WIDEST: Final = 12
"""Pending events up to which all ties of a state are enumerated."""


class Key(NamedTuple):
    """An event's identity in a run: a wave has one key per member, a request its number."""

    kind: str
    lane: int
    number: int
    stage: int
    layer: int


Ranks = Mapping[Key, int]


def keys_of(event: Event, request: int = 0) -> tuple[Key, ...]:
    """Keys of a timed event; ``request`` counts the lane's requests before this one."""
    if event.members:
        return tuple(
            Key(event.kind, b.lane, b.number, event.stage, event.layer) for b in event.members
        )
    number = request if event.batch is None else event.batch.number
    return (Key(event.kind, event.lane, number, event.stage, event.layer),)


def keyed(events: Sequence[Event], arrived: Sequence[int]) -> Iterator[tuple[Key, ...]]:
    """Keys of pending events, given how many requests of each lane have arrived."""
    ahead = list(arrived)
    for event in events:
        if event.kind == REQUEST:
            yield keys_of(event, ahead[event.lane])
            ahead[event.lane] += 1
        else:
            yield keys_of(event)


def ranks_of(schedule: Schedule, lanes: int) -> dict[Key, int]:
    """Map each event of a schedule to the number of the instant in which it falls due."""
    ranks: dict[Key, int] = {}
    arrived = [0] * lanes
    for number, instant in enumerate(schedule):
        for keys in keyed(instant, arrived):
            ranks.update(dict.fromkeys(keys, number))
        for event in instant:
            if event.kind == REQUEST:
                arrived[event.lane] += 1
    return ranks


@dataclass(frozen=True)
class Played:
    """A run to its end: the schedule that was really done, and the live run in its last state."""

    scenario: AnyScenario
    schedule: Schedule
    run: QuiescentRun

    @property
    def replica(self) -> Replica:
        """The live replica in its last state."""
        return replica_of(self.run)

    @property
    def outcome(self) -> str:
        """``complete``, ``drained``, ``failed``, or ``running`` if events are left."""
        if self.run.failure is not None:
            return "failed"
        if self.run.pending:
            return "running"
        return "complete" if self.run.system.is_complete else "drained"

    def analysis(self) -> WaitFor:
        """Who waits for whom in the last state."""
        return waits_of(self.run.system, self.run.pending)

    @property
    def classification(self) -> str | None:
        """Class of the violation that the run ends in, None if it ends in none."""
        return violation_class(self.run)


def replica_of(run: QuiescentRun) -> Replica:
    """Return the lane replica that a run drives.

    Raises
    ------
    TypeError
        If it drives something else.
    """
    if not isinstance(run.system, Replica):
        raise TypeError(f"expected a lane replica, got {type(run.system).__name__}")
    return run.system


def violation_class(run: QuiescentRun) -> str | None:
    """Class of a run's state as a violation: core error, or drained and of which class."""
    if run.failure is not None:
        return CORE_ERROR
    if run.pending or run.system.is_complete:
        return None
    return classify(waits_of(run.system, run.pending))


def _rank(keys: tuple[Key, ...], ranks: Ranks) -> int:
    """Rank of an event: of a wave's members that had one together, the last."""
    known = [ranks[key] for key in keys if key in ranks]
    return max(known) if known else UNRANKED


def play(
    scenario: Scenario, ranks: Ranks, until: Callable[[QuiescentRun], bool] | None = None
) -> Played:
    """Run finite work to its end, always firing what has the lowest rank.

    Parameters
    ----------
    scenario, ranks
        What is run, and what guides it.
    until
        Says of each state, the first one too, whether to stop there.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    schedule: list[Instant] = []
    arrived = [0] * scenario.lanes
    while run.pending and run.failure is None and not (until is not None and until(run)):
        due = _lowest(run.pending, ranks, arrived, scenario.ties)
        instant = tuple(run.pending[position] for position in due)
        for event in instant:
            if event.kind == REQUEST:
                arrived[event.lane] += 1
        schedule.append(instant)
        run.fire(tuple(due))
    return Played(scenario, tuple(schedule), run)


def _lowest(
    pending: Sequence[Event], ranks: Ranks, arrived: Sequence[int], ties: bool
) -> list[int]:
    """Positions of what falls due next: an event from outside by itself, and only if ranked."""
    found = [_rank(keys, ranks) for keys in keyed(pending, arrived)]
    lowest = min(found)
    due = [position for position, rank in enumerate(found) if rank == lowest]
    alone = lowest == UNRANKED or not ties or pending[due[0]].kind in ENVIRONMENT
    return due[:1] if alone else [at for at in due if pending[at].kind not in ENVIRONMENT]


def play_exactly(scenario: AnyScenario, schedule: Schedule) -> Played:
    """Fire exactly these instants; within an instant the core's order of creation holds.

    Raises
    ------
    PathError
        If an event of an instant is not pending when its turn comes.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    fired: list[Instant] = []
    for number, instant in enumerate(schedule, start=1):
        positions = positions_of(instant, run.pending, number)
        fired.append(tuple(run.pending[position] for position in positions))
        run.fire(positions)
    return Played(scenario, tuple(fired), run)


def positions_of(instant: Instant, pending: Sequence[Event], number: int) -> tuple[int, ...]:
    """Positions of an instant's events among the pending ones.

    Raises
    ------
    PathError
        If one is not pending; ``number`` is the instant's, for the message.
    """
    free = list(enumerate(pending))
    positions = []
    for event in instant:
        at = next((i for i, (_, other) in enumerate(free) if other == event), None)
        if at is None:
            raise PathError(f"instant {number}: {event} is not pending there")
        positions.append(free.pop(at)[0])
    return tuple(sorted(positions))


def walk_path(scenario: AnyScenario, path: EncodedPath) -> Played:
    """Replay an encoded path of the scenario; see :func:`walk`."""
    model = QuiescentModel(scenario.make_replica, scenario.ties)
    schedule, run = walk(model, path, why_differs(scenario))
    return Played(scenario, schedule, run)


def walk(
    model: QuiescentModel, path: EncodedPath, why: str = OTHER_VERSION
) -> tuple[Schedule, QuiescentRun]:
    """Replay an encoded path on a model; return its schedule and the live run at its end.

    Parameters
    ----------
    model, path
        What is replayed on what.
    why
        Why it may go another way, for the message.

    Raises
    ------
    PathError
        If it takes actions that are not enabled or ends in another state than recorded: it is of
        another version of the protocol.
    """
    run = model.begin()
    schedule: list[Instant] = []
    for number, taken in enumerate(path.actions, start=1):
        actions = model.actions(run.state())
        if not 0 <= taken < len(actions):
            raise PathError(
                f"step {number} takes action {taken}, but only {len(actions)} are enabled there: "
                f"{why}"
            )
        schedule.append(tuple(run.pending[position] for position in actions[taken]))
        run.fire(actions[taken])
    if fingerprint(run.state()) != path.fingerprint:
        raise PathError(f"the path ends in another state than the one it was recorded with: {why}")
    return tuple(schedule), run


def why_differs(scenario: AnyScenario) -> str:
    """Say why a path goes another way than when it was recorded."""
    if scenario.runs_foreign_code:
        return (
            "the rule or context of your own, which its scenario names, answers otherwise now than "
            "when the path was recorded; check the scenario again"
        )
    return OTHER_VERSION


def encode_schedule(scenario: AnyScenario, schedule: Schedule, repeats: int = 0) -> str:
    """Encode a schedule, whose last instants may repeat for ever, as a path for ``replay``.

    Raises
    ------
    PathError
        If the schedule is not one of the scenario, or has too many ties to number.
    """
    model = QuiescentModel(scenario.make_replica, scenario.ties)
    run = model.begin()
    numbers = []
    for number, instant in enumerate(schedule, start=1):
        timed = sum(event.kind not in ENVIRONMENT for event in run.pending)
        if scenario.ties and timed > WIDEST:
            raise PathError(
                f"instant {number} is one of the ties of {timed} pending events, too "
                f"many to number; shrink the schedule first"
            )
        positions = positions_of(instant, run.pending, number)
        events = tuple(run.pending[position] for position in positions)
        actions = model.actions(run.state())
        fired = [tuple(run.pending[position] for position in action) for action in actions]
        if events not in fired:
            raise PathError(f"instant {number} has a tie, but the scenario has ties off")
        numbers.append(fired.index(events))
        run.fire(positions)
    mark = fingerprint(run.state())
    path = EncodedPath(scenario.to_compact(), 0, tuple(numbers), mark, repeats)
    return encode(path)


# -------------------------------------------------------------------- JSON


def event_to_json(event: Event) -> dict[str, Any]:
    """Return a timed event as JSON values, without the fields that its kind has not."""
    return {name: value for name, value in describe_event(event).items() if value is not None}


def schedule_to_json(schedule: Schedule) -> list[list[dict[str, Any]]]:
    """Return a schedule as JSON values: a list of events per instant."""
    return [[event_to_json(event) for event in instant] for instant in schedule]


def schedule_of_json(scenario: AnyScenario, instants: object) -> Schedule:
    """Read what :func:`schedule_to_json` wrote, by playing it: an event is what is pending.

    Raises
    ------
    ScenarioError
        If it is no list of instants with events of the scenario.
    verify.path.PathError
        If an event is not pending when its turn comes.
    """
    if not isinstance(instants, list) or not all(isinstance(own, list) for own in instants):
        raise ScenarioError("a schedule is a list of instants, each a list of events")
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    schedule: list[Instant] = []
    for number, own in enumerate(instants, start=1):
        positions = _positions_described(own, run.pending, number)
        schedule.append(tuple(run.pending[position] for position in positions))
        run.fire(positions)
    return tuple(schedule)


def _positions_described(
    own: Sequence[object], pending: Sequence[Event], number: int
) -> tuple[int, ...]:
    """Positions of the pending events that these JSON values describe."""
    free = [(at, event_to_json(event)) for at, event in enumerate(pending)]
    positions = []
    for values in own:
        at = next((i for i, (_, known) in enumerate(free) if known == values), None)
        if at is None:
            raise PathError(f"instant {number}: {values!r} is no event that is pending there")
        positions.append(free.pop(at)[0])
    return tuple(sorted(positions))
