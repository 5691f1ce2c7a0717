"""Where a counterexample comes from: a result, a path, a witness, an event log, a scenario."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from models.counterexample import Counterexample, Violated, counterexample_of
from models.eventlog import EventLogError, is_event_log, read_event_log, replay_event_log
from models.lasso_story import STOPPED_RUN
from models.liveness import PROGRESS, STARVATION
from models.recorded import recorded_counterexample, stopped_run
from models.regression import decides
from models.schedule import Played, play_exactly
from models.subjects import AnyScenario
from models.witness import (
    TimedSchedule,
    Witness,
    WitnessError,
    confirm,
    times_of_run,
    witness_of_json,
)
from verify.cli import options as opt
from verify.cli.checking import Question, open_path
from verify.cli.errors import UNDETERMINED, UsageError
from verify.cli.render import err
from verify.shrink import Rejection

_KNOWN = (
    "expected a result of check or shrink (JSON), an encoded path (fv1-…), a timed witness, an "
    "event log of simulate (JSON lines), a scenario file (.toml), or the name of a case"
)


@dataclass(frozen=True)
class Source:
    """A counterexample and what it was read from, in words; of a recorded run also its times."""

    example: Counterexample
    kind: str
    recorded: TimedSchedule | None = None


def load_counterexample(source: str, max_states: int) -> Source:
    """Read a counterexample from whatever a person has.

    Parameters
    ----------
    source
        A file name, an encoded path, or the name of a case.
    max_states
        States that may be explored to find a violation of a scenario.

    Raises
    ------
    UsageError
        If it cannot be read, or has no violation.
    typer.Exit
        With code 3, if a scenario could not be decided within ``max_states``.
    """
    path = Path(source)
    if source.startswith("fv") and "-" in source[:6] and not path.is_file():
        return _of_path(source, "an encoded path", max_states)
    if path.suffix == ".toml" or not path.is_file():
        if path.suffix in (".json", ".jsonl") or ("/" in source and path.suffix != ".toml"):
            raise UsageError(f"cannot read {source}: there is no such file")
        return _of_scenario(*load_asked(source), max_states)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {source}: {error}") from None
    if text.lstrip().startswith("fv"):
        return _of_path(text.strip(), f"the path in {source}", max_states)
    if is_event_log(text):
        return _of_log(source, text)
    return _of_json(source, text, max_states)


def _violating(played: Played, what: str) -> Counterexample:
    example = counterexample_of(played)
    if example is None:
        left = f" with {len(played.run.pending)} events pending" if played.run.pending else ""
        raise UsageError(f"{what} ends in no violation (it is {played.outcome}{left})")
    return example


def _of_path(
    word: str,
    what: str,
    max_states: int,
    fairness: str = "weak",
    names: tuple[str, ...] = (PROGRESS, STARVATION),
) -> Source:
    scenario, encoded = open_path(word)
    example = recorded_counterexample(scenario, encoded, max_states, fairness, names)
    if example is None:
        raise UsageError(f"{what} ends in no violation")
    return Source(example, what)


def _of_log(source: str, text: str) -> Source:
    try:
        log = read_event_log(text)
        played = replay_event_log(log)
        recorded = times_of_run(log.scenario, log.schedule, log.times)
    except EventLogError as error:
        raise UsageError(f"{source}: {error}") from None
    except WitnessError as error:
        raise UsageError(
            f"{source}: the times of its instants are not those of a run: {error}"
        ) from None
    example = _violating(played, f"the run in {source}")
    return Source(example, f"the event log {source}", recorded)


def _of_json(source: str, text: str, max_states: int) -> Source:
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source} is not valid JSON ({error}); {_KNOWN}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{source} holds no result; {_KNOWN}")
    if "witness" in values and isinstance(values["witness"], str):
        return _of_witness(source, values)
    if "cases" in values:
        raise UsageError(f"{source} is the result of a whole catalogue; name one of its cases")
    if isinstance(values.get("path"), str):
        return _of_result(f"the result {source}", values, max_states)
    if "verdict" in values:
        raise UsageError(f"{source} has no violation: its verdict is {values['verdict']}")
    raise UsageError(f"{source} holds no result; {_KNOWN}")


def _of_result(what: str, values: dict[str, Any], max_states: int) -> Source:
    """Read the path of a result; of a run it says which property it violates."""
    name, message = str(values.get("violation")), str(values.get("message"))
    fairness = str(values.get("fairness") or "weak")
    if values.get("classification") == STOPPED_RUN:
        scenario, path = open_path(values["path"])
        return Source(stopped_run(scenario, path, Violated(name, message)), what)
    names = (name,) if name in (PROGRESS, STARVATION) else (PROGRESS, STARVATION)
    return _of_path(values["path"], what, max_states, fairness, names)


def load_witness(path: Path) -> Witness:
    """Read a timed witness, which the simulator must confirm.

    Raises
    ------
    UsageError
        If it cannot be read, or the simulator does something else on it.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the timed witness {path}: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("witness"), str):
        raise UsageError(f"{path} holds no timed witness; write one with shrink --witness FILE")
    return _confirmed(str(path), values)


def _confirmed(source: str, values: dict[str, Any]) -> Witness:
    try:
        witness = witness_of_json(values)
        confirm(witness.timed)
    except WitnessError as error:
        raise UsageError(f"{source}: {error}") from None
    return witness


def _of_witness(source: str, values: dict[str, Any]) -> Source:
    witness = _confirmed(source, values)
    what = f"the timed witness {source}"
    if witness.repeats:
        raise UsageError(
            f"{what} repeats for ever, several rounds of it in a row; give the encoded path that "
            f"it was made from"
        )
    return Source(_violating(play_exactly(witness.scenario, witness.schedule), what), what)


def load_asked(source: str) -> tuple[AnyScenario, Question]:
    """Return the scenario of a file or case, with what a case asks, else what is usual."""
    scenario = opt.load_any_source(source)
    return scenario, Question.of(scenario, *opt.asked_by(source))


def _of_scenario(scenario: AnyScenario, question: Question, max_states: int) -> Source:
    found = decides(scenario, max_states, question.liveness, question.fairness, question.runs_first)
    if isinstance(found, Rejection):
        if found.proved:
            held = "no timing violates" if scenario.endless else "every timing completes"
            raise UsageError(f"the scenario has no violation: {held} ({found.reason})")
        err.print(f"undetermined: no violation found ({found.reason}); raise --max-states")
        raise typer.Exit(UNDETERMINED)
    return Source(found, "the scenario")
