"""The composition: scenario, core, explorer, verdict, explanation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from models.claims import ReachedClaims
from models.explanation import after_instants, explain
from models.invariants import lane_invariants
from models.quiescent import Action, Handled, ProtocolState, QuiescentModel, QuiescentRun
from models.scenario import Scenario, ScenarioError
from models.view import describe_event, describe_stages
from models.waits import CORE_ERROR, INVARIANT_VIOLATION, classify, lane_waits
from verify.explorer import Exploration, explore
from verify.limits import Limits, ProgressCallback
from verify.path import EncodedPath, PathError, decode, encode, fingerprint
from verify.properties import Property, invariant, never_drained
from verify.verdict import Violated, Violation, word
from verify.waitfor import WaitFor


def _core_error(state: ProtocolState) -> str | None:
    return f"the core rejected {state.failed}" if state.failed is not None else None


def properties_of(scenario: Scenario, model: QuiescentModel) -> tuple[Property[ProtocolState], ...]:
    """Return what every reachable state of a scenario must satisfy."""
    return (
        invariant("core_error", _core_error),
        never_drained(lambda state: state.failed is not None or model.is_complete(state)),
        *lane_invariants(scenario.config),
    )


@dataclass(frozen=True)
class Witness:
    """A violating state reached on the live core, with its explanation.

    ``schedule`` has one list of timed events per instant; ``stages`` is the table of
    :func:`models.view.describe_stages`.
    """

    violation: Violation
    path: str
    schedule: tuple[tuple[Any, ...], ...]
    classification: str
    wait_for: WaitFor
    stages: list[dict[str, Any]]
    text: str


@dataclass(frozen=True)
class CheckResult:
    """A verdict on a scenario with everything that a report needs.

    ``engine`` is the one that explored; ``details`` are JSON fields that only it has.
    """

    scenario: Scenario
    exploration: Exploration[ProtocolState]
    reached: dict[str, bool]
    witnesses: tuple[Witness, ...]
    engine: str = "reference"
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict_word(self) -> str:
        """``holds``, ``violated`` or ``undetermined``."""
        return word(self.exploration.verdict)

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated, 3 undetermined."""
        return {"holds": 0, "violated": 1, "undetermined": 3}[self.verdict_word]

    def to_json(self) -> dict[str, Any]:
        """Return the fields that issue 2 names, as plain JSON values."""
        verdict, stats = self.exploration.verdict, self.exploration.verdict.stats
        first = self.witnesses[0] if self.witnesses else None
        found = verdict.violations if isinstance(verdict, Violated) else ()
        return {
            "scenario": self.scenario.to_json(),
            "verdict": self.verdict_word,
            "violation": first and first.violation.property_name,
            "message": first and first.violation.message,
            "classification": first and first.classification,
            "states": stats.states,
            "transitions": stats.transitions,
            "depth": first and first.violation.depth,
            "violating_states": len({violation.state_index for violation in found}),
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


def _schedule_json(witness: Witness) -> list[list[dict[str, Any]]]:
    return [[describe_event(event) for event in instant] for instant in witness.schedule]


def check_scenario(
    scenario: Scenario,
    *,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    all_violations: bool = False,
) -> CheckResult:
    """Explore every timing of a scenario and explain the shortest violation, or all of them."""
    claims = ReachedClaims()
    model = QuiescentModel(scenario.make_replica, scenario.ties, (claims,))
    result = explore(model, properties_of(scenario, model), limits=limits, progress=progress)
    verdict = result.verdict
    found = verdict.violations if isinstance(verdict, Violated) else ()
    witnesses = tuple(
        witness_of(scenario, model, violation, result.states[violation.state_index])
        for violation in (found if all_violations else found[:1])
    )
    return CheckResult(scenario, result, dict(claims.reached), witnesses)


def fire_numbered(model: QuiescentModel, run: QuiescentRun, number: int) -> list[Handled]:
    """Fire the action of this number in a live run."""
    return run.fire(model.actions(run.state())[number])


def witness_of(
    scenario: Scenario, model: QuiescentModel, violation: Violation, expected: ProtocolState
) -> Witness:
    """Replay a violation on a live core and explain the state it ends in.

    Raises
    ------
    AssertionError
        If the replay ends in another state: the checker would be wrong.
    """
    run = model.begin()
    schedule = []
    for number in violation.actions:
        action: Action = model.actions(run.state())[number]
        schedule.append(tuple(run.pending[position] for position in action))
        run.fire(action)
    reached = run.state()
    if reached != expected:
        raise AssertionError(f"the replay of {violation} ends in {reached}, not in {expected}")
    encoded = encode(
        EncodedPath(
            scenario.to_compact(), violation.initial, violation.actions, fingerprint(reached)
        )
    )
    analysis = lane_waits(run.system, run.pending)  # type: ignore[arg-type]
    if run.failure is not None:
        classification, message = CORE_ERROR, str(run.failure)
    elif violation.property_name == "drained":
        classification, message = classify(analysis), violation.message
    else:
        classification, message = INVARIANT_VIOLATION, violation.message
    text = explain(classification, analysis, after_instants(violation.depth), message)
    stages = describe_stages(run.system)  # type: ignore[arg-type]
    return Witness(violation, encoded, tuple(schedule), classification, analysis, stages, text)


def open_path(encoded: str) -> tuple[Scenario, EncodedPath]:
    """Decode a path and build its scenario.

    Raises
    ------
    PathError
        If the string or the scenario in it cannot be read.
    """
    path = decode(encoded)
    try:
        return Scenario.of(path.scenario), path
    except (ScenarioError, TypeError) as error:
        raise PathError(f"the path's scenario is not valid here: {error}") from None
