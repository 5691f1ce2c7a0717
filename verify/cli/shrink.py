"""``frontier-verify shrink``: the smallest counterexample of the same kind, and what to keep."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from frontier.events import ENVIRONMENT
from models.counterexample import Counterexample, sort_key
from models.groups import GroupScenario
from models.lasso_story import STOPPED_RUN
from models.regression import find_repair
from models.scenario import NOTHING_STALE
from models.shrinking import KEEP, Shrunk
from models.shrinking import shrink as shrink_example
from models.subjects import AnyScenario
from models.witness import ROUNDS, witness_to_json
from verify.cli import options as opt
from verify.cli.dossier import Dossier, dossier_of
from verify.cli.errors import UNDETERMINED, UsageError, emit, require_writable, write_result
from verify.cli.keep import case_files, regression_test, rules_text
from verify.cli.render import out, print_scenario
from verify.cli.sources import load_counterexample
from verify.words import counted

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

    Exit code: 0 shrunk, 2 bad input or nothing to shrink, 3 undetermined: a scenario too large to
    decide, or interrupted (Ctrl-C), with what was known by then.
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
    if read.example.classification == STOPPED_RUN:
        raise UsageError(
            f"{read.kind} is of a run that merely stops, which every scenario has while nothing "
            f"makes pending events fire; expected a violation under weak or strong fairness"
        )
    shrunk = shrink_example(read.example, keep, max_states)
    dossier = dossier_of(shrunk.best)
    other, repair = None, None
    if not shrunk.interrupted:
        other = _simpler_of_another_class(shrunk, keep, max_states)
        repair = find_repair(shrunk.best.scenario, fairness=shrunk.best.fairness)
    elapsed = time.monotonic() - started
    files: dict[Path, str] = {}
    if emit_pytest is not None:
        files[emit_pytest] = regression_test(dossier, repair, emit_pytest.parent)
    if emit_case is not None:
        files |= case_files(dossier, repair, emit_case)
    if witness is not None:
        if dossier.witness is None:
            reason = "; ".join(dossier.refused[-1].contradiction)
            raise UsageError(f"there is no timed witness to write: {reason}")
        files[witness] = json.dumps(witness_to_json(dossier.witness), indent=1) + "\n"
    for path, text in files.items():
        write_result(path, text)
    if str(json_file) != "-":
        _print(read.kind, shrunk, dossier, other, repair, list(files))
    if json_file is not None:
        data = _json(read.kind, keep, shrunk, dossier, other, repair, elapsed)
        emit(json_file, json.dumps(data, indent=1))
    if shrunk.interrupted:
        raise typer.Exit(UNDETERMINED)


def _simpler_of_another_class(shrunk: Shrunk, keep: str, limit: int) -> Counterexample | None:
    """Return what shrinking comes to if the class may change, if that is simpler still."""
    if keep == "any":
        return None
    other = shrink_example(shrunk.best, "any", limit).best
    simpler = sort_key(other) < sort_key(shrunk.best)
    return other if simpler and other.classification != shrunk.best.classification else None


def _size(example: Counterexample) -> str:
    """Shape and length in words."""
    length = counted(len(example.schedule), "instant")
    if example.repeats:
        length += f", the last {example.repeats} for ever"
    return f"{shape_words(example.scenario)}, {length}, {counted(example.ties, 'tie')}"


def shape_words(scenario: AnyScenario) -> str:
    """Say in words what can be taken from a scenario."""
    if isinstance(scenario, GroupScenario):
        scripts = "; ".join(" ".join(own) for own in scenario.groups)
        full = counted(scenario.full_stages, "full-stage scheduler")
        words = [f"groups {scripts}", counted(scenario.ep_size, "EP lane"), full]
    else:
        shape = [(scenario.lanes, "lane"), (scenario.stages, "stage"), (scenario.layers, "layer")]
        words = [" x ".join(counted(*each) for each in shape)]
        if scenario.endless:
            words += [f"{counted(scenario.slots, 'slot')} a lane", _steps(scenario.steps)]
        else:
            words.append(f"batches {','.join(map(str, scenario.batches))}")
            words.append(f"{scenario.arrivals} arrivals")
    if scenario.stale != NOTHING_STALE:
        most = scenario.interruptions
        words.append(counted(most, "invalidation") if isinstance(most, int) else "invalidations")
    return ", ".join(words)


def _steps(steps: int | str) -> str:
    return f"{counted(steps, 'step') if isinstance(steps, int) else 'endless steps'} a request"


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
    print_scenario(best.scenario)
    _print_schedule(dossier)
    out.print(f"\n[bold]Why[/]  {dossier.text}")
    if dossier.fate:
        out.print(f"\n[bold]Point of no return[/]  {dossier.fate}.")
    _print_minimality(shrunk)
    _print_witness(dossier)
    if other is not None:
        out.print(
            f"\nA simpler one of another class exists: {other.classification}, {_size(other)} "
            f"(--keep any)"
        )
    if shrunk.interrupted:
        out.print("\nNo repair was looked for.")
    elif repair is None:
        out.print("\nNo change of rules is known that repairs this scenario.")
    else:
        held = "no timing violates" if best.scenario.endless else "every timing completes"
        out.print(f"\n[bold]Repaired by[/]  {rules_text(repair)} ({held})")
    for path in files:
        out.print(f"wrote {path}")
    if dossier.path is not None:
        out.print(f"\n[bold]Replay[/]\nfrontier-verify replay {dossier.path}")


def _print_schedule(dossier: Dossier) -> None:
    best, witness = dossier.example, dossier.witness
    when = "" if witness is None else ", and when in the timed witness"
    out.print(f"\n[bold]Schedule[/] (what falls due{when})")
    first = len(best.schedule) - best.repeats
    for number, instant in enumerate(best.schedule):
        if best.repeats and number == first:
            every = "" if witness is None else f", every {witness.period} ms"
            out.print(f"  from here on for ever{every}:")
        clock = f"{number + 1:>7}" if witness is None else f"{witness.instants[number]:>4} ms"
        out.print(f"  {clock}  " + "  together with  ".join(map(str, instant)))


def _print_minimality(shrunk: Shrunk) -> None:
    taken = ", ".join(dict.fromkeys(step.pass_name for step in shrunk.steps)) or "nothing"
    if shrunk.interrupted:
        out.print(
            f"\n[yellow]interrupted[/]  {counted(shrunk.tried, 'reduction')} tried, "
            f"{len(shrunk.steps)} taken ({taken}): the simplest counterexample so far, not said "
            f"to be minimal"
        )
        return
    out.print(
        f"\n[bold]Minimal[/]  {counted(shrunk.tried, 'reduction')} tried, {len(shrunk.steps)} "
        f"taken ({taken}). Taken away singly, verified once more:"
    )
    for obstacle in shrunk.obstacles:
        out.print(f"  without {obstacle.label:<28} {obstacle.rejection.reason}")
    if not shrunk.is_minimal:
        out.print("  [yellow]not every reduction is decided: raise --max-states[/]")


def _print_witness(dossier: Dossier) -> None:
    witness = dossier.witness
    if witness is None:
        out.print(f"\n[bold]No timed witness[/]  {'; '.join(dossier.refused[-1].contradiction)}")
        return
    arrivals = "; ".join(
        f"lane {lane} at {', '.join(map(str, own))}"
        for lane, own in enumerate(witness.arrivals)
        if own
    )
    outside = ", ".join(
        f"{timed.event} at {timed.milliseconds} ms"
        for timed in witness.durations
        if timed.event.kind in ENVIRONMENT
    )
    end = "ends in the same state"
    if witness.repeats:
        end = f"repeats the cycle every {witness.period} ms ({ROUNDS} rounds were run)"
    elif witness.stops:
        end = "is in the same state after the last instant"
    out.print(
        f"\n[bold]Timed witness[/]  {witness.assumption.replace('_', ' ')} times"
        + (f", arrivals in ms: {arrivals}" if arrivals else "")
        + (f", from outside: {outside}" if outside else "")
        + f"; the simulator was run on it and {end}"
    )
    for none in dossier.refused:
        out.print(f"  not with {none.assumption} times, which contradict each other here:")
        for reason in none.contradiction:
            out.print(f"    {reason}")


def _configuration(example: Counterexample) -> dict[str, Any]:
    return {
        "scenario": example.scenario.to_json(),
        "classification": example.classification,
        "depth": len(example.schedule) - example.repeats,
        "cycle": example.repeats,
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
        "interrupted": shrunk.interrupted,
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
