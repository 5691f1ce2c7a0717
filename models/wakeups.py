"""When a wake-up was lost: the last try of who would be admitted now, and what came after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from frontier.events import STAGE_SCHEDULE
from frontier.ffn import FfnReplica
from models.explanation import Narrator, after_instants, explanation_lines
from models.group_view import scheduler_name
from models.quiescent import CheckableSystem, QuiescentRun
from models.schedule import Schedule, positions_of
from models.stranding import left_behind
from models.subjects import AnyScenario, waits_of
from models.waits import LOST_WAKEUP, NO_WAKE_UP, STRANDED_RENDEZVOUS, lane_name
from verify.waitfor import WaitFor


@dataclass
class _History:
    """Of everybody, the last refused try, and since when nothing but a retry was missing."""

    tries: dict[str, tuple[int, str]] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)

    def look(self, number: int, run: QuiescentRun, narrator: Narrator) -> None:
        """Note an instant that was just fired, 0 being the start."""
        for event, note in narrator.take():
            if event.kind == STAGE_SCHEDULE and "refused" in note:
                name = _who(run.system, event.lane, event.stage)
                self.tries[name] = (number, note[note.index("refused") :])
        free = {w.source for w in waits_of(run.system, run.pending).waits if w.kind == NO_WAKE_UP}
        self.since = {name: self.since.get(name, number) for name in free}


def lost_wakeups(scenario: AnyScenario, schedule: Schedule) -> tuple[str, ...]:
    """Say of each participant that would be admitted now when it was tried last, and what followed.

    Parameters
    ----------
    scenario, schedule
        A run that ends in a lost wake-up.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    narrator, history = Narrator(), _History()
    run = QuiescentRun(scenario.make_replica(), (narrator,))
    run.begin()
    history.look(0, run, narrator)
    for number, instant in enumerate(schedule, start=1):
        run.fire(positions_of(instant, run.pending, number))
        history.look(number, run, narrator)
    return tuple(_sentences(history, schedule))


_HISTORIES: Final[dict[str, Callable[[AnyScenario, Schedule], tuple[str, ...]]]] = {
    LOST_WAKEUP: lost_wakeups,
    STRANDED_RENDEZVOUS: left_behind,
}


def schedule_lines(
    scenario: AnyScenario,
    schedule: Schedule,
    classification: str,
    analysis: WaitFor,
    message: str,
) -> tuple[str, ...]:
    """Explain a schedule that ends in a bad state, sentence by sentence.

    As :func:`models.explanation.explanation_lines`, with when a wake-up was lost or a lane left
    behind.
    """
    told = _HISTORIES.get(classification)
    history = () if told is None else told(scenario, schedule)
    when = after_instants(len(schedule))
    return explanation_lines(classification, analysis, when, message, history)


def _sentences(history: _History, schedule: Schedule) -> Iterator[str]:
    lost = {name: since for name, since in history.since.items() if name in history.tries}
    for name, since in lost.items():
        tried, why = history.tries[name]
        fired = " together with ".join(map(str, schedule[since - 1])) if since else ""
        last = f"in instant {tried}" if tried else "at the start"
        gone = "in the same instant" if tried == since else f"in instant {since} ({fired})"
        again = "nothing tried it again" + (" after that" if tried == since else "")
        # Several were lost one apart from the other: each sentence says whose it is.
        here = "It was lost here: " + name
        if len(lost) > 1:
            here = f"The wake-up of {name} was lost here: it"
        yield (
            f"{here} was tried last {last} ({why}); what stood in its way was gone {gone}, and "
            f"{again}."
        )


def _who(system: CheckableSystem, lane: int, stage: int) -> str:
    if isinstance(system, FfnReplica):
        return scheduler_name(system, lane)
    return lane_name(lane, stage)
