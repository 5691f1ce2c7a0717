"""When a lane was left behind: what happened before it waited in a room that nobody will enter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from frontier.events import (
    ATTENTION_DONE,
    BATCH_DROPPED,
    STAGE_END,
    STAGE_SCHEDULE,
    STAND_IN,
    WAVE_END,
    Event,
)
from frontier.replica import Replica
from frontier.rooms import RoomKey
from models.quiescent import QuiescentRun
from models.schedule import Schedule, positions_of
from models.subjects import AnyScenario, waits_of
from models.waits import NEVER_ENTERS, room_name

START: Final = "at the start"


@dataclass(frozen=True)
class _Departure:
    """A wave that left a room: when, with whom, and which placeholders it took for whom since."""

    key: RoomKey
    instant: int
    lanes: tuple[int, ...]
    counted: dict[int, int]


@dataclass
class _History:
    """Who entered what when, as an observer of a replica of lanes; instant 0 is the start.

    Attributes
    ----------
    admitted, gone
        The last instant in which a lane's batch entered a stage, and in which one left it.
    entered
        Of each room and lane, the last instant in which its batch entered the room.
    kept_out
        Of each room and lane without a batch or placeholder in it, why none was stored when a
        batch last entered the room.
    departures
        The waves, in order.
    """

    number: int = 0
    admitted: dict[tuple[int, int], int] = field(default_factory=dict)
    gone: dict[tuple[int, int], int] = field(default_factory=dict)
    entered: dict[tuple[RoomKey, int], int] = field(default_factory=dict)
    kept_out: dict[tuple[RoomKey, int], str] = field(default_factory=dict)
    departures: list[_Departure] = field(default_factory=list)
    _counted: dict[RoomKey, dict[int, int]] = field(default_factory=dict)

    def __call__(self, system: Any, event: Event, follow: Sequence[Event]) -> None:
        """Note one handled event."""
        if not isinstance(system, Replica):
            return
        place = (event.lane, event.stage)
        if event.kind == STAGE_SCHEDULE and follow and follow[0].batch is not None:
            self.admitted[place] = self.number
        if event.kind == STAGE_END or any(e.kind == BATCH_DROPPED for e in follow):
            self.gone[place] = self.number
        if event.kind == ATTENTION_DONE and event.batch is not None:
            self._enter(system, event)
        for after in follow:
            key = RoomKey(after.stage, after.layer, self._phase(system, event))
            if after.kind == STAND_IN:
                self._counted.setdefault(key, {})[after.lane] = self.number
            elif after.kind == WAVE_END:
                lanes = tuple(batch.lane for batch in after.members)
                counted = self._counted.pop(key, {})
                self.departures.append(_Departure(key, self.number, lanes, counted))

    def _phase(self, replica: Replica, event: Event) -> str:
        if event.batch is None:
            return event.phase
        return replica.config.rooms.key(event.stage, event.layer, event.batch).phase

    def _enter(self, replica: Replica, event: Event) -> None:
        key = RoomKey(event.stage, event.layer, self._phase(replica, event))
        self.entered[key, event.lane] = self.number
        room = replica.rooms.get(key, {})
        for lane, scheduler in enumerate(replica.schedulers[event.stage]):
            if lane in room:
                continue
            if scheduler.running is not None:
                self.kept_out[key, lane] = "was busy there"
            else:
                self.kept_out[key, lane] = "had a batch queued" if scheduler.queue else "was idle"


def left_behind(scenario: AnyScenario, schedule: Schedule) -> tuple[str, ...]:
    """Say of each lane that waits in a room nobody will enter how it was left behind.

    A lane whose placeholder was counted before it entered the stage misses the wave; else the
    lanes that are missing were neither counted nor came, and that is said.

    Parameters
    ----------
    scenario, schedule
        A run that ends in a stranded rendezvous.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    history = _History()
    run = QuiescentRun(scenario.make_replica(), (history,))
    run.begin()
    for number, instant in enumerate(schedule, start=1):
        history.number = number
        run.fire(positions_of(instant, run.pending, number))
    replica: Any = run.system
    if not isinstance(replica, Replica):
        return ()
    return tuple(dict.fromkeys(_sentences(history, replica, run)))


def _sentences(history: _History, replica: Replica, run: QuiescentRun) -> Iterator[str]:
    never = [w for w in waits_of(replica, run.pending).waits if w.kind == NEVER_ENTERS]
    for key, room in sorted(replica.rooms.items()):
        if room_name(key) not in {wait.source for wait in never}:
            continue
        members = [lane for lane, batch in sorted(room.items()) if batch is not None]
        missed = [(lane, _missed(history, key, lane)) for lane in members]
        for lane, wave in missed:
            if wave is not None:
                yield _late(history, key, lane, wave)
        if all(wave is None for _, wave in missed):
            missing = [lane for lane in range(replica.config.lanes) if lane not in room]
            yield from _never_counted(history, key, members, missing)


def _missed(history: _History, key: RoomKey, lane: int) -> _Departure | None:
    """Return the last wave of the stage and layer that took the lane's placeholder for it."""
    since = history.admitted.get((lane, key.stage), 0)
    waves = [
        wave
        for wave in history.departures
        if (wave.key.stage, wave.key.layer) == (key.stage, key.layer)
        and wave.counted.get(lane, since + 1) <= since <= wave.instant
        and lane not in wave.lanes
    ]
    return waves[-1] if waves else None


def _late(history: _History, key: RoomKey, lane: int, wave: _Departure) -> str:
    since = history.admitted[lane, key.stage]
    counted = wave.counted[lane]
    when = "" if counted == since else f" {_at(counted)}"
    other = f", while its batch goes to the {room_name(key)}" if wave.key != key else ""
    plural = "s" if len(wave.lanes) > 1 else ""
    at = "in the same instant" if wave.instant == since else _at(wave.instant)
    return (
        f"It was left behind here: {_at(since)} lane {lane} entered stage {key.stage} after its "
        f"placeholder was counted{when} in the {room_name(wave.key)}{other}, and the wave of "
        f"lane{plural} {_names(wave.lanes)} left without it {at}."
    )


def _never_counted(
    history: _History, key: RoomKey, members: Sequence[int], missing: Sequence[int]
) -> Iterator[str]:
    last = max(members, key=lambda lane: history.entered.get((key, lane), 0))
    entered = history.entered.get((key, last), 0)
    for lane in missing:
        why = history.kept_out.get((key, lane), "was idle")
        gone = history.gone.get((lane, key.stage), -1)
        left = f"; its batch left the stage {_at(gone)} without entering" if gone >= entered else ""
        yield (
            f"It was left behind here: when lane {last} entered the {room_name(key)} "
            f"{_at(entered)}, lane {lane} {why}, so no placeholder was counted for it{left}."
        )


def _at(instant: int) -> str:
    return f"at instant {instant}" if instant else START


def _names(lanes: Sequence[int]) -> str:
    first, last = ", ".join(map(str, lanes[:-1])), str(lanes[-1])
    return f"{first} and {last}" if first else last
