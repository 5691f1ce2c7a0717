"""Liveness of a lane replica: progress, starvation, waves that end, overtaking (issue 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from frontier.context import ContextSnapshot
from frontier.replica import ReplicaSnapshot, StageSnapshot
from frontier.tickets import EP_WAVE
from models.marks import (
    ADMITTED,
    DROPPED,
    ENDED,
    OLDEST_FIRED,
    OPPORTUNITY,
    OVERTAKEN,
    WAVE_ENDED,
    WAVE_OVERTAKEN,
    Mark,
)
from models.quiescent import ProtocolState
from models.waits import WAVE_ORDER
from verify.bounds import most_during_wait
from verify.fairness import Compassion, Edges, Fairness, Index, Justice, Mask
from verify.limits import Watch, watch_nothing
from verify.liveness import Lasso, LeadsTo, find_lasso, path_to_transition

PROGRESS: Final = "progress"
STARVATION: Final = "starvation"
FAIRNESS: Final = ("weak", "strong", "none")
WAVE_PASSED: Final = "a queued EP wave is overtaken"

LIVELOCK: Final = "livelock"
PARTIAL_DEADLOCK: Final = "partial_deadlock"


@dataclass(frozen=True)
class LaneProperty:
    """A liveness property of one lane, at one stage (-1: over all stages)."""

    name: str
    lane: int
    stage: int
    leads_to: LeadsTo


class LaneGraph:
    """The explored graph of a lane replica with what its states and transitions say of lanes.

    Parameters
    ----------
    edges
        Transitions, labelled with marks.
    states
        The states by index.
    lanes, stages
        Shape of the replica.
    """

    queues_waves = False
    """Whether EP waves have tickets of their own in the FIFO."""

    work = "batch"
    """What a lane runs, in messages."""

    wave_waited = False
    """Whether in some state an EP wave is queued."""

    def __init__(
        self, edges: Edges, states: Sequence[ProtocolState], lanes: int, stages: int
    ) -> None:
        self.edges = edges
        self.beyond: Callable[[int], bool] = lambda _lane: False
        """Whether a lane can still end a batch on ways out of this graph; a whole one has none."""
        self.lanes = lanes
        self.stages = stages
        shape = (lanes, stages, len(states))
        self.queued: npt.NDArray[np.bool_] = np.zeros(shape, dtype=np.bool_)
        self.waiting: npt.NDArray[np.bool_] = np.zeros(shape, dtype=np.bool_)
        self.in_flight: npt.NDArray[np.bool_] = np.zeros((lanes, len(states)), dtype=np.bool_)
        self.wave: npt.NDArray[np.bool_] = np.zeros((stages, len(states)), dtype=np.bool_)
        for index, state in enumerate(states):
            self._read(index, state)
        self.ended = [edges.labelled(_holds(Mark(ENDED, lane))) for lane in range(lanes)]

    def _read(self, index: int, state: ProtocolState) -> None:
        snapshot = state.system
        if not isinstance(snapshot, ReplicaSnapshot):
            raise TypeError(f"expected the state of a lane replica, got {type(snapshot).__name__}")
        for lane, count in enumerate(snapshot.in_flight):
            self.in_flight[lane, index] = count > 0
        for number, stage in enumerate(snapshot.stages):
            self._read_stage(index, number, stage)

    def _read_stage(self, index: int, number: int, stage: StageSnapshot) -> None:
        for lane, (running, queue) in enumerate(stage.lanes):
            if queue:
                self.queued[lane, number, index] = True
                self.waiting[lane, number, index] = running is None
        context = stage.context
        if isinstance(context, ContextSnapshot):
            self.wave[number, index] = any(scope == EP_WAVE for scope, _ in context.active)

    def who(self, lane: int) -> str:
        """Name of a lane in messages."""
        return f"lane {lane}"

    def marked(self, kind: str, lane: int = -1, stage: int = -1) -> Mask:
        """Transitions that carry a mark."""
        return self.edges.labelled(_holds(Mark(kind, lane, stage)))

    # ---------------------------------------------------------------- assumptions

    def fairness(self, name: str) -> Fairness:
        """Return the named assumption (``weak``, ``strong`` or ``none``).

        Weak fairness of every timed event is one demand. Pending events stand in order of
        creation, and a fired one closes the gap; so if the oldest pending event fires again and
        again, every pending event moves up until it is the oldest or has fired. If it does not,
        one and the same event stays the oldest, pending, for ever.

        Strong fairness of admission adds, for each lane and stage: a lane that would have been
        admitted again and again (even for a moment within an instant) is admitted.
        """
        if name == "none":
            return Fairness(name, may_stop=True)
        weak = (Justice("every pending event fires", self.marked(OLDEST_FIRED)),)
        if name == "weak":
            return Fairness(name, weak)
        if name != "strong":
            raise ValueError(f"fairness must be one of {', '.join(FAIRNESS)}, got {name!r}")
        pairs = tuple(
            Compassion(
                f"admission of {self.who(lane)} at stage {stage}",
                self.marked(OPPORTUNITY, lane, stage),
                self.marked(ADMITTED, lane, stage),
            )
            for lane in range(self.lanes)
            for stage in range(self.stages)
        )
        return Fairness(name, weak, pairs)

    # ---------------------------------------------------------------- properties

    def properties(self, names: Sequence[str]) -> Iterator[LaneProperty]:
        """Liveness properties of these names, lane by lane.

        ``progress``: a lane with work ends a batch again and again, and every dispatched wave
        ends. ``starvation``: every queued ticket is admitted. A lane's tickets at a stage are
        admitted, or dropped as stale, in the order of its heap; so one of them starves exactly
        if, from some moment on, the lane has a batch queued there and its first one stays. Work
        that is dropped is no longer owed anything.
        """
        if PROGRESS in names:
            for lane in range(self.lanes):
                message = f"{self.who(lane)} has work but never ends a {self.work} again"
                yield LaneProperty(PROGRESS, lane, -1, self._ends(lane, message))
            for stage in np.flatnonzero(self.wave.any(axis=1)).tolist():
                message = f"an EP wave dispatched at stage {stage} never ends"
                goal = self.marked(WAVE_ENDED, -1, stage)
                prop = LeadsTo("wave_ends", message, self.wave[stage], goal)
                yield LaneProperty(PROGRESS, -1, stage, prop)
        if STARVATION in names:
            for lane in range(self.lanes):
                for stage in range(self.stages):
                    message = f"a ticket of {self.who(lane)} at stage {stage} is never admitted"
                    goal = self._consumed(lane, stage) | self._into(~self.queued[lane, stage])
                    prop = LeadsTo(STARVATION, message, self.queued[lane, stage], goal)
                    yield LaneProperty(STARVATION, lane, stage, prop)

    def _consumed(self, lane: int, stage: int) -> Mask:
        """Transitions in which the lane's first queued batch is admitted, or dropped as stale."""
        return self.marked(ADMITTED, lane, stage) | self.marked(DROPPED, lane, stage)

    def _ends(self, lane: int, message: str) -> LeadsTo:
        return LeadsTo(PROGRESS, message, self.in_flight[lane], self._served(lane))

    def _into(self, states: Mask) -> Mask:
        """Transitions into these states."""
        into: Mask = states[self.edges.targets]
        return into

    def _served(self, lane: int) -> Mask:
        """Transitions in which a batch of the lane ends, or its work is gone (dropped)."""
        return self.ended[lane] | self._into(~self.in_flight[lane])

    def stuck(self, lane: int) -> Mask:
        """States in which the lane has work but can never end a batch again, whatever happens."""
        if self.beyond(lane):
            return np.zeros(self.edges.states, dtype=np.bool_)
        stuck: Mask = self.in_flight[lane] & ~self._can_reach(self._served(lane))
        return stuck

    def _can_reach(self, goal: Mask) -> Mask:
        """States with a path that takes a goal transition."""
        edges = self.edges
        able = np.zeros(edges.states, dtype=np.bool_)
        able[edges.sources[goal]] = True
        while True:
            fresh = able[edges.targets] & ~able[edges.sources]
            if not fresh.any():
                return able
            able[edges.sources[fresh]] = True

    def partial_deadlock(self, lane: int, fairness: Fairness) -> tuple[LeadsTo, Lasso] | None:
        """Lasso to a state in which the lane is stuck for ever while events go on, or None."""
        stuck = self.stuck(lane)
        message = f"{self.who(lane)} can never end a {self.work} again, while others go on for ever"
        prop = LeadsTo(PROGRESS, message, stuck, self._served(lane))
        lasso = find_lasso(self.edges, prop, fairness, ends=False)
        return None if lasso is None else (prop, lasso)

    # ---------------------------------------------------------------- overtaking

    def overtaken(self, lane: int, stage: int) -> int | None:
        """Most admissions of later tickets past a lane's waiting one, or None if unbounded."""
        before, after = [], []
        wanted = Mark(OVERTAKEN, lane, stage)
        ends = (Mark(ADMITTED, lane, stage), Mark(DROPPED, lane, stage))
        for label in self.edges.graph.alphabet:
            marks: Any = label
            at = next((i for i, mark in enumerate(marks) if mark in ends), len(marks))
            before.append(marks[:at].count(wanted))
            after.append(marks[at:].count(wanted))
        numbers = np.array(self.edges.graph.labels, dtype=np.int64)
        counts: list[Index] = [np.array(c, dtype=np.int64)[numbers] for c in (before, after)]
        served = self._consumed(lane, stage)
        return most_during_wait(self.edges, self.waiting[lane, stage], served, *counts)


def _holds(mark: Mark) -> Callable[[object], bool]:
    def holds(label: object) -> bool:
        return isinstance(label, tuple) and mark in label

    return holds


def class_of_lasso(graph: LaneGraph, lane: int, cycle: Sequence[int]) -> str:
    """Class of a lasso whose cycle is not empty, given as transitions.

    ``livelock``: events go on, but no lane ends a batch. ``partial_deadlock``: others end
    batches, and this lane never can. ``starvation``: this lane could, but is passed over.
    """
    on_cycle = np.array(cycle, dtype=np.int64)
    if not any(ended[on_cycle].any() for ended in graph.ended):
        return LIVELOCK
    if lane >= 0 and graph.stuck(lane)[graph.edges.sources[on_cycle[0]]]:
        return PARTIAL_DEADLOCK
    return STARVATION


@dataclass(frozen=True)
class Finding:
    """One liveness property judged.

    ``lasso`` violates it under the assumed fairness (None: it holds), ``control`` without any
    assumption. ``classification`` is None if the property holds or the lasso's run ends;
    ``vacuous`` says that nothing was ever owed: no state asks anything of any run.
    """

    name: str
    lane: int
    stage: int
    message: str
    lasso: Lasso | None
    classification: str | None
    control: Lasso | None
    vacuous: bool = False

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Order in which violations are told: the more specific class and property first."""
        order = (None, WAVE_ORDER, PARTIAL_DEADLOCK, LIVELOCK, STARVATION)
        depth = 0 if self.lasso is None else len(self.lasso.stem)
        return order.index(self.classification), self.name != self.classification, depth


@dataclass(frozen=True)
class Liveness:
    """Liveness of a scenario: every property's finding, and how often lanes are overtaken.

    ``overtaken[lane][stage]`` is the bound found, None if there is none.
    """

    fairness: str
    findings: tuple[Finding, ...]
    overtaken: tuple[tuple[int | None, ...], ...]

    @property
    def violated(self) -> tuple[Finding, ...]:
        """Findings with a lasso, those that say most first."""
        found = [finding for finding in self.findings if finding.lasso is not None]
        return tuple(sorted(found, key=lambda finding: finding.rank))


def judge_liveness(
    graph: LaneGraph, names: Sequence[str], fairness: str, watch: Watch = watch_nothing
) -> Liveness:
    """Judge the liveness properties of these names under the named fairness.

    Raises
    ------
    verify.limits.LimitReachedError
        If ``watch`` says so between two properties.
    """
    assumed, nothing = graph.fairness(fairness), graph.fairness("none")
    findings: list[Finding] = []
    for prop in graph.properties(names):
        watch()
        findings += _judge(graph, prop, assumed, nothing)
    if STARVATION in names and graph.queues_waves:
        findings.append(_wave_order(graph))
    overtaken = []
    for lane in range(graph.lanes):
        watch()
        overtaken.append(tuple(graph.overtaken(lane, stage) for stage in range(graph.stages)))
    return Liveness(fairness, tuple(findings), tuple(overtaken))


def _wave_order(graph: LaneGraph) -> Finding:
    """Judge that no ticket passes a queued EP wave: a shortest path to one that does, or none.

    This is safety: fairness plays no part, and so there is no control without it.
    """
    lasso = path_to_transition(graph.edges, graph.marked(WAVE_OVERTAKEN))
    found = None if lasso is None else WAVE_ORDER
    return Finding(WAVE_ORDER, -1, -1, WAVE_PASSED, lasso, found, None, not graph.wave_waited)


def _judge(
    graph: LaneGraph, prop: LaneProperty, assumed: Fairness, nothing: Fairness
) -> Iterator[Finding]:
    """Judge one property; a partial deadlock is told beside a run that drains, or in its place."""
    lasso = find_lasso(graph.edges, prop.leads_to, assumed)
    control = find_lasso(graph.edges, prop.leads_to, nothing)
    message, vacuous = prop.leads_to.message, not prop.leads_to.trigger.any()
    found = [(message, lasso)]
    if lasso is not None and prop.name == PROGRESS and prop.lane >= 0:
        # Among the violations of a lane's progress, one from which nothing rescues the lane.
        partial = graph.partial_deadlock(prop.lane, assumed)
        if partial is not None:
            found = [*([] if lasso.cycle else found), (partial[0].message, partial[1])]
    for words, violation in found:
        kind = None
        if violation is not None and violation.cycle:
            edges = graph.edges.walk(violation.entry, violation.cycle)
            kind = class_of_lasso(graph, prop.lane, edges)
        told = words if kind == PARTIAL_DEADLOCK else message
        yield Finding(prop.name, prop.lane, prop.stage, told, violation, kind, control, vacuous)
