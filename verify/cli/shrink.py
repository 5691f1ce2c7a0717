"""``frontier-verify shrink``: the smallest counterexample of the same kind, and what to keep."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from models.regression import find_repair
from models.shrinking import KEEP, Counterexample, Shrunk, sort_key
from models.shrinking import shrink as shrink_example
from models.witness import witness_to_json
from verify.cli import options as opt
from verify.cli.dossier import Dossier, dossier_of_example
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.keep import case_files, regression_test, rules_text
from verify.cli.render import out, scenario_line
from verify.cli.sources import load_counterexample, require_finite

MAX_STATES = 20_000

_KEEP_FILES = "Files to keep"


def shrink(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A check result (JSON), an encoded path, a scenario or case, or an event log.",
        ),
    ],
    keep: Annotated[
        str, typer.Option(help="What must stay: any violation, its class, or its cycle's kinds.")
    ] = "class",
    max_states: Annotated[
        int, typer.Option(help="States that the search of one smaller scenario may see.")
    ] = MAX_STATES,
    emit_pytest: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a regression test.", rich_help_panel=_KEEP_FILES),
    ] = None,
    emit_case: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Write a catalogue case, and its twin beside it.",
            rich_help_panel=_KEEP_FILES,
        ),
    ] = None,
    witness: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the timed witness, which simulate takes.",
            rich_help_panel=_KEEP_FILES,
        ),
    ] = None,
    json_file: opt.JsonFile = None,
) -> None:
    """Shrink a counterexample until no single lane, stage, layer, batch or instant can go.

    Exit code: 0 shrunk, 2 bad input or nothing to shrink, 3 a scenario that is undetermined.
    """
    if keep not in KEEP:
        raise UsageError(f"--keep must be one of {', '.join(KEEP)}, got {keep!r}")
    if max_states <= 0:
        raise UsageError(f"--max-states must be greater than 0, got {max_states}")
    if emit_case is not None and emit_case.suffix != ".toml":
        raise UsageError(f"--emit-case needs a file name that ends in .toml, got {emit_case}")
    for path in (emit_pytest, emit_case, witness, json_file):
        require_writable(path)
    started = time.monotonic()
    read = load_counterexample(source, max_states)
    shrunk = shrink_example(require_finite(read), keep, max_states)
    other = _simpler_of_another_class(shrunk, keep, max_states)
    dossier = dossier_of_example(shrunk.best)
    repair = find_repair(shrunk.best.scenario)
    elapsed = time.monotonic() - started
    files: dict[Path, str] = {}
    if emit_pytest is not None:
        files[emit_pytest] = regression_test(dossier, repair)
    if emit_case is not None:
        files |= case_files(dossier, repair, emit_case)
    if witness is not None:
        files[witness] = json.dumps(witness_to_json(dossier.witness), indent=1) + "\n"
    for path, text in files.items():
        write_result(path, text)
    if str(json_file) != "-":
        _print(read.kind, shrunk, dossier, other, repair, list(files))
    if json_file is not None:
        data = _json(read.kind, keep, shrunk, dossier, other, repair, elapsed)
        emit(json_file, json.dumps(data, indent=1))


def _simpler_of_another_class(shrunk: Shrunk, keep: str, limit: int) -> Counterexample | None:
    """Return what shrinking comes to if the class may change, if that is simpler still."""
    if keep == "any":
        return None
    other = shrink_example(shrunk.best, "any", limit).best
    simpler = sort_key(other) < sort_key(shrunk.best)
    return other if simpler and other.classification != shrunk.best.classification else None


def _size(example: Counterexample) -> str:
    s = example.scenario
    return (
        f"{s.lanes} lanes x {s.stages} stages x {s.layers} layers, batches "
        f"{','.join(map(str, s.batches))}, {s.arrivals} arrivals, {len(example.schedule)} "
        f"instants, {example.ties} ties"
    )


def _print(
    kind: str,
    shrunk: Shrunk,
    dossier: Dossier,
    other: Counterexample | None,
    repair: dict[str, str] | None,
    files: list[Path],
) -> None:
    best = shrunk.best
    out.print(f"[bold]From[/]  {kind}: {shrunk.origin.classification}, {_size(shrunk.origin)}")
    out.print(f"[bold]To[/]    {best.classification}, {_size(best)}")
    out.print(scenario_line(best.scenario))
    out.print("\n[bold]Schedule[/] (what falls due, and when in the timed witness)")
    for time_ms, instant in zip(dossier.witness.instants, best.schedule, strict=True):
        out.print(f"  {time_ms:>4} ms  " + "  together with  ".join(map(str, instant)))
    out.print(f"\n[bold]Why[/]  {dossier.text}")
    out.print(f"\n[bold]Point of no return[/]  {dossier.story.fate}.")
    _print_minimality(shrunk)
    _print_witness(dossier)
    if other is not None:
        out.print(
            f"\nA simpler one of another class exists: {other.classification}, {_size(other)} "
            f"(--keep any)"
        )
    if repair is None:
        out.print("\nNo change of rules is known that repairs this scenario.")
    else:
        out.print(f"\n[bold]Repaired by[/]  {rules_text(repair)} (every timing completes)")
    for path in files:
        out.print(f"wrote {path}")
    if dossier.path is not None:
        out.print(f"\n[bold]Replay[/]\nfrontier-verify replay {dossier.path}")


def _print_minimality(shrunk: Shrunk) -> None:
    taken = ", ".join(dict.fromkeys(step.pass_name for step in shrunk.steps)) or "nothing"
    out.print(
        f"\n[bold]Minimal[/]  {shrunk.tried} reductions tried, {len(shrunk.steps)} taken "
        f"({taken}). Taken away singly, verified once more:"
    )
    for obstacle in shrunk.obstacles:
        out.print(f"  without {obstacle.label:<28} {obstacle.rejection.reason}")
    if not shrunk.is_minimal:
        out.print("  [yellow]not every reduction is decided: raise --max-states[/]")


def _print_witness(dossier: Dossier) -> None:
    witness = dossier.witness
    arrivals = "; ".join(
        f"lane {lane} at {', '.join(map(str, own))}"
        for lane, own in enumerate(witness.arrivals)
        if own
    )
    out.print(
        f"\n[bold]Timed witness[/]  {witness.assumption} times"
        + (f", arrivals in ms: {arrivals}" if arrivals else "")
        + "; the simulator was run on it and ends in the same state"
    )
    for none in dossier.refused:
        out.print(f"  not with {none.assumption} times, which contradict each other here:")
        for reason in none.contradiction:
            out.print(f"    {reason}")


def _configuration(example: Counterexample) -> dict[str, Any]:
    return {
        "scenario": example.scenario.to_json(),
        "classification": example.classification,
        "depth": len(example.schedule),
        "ties": example.ties,
    }


def _json(
    kind: str,
    keep: str,
    shrunk: Shrunk,
    dossier: Dossier,
    other: Counterexample | None,
    repair: dict[str, str] | None,
    elapsed: float,
) -> dict[str, Any]:
    return {
        **dossier.to_json(),
        "source": kind,
        "keep": keep,
        "origin": _configuration(shrunk.origin),
        "steps": [{"pass": step.pass_name, "removed": step.label} for step in shrunk.steps],
        "tried": shrunk.tried,
        "minimal": shrunk.is_minimal,
        "minimality": [
            {
                "pass": obstacle.pass_name,
                "without": obstacle.label,
                "reason": obstacle.rejection.reason,
                "proved": obstacle.rejection.proved,
            }
            for obstacle in shrunk.obstacles
        ],
        "repair": repair,
        "simpler_of_another_class": other and _configuration(other),
        "elapsed_s": round(elapsed, 6),
    }
