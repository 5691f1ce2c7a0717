"""Trying a smaller scenario: whether it still has a counterexample of the kind to keep (issue 5).

A *replay* carries a schedule over; it is cheap, and decides nothing if it fails. A *search*
explores every timing for a simplest schedule: to a bad state, to an admission past an EP wave, or
to a lasso whose stem and cycle together are shortest. What a search does not find is not there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from models.counterexample import (
    INVARIANT_CLASSES,
    WAVE_PASSED,
    Counterexample,
    Violated,
    bad_states,
    sort_key,
)
from models.liveness import (
    LIVELOCK,
    PARTIAL_DEADLOCK,
    STARVATION,
    LaneGraph,
    LaneProperty,
    class_of_lasso,
)
from models.marks import WAVE_OVERTAKEN, Mark, MarkedModel
from models.quiescent import (
    Action,
    ProtocolState,
    QuiescentModel,
    QuiescentRun,
    enabled_actions,
)
from models.scenario import Scenario
from models.schedule import Instant, Ranks, Schedule, play
from models.subjects import AnyScenario, graph_of, invariants_of, marker_of
from models.waits import CORE_ERROR, WAVE_ORDER
from verify.explorer import explore
from verify.fairness import Edges, Fairness, Justice
from verify.limits import INTERRUPTED, Limits
from verify.liveness import LeadsTo
from verify.model import Model
from verify.shortest import Found, GaveUp, TooWideError, shortest_path
from verify.shortest_lasso import costs_of, shortest_lasso
from verify.shrink import Rejection

STEPS_PER_STATE: Final = 8
"""Steps that a search may take for each state that it may see."""

LASSO_CLASSES: Final = (PARTIAL_DEADLOCK, LIVELOCK, STARVATION)
RUN_CLASSES: Final = (*LASSO_CLASSES, WAVE_ORDER)

MOST_STEPS: Final = 2_000_000
"""Steps of the search for a shortest lasso."""


@dataclass(frozen=True)
class Wanted:
    """What a counterexample must be like.

    ``classification`` None: any violation at all; ``signature`` None: whatever holds it.
    ``liveness`` names the properties of runs that are asked, under ``fairness``; ``only_runs``
    leaves bad states out.
    """

    classification: str | None = None
    signature: tuple[str, ...] | None = None
    liveness: tuple[str, ...] = ()
    fairness: str = "weak"
    only_runs: bool = False

    def accepts(self, classification: str, signature: tuple[str, ...]) -> bool:
        """Whether a violation of this class and signature is wanted."""
        if self.classification is not None and classification != self.classification:
            return False
        return self.signature is None or signature == self.signature

    @property
    def states(self) -> bool:
        """Whether bad states can be wanted."""
        return not self.only_runs and self.classification not in RUN_CLASSES

    @property
    def invariants(self) -> bool:
        """Whether broken invariants can be wanted."""
        return self.classification is None or self.classification in INVARIANT_CLASSES

    @property
    def runs(self) -> bool:
        """Whether violating runs can be wanted."""
        return bool(self.liveness) and (
            self.classification is None or self.classification in RUN_CLASSES
        )


# -------------------------------------------------------------------- bounded models


class _Bounded:
    """Bounds the work on a model.

    Raises :class:`~verify.shortest.TooWideError` on a state with more instants than states are
    allowed, and after :data:`STEPS_PER_STATE` times as many steps.
    """

    _widest: int
    _steps_left: int

    def bound(self, max_states: int, ties: bool) -> None:
        """Set the limits."""
        self._widest = max_states.bit_length() if ties else max_states
        self._steps_left = STEPS_PER_STATE * max_states

    def actions(self, state: ProtocolState) -> Sequence[Action]:
        """Instants enabled in a state."""
        if len(state.pending) > self._widest:
            raise TooWideError
        found: Sequence[Action] = super().actions(state)  # type: ignore[misc]
        return found

    def step(self, state: ProtocolState, action: Action) -> ProtocolState:
        """State after an instant."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooWideError
        after: ProtocolState = super().step(state, action)  # type: ignore[misc]
        return after


class BoundedModel(_Bounded, QuiescentModel):
    """The scenario's transition system for bounded work."""

    def __init__(self, scenario: AnyScenario, max_states: int) -> None:
        super().__init__(scenario.make_replica, scenario.ties)
        self.bound(max_states, scenario.ties)


class _BoundedMarkedModel(_Bounded, MarkedModel):
    """As :class:`BoundedModel`, marking transitions."""

    def __init__(self, scenario: AnyScenario, max_states: int, fairness: str = "weak") -> None:
        marker = marker_of(scenario, opportunities=fairness == "strong")
        super().__init__(scenario.make_replica, scenario.ties, marker)
        self.bound(max_states, scenario.ties)


class _OvertakingModel(Model[tuple[ProtocolState, bool], Action]):
    """States with whether the transition into them admitted a ticket past an EP wave."""

    def __init__(self, scenario: AnyScenario, max_states: int) -> None:
        self._model = _BoundedMarkedModel(scenario, max_states)

    def initial_states(self) -> Sequence[tuple[ProtocolState, bool]]:
        """Return the states after the start."""
        return [(state, False) for state in self._model.initial_states()]

    def actions(self, state: tuple[ProtocolState, bool]) -> Sequence[Action]:
        """Instants enabled in a state."""
        return self._model.actions(state[0])

    def step(self, state: tuple[ProtocolState, bool], action: Action) -> tuple[ProtocolState, bool]:
        """State after an instant, and whether a wave was overtaken in it."""
        after = self._model.step(state[0], action)
        return after, overtakes(self._model.marker.label())


def overtakes(label: object) -> bool:
    """Whether a transition with this label admits a ticket past a queued EP wave."""
    return isinstance(label, tuple) and Mark(WAVE_OVERTAKEN) in label


# -------------------------------------------------------------------- trying


class Trials:
    """Tries scenarios: keeps what must be kept, remembers what was explored.

    Parameters
    ----------
    wanted
        What a counterexample must be like.
    max_states
        States that a search may see before it gives up.
    """

    def __init__(self, wanted: Wanted, max_states: int) -> None:
        self.wanted = wanted
        self._max_states = max_states
        self._searched: dict[AnyScenario, Counterexample | Rejection] = {}
        self._inexact: set[AnyScenario] = set()

    def replay(self, scenario: AnyScenario, ranks: Ranks) -> Counterexample | Rejection:
        """Carry a schedule over to a scenario of finite work of lanes."""
        if not isinstance(scenario, Scenario) or scenario.endless:
            return Rejection("no schedule can be carried over", proved=False)
        invariants = invariants_of(scenario) if self.wanted.invariants else ()
        found: list[tuple[str, tuple[str, ...], Violated]] = []
        other: list[str] = []

        def until(run: QuiescentRun) -> bool:
            if not invariants and run.pending and run.failure is None:
                return False
            for bad in bad_states(run, run.state(), invariants):
                (found if self.wanted.accepts(*bad[:2]) else other).append(bad)  # type: ignore[arg-type]
            return bool(found)

        played = play(scenario, ranks, until)
        if not found:
            until(played.run)
        if found:
            return Counterexample(scenario, played.schedule, *found[0])
        if other:
            return Rejection(f"ends in another violation: {other[-1][0]}", proved=False)
        return Rejection("the schedule carried over completes", proved=False)

    def search(
        self, scenario: AnyScenario, max_states: int | None = None
    ) -> Counterexample | Rejection:
        """Explore every timing for a shortest schedule with the fewest ties."""
        known = self._searched.get(scenario)
        if known is None or (max_states is None and not _decided(known)):
            limit = max_states or self._max_states
            known = self._searched[scenario] = self._explore(scenario, limit)
        return known

    def is_exact(self, scenario: AnyScenario) -> bool:
        """Whether the schedule found for a scenario is proved to be a shortest one."""
        return scenario not in self._inexact

    def forget(self) -> None:
        """Forget what was explored, so that it is explored again."""
        self._searched.clear()
        self._inexact.clear()

    def _explore(self, scenario: AnyScenario, max_states: int) -> Counterexample | Rejection:
        rejection = Rejection("nothing of this kind can be asked of the scenario", proved=True)
        if self.wanted.states:
            found = self._bad_state(scenario, max_states)
            if isinstance(found, Counterexample) or not found.proved:
                return found
            rejection = found
        if self.wanted.runs:
            if isinstance(scenario, Scenario):
                return _Lassos(self.wanted, scenario, max_states, self._inexact).search()
            if STARVATION in self.wanted.liveness:
                return self._overtaking(scenario, max_states)
        return rejection

    def _bad_state(self, scenario: AnyScenario, max_states: int) -> Counterexample | Rejection:
        model = BoundedModel(scenario, max_states)
        live = QuiescentRun(scenario.make_replica())
        invariants = invariants_of(scenario) if self.wanted.invariants else ()

        def accepted(state: ProtocolState) -> Iterator[tuple[str, tuple[str, ...], Violated]]:
            if not invariants and state.failed is None and state.pending:
                return
            live.restore(state)
            for bad in bad_states(live, state, invariants):
                if self.wanted.accepts(*bad[:2]):
                    yield bad

        result = shortest_path(model, lambda s: any(accepted(s)), len, max_states)
        if not isinstance(result, Found):
            return _not_found(result, max_states)
        schedule, run = fired(model, result.actions)
        found = next(accepted(run.state()), None)
        if found is None:
            raise AssertionError(f"the path {result} found for {scenario} replays to no violation")
        return Counterexample(scenario, schedule, *found)

    def _overtaking(self, scenario: AnyScenario, max_states: int) -> Counterexample | Rejection:
        """Search for a shortest schedule that admits a ticket past a queued EP wave."""
        model = _OvertakingModel(scenario, max_states)
        result = shortest_path(model, lambda s: s[1], len, max_states)
        if not isinstance(result, Found):
            return _not_found(result, max_states)
        schedule, _ = fired(QuiescentModel(scenario.make_replica, scenario.ties), result.actions)
        return Counterexample(scenario, schedule, WAVE_ORDER, (WAVE_ORDER,), WAVE_PASSED)


def _decided(result: Counterexample | Rejection) -> bool:
    return isinstance(result, Counterexample) or result.proved


def _not_found(result: Any, max_states: int) -> Rejection:
    if isinstance(result, GaveUp):
        return Rejection(f"not decided within {max_states} states", proved=False)
    return Rejection(f"proved impossible: {_all(result.states)}", proved=True)


def _all(states: int) -> str:
    return f"all {states} states" if states != 1 else "the only state"


def fired(model: QuiescentModel, numbers: Sequence[int]) -> tuple[Schedule, QuiescentRun]:
    """Fire actions by number on a live core; return the schedule and the run."""
    run = model.begin()
    schedule: list[Instant] = []
    for number in numbers:
        action = model.actions(run.state())[number]
        schedule.append(tuple(run.pending[position] for position in action))
        run.fire(action)
    return tuple(schedule), run


# -------------------------------------------------------------------- lassos


class _Lassos:
    """Searches a scenario of lanes for a lasso of least length."""

    def __init__(
        self, wanted: Wanted, scenario: Scenario, max_states: int, inexact: set[AnyScenario]
    ) -> None:
        self._wanted = wanted
        self._scenario = scenario
        self._max_states = max_states
        self._inexact = inexact

    def search(self) -> Counterexample | Rejection:
        """Explore every timing, then judge the runs."""
        model = _BoundedMarkedModel(self._scenario, self._max_states, self._wanted.fairness)
        try:
            result = explore(
                model,
                (),
                limits=Limits(self._max_states),
                must_terminate=False,
                label=model.marker.label,
            )
        except TooWideError:
            return Rejection(f"not decided within {self._max_states} states", proved=False)
        if getattr(result.verdict, "limit", None) == INTERRUPTED:
            raise KeyboardInterrupt
        if not result.verdict.stats.complete:
            return Rejection(f"not decided within {self._max_states} states", proved=False)
        if any(state.failed is not None for state in result.states):
            return Rejection(f"not decided: it ends in another violation: {CORE_ERROR}", False)
        graph = graph_of(self._scenario, Edges(result.graph), result.states)
        found = list(self._found(graph, result.states))
        if not found:
            return Rejection(f"proved impossible: {_all(len(result.states))}", proved=True)
        # Of equally simple ones that of the property which the class is named after says more.
        return min(found, key=lambda e: (sort_key(e), e.violated.name != e.classification))

    def _found(self, graph: LaneGraph, states: Sequence[ProtocolState]) -> Iterator[Counterexample]:
        ties = self._scenario.ties
        sizes = (len(a) - 1 for state in states for a in enabled_actions(state, ties))
        cost = costs_of(graph.edges, sizes)
        for prop in graph.properties(self._wanted.liveness):
            for classification in LASSO_CLASSES:
                if self._wanted.accepts(classification, (prop.name,)):
                    yield from self._shortest(graph, prop, classification, cost)

    def _shortest(
        self, graph: LaneGraph, prop: LaneProperty, classification: str, cost: Any
    ) -> Iterator[Counterexample]:
        leads_to, fairness = _narrowed(graph, prop, classification, self._wanted.fairness)
        result = shortest_lasso(graph.edges, leads_to, fairness, cost, MOST_STEPS)
        if result is None:
            return
        lasso = result.lasso
        edges = graph.edges.walk(lasso.entry, lasso.cycle)
        if class_of_lasso(graph, prop.lane, edges) != classification:
            raise AssertionError(f"a lasso of {prop} is not of class {classification}")
        if not result.exact:
            self._inexact.add(self._scenario)
        model = QuiescentModel(self._scenario.make_replica, self._scenario.ties)
        _, entry = fired(model, lasso.stem)
        schedule, end = fired(model, lasso.stem + lasso.cycle)
        if entry.state() != end.state():
            raise AssertionError(f"the cycle of {lasso} does not end where it began")
        yield Counterexample(
            self._scenario,
            schedule,
            classification,
            (prop.name,),
            violated_by_lasso(graph, prop, classification),
            len(lasso.cycle),
            self._wanted.fairness,
        )


def violated_by_lasso(graph: LaneGraph, prop: LaneProperty, classification: str) -> Violated:
    """Say what a lasso of this class violates."""
    message = prop.leads_to.message
    if classification == PARTIAL_DEADLOCK:
        message = f"{graph.who(prop.lane)} can never end a batch again, while others go on for ever"
    return Violated(prop.name, message, prop.lane, prop.stage)


def _narrowed(
    graph: LaneGraph, prop: LaneProperty, classification: str, fairness: str
) -> tuple[LeadsTo, Fairness]:
    """Narrow a property and its fairness to the runs of one class (``class_of_lasso``)."""
    edges, leads_to = graph.edges, prop.leads_to
    ended = np.logical_or.reduce(graph.ended)
    stuck = graph.stuck(prop.lane) if prop.lane >= 0 else np.zeros(edges.states, dtype=np.bool_)
    trigger, goal, assumed = leads_to.trigger, leads_to.goal, graph.fairness(fairness)
    demands = assumed.justice
    if classification == LIVELOCK:
        goal = goal | ended
    else:
        demands = (*demands, Justice("batches end", ended))
    if classification == PARTIAL_DEADLOCK:
        trigger = trigger & stuck
        goal = goal | ~stuck[edges.targets]
    elif classification == STARVATION:
        trigger = trigger & ~stuck
        goal = goal | stuck[edges.targets]
    narrowed = LeadsTo(leads_to.name, leads_to.message, trigger, goal)
    return narrowed, Fairness(assumed.name, demands, assumed.compassion)
