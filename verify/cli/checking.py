"""The composition: scenario, core, explorer, verdict, explanation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from frontier.events import Event
from models.explanation import after_instants, explanation_lines
from models.groups import GroupScenario
from models.lasso_story import (
    STOPPED_RUN,
    Control,
    Round,
    control_of,
    held_back,
    narrated_run,
    tell,
)
from models.liveness import (
    FAIRNESS,
    PROGRESS,
    STARVATION,
    Finding,
    Liveness,
    judge_liveness,
)
from models.marks import MarkedModel
from models.quiescent import Action, Handled, ProtocolState, QuiescentModel, QuiescentRun
from models.scenario import ScenarioError
from models.subjects import (
    AnyScenario,
    claims_of,
    graph_of,
    invariants_of,
    marker_of,
    scenario_of,
    stages_of,
    waits_of,
)
from models.view import describe_event
from models.waits import CORE_ERROR, INVARIANT_VIOLATION, ORPHAN_TICKET, WAVE_ORDER, classify
from models.wakeups import schedule_lines
from verify.cli.errors import EngineDisagreementError
from verify.explorer import Exploration, explore
from verify.fairness import Edges
from verify.limits import INTERRUPTED, LimitReachedError, Limits, ProgressCallback, Watch, watch
from verify.liveness import Lasso
from verify.path import EncodedPath, PathError, decode, encode, fingerprint
from verify.properties import Property, invariant, never_drained
from verify.verdict import Holds, Undetermined, Verdict, Violated, Violation, word
from verify.waitfor import WaitFor

LIVE_RUNS = 200
"""Random runs of foreign code that confirm a proof on the explored graph."""

LIVE_INSTANTS = 300
"""Instants of each such run, which may go on for ever."""


def _core_error(state: ProtocolState) -> str | None:
    return f"the core rejected {state.failed}" if state.failed is not None else None


PROPERTIES: Final = ("drained", PROGRESS, STARVATION, "all")


@dataclass(frozen=True)
class Question:
    """What a check asks (issue 7).

    ``asked`` is ``drained``, ``progress``, ``starvation`` or ``all``; ``fairness`` is ``weak``
    (every pending event fires), ``strong`` (and a lane that could be admitted again and again is
    admitted) or ``none``. Core errors and state invariants are always asked.
    """

    asked: str
    fairness: str = "weak"

    def __post_init__(self) -> None:
        for name, value, known in (
            ("property", self.asked, PROPERTIES),
            ("fairness", self.fairness, FAIRNESS),
        ):
            if value not in known:
                raise ScenarioError(
                    f"unknown {name} {value!r}; expected one of: {', '.join(known)}"
                )

    @staticmethod
    def of(
        scenario: AnyScenario, asked: str | None = None, fairness: str | None = None
    ) -> Question:
        """Return the question for a scenario: ``drained`` of finite batches, else ``all``."""
        usual = "all" if scenario.endless or isinstance(scenario, GroupScenario) else "drained"
        return Question(asked or usual, fairness or "weak")

    @property
    def runs_first(self) -> bool:
        """Whether it is asked about runs by name, so that they are told before bad states."""
        return self.asked in (PROGRESS, STARVATION)

    @property
    def liveness(self) -> tuple[str, ...]:
        """Names of the liveness properties asked."""
        if self.asked == "all":
            return (PROGRESS, STARVATION)
        return () if self.asked == "drained" else (self.asked,)


def properties_of(
    scenario: AnyScenario, model: QuiescentModel, question: Question | None = None
) -> tuple[Property[ProtocolState], ...]:
    """Return what every reachable state of a scenario must satisfy."""
    drained: Property[ProtocolState] = never_drained(
        lambda state: state.failed is not None or model.is_complete(state)
    )
    asked = (question or Question.of(scenario)).asked
    return (
        invariant("core_error", _core_error),
        *invariants_of(scenario),
        *((drained,) if asked in ("drained", "all") else ()),
    )


@dataclass(frozen=True)
class Witness:
    """A violating state reached on the live core, with its explanation.

    ``schedule`` has one list of timed events per instant; ``stages`` is the table of
    :func:`models.view.describe_stages`; ``lines`` are the explanation's sentences. The last
    ``repeats`` instants of a lasso's schedule lead back to the state before them; None for a
    violation of a single state.
    """

    violation: Violation
    path: str
    schedule: tuple[tuple[Any, ...], ...]
    classification: str
    wait_for: WaitFor
    stages: list[dict[str, Any]]
    lines: tuple[str, ...]
    repeats: int | None = None

    @property
    def text(self) -> str:
        """The explanation as one paragraph."""
        return " ".join(self.lines)


@dataclass(frozen=True)
class CheckResult:
    """A verdict on a scenario with everything that a report needs.

    ``engine`` is the one that explored; ``details`` are JSON fields that only it has.
    """

    scenario: AnyScenario
    exploration: Exploration[ProtocolState]
    reached: dict[str, bool]
    witnesses: tuple[Witness, ...]
    question: Question
    liveness: Liveness | None = None
    controls: Mapping[Lasso, Control] = field(default_factory=dict)
    engine: str = "reference"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict_word(self) -> str:
        """``holds``, ``violated`` or ``undetermined``."""
        return word(self.exploration.verdict)

    @property
    def vacuous(self) -> bool:
        """Whether it holds because nothing is ever asked: no work, or nothing is ever owed."""
        if not isinstance(self.exploration.verdict, Holds):
            return False
        if self.exploration.verdict.stats.transitions == 0:
            return True
        if self.liveness is None or self.question.asked in ("all", "drained"):
            return False
        return all(finding.vacuous for finding in self.liveness.findings)

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 3 undetermined."""
        return {"holds": 0, "violated": 1, "undetermined": 3}[self.verdict_word]

    def to_json(self) -> dict[str, Any]:
        """Return the fields that issue 2 names, as plain JSON values."""
        verdict, stats = self.exploration.verdict, self.exploration.verdict.stats
        first = self.witnesses[0] if self.witnesses else None
        found = verdict.violations if isinstance(verdict, Violated) else ()
        # Where states are bad in themselves they are counted, else those that lassos enter.
        bad = [violation for violation in found if violation.cycle is None] or found
        return {
            "scenario": self.scenario.to_json(),
            "notes": list(self.scenario.context_notes),
            "verdict": self.verdict_word,
            "vacuous": self.vacuous,
            "violation": first and first.violation.property_name,
            "message": first and first.violation.message,
            "classification": first and first.classification,
            "states": stats.states,
            "transitions": stats.transitions,
            "depth": first and first.violation.depth,
            "violating_states": len({violation.state_index for violation in bad}),
            "complete": stats.complete,
            "limit": getattr(verdict, "limit", None),
            "max_depth": stats.max_depth,
            "elapsed_s": round(stats.elapsed_s, 6),
            "states_per_s": round(stats.states_per_s, 1),
            "path": first and first.path,
            "schedule": first and _schedule_json(first),
            "wait_for": first and first.wait_for.to_json(),
            "stages": first and first.stages,
            "explanation": first and first.text,
            "lasso": first and _lasso_json(first),
            "property": self.question.asked,
            "fairness": self.question.fairness,
            "liveness": self.liveness and self._liveness_json(self.liveness),
            "overtaken": self.liveness and overtaken_json(self.liveness),
            "acyclic": stats.acyclic,
            "reached": self.reached,
            "violations": [
                {
                    "property": witness.violation.property_name,
                    "classification": witness.classification,
                    "depth": witness.violation.depth,
                    "path": witness.path,
                }
                for witness in self.witnesses
            ],
            "engine": self.engine,
            **self.details,
        }

    def _liveness_json(self, liveness: Liveness) -> list[dict[str, Any]]:
        return [
            {
                "property": finding.name,
                "lane": finding.lane if finding.lane >= 0 else None,
                "stage": finding.stage if finding.stage >= 0 else None,
                "fairness": liveness.fairness,
                "message": finding.message,
                "verdict": "holds" if finding.lasso is None else "violated",
                "vacuous": finding.vacuous,
                "classification": finding.classification,
                "depth": finding.lasso and len(finding.lasso.stem),
                "cycle": finding.lasso and len(finding.lasso.cycle),
                "without_fairness": "holds" if finding.control is None else "violated",
                "control": self._control_json(finding),
            }
            for finding in liveness.findings
        ]

    def _control_json(self, finding: Finding) -> dict[str, Any] | None:
        """Return the run that violates the property when nothing is assumed fair."""
        if finding.control is None:
            return None
        control = self.controls[finding.control]
        lasso = control.lasso
        return {
            "kind": control.kind,
            "text": str(control),
            "held_back": control.held_back and describe_event(control.held_back),
            "stem": len(lasso.stem),
            "cycle": len(lasso.cycle),
            "path": _encoded(self.scenario, lasso, control.entry),
        }


def _schedule_json(witness: Witness) -> list[list[dict[str, Any]]]:
    return [[describe_event(event) for event in instant] for instant in witness.schedule]


def _lasso_json(witness: Witness) -> dict[str, Any] | None:
    """Return the schedule of a lasso in two parts: the stem once, then the cycle for ever."""
    if witness.repeats is None:
        return None
    schedule = _schedule_json(witness)
    split = len(schedule) - witness.repeats
    return {"stem": schedule[:split], "cycle": schedule[split:]}


def overtaken_json(liveness: Liveness) -> dict[str, Any]:
    """Most times that a waiting lane is passed by later tickets; a bound of None is no bound."""
    bounds = [bound for lane in liveness.overtaken for bound in lane]
    unbounded = any(bound is None for bound in bounds)
    most = max((bound for bound in bounds if bound is not None), default=0)
    return {
        "bound": None if unbounded else most,
        "unbounded": unbounded,
        "lanes": [list(lane) for lane in liveness.overtaken],
    }


def check_scenario(
    scenario: AnyScenario,
    *,
    question: Question | None = None,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    all_violations: bool = False,
) -> CheckResult:
    """Explore every timing of a scenario and explain the shortest violation, or all of them."""
    question = question or Question.of(scenario)
    claims = claims_of(scenario)
    marker = marker_of(scenario, opportunities=question.fairness == "strong")
    model = MarkedModel(scenario.make_replica, scenario.ties, marker, (claims,))
    result = explore(
        model,
        properties_of(scenario, model, question),
        limits=limits,
        progress=progress,
        must_terminate=not scenario.endless,
        label=marker.label if question.liveness else None,
    )
    liveness = None
    findings: dict[Violation, Finding] = {}
    controls: dict[Lasso, Control] = {}
    stats = result.verdict.stats
    look = watch(limits or Limits(), stats.states, stats.elapsed_s)
    try:
        if _liveness_is_due(question, result.verdict):
            result, liveness, findings = _with_liveness(scenario, question, result, look)
            controls = _controls(model, liveness, look)
        if isinstance(result.verdict, Holds) and scenario.runs_foreign_code:
            result = _confirmed_live(model, result, look, scenario.context_hides)
    except (LimitReachedError, KeyboardInterrupt) as error:
        result, liveness, findings = _not_judged(result, str(error) or INTERRUPTED), None, {}
    verdict = result.verdict
    found = verdict.violations if isinstance(verdict, Violated) else ()
    witnesses = tuple(
        witness_of(scenario, model, violation, result.states[violation.state_index])
        if violation not in findings
        else lasso_witness(scenario, model, violation, findings[violation])
        for violation in (found if all_violations else found[:1])
    )
    return CheckResult(
        scenario, result, dict(claims.reached), witnesses, question, liveness, controls
    )


def _confirmed_live(
    model: QuiescentModel,
    result: Exploration[ProtocolState],
    look: Watch,
    hides: Sequence[str],
) -> Exploration[ProtocolState]:
    """Run foreign code without ever copying or merging states; *undetermined* if that differs.

    An exploration matches states by what they show. Code that remembers more (a counter, a cache)
    can behave otherwise in a run than in the graph, which a proof on the graph cannot see.
    """
    known, choose = set(result.states), random.Random(0)
    for _ in range(LIVE_RUNS):
        look()
        run, state = model.begin(), result.states[0]
        for _ in range(LIVE_INSTANTS):
            state = run.state()
            if state not in known or not (actions := model.actions(state)):
                break
            run.fire(choose.choice(actions))
        if state not in known:
            limit = (
                "a live run left the explored graph: the code under check remembers more than "
                "its states show, so nothing is proved of it"
            )
            if hides:
                limit += f"; likely because the context has no {', '.join(hides)}"
            return replace(result, verdict=Undetermined(result.verdict.stats, limit))
    return result


def _liveness_is_due(question: Question, verdict: Verdict) -> bool:
    """Whether to judge liveness: on a whole graph without core errors."""
    if not question.liveness or not verdict.stats.complete:
        return False
    violations = verdict.violations if isinstance(verdict, Violated) else ()
    return all(violation.property_name != "core_error" for violation in violations)


def _not_judged(result: Exploration[ProtocolState], limit: str) -> Exploration[ProtocolState]:
    """Return what is known if liveness was given up: bad states, or nothing is decided."""
    if isinstance(result.verdict, Violated):
        return result
    limit = f"{limit}, while the runs of the explored graph were judged"
    return replace(result, verdict=Undetermined(result.verdict.stats, limit))


def _controls(model: QuiescentModel, liveness: Liveness, look: Watch) -> dict[Lasso, Control]:
    """Return of what kind the runs are that violate the properties without fairness."""
    controls = {}
    for finding in liveness.findings:
        look()
        if finding.control is not None and finding.control not in controls:
            controls[finding.control] = control_of(model, finding.control)
    return controls


def _with_liveness(
    scenario: AnyScenario, question: Question, result: Exploration[ProtocolState], look: Watch
) -> tuple[Exploration[ProtocolState], Liveness, dict[Violation, Finding]]:
    """Judge liveness on the graph; the verdict is then about states and runs.

    Asked for everything, a bad state is told first, and says more than the runs into it; asked
    for liveness by name, the answer is about runs first, even where states are bad too.
    """
    graph = graph_of(scenario, Edges(result.graph), result.states)
    liveness = judge_liveness(graph, question.liveness, question.fairness, look)
    findings = {
        Violation(f.name, f.message, x.entry, x.initial, x.stem, x.cycle): f
        for f in liveness.violated
        if (x := f.lasso) is not None
    }
    verdict = result.verdict
    if findings:
        states = verdict.violations if isinstance(verdict, Violated) else ()
        order = (*findings, *states) if question.runs_first else (*states, *findings)
        verdict = Violated(verdict.stats, order)
    return replace(result, verdict=verdict), liveness, findings


def fire_numbered(model: QuiescentModel, run: QuiescentRun, number: int) -> list[Handled]:
    """Fire the action of this number in a live run."""
    return run.fire(model.actions(run.state())[number])


def _play(
    model: QuiescentModel, run: QuiescentRun, numbers: Sequence[int]
) -> Iterator[tuple[tuple[Event, ...], Action, list[Handled]]]:
    """Fire actions by number; yield each instant, its positions, and what was handled."""
    for number in numbers:
        action: Action = model.actions(run.state())[number]
        instant = tuple(run.pending[position] for position in action)
        yield instant, action, run.fire(action)


def _encoded(scenario: AnyScenario, run: Lasso, reached: ProtocolState) -> str:
    actions = run.stem + run.cycle
    compact, mark = scenario.to_compact(), fingerprint(reached)
    return encode(EncodedPath(compact, run.initial, actions, mark, len(run.cycle)))


def _run_of(violation: Violation) -> Lasso:
    stem, cycle = violation.actions, violation.cycle or ()
    return Lasso(violation.initial, stem, cycle, violation.state_index)


def _blame_foreign_code(scenario: AnyScenario) -> None:
    """Say why a schedule does not replay, if other code than the core's ran.

    What the context lacks comes first: without it, states that differ may have looked alike.
    """
    if not scenario.runs_foreign_code:
        return
    notes = "".join(f"\nnote: {note}" for note in scenario.context_notes)
    unseen = scenario.context_hides
    cause = (
        f"the likely cause is that the context has no {', '.join(unseen)}, so that states which "
        f"differ can look alike; add what is missing, and check again. If it still happens, the"
        if unseen
        else "the"
    )
    raise EngineDisagreementError(
        f"a violating schedule does not replay: {cause} code under check answers otherwise "
        f"when it is asked again. A rule must depend on nothing but its arguments, a "
        f"context on nothing but its own calls. Nothing is proved of it{notes}"
    )


def witness_of(
    scenario: AnyScenario, model: QuiescentModel, violation: Violation, expected: ProtocolState
) -> Witness:
    """Replay a violation on a live core and explain the state it ends in.

    Raises
    ------
    EngineDisagreementError
        If the replay ends in another state because a rule or context of one's own does not give
        the same answers again.
    AssertionError
        If it does with the core's own code: the checker would be wrong.
    """
    run = model.begin()
    try:
        schedule = tuple(instant for instant, _, _ in _play(model, run, violation.actions))
        reached = run.state()
    except IndexError:
        reached = None
    if reached != expected:
        _blame_foreign_code(scenario)
        raise AssertionError(f"the replay of {violation} ends in {reached}, not in {expected}")
    analysis = waits_of(run.system, run.pending)
    if run.failure is not None:
        classification, message = CORE_ERROR, str(run.failure)
    elif violation.property_name == "drained":
        classification, message = classify(analysis), violation.message
    elif violation.property_name == ORPHAN_TICKET:
        classification, message = ORPHAN_TICKET, violation.message
    else:
        classification, message = INVARIANT_VIOLATION, violation.message
    lines = schedule_lines(scenario, schedule, classification, analysis, message)
    stages = stages_of(run.system)
    encoded = _encoded(scenario, _run_of(violation), reached)
    return Witness(violation, encoded, schedule, classification, analysis, stages, lines)


def lasso_witness(
    scenario: AnyScenario,
    model: QuiescentModel,
    violation: Violation,
    finding: Finding,
) -> Witness:
    """Replay a lasso on a live core, its cycle once, and explain what the cycle does.

    Raises
    ------
    EngineDisagreementError
        If it does not replay because a rule of one's own does not give the same answers again.
    AssertionError
        If the cycle does not end in the state it began in: the checker would be wrong.
    """
    try:
        return _play_lasso(scenario, model, violation, finding)
    except (IndexError, AssertionError):
        _blame_foreign_code(scenario)
        raise


def _play_lasso(
    scenario: AnyScenario, model: QuiescentModel, violation: Violation, finding: Finding
) -> Witness:
    run, narrator = narrated_run(model)
    replica: Any = run.system
    schedule = [instant for instant, _, _ in _play(model, run, violation.actions)]
    narrator.take()
    entry, pending = run.state(), tuple(run.pending)
    cycle = violation.cycle or ()
    handled: list[Handled] = []
    taken: list[Action] = []
    for instant, action, events in _play(model, run, cycle):
        schedule.append(instant)
        taken.append(action)
        handled += events
    if run.state() != entry:
        raise AssertionError(f"the cycle of {violation} does not end where it began")
    analysis = waits_of(replica, run.pending)
    encoded = _encoded(scenario, _run_of(violation), entry)
    stages = stages_of(replica)
    if finding.name == WAVE_ORDER or not run.pending:
        classification = WAVE_ORDER if finding.name == WAVE_ORDER else classify(analysis)
        when = after_instants(violation.depth)
        lines = explanation_lines(classification, analysis, when, violation.message)
    else:
        classification = finding.classification or STOPPED_RUN
        notes = tuple(note for _, note in narrator.take())
        played = Round(tuple(handled), notes, held_back(pending, taken))
        lines = tell(
            finding, classification, violation.depth, len(cycle), (replica, run.pending), played
        )
    # A ticket that passes a wave is a matter of one instant: nothing repeats or stops there.
    repeats = None if finding.name == WAVE_ORDER else len(cycle)
    return Witness(
        violation, encoded, tuple(schedule), classification, analysis, stages, lines, repeats
    )


def open_path(encoded: str) -> tuple[AnyScenario, EncodedPath]:
    """Decode a path and build its scenario.

    Raises
    ------
    PathError
        If the string or the scenario in it cannot be read.
    """
    path = decode(encoded)
    try:
        return scenario_of(path.scenario), path
    except (ScenarioError, TypeError, AttributeError) as error:
        raise PathError(f"the path's scenario is not valid here: {error}") from None
