"""Levels two and three: systems of the core, with Hypothesis choosing what falls due.

The machine fires pending timed events one instant at a time (arrivals, attention, waves, stage
ends), beyond the shapes that are explored exhaustively. Invariants are judged after every instant,
and a run that has no event left must be complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from hypothesis import event, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from models.quiescent import (
    Action,
    CheckableSystem,
    ProtocolState,
    QuiescentModel,
    QuiescentRun,
)
from verify.explorer import explore
from verify.limits import Limits
from verify.properties import Property, invariant, never_drained

_MOST_STATES = 1500
"""States of one exploration for a shorter report."""

PICK = st.integers(min_value=0, max_value=63)


class SystemScenario(Protocol):
    """A scenario of lanes or of groups."""

    def make_replica(self) -> CheckableSystem:
        """Build the system before its start."""
        ...

    def to_compact(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        ...


class QuiescentMachine(RuleBasedStateMachine):
    """A live system under instants that Hypothesis chooses.

    Subclasses say which scenarios, which invariants, and which states are interesting.
    """

    scenarios: ClassVar[st.SearchStrategy[Any]]
    interesting: ClassVar[tuple[str, ...]]
    reached: ClassVar[Counter[str]]
    shortened_by: ClassVar[int] = 24
    """Scenarios to explore for a shorter report."""

    def invariants_of(self, scenario: Any) -> tuple[Property[ProtocolState], ...]:
        """Return what every state of the scenario must satisfy."""
        raise NotImplementedError

    def marks_of(self, system: Any, handled: Any, follow: Sequence[Any]) -> set[str]:
        """Return the interesting states that handling an event has just shown."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.run: QuiescentRun | None = None
        self.actions: list[Action] = []
        self.marks: set[str] = set()
        self.deepest = 0

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        """Choose a scenario and start it."""
        self.scenario = data.draw(self.scenarios)
        self.properties = self.invariants_of(self.scenario)
        self.run = QuiescentRun(self.scenario.make_replica(), [self._observe])
        self.run.begin()
        self._judge()

    def _can_fire(self) -> bool:
        return self.run is not None and bool(self.run.pending)

    @precondition(_can_fire)
    @rule(pick=PICK)
    def fire(self, pick: int) -> None:
        """Let one pending event fall due."""
        assert self.run is not None
        self._fire((pick % len(self.run.pending),))

    @precondition(_can_fire)
    @rule(picks=st.sets(PICK, min_size=2, max_size=3))
    def fire_together(self, picks: set[int]) -> None:
        """Let several fall due at the same instant."""
        assert self.run is not None
        self._fire(tuple(sorted({pick % len(self.run.pending) for pick in picks})))

    @precondition(lambda self: not self._can_fire())
    @rule()
    def rest(self) -> None:
        """Nothing is pending: the run is over."""

    def _fire(self, action: Action) -> None:
        assert self.run is not None
        self.actions.append(action)
        self.run.fire(action)
        self._judge()

    def _observe(self, system: Any, handled: Any, follow: Sequence[Any]) -> None:
        event(handled.kind)
        self.marks |= self.marks_of(system, handled, follow)

    def _judge(self) -> None:
        assert self.run is not None
        problem = self._wrong(self.run)
        if problem is not None:
            raise AssertionError(self._report(problem))
        self.deepest = max(self.deepest, self.queued(self.run.system))

    def queued(self, system: Any) -> int:
        """Tickets that are queued at the fullest context."""
        raise NotImplementedError

    def _wrong(self, run: QuiescentRun) -> str | None:
        if run.failure is not None:
            return f"core_error: {run.failure}"
        state = run.state()
        for prop in self.properties:
            message = prop.violation(state, not run.pending)
            if message is not None:
                return f"{prop.name}: {message}"
        if not run.pending and not run.system.is_complete:
            return "drained: no event is left, but work is unfinished"
        return None

    def smaller(self, scenario: Any) -> Sequence[Any]:
        """Return scenarios of the same rules that are no larger, smallest first."""
        raise NotImplementedError

    def _shortest(self, problem: str) -> tuple[Any, list[Action]]:
        """Find a smallest scenario in which the same goes wrong, and a shortest way there.

        Both come from exploring the smallest shapes; if none of them fails, the instants that
        were drawn are reported.
        """
        kind = problem.split(":")[0]
        for scenario in self.smaller(self.scenario)[: self.shortened_by]:
            actions = self._explored(scenario, kind)
            if actions is not None:
                return scenario, actions
        return self.scenario, self.actions

    def _explored(self, scenario: Any, kind: str) -> list[Action] | None:
        """Return a shortest schedule to such a violation; None if exploring finds none in time."""
        model = QuiescentModel(scenario.make_replica, ties=False)
        result = explore(
            model,
            (
                invariant("core_error", lambda state: state.failed and str(state.failed)),
                *self.invariants_of(scenario),
                never_drained(lambda s: s.failed is not None or model.is_complete(s)),
            ),
            limits=Limits(max_states=_MOST_STATES, first_violation=True),
        )
        found = getattr(result.verdict, "violations", ())
        same = next((v for v in found if v.property_name == kind), None)
        if same is None:
            return None
        run, actions = model.begin(), []
        for number in same.actions:
            actions.append(model.actions(run.state())[number])
            run.fire(actions[-1])
        return actions

    def _report(self, what: str) -> str:
        module = type(self.scenario).__module__
        name = type(self.scenario).__name__
        scenario, actions = self._shortest(what)
        lines = [
            what,
            "from models.quiescent import QuiescentRun",
            f"from {module} import {name}",
            f"run = QuiescentRun({name}.of({scenario.to_compact()!r}).make_replica())",
            "run.begin()",
            *(f"run.fire({action!r})" for action in actions),
            "print(run.failure, run.pending, run.system.is_complete)",
        ]
        return "\n".join(lines)

    def teardown(self) -> None:
        """Tell Hypothesis how far the run got."""
        target(float(self.deepest), label="deepest queue")
        for mark in self.interesting:
            target(float(mark in self.marks), label=mark)
        self.reached.update(self.marks)
        self.reached["runs"] += 1
        for mark in sorted(self.marks):
            event(f"reached: {mark}")
