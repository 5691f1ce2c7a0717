"""Lanes over instants: what a schedule without times did, and what of it goes round for ever.

The clock is the number of the instant, and what everybody does is read off the state after each
one. A lasso is played on for as many rounds as it takes to tell what never ends from what merely
passes from one batch to the next (issue 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from frontier.events import ATTENTION_DONE, EXPERT, GROUP, WAVE_END, Batch, Event
from frontier.ffn import FfnReplica
from frontier.replica import Replica
from models.group_view import scheduler_name, ticket_name
from models.quiescent import QuiescentRun
from models.schedule import Schedule, positions_of
from models.subjects import AnyScenario, waits_of
from models.timeline import ATTENTION, FORWARD, IN_ROOM, QUEUED, TAIL, WAVE
from models.waits import lane_name

SHOWN_ROUNDS: Final = 2
"""Rounds of a cycle that are shown: one, and the next that is the same."""

ON_ITS_WAY: Final = "on its way"
DONE: Final = "done, waits for the wave"
HANGS: Final = "hangs"


class Doing(NamedTuple):
    """What somebody does: on which track, under which name, and for which batch.

    ``waits`` is true of mere waiting, which is drawn thin below what runs.
    """

    track: str
    who: str
    batch: Batch | None
    kind: str
    label: str
    waits: bool = False


@dataclass(frozen=True)
class Stretch:
    """Something that went on from instant ``start`` to instant ``end``.

    ``finished`` is False for what the run never ends.
    """

    doing: Doing
    start: int
    end: int
    finished: bool


@dataclass(frozen=True)
class Instants:
    """Stretches of a schedule on their tracks, from instant ``begin`` to instant ``end``.

    After instant ``entry`` the next ``period`` instants repeat for ever; 0 if the run ends.
    """

    tracks: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    begin: int
    entry: int
    period: int
    end: int


def lane_track(stage: int, lane: int) -> str:
    """Name of the track of a lane at a stage."""
    return f"stage {stage} lane {lane}"


def lane_tracks(lanes: int, stages: int) -> list[str]:
    """Names of all tracks of a lane replica."""
    return [lane_track(stage, lane) for stage in range(stages) for lane in range(lanes)]


def _lanes(replica: Replica, pending: Sequence[Event]) -> Iterator[Doing]:
    for stage, schedulers in enumerate(replica.schedulers):
        for lane, scheduler in enumerate(schedulers):
            track, who = lane_track(stage, lane), lane_name(lane, stage)
            for batch in scheduler.queue:
                yield Doing(track, who, batch, QUEUED, f"b{batch.number} queued", True)
            if scheduler.running is not None:
                kind, layer = _running(replica, pending, stage, scheduler.running)
                number = f" {layer}" if layer > 0 else ""
                label = f"b{scheduler.running.number} {kind.removeprefix('EP ')}{number}"
                yield Doing(track, who, scheduler.running, kind, label)


def _running(
    replica: Replica, pending: Sequence[Event], stage: int, batch: Batch
) -> tuple[str, int]:
    """Return what a running batch does, and in which layer (-1: none)."""
    own = [e for e in pending if e.stage == stage and (e.batch == batch or batch in e.members)]
    if own:
        kinds = {WAVE_END: WAVE, ATTENTION_DONE: ATTENTION}
        return kinds.get(own[0].kind, TAIL if replica.config.moe else FORWARD), own[0].layer
    rooms = replica.rooms.items()
    layers = [key.layer for key, room in rooms if key.stage == stage and batch in room.values()]
    return (IN_ROOM, layers[0]) if layers else (HANGS, -1)


def _groups(replica: FfnReplica, pending: Sequence[Event]) -> Iterator[Doing]:
    for event in pending:
        if event.kind == GROUP:
            name, sent = f"producer {event.lane}", replica.source.snapshot()
            number = sent[event.lane] + 1 if isinstance(sent, tuple) else 0
            yield Doing(name, name, None, ON_ITS_WAY, f"its group no. {number}")
    for number, scheduler in enumerate(replica.schedulers):
        name = scheduler_name(replica, number)
        for group in scheduler.queue:
            yield Doing(name, name, group, QUEUED, f"g{group.number} queued", True)
        if scheduler.running is not None:
            group = scheduler.running
            left = replica.unfinished.get(group, set())
            done = group.phase == EXPERT and number not in left
            kind = DONE if done else group.phase
            yield Doing(name, name, group, kind, f"g{group.number}" + (" done" if done else ""))
    context = replica.context
    for tickets, word in ((context.queued_tickets, "queued"), (context.active_tickets, "active")):
        for ticket in tickets:
            operation: Any = ticket.operation_id
            name = ticket_name(ticket)
            kind = QUEUED if word == "queued" else operation.phase
            yield Doing(name, name, operation, kind, word, word == "queued")


def doings(run: QuiescentRun) -> frozenset[Doing]:
    """Return what everybody does in a live state."""
    system: Any = run.system
    if isinstance(system, FfnReplica):
        return frozenset(_groups(system, run.pending))
    return frozenset(_lanes(system, run.pending))


def _fixed_tracks(system: Any, producers: int) -> list[str]:
    if isinstance(system, FfnReplica):
        names = [scheduler_name(system, number) for number in range(len(system.schedulers))]
        return [f"producer {number}" for number in range(producers)] + names
    return lane_tracks(system.config.lanes, system.config.stages)


class _Film:
    """Notes who does what from instant to instant."""

    def __init__(self) -> None:
        self.now = 0
        self.open: dict[Doing, int] = {}
        self.closed: list[Stretch] = []
        self.tracks: dict[str, None] = {}

    def show(self, now: int, state: frozenset[Doing]) -> None:
        """Note the state after an instant."""
        self.now = now
        for doing in [doing for doing in self.open if doing not in state]:
            self.closed.append(Stretch(doing, self.open.pop(doing), now, True))
        for doing in sorted(state - self.open.keys(), key=str):
            self.open[doing] = now
            self.tracks.setdefault(doing.track)


def _never_ends(run: QuiescentRun, doing: Doing, stops: bool) -> bool:
    """Whether what goes on in the last state of a run goes on for ever."""
    if stops or not run.pending:
        return True
    return doing.who in waits_of(run.system, run.pending).stuck


def film(
    scenario: AnyScenario, schedule: Schedule, repeats: int | None = None, most: int = 60
) -> Instants:
    """Play a schedule and return who did what from instant to instant.

    Parameters
    ----------
    scenario, schedule
        What is played.
    repeats
        The last instants of a lasso's schedule, which repeat for ever; 0 for one whose run stops
        although events are pending; None for a run to a single state.
    most
        Instants that are shown at most, those to the end.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    seen = _Film()
    seen.show(0, doings(run))
    period = repeats or 0
    entry = len(schedule) - period
    cycle = []
    for number, instant in enumerate(schedule, start=1):
        positions = positions_of(instant, run.pending, number)
        run.fire(positions)
        seen.show(number, doings(run))
        if number > entry:
            cycle.append(positions)
    end = len(schedule)
    if period:
        shown, end = end, entry + SHOWN_ROUNDS * period
        # A batch that waits moves up by at least one place a round, unless it waits for ever.
        rounds = 2 + max(len(doings(run)), SHOWN_ROUNDS)
        for number in range(shown + 1, entry + rounds * period + 1):
            run.fire(cycle[(number - entry - 1) % period])
            seen.show(number, doings(run))
        stretches = [_cut(stretch, end) for stretch in seen.closed if stretch.start < end]
        stretches += [Stretch(d, at, end, at > entry) for d, at in seen.open.items() if at < end]
    else:
        stops = repeats == 0
        stretches = seen.closed
        stretches += [
            Stretch(doing, at, end + 1, not _never_ends(run, doing, stops))
            for doing, at in seen.open.items()
        ]
        end += 1
    producers = len(getattr(scenario, "groups", ()))
    tracks = dict.fromkeys(_fixed_tracks(run.system, producers)) | seen.tracks
    order = tuple(sorted(stretches, key=lambda s: (s.start, s.end, str(s.doing))))
    return Instants(tuple(tracks), order, max(0, end - most), entry, period, end)


def _cut(stretch: Stretch, end: int) -> Stretch:
    return Stretch(stretch.doing, stretch.start, min(stretch.end, end), True)
