"""A run told without times: a lasso, work that becomes stale, a stage fed by groups (issue 7).

What a timed witness shows of finite work, the same shows here over instants: the story step by
step, who does what from instant to instant, and who waits for whom, with what repeats marked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from models.cycle import finding_of_cycle
from models.explanation import after_instants
from models.instants import Instants, film
from models.liveness import PROGRESS, STARVATION, WAVE_PASSED, Finding
from models.marks import WAVE_OVERTAKEN, Mark, MarkedModel
from models.quiescent import ProtocolState
from models.scenario import Scenario
from models.schedule import schedule_to_json, walk
from models.story import MOST_STEPS, tell
from models.subjects import AnyScenario, marker_of
from models.waits import WAVE_ORDER
from verify.cli import options as opt
from verify.cli.checking import (
    Question,
    Witness,
    check_scenario,
    lasso_witness,
    open_path,
    properties_of,
    witness_of,
)
from verify.cli.errors import UNDETERMINED, UsageError
from verify.cli.render import err
from verify.limits import Limits
from verify.path import EncodedPath
from verify.story import Story
from verify.verdict import Undetermined, Violation


@dataclass(frozen=True)
class Telling:
    """A violation with its story and its picture over instants."""

    scenario: AnyScenario
    witness: Witness
    story: Story
    film: Instants

    @property
    def repeats(self) -> int:
        """Instants that repeat for ever at the end; 0 if the run ends or stops."""
        return self.witness.repeats or 0

    @property
    def stem(self) -> int:
        """Instants before those that repeat."""
        return len(self.witness.schedule) - self.repeats

    @property
    def title(self) -> str:
        """Class of the violation and when it is there, in words."""
        name, depth = self.witness.classification.replace("_", " "), len(self.witness.schedule)
        if self.repeats:
            again = "instant repeats" if self.repeats == 1 else f"{self.repeats} instants repeat"
            return f"{name}: {after_instants(self.stem)}, the next {again} for ever"
        return f"{name} {after_instants(depth)}"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values, with the names that ``check`` uses."""
        witness = self.witness
        schedule = schedule_to_json(witness.schedule)
        lasso = None
        if witness.repeats is not None:
            lasso = {"stem": schedule[: self.stem], "cycle": schedule[self.stem :]}
        return {
            "scenario": self.scenario.to_json(),
            "verdict": "violated",
            "violation": witness.violation.property_name,
            "message": witness.violation.message,
            "classification": witness.classification,
            "depth": self.stem,
            "path": witness.path,
            "schedule": schedule,
            "lasso": lasso,
            "wait_for": witness.wait_for.to_json(),
            "stages": witness.stages,
            "explanation": witness.text,
            "fate": self.story.fate,
            "story": self.story.to_json(),
        }


def telling_of(scenario: AnyScenario, witness: Witness) -> Telling:
    """Tell a violation that was reached on the live core."""
    return Telling(
        scenario,
        witness,
        tell(scenario, witness.schedule),
        film(scenario, witness.schedule, witness.repeats, MOST_STEPS),
    )


# -------------------------------------------------------------------- from what a person has


def load_telling(source: str, max_states: int) -> Telling | None:
    """Read what is told without times; None if the source is finite work, told with times.

    Raises
    ------
    UsageError
        If it has no violation.
    typer.Exit
        With code 3, if a scenario could not be decided within ``max_states``.
    """
    found = _path_in(source)
    if found is not None:
        return _of_path(source, *found, max_states)
    path = Path(source)
    if path.suffix != ".toml" and (path.is_file() or path.suffix or "/" in source):
        return None
    scenario = opt.load_any_source(source)
    if isinstance(scenario, Scenario) and not (scenario.endless or scenario.interrupted):
        return None
    return _of_scenario(source, scenario, max_states)


def _path_in(source: str) -> tuple[str, Mapping[str, Any]] | None:
    """Return the encoded path that a source is or holds, with the result it stands in."""
    path = Path(source)
    if source.startswith("fv") and "-" in source[:6] and not path.is_file():
        return source, {}
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.lstrip().startswith("fv"):
            return text.strip(), {}
        values = json.loads(text) if text.lstrip().startswith("{") else None
    except (OSError, ValueError):
        return None
    if isinstance(values, dict) and isinstance(values.get("path"), str):
        return values["path"], values
    return None


def _of_scenario(source: str, scenario: AnyScenario, max_states: int) -> Telling:
    case = opt.case_of(source)
    asked, fairness = (None, None) if case is None else (case.asked, case.fairness)
    question = Question.of(scenario, asked, fairness)
    result = check_scenario(scenario, question=question, limits=Limits(max_states))
    if result.witnesses:
        return telling_of(scenario, result.witnesses[0])
    verdict = result.exploration.verdict
    if isinstance(verdict, Undetermined):
        err.print(f"undetermined: no violation found ({verdict.limit})")
        raise typer.Exit(UNDETERMINED)
    raise UsageError(f"{source} has no violation: every timing satisfies what is asked of it")


def _of_path(source: str, word: str, told: Mapping[str, Any], max_states: int) -> Telling | None:
    scenario, path = open_path(word)
    marker = marker_of(scenario, opportunities=False)
    model = MarkedModel(scenario.make_replica, scenario.ties, marker)
    _, run = walk(model, path)
    lanes = isinstance(scenario, Scenario) and not scenario.interrupted
    if lanes and not path.cycle and (run.failure is not None or not run.pending):
        return None
    if path.cycle:
        witness = _lasso(scenario, model, path, told, max_states)
    elif told.get("lasso") and run.pending:
        witness = _stopped(scenario, model, path, told)
    else:
        witness = _state(scenario, model, path, run.state())
    if witness is None:
        left = f" with {len(run.pending)} events pending" if run.pending else ""
        raise UsageError(f"{source[:40]} ends in no violation{left}")
    return telling_of(scenario, witness)


def _lasso(
    scenario: AnyScenario,
    model: MarkedModel,
    path: EncodedPath,
    told: Mapping[str, Any],
    max_states: int,
) -> Witness | None:
    """Return the witness of a path whose last instants repeat for ever."""
    stem, cycle = path.actions[: -path.cycle], path.actions[-path.cycle :]
    names = [told["violation"]] if told.get("violation") in (PROGRESS, STARVATION) else None
    entry = _state_after(model, stem)
    finding = finding_of_cycle(
        scenario, model, entry, cycle, names or (PROGRESS, STARVATION), max_states
    )
    if finding is None:
        return None
    violation = Violation(finding.name, finding.message, 0, path.initial, stem, cycle)
    return lasso_witness(scenario, model, violation, finding)


def _stopped(
    scenario: AnyScenario,
    model: MarkedModel,
    path: EncodedPath,
    told: Mapping[str, Any],
) -> Witness:
    """Return the witness of a run that stops although events are pending."""
    name, message = str(told.get("violation")), str(told.get("message"))
    violation = Violation(name, message, 0, path.initial, path.actions, ())
    finding = Finding(name, -1, -1, message, None, None, None)
    return lasso_witness(scenario, model, violation, finding)


def _state_after(model: MarkedModel, actions: Sequence[int]) -> ProtocolState:
    state = model.initial_states()[0]
    for number in actions:
        state = model.step(state, model.actions(state)[number])
    return state


def _state(
    scenario: AnyScenario, model: MarkedModel, path: EncodedPath, state: ProtocolState
) -> Witness | None:
    """Return the witness of a path to a violating state, or to a wave that is overtaken."""
    _state_after(model, path.actions)
    if path.actions and Mark(WAVE_OVERTAKEN) in model.marker.marks:
        finding = Finding(WAVE_ORDER, -1, -1, WAVE_PASSED, None, None, None)
        violation = Violation(WAVE_ORDER, WAVE_PASSED, 0, path.initial, path.actions, ())
        return lasso_witness(scenario, model, violation, finding)
    terminal = not model.actions(state)
    for prop in properties_of(scenario, model, Question("drained")):
        message = prop.violation(state, terminal)
        if message is not None:
            violation = Violation(prop.name, message, 0, path.initial, path.actions)
            return witness_of(scenario, model, violation, state)
    return None
