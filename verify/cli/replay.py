"""``frontier-verify replay``: run an encoded path on the core, step by step."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from models.counterexample import DRAINED, bad_states
from models.explanation import Narrator, after_instants, explain
from models.quiescent import QuiescentModel, QuiescentRun
from models.schedule import why_differs
from models.subjects import invariants_of, stages_of, waits_of
from models.view import describe_event
from verify.cli import options as opt
from verify.cli.checking import open_path
from verify.cli.errors import emit, require_writable
from verify.cli.render import out, print_scenario, stage_table
from verify.path import PathError, fingerprint


def replay(
    path: Annotated[str, typer.Argument(metavar="PATH", help="An encoded path: fv1-…")],
    json_file: opt.JsonFile = None,
) -> None:
    """Replay an encoded path on the core and show every event with what followed.

    Exit code: 0 the path ends in a state that is complete or can go on, 1 it ends in a
    drained or failing state or breaks an invariant, or repeats for ever, 2 it is not a path of
    this version.
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
        print_scenario(scenario)
        out.print("[bold]start[/]")
    _show(narrator, quiet)
    seen = [run.state()]
    for number, action_number in enumerate(encoded.actions, start=1):
        actions = model.actions(run.state())
        if action_number >= len(actions):
            raise PathError(
                f"step {number} takes action {action_number}, but only {len(actions)} are "
                f"enabled there: {why_differs(scenario)}"
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
            f"the path ends in another state than the one it was recorded with: "
            f"{why_differs(scenario)}"
        )
    repeats = encoded.cycle > 0 and seen[-1 - encoded.cycle] == final
    found = None if repeats else next(bad_states(run, final, invariants_of(scenario)), None)
    outcome = _outcome(run, repeats, found and found[2].name)
    classification = found and found[0]
    replica: Any = run.system
    analysis = waits_of(replica, run.pending)
    stages = stages_of(replica)
    if not quiet:
        out.print()
        out.print(stage_table(stages))
        out.print(f"\n{outcome} {after_instants(len(encoded.actions))}")
        if repeats:
            out.print(f"the state is that before the last {encoded.cycle}: they repeat for ever")
        if found is not None:
            when = after_instants(len(steps))
            out.print(explain(found[0], analysis, when, found[2].message))
    if json_file is not None:
        data = {
            "scenario": scenario.to_json(),
            "notes": list(scenario.context_notes),
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


def _outcome(run: QuiescentRun, repeats: bool, violated: str | None) -> str:
    """Say in one word how a path ends."""
    if run.failure is not None:
        return "failed"
    if repeats:
        return "repeating"
    if violated is not None:
        return DRAINED if violated == DRAINED else "violated"
    return "running" if run.pending else "complete"


def _show(narrator: Narrator, quiet: bool) -> list[dict[str, Any]]:
    notes = narrator.take()
    if not quiet:
        for event, note in notes:
            out.print(f"     {event}" + (f"  -> {note}" if note else ""))
    return [{"event": describe_event(event), "note": note or None} for event, note in notes]
