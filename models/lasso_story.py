"""Why a lasso is a violation: who is passed over in the cycle, and by whom, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from frontier.events import BATCH_END, STAGE_END, STAGE_SCHEDULE, Event
from frontier.replica import Replica
from models.explanation import Narrator, after_instants
from models.liveness import LIVELOCK, PARTIAL_DEADLOCK, STARVATION
from models.quiescent import Action, Handled, ProtocolState, QuiescentModel, QuiescentRun
from models.waits import lane_name, lane_waits
from verify.liveness import Lasso

STOPPED_RUN: Final = "stopped_run"
"""Class of a run that stops although events are pending: possible only without fairness."""

_HEADLINES: Final = {
    STOPPED_RUN: "Stopped run: events are pending, but nothing makes them fire",
    LIVELOCK: "Livelock: events go on for ever, but no batch ends",
    PARTIAL_DEADLOCK: "Partial deadlock: one lane is stuck for ever while others go on",
    STARVATION: "Starvation: a lane is passed over for ever while others go on",
}

MOST_SENTENCES: Final = 4


class Told(Protocol):
    """What is violated: the property's message, of which lane and stage (-1: of none)."""

    @property
    def message(self) -> str:
        """What a violation means."""
        ...

    @property
    def lane(self) -> int:
        """Lane that the property is about."""
        ...

    @property
    def stage(self) -> int:
        """Stage that the property is about."""
        ...


@dataclass(frozen=True)
class Round:
    """One round of the cycle on the live core.

    What was handled, with a note for each event; ``held_back`` is the oldest event pending where
    the round begins if no instant of it fires the oldest one: that event then never fires.
    """

    handled: tuple[Handled, ...]
    notes: tuple[str, ...]
    held_back: Event | None = None


def held_back(pending: Sequence[Event], round_trip: Sequence[Action]) -> Event | None:
    """Event that a cycle never fires, or None if the cycle is weakly fair.

    Pending events stand in order of creation, so an event that no instant lets fall due while it
    is the oldest stays the oldest, pending, for ever.
    """
    fires_oldest = any(0 in action for action in round_trip)
    return pending[0] if pending and not fires_oldest else None


def narrated_run(model: QuiescentModel) -> tuple[QuiescentRun, Narrator]:
    """Return a live run from the start whose events are narrated."""
    narrator = Narrator()
    run = model.begin((narrator,))
    narrator.take()
    return run, narrator


def _stage_of(replica: Replica, finding: Told, played: Round) -> int | None:
    """Stage at which the lane is passed over: it waits there and is not admitted in the round."""
    stages = range(replica.config.stages) if finding.stage < 0 else (finding.stage,)
    for stage in stages:
        scheduler = replica.schedulers[stage][finding.lane]
        admitted = any(
            h.event.kind == STAGE_SCHEDULE
            and (h.event.lane, h.event.stage) == (finding.lane, stage)
            and h.follow
            for h in played.handled
        )
        if scheduler.queue and not scheduler.busy and not admitted:
            return stage
    return None


def _passed_over(lane: int, stage: int, played: Round) -> list[str]:
    """One sentence per release in the round after which another lane got in before this one."""
    sentences = []
    for at, (event, follow) in enumerate(played.handled):
        if event.kind != STAGE_END or event.stage != stage or event.batch is None:
            continue
        retries = [e.lane for e in follow if e.kind == STAGE_SCHEDULE and e.stage == stage]
        if lane not in retries:
            continue
        text = f"When lane {event.lane}'s batch {event.batch.number} leaves stage {stage}, "
        if event.lane in retries[: retries.index(lane)]:
            text += f"lane {event.lane}'s own retry comes before lane {lane}'s"
        else:
            text += "the lanes retry in the order " + ", ".join(map(str, retries))
        text += _outcomes(lane, stage, played, at + 1)
        sentences.append(text + ".")
    return list(dict.fromkeys(sentences))


def _outcomes(lane: int, stage: int, played: Round, start: int) -> str:
    """Say what the retries after a release came to, up to this lane's own."""
    text = ""
    for (event, follow), note in zip(played.handled[start:], played.notes[start:], strict=True):
        if event.kind != STAGE_SCHEDULE or event.stage != stage:
            continue
        if follow:
            batch = follow[0].batch
            text += f"; lane {event.lane} is admitted"
            text += "" if batch is None else f" with batch {batch.number}"
        elif event.lane == lane:
            return text + f"; then lane {lane} is {note}"
    return text


def tell(
    finding: Told,
    classification: str,
    depth: int,
    rounds: int,
    entry: tuple[Replica, Sequence[Event]],
    played: Round,
) -> tuple[str, ...]:
    """Write the explanation of a lasso, sentence by sentence.

    Parameters
    ----------
    finding
        The violated property.
    classification
        Class of the violation.
    depth, rounds
        Instants of the stem and of the cycle.
    entry
        The live replica and its pending events where the cycle begins and ends.
    played
        One round of the cycle.
    """
    headline = _HEADLINES.get(classification, classification)
    lines = [f"{headline} ({finding.message})."]
    if not rounds:
        lines.append(
            f"The run stops {after_instants(depth)}, although events are pending: nothing is "
            f"assumed that would make them fire."
        )
        return tuple(lines)
    again = "instant repeats" if rounds == 1 else f"{rounds} instants repeat"
    lines.append(f"{after_instants(depth).capitalize()}, the next {again} for ever.")
    replica, pending = entry
    if classification == STARVATION and finding.lane >= 0:
        lines += _starved(finding, replica, played)
    elif classification == PARTIAL_DEADLOCK:
        lines += _stuck(finding.lane, replica, pending)
    lines.append(_round_summary(played))
    return tuple(lines)


def _starved(finding: Told, replica: Replica, played: Round) -> list[str]:
    stage = _stage_of(replica, finding, played)
    if stage is None:
        return []
    lane = finding.lane
    fifo: Sequence[Any] = replica.contexts[stage].queued_tickets
    lines = _passed_over(lane, stage, played)
    if fifo and fifo[0].operation_id.lane == lane:
        lines.append(f"All the while lane {lane}'s ticket stands first in the FIFO of the stage.")
    return lines


def _stuck(lane: int, replica: Replica, pending: Sequence[Event]) -> list[str]:
    analysis = lane_waits(replica, pending)
    names = {lane_name(lane, stage) for stage in range(replica.config.stages)}
    own = [wait for wait in analysis.stuck_waits if wait.source in names]
    rest = [wait for wait in analysis.stuck_waits if wait.source not in names]
    chosen = (own + rest)[:MOST_SENTENCES]
    return [f"{w.source[0].upper()}{w.source[1:]} {w.reason}." for w in chosen]


def _round_summary(played: Round) -> str:
    ended = sorted({h.event.lane for h in played.handled if h.event.kind == BATCH_END})
    done = f"lane {', '.join(map(str, ended))} ends a batch" if ended else "no batch ends"
    text = f"In each round {done}, and then the state is the same again; "
    if played.held_back is None:
        return text + "no pending event is held back, so no longer wait will help."
    return text + f"but {played.held_back} is held back for ever: the run is not fair."


STOPS: Final = "stops"
DRAINS: Final = "drains"
UNFAIR_CYCLE: Final = "unfair_cycle"
FAIR_CYCLE: Final = "fair_cycle"


@dataclass(frozen=True)
class Control:
    """A run that violates a property when nothing is assumed fair, and of what kind it is.

    ``kind`` is ``stops`` (no event fires any more, although some are pending), ``unfair_cycle``
    (events go on for ever, but ``held_back`` never fires), ``fair_cycle`` (no pending event is
    held back) or ``drains`` (the run ends with nothing pending). The last two violate the
    property under weak fairness too. ``entry`` is the state where the run stops, or to which its
    cycle returns.
    """

    kind: str
    lasso: Lasso
    held_back: Event | None
    entry: ProtocolState

    def __str__(self) -> str:
        """Say what the run does, in a clause."""
        if self.kind == DRAINS:
            return f"a run that drains {after_instants(len(self.lasso.stem))}"
        if self.kind == STOPS:
            when = after_instants(len(self.lasso.stem))
            return (
                f"a run that merely stops, {when}, where {self.held_back} is pending and never "
                f"fires (no run that goes on violates it)"
            )
        rounds = len(self.lasso.cycle)
        again = "1 instant repeats" if rounds == 1 else f"{rounds} instants repeat"
        if self.held_back is None:
            return f"a fair cycle: {again} for ever, and no pending event is held back"
        return f"an unfair cycle: {again} for ever while {self.held_back} is held back"


def control_of(model: QuiescentModel, lasso: Lasso) -> Control:
    """Play a lasso found without fairness, and say what kind of run it is."""
    run = model.begin()
    for number in lasso.stem:
        run.fire(model.actions(run.state())[number])
    pending, entry = tuple(run.pending), run.state()
    if not pending:
        return Control(DRAINS, lasso, None, entry)
    if not lasso.cycle:
        return Control(STOPS, lasso, pending[0], entry)
    taken = []
    for number in lasso.cycle:
        taken.append(model.actions(run.state())[number])
        run.fire(taken[-1])
    stuck = held_back(pending, taken)
    return Control(FAIR_CYCLE if stuck is None else UNFAIR_CYCLE, lasso, stuck, entry)
