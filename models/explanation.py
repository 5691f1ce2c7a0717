"""Why a state is a violation, in sentences that a person understands in one minute."""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from frontier.ffn import FfnReplica
from frontier.replica import Replica
from models.contexts import ExplainingContext
from models.group_view import group_note
from models.waits import (
    CIRCULAR_WAIT,
    CORE_ERROR,
    INVARIANT_VIOLATION,
    LOST_WAKEUP,
    ORPHAN_TICKET,
    SPLIT_RENDEZVOUS,
    STRANDED_RENDEZVOUS,
    WAVE_ORDER,
    ticket_name,
)
from verify.waitfor import Edge, WaitFor, chain

_HEADLINES: Final = {
    CIRCULAR_WAIT: "Circular wait: each participant waits for the next, and the last for the first",
    LOST_WAKEUP: "Lost wake-up: a lane would be admitted now, but nothing is left that retries it",
    STRANDED_RENDEZVOUS: "Stranded rendezvous: a lane waits in a room that nobody will enter",
    SPLIT_RENDEZVOUS: "Split rendezvous: lanes that need each other wait in different rooms",
    ORPHAN_TICKET: "Orphan ticket: a ticket stayed behind when its batch was dropped",
    WAVE_ORDER: "Wave order: a ticket was admitted past an EP wave queued ahead of it",
    CORE_ERROR: "Core error: the stage context rejected a call that the protocol makes",
    INVARIANT_VIOLATION: "Broken invariant",
}


def _sentence(name: str, reason: str) -> str:
    return f"{name[0].upper()}{name[1:]} {reason}."


def _prose(edges: Sequence[Edge]) -> list[str]:
    return [_sentence(edge.source, edge.reason) for edge in edges]


def _dead_end_prose(analysis: WaitFor) -> list[str]:
    """Shortest chain from a lane in a room to a wait that nothing ends."""
    chains = [(chain(analysis, name), name) for name in analysis.stuck]
    useful = [edges for edges, _ in chains if edges and edges[0].kind == "in_room"]
    if useful:
        edges = min(useful, key=len)
        end = edges[-1].target
        reasons = [wait.reason for wait in analysis.dead_ends if wait.source == end]
        return [*_prose(edges), _sentence(end, _joined(reasons))]
    return [_sentence(wait.source, wait.reason) for wait in analysis.dead_ends]


_LANE: Final = re.compile(r"needs lane (\d+), which")


def _joined(reasons: Sequence[str]) -> str:
    """Several reasons of one participant as one clause; lanes missing for equal reasons once."""
    lanes: dict[str, list[str]] = {}
    for reason in reasons:
        lane = _LANE.match(reason)
        lanes.setdefault(reason if lane is None else reason[lane.end() :], []).append(
            reason if lane is None else lane[1]
        )
    clauses = []
    for why, (first, *others) in lanes.items():
        clause = why if first == why else f"needs lane {first}, which{why}"
        if others:
            and_last = " and ".join(filter(None, [", ".join(others[:-1]), others[-1]]))
            clause += f"; the same goes for lane{'s' if len(others) > 1 else ''} {and_last}"
        clauses.append(clause)
    return "; it ".join(clauses)


def after_instants(depth: int) -> str:
    """When a schedule of this many instants ends, in words."""
    return f"after {depth} instant" + ("s" if depth != 1 else "")


def explanation_lines(
    classification: str,
    analysis: WaitFor,
    when: str,
    message: str,
    history: Sequence[str] = (),
) -> tuple[str, ...]:
    """Write the explanation sentence by sentence: headline, the chain, the contradiction.

    Parameters
    ----------
    classification
        Class of the violation (:mod:`models.waits`).
    analysis
        Who waits for whom in the violating state.
    when
        When the state is reached, in words.
    message
        What the violated property says.
    history
        How it came to that, sentence by sentence, where that is told.
    """
    lines = [f"{_HEADLINES.get(classification, classification)} ({when}: {message})."]
    if classification in (CIRCULAR_WAIT, SPLIT_RENDEZVOUS):
        first = analysis.cycle[0].source
        lines += _prose(analysis.cycle)
        lines.append(f"So {first} waits for itself, and nothing will break the circle.")
    elif classification in (LOST_WAKEUP, STRANDED_RENDEZVOUS, ORPHAN_TICKET):
        lines += [*_dead_end_prose(analysis), *history]
        if classification != ORPHAN_TICKET:
            lines.append("So this never changes.")
    return tuple(lines)


def explain(classification: str, analysis: WaitFor, when: str, message: str) -> str:
    """Write the explanation as one paragraph; see :func:`explanation_lines`."""
    return " ".join(explanation_lines(classification, analysis, when, message))


def refusal_note(replica: Replica, stage: int, lane: int) -> str:
    """Say why a lane's head is refused at a stage now."""
    head = replica.schedulers[stage][lane].queue[0]
    ticket = replica.tickets[stage].get(head)
    context = replica.contexts[stage]
    if ticket is None or not isinstance(context, ExplainingContext):
        return "refused"
    words = []
    for refusal in context.refusals(ticket):
        if refusal.reason == "behind":
            ahead = ", ".join(ticket_name(t) for t in refusal.blockers)
            words.append(f"behind {ahead}" if ahead else "for no reason that the context shows")
        else:
            words.append(refusal.reason.replace("_", " "))
    return "refused: " + "; ".join(words)


class Narrator:
    """An observer that keeps one note per handled event: admitted, refused and why, dispatched.

    Attributes
    ----------
    lines
        ``(event, note)`` in the order of handling; the note may be empty.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[Event, str]] = []

    def __call__(self, system: Any, event: Event, follow: Sequence[Event]) -> None:
        """Note one handled event."""
        self.lines.append((event, self._note(system, event, follow)))

    def take(self) -> list[tuple[Event, str]]:
        """Return the notes since the last call."""
        lines, self.lines = self.lines, []
        return lines

    def _note(self, system: Any, event: Event, follow: Sequence[Event]) -> str:
        if isinstance(system, FfnReplica):
            return group_note(system, event, follow)
        if not isinstance(system, Replica):
            return ""
        dropped = next((e.batch for e in follow if e.kind == BATCH_DROPPED), None)
        if dropped is not None:
            return f"stale batch {dropped.number} of lane {dropped.lane} dropped"
        wave = next((e for e in follow if e.kind == WAVE_END), None)
        if wave is not None:
            lanes = ", ".join(str(b.lane) for b in wave.members)
            return f"room full: EP wave of lane {lanes} dispatched"
        if event.kind == STAGE_SCHEDULE:
            return self._schedule_note(system, event, follow)
        if event.kind == ATTENTION_DONE:
            filled = [e.lane for e in follow if e.kind == STAND_IN]
            if filled:
                return f"enters the room; placeholder for lane {', '.join(map(str, filled))}"
            return "enters the room and waits there"
        return ""

    def _schedule_note(self, replica: Replica, event: Event, follow: Sequence[Event]) -> str:
        if follow and follow[0].kind in (ATTENTION_DONE, STAGE_END):
            batch = follow[0].batch
            return "admitted" if batch is None else f"batch {batch.number} admitted"
        scheduler = replica.schedulers[event.stage][event.lane]
        if scheduler.busy or not scheduler.queue:
            return "nothing to do"
        return refusal_note(replica, event.stage, event.lane)
