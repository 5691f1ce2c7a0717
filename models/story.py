"""A schedule told step by step, of a lane replica or of a stage fed by groups (issue 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from frontier.events import Event
from models.explanation import Narrator
from models.quiescent import Action, ProtocolState, QuiescentRun, enabled_actions
from models.schedule import WIDEST, Schedule, positions_of
from models.subjects import AnyScenario, stages_of, waits_of
from models.trials import BoundedModel
from models.waits import PRESENTED_BY
from verify.explorer import explore
from verify.fate import Fates, fates_of, point_of_no_return
from verify.graph import Graph
from verify.limits import INTERRUPTED, Limits
from verify.shortest import TooWideError
from verify.story import Choice, Handled, Item, NoReturn, Part, Step, Story, changes_between

MAX_STATES: Final = 20_000
"""States that may be explored to learn the fates of a schedule's states."""

MOST_STEPS: Final = 60
"""Instants that are told; of a longer schedule the last ones."""

LISTED: Final = 64
"""Choices that a step lists."""

PENDING: Final = "events to come"


# -------------------------------------------------------------------- the state in parts


def state_parts(run: QuiescentRun) -> tuple[Part, ...]:
    """Return the parts of a live state: per stage its context, rooms and lanes; pending events."""
    parts = [part for stage in stages_of(run.system) for part in _stage_parts(stage)]
    pending = Counter(map(str, run.pending))
    items = tuple(Item(text if n == 1 else f"{n} x {text}") for text, n in pending.items())
    return (*parts, Part(PENDING, "pending", items))


def _ticket(ticket: dict[str, Any]) -> str:
    return f"seq {ticket['seq']}: {ticket['operation']}"


def _stage_parts(stage: dict[str, Any]) -> Iterator[Part]:
    section = f"stage {stage['stage']}"
    yield Part(section, "active", tuple(Item(_ticket(t), "busy") for t in stage["active"]))
    yield Part(section, "FIFO", tuple(Item(_ticket(t), "wait") for t in stage["fifo"]))
    group = Item("sealed", "wait") if stage["sealed"] else Item("open")
    yield Part(section, "forward group", (group,))
    for room in stage["rooms"]:
        phase = f"{room['phase']} " if room["phase"] else ""
        yield Part(section, f"{phase}room, layer {room['layer']}", tuple(_room_items(room)))
    for lane in stage["lanes"]:
        name = lane.get("name", f"lane {lane['lane']}")
        yield Part(section, name, tuple(_lane_items(lane)))


def _room_items(room: dict[str, Any]) -> Iterator[Item]:
    yield from (Item(f"lane {lane}", "busy") for lane in room["holds"])
    yield from (Item(f"placeholder for lane {lane}", "ghost") for lane in room["placeholders"])
    yield from (Item(f"waits for lane {lane}", "wait") for lane in room["waits_for"])


def _lane_items(lane: dict[str, Any]) -> Iterator[Item]:
    work = lane.get("work", "batch")
    if lane["running"] is not None:
        yield Item(f"runs {work} {lane['running']}", "busy")
    elif not lane["queued"]:
        yield Item("idle")
    yield from (Item(f"{work} {number} queued", "wait") for number in lane["queued"])


def waiting(run: QuiescentRun) -> Iterator[str]:
    """Say of each lane and room that cannot move now what it waits for."""
    for wait in waits_of(run.system, run.pending).waits:
        if wait.kind != PRESENTED_BY:
            yield f"{wait.source} {wait.reason}"


# -------------------------------------------------------------------- fates


@dataclass(frozen=True)
class Known:
    """The explored graph of a scenario: states by value, and their fates."""

    graph: Graph
    index: dict[ProtocolState, int]
    fates: Fates
    states: tuple[ProtocolState, ...]
    ties: bool

    def completes(self, state: ProtocolState) -> bool:
        """Whether a run can still complete from a state."""
        return self.fates.can_complete(self.index[state])

    def completes_after(self, state: ProtocolState, number: int) -> bool:
        """Whether a run can still complete after action ``number`` of a state."""
        return self.fates.can_complete(self._successors(self.index[state])[number])

    def _successors(self, source: int) -> Sequence[int]:
        return self.graph.targets[self.graph.offsets[source] : self.graph.offsets[source + 1]]

    def healthy(self, state: ProtocolState) -> Iterator[tuple[str, ...]]:
        """Instants of a shortest completing run from a state."""
        at = self.index[state]
        for successor in self.fates.way(at):
            source = self.states[at]
            action = enabled_actions(source, self.ties)[self._successors(at).index(successor)]
            yield tuple(str(source.pending[position]) for position in action)
            at = successor


def explore_fates(scenario: AnyScenario, max_states: int = MAX_STATES) -> Known | None:
    """Explore a scenario for the fates of its states; None if it is too large.

    Work that never ends has no completed states; there a state is well if a run can go on from
    it for ever, which is so if it leads to a state that lies on a cycle.
    """
    model = BoundedModel(scenario, max_states)
    try:
        result = explore(model, (), limits=Limits(max_states), must_terminate=False)
    except TooWideError:
        return None
    if getattr(result.verdict, "limit", None) == INTERRUPTED:
        raise KeyboardInterrupt
    if not result.verdict.stats.complete:
        return None
    states, graph = result.states, result.graph
    completed = graph.states_on_cycles() if scenario.endless else _completed(model, graph, states)
    index = {state: at for at, state in enumerate(states)}
    return Known(graph, index, fates_of(graph, completed), states, scenario.ties)


def _completed(model: BoundedModel, graph: Graph, states: Sequence[ProtocolState]) -> list[int]:
    ends = [i for i in range(graph.states) if graph.offsets[i] == graph.offsets[i + 1]]
    return [i for i in ends if states[i].failed is None and model.is_complete(states[i])]


def listable_actions(state: ProtocolState, ties: bool) -> tuple[Sequence[Action], int]:
    """Choices of a state that can be listed, and how many cannot."""
    pending = len(state.pending)
    if pending > WIDEST and ties:
        singles = enabled_actions(state, ties=False)
        return singles[:LISTED], (1 << pending) - 1 - len(singles[:LISTED])
    actions = enabled_actions(state, ties)
    return actions[:LISTED], max(0, len(actions) - LISTED)


# -------------------------------------------------------------------- telling


def handled_of(notes: Sequence[tuple[Event, str]]) -> tuple[Handled, ...]:
    """Return what a narrator noted, each in its tone."""
    return tuple(Handled(str(event), note, _tone(note)) for event, note in notes)


def _tone(note: str) -> str:
    if note.startswith("refused"):
        return "refused"
    return "good" if "admitted" in note or "dispatched" in note else ""


class _Teller:
    """Steps a live run and notes what a reader sees."""

    def __init__(self, scenario: AnyScenario, known: Known | None, instants: int) -> None:
        self.scenario = scenario
        self.known = known
        self.narrator = Narrator()
        self.run = QuiescentRun(scenario.make_replica(), (self.narrator,))
        self.skipped = max(0, instants - MOST_STEPS)
        self.steps: list[Step] = []
        self.path: list[ProtocolState] = []

    def note(self, fired: Sequence[Event], taken: Sequence[Event]) -> None:
        """Note the state reached by ``fired``, from which ``taken`` falls due next."""
        parts = state_parts(self.run)
        state = self.run.state()
        before = self.steps[-1].parts if self.steps else ()
        choices, unlisted = self._choices(state, tuple(taken))
        self.path.append(state)
        self.steps.append(
            Step(
                number=self.skipped + len(self.steps),
                fired=tuple(map(str, fired)),
                handled=handled_of(self.narrator.take()),
                parts=parts,
                changes=changes_between(before, parts) if self.steps else (),
                waits=tuple(waiting(self.run)),
                choices=choices,
                unlisted=unlisted,
                can_complete=None if self.known is None else self.known.completes(state),
            )
        )

    def _choices(
        self, state: ProtocolState, taken: tuple[Event, ...]
    ) -> tuple[tuple[Choice, ...], int]:
        actions, unlisted = listable_actions(state, self.scenario.ties)
        choices = []
        for number, action in enumerate(actions):
            events = tuple(state.pending[at] for at in action)
            words = tuple(map(str, events))
            completes = None if self.known is None else self.known.completes_after(state, number)
            choices.append(Choice(number, words, events == taken, completes))
        return tuple(choices), unlisted


def tell(scenario: AnyScenario, schedule: Schedule, max_states: int = MAX_STATES) -> Story:
    """Tell a schedule step by step; the fates of its states if the graph is small enough.

    Parameters
    ----------
    scenario, schedule
        What is told.
    max_states
        States that may be explored to learn the fates.

    Raises
    ------
    verify.path.PathError
        If the schedule is not one of the scenario.
    """
    return tell_known(scenario, schedule, explore_fates(scenario, max_states), max_states)


def tell_known(
    scenario: AnyScenario, schedule: Schedule, known: Known | None, max_states: int = MAX_STATES
) -> Story:
    """Tell a schedule of a scenario whose fates are known already, or are not to be known."""
    teller = _Teller(scenario, known, len(schedule))
    run = teller.run
    run.begin()
    fired: tuple[Event, ...] = ()
    for number, instant in enumerate(schedule, start=1):
        positions = positions_of(instant, run.pending, number)
        due = tuple(run.pending[at] for at in positions)
        if number > teller.skipped:
            teller.note(fired, due)
        else:
            teller.narrator.take()
        run.fire(positions)
        fired = due
    teller.note(fired, ())
    steps, endless = tuple(teller.steps), scenario.endless
    if known is None:
        return Story(
            steps, None, f"not computed: more than {max_states:,} states, or too many ties", endless
        )
    path = [known.index[state] for state in teller.path]
    lost = point_of_no_return(known.fates, path)
    if lost == 0 and teller.skipped:
        fate = f"lost within the first {teller.skipped} instants, which are not told"
        return Story(steps, None, fate, endless)
    if lost is None:
        end = "go on for ever" if endless else "complete"
        return Story(steps, None, f"a run can still {end} after the last step", endless)
    no_return = _no_return(teller, known, lost)
    return Story(steps, no_return, no_return.text, endless)


def _no_return(teller: _Teller, known: Known, lost: int) -> NoReturn:
    endless = teller.scenario.endless
    if lost == 0:
        goes = "goes on for ever" if endless else "completes"
        text = f"no timing of this scenario {goes}: it is lost before the first instant"
        return NoReturn(0, text, ())
    step, before = teller.steps[lost], teller.steps[lost - 1]
    # A state on a cycle is well itself; there any instant that keeps it so will do.
    staying = (choice.events for choice in before.choices if choice.completes)
    healthy = tuple(known.healthy(teller.path[lost - 1])) or tuple(islice(staying, 1))
    good = sum(choice.completes is True for choice in before.choices)
    more = f"{len(healthy)} more instant{'s' if len(healthy) != 1 else ''}"
    goes = "goes on for ever" if endless else "completes"
    end = f"and completes in {more}, this one included"
    if endless:
        end = "and can then go on for ever"
    there = "let a run go on" if endless else "lead to an end"
    instead = " together with ".join(healthy[0])
    text = (
        f"after instant {step.number} ({' together with '.join(step.fired)}) no continuation "
        f"{goes}. Before it, {good} of {len(before.choices)} possible instants still {there}: a "
        f"healthy run lets {instead} fall due there instead, {end}"
    )
    return NoReturn(step.number, text, healthy)
