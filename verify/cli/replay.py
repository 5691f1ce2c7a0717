"""``frontier-verify replay``: run an encoded path on the core, step by step."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from models.explanation import Narrator, after_instants, explain
from models.quiescent import QuiescentModel, QuiescentRun
from models.subjects import stages_of, waits_of
from models.view import describe_event
from models.waits import CORE_ERROR, classify
from verify.cli import options as opt
from verify.cli.checking import open_path
from verify.cli.errors import emit, require_writable
from verify.cli.render import out, scenario_line, stage_table
from verify.path import PathError, fingerprint


def replay(
    path: Annotated[str, typer.Argument(metavar="PATH", help="An encoded path: fv1-…")],
    json_file: opt.JsonFile = None,
) -> None:
    """Replay an encoded path on the core and show every event with what followed.

    Exit code: 0 the path ends in a state that is complete or can go on, 1 it ends in a
    drained or failing state or repeats for ever, 2 it is not a path of this version.
    """
    require_writable(json_file)
    scenario, encoded = open_path(path)
    quiet = str(json_file) == "-"
    narrator = Narrator()
    model = QuiescentModel(scenario.make_replica, scenario.ties)
    run = QuiescentRun(scenario.make_replica(), (narrator,))
    run.begin()
    steps: list[dict[str, Any]] = []
    if not quiet:
        out.print(scenario_line(scenario))
        out.print("[bold]start[/]")
    _show(narrator, quiet)
    seen = [run.state()]
    for number, action_number in enumerate(encoded.actions, start=1):
        actions = model.actions(run.state())
        if action_number >= len(actions):
            raise PathError(
                f"step {number} takes action {action_number}, but only {len(actions)} are "
                f"enabled there: the path is of another version of the protocol"
            )
        due = [run.pending[position] for position in actions[action_number]]
        if not quiet:
            out.print(f"[bold]instant {number}[/]  " + "  together with  ".join(map(str, due)))
        run.fire(actions[action_number])
        seen.append(run.state())
        notes = _show(narrator, quiet)
        steps.append({"instant": [describe_event(e) for e in due], "handled": notes})
    final = run.state()
    if fingerprint(final) != encoded.fingerprint:
        raise PathError(
            "the path ends in another state than the one it was recorded with: it is of another "
            "version of the protocol"
        )
    ended = bool(run.pending) and run.failure is None
    repeats = encoded.cycle > 0 and seen[-1 - encoded.cycle] == final
    outcome = (
        "failed"
        if run.failure
        else "repeating"
        if repeats
        else "running"
        if ended
        else "complete"
        if run.system.is_complete
        else "drained"
    )
    replica: Any = run.system
    analysis = waits_of(replica, run.pending)
    classification = (
        CORE_ERROR if run.failure else classify(analysis) if outcome == "drained" else None
    )
    stages = stages_of(replica)
    if not quiet:
        out.print()
        out.print(stage_table(stages))
        out.print(f"\n{outcome} {after_instants(len(encoded.actions))}")
        if repeats:
            out.print(f"the state is that before the last {encoded.cycle}: they repeat for ever")
        if classification is not None:
            message = str(run.failure or "no event is left, but work is unfinished")
            out.print(explain(classification, analysis, after_instants(len(steps)), message))
    if json_file is not None:
        data = {
            "scenario": scenario.to_json(),
            "outcome": outcome,
            "classification": classification,
            "depth": len(encoded.actions),
            "fingerprint": encoded.fingerprint,
            "steps": steps,
            "stages": stages,
            "wait_for": analysis.to_json() if classification else None,
        }
        emit(json_file, json.dumps(data, indent=1))
    raise typer.Exit(1 if classification or repeats else 0)


def _show(narrator: Narrator, quiet: bool) -> list[dict[str, Any]]:
    notes = narrator.take()
    if not quiet:
        for event, note in notes:
            out.print(f"     {event}" + (f"  -> {note}" if note else ""))
    return [{"event": describe_event(event), "note": note or None} for event, note in notes]
