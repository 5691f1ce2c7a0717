"""``frontier-verify check``: prove or refute one scenario, or the whole catalogue."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from models.catalogue import Case, catalogue
from models.packed.reductions import parse_reductions
from verify.cli import options as opt
from verify.cli.checking import CheckResult, Question
from verify.cli.demand import on_demand
from verify.cli.engines import ENGINES, EngineOptions, check_with, obstacle_to_packed
from verify.cli.errors import UNDETERMINED, UsageError, emit, require_writable, write_result
from verify.cli.render import live_progress, out, print_result, verdict_markup
from verify.cli.same_as import check_same_as, print_comparison
from verify.limits import Limits

check_page = on_demand("verify.cli.report:check_page")
render_page = on_demand("verify.report.page:render_page")
"""Drawing takes most of a second to load, and is seldom asked for."""

_ENGINE = "Engine"
_COUNTABLE = 2**62
"""No machine holds as many states; what is beyond fits into no machine word either."""


def _limits(
    states: int | None, seconds: float | None, gigabytes: float | None, first_violation: bool
) -> Limits:
    for name, value in (
        ("--max-states", states),
        ("--max-seconds", seconds),
        ("--max-memory-gb", gigabytes),
    ):
        if value is not None and not 0 < value < math.inf:
            raise UsageError(f"{name} must be a number greater than 0, got {value:g}")
    most = None if states is None else min(states, _COUNTABLE)
    return Limits(most, seconds, gigabytes, first_violation)


def _engine_options(
    engine: str,
    reduction: str,
    threads: int | None,
    hash_compact: bool,
    checkpoint: Path | None,
    checkpoint_every: float,
    resume: Path | None,
    spill: Path | None,
) -> EngineOptions:
    if engine not in ENGINES:
        raise UsageError(f"unknown engine {engine!r}; expected one of: {', '.join(ENGINES)}")
    if threads is not None and threads < 1:
        raise UsageError(f"--threads must be at least 1, got {threads}")
    if not 0 < checkpoint_every < math.inf:
        raise UsageError(f"--checkpoint-every must be greater than 0, got {checkpoint_every:g}")
    if checkpoint is not None and resume is not None:
        raise UsageError("give either --checkpoint (new) or --resume (go on), not both")
    if spill is not None and not spill.is_dir():
        raise UsageError(f"--spill {spill} is not a folder; make it or give another")
    return EngineOptions(
        engine=engine,
        reductions=parse_reductions(reduction),
        threads=threads,
        hash_compact=hash_compact,
        checkpoint=checkpoint,
        checkpoint_every_s=checkpoint_every,
        resume=resume,
        spill=spill,
    )


def check(
    source: opt.Source = None,
    lanes: opt.Lanes = None,
    stages: opt.Stages = None,
    layers: opt.Layers = None,
    batches: opt.Batches = None,
    model: opt.ModelKind = None,
    admission: opt.Admission = None,
    stand_in: opt.StandIn = None,
    rooms: opt.Rooms = None,
    arrivals: opt.Arrivals = None,
    phases: opt.Phases = None,
    groups: opt.Groups = None,
    ep_size: opt.EpSize = None,
    full_stages: opt.FullStages = None,
    workload: opt.WorkloadKind = None,
    slots: opt.Slots = None,
    steps: opt.Steps = None,
    capacity: opt.Capacity = None,
    stale: opt.Stale = None,
    interruptions: opt.Interruptions = None,
    ties: opt.Ties = None,
    asked: Annotated[
        str | None,
        typer.Option(
            "--property",
            help="drained, progress, starvation or all; default: drained, or all if closed.",
        ),
    ] = None,
    fairness: Annotated[
        str | None,
        typer.Option(
            help="Of progress and starvation: weak (every pending event fires), strong (and a "
            "lane that could be admitted again and again is), or none."
        ),
    ] = None,
    same_as: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="Ask instead whether another admission rule gives the same graph.",
        ),
    ] = None,
    context: opt.Context = None,
    all_violations: Annotated[
        bool, typer.Option("--all-violations", help="Explain every violating state.")
    ] = False,
    first_violation: Annotated[
        bool,
        typer.Option(
            "--first-violation",
            help="End at the first violating state; counts are then of the part seen.",
        ),
    ] = False,
    max_states: Annotated[int | None, typer.Option(help="Give up beyond this many.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Give up after this time.")] = None,
    max_memory_gb: Annotated[
        float | None, typer.Option(help="Give up beyond this much memory of the process.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write a report of one self-contained page."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="auto, reference (runs the core), packed (compiled), or both and compare.",
            rich_help_panel=_ENGINE,
        ),
    ] = "auto",
    reduction: Annotated[
        str,
        typer.Option(
            metavar="none|all|NAME,…",
            help="Reductions of the packed engine: ties, canonical, symmetry, por, rendezvous.",
            rich_help_panel=_ENGINE,
        ),
    ] = "none",
    threads: Annotated[
        int | None,
        typer.Option(
            help="Threads of the packed engine; default: all cores.", rich_help_panel=_ENGINE
        ),
    ] = None,
    hash_compact: Annotated[
        bool,
        typer.Option(
            "--hash-compact",
            help="Keep 64-bit hashes instead of states; the result is never an unqualified holds.",
            rich_help_panel=_ENGINE,
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Save the packed search here as it runs.", rich_help_panel=_ENGINE
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", help="Time between two checkpoints.", rich_help_panel=_ENGINE
        ),
    ] = 120.0,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Go on from the checkpoint in this folder, and keep saving there.",
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    spill: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Beyond --max-memory-gb, go on with states in files here instead of giving up.",
            rich_help_panel=_ENGINE,
        ),
    ] = None,
    json_file: opt.JsonFile = None,
) -> None:
    """Explore every timing of a scenario; without any argument, check the whole catalogue.

    Exit code: 0 holds (catalogue: all as claimed), 1 violated (catalogue: a case differs),
    2 bad input, 3 undetermined.
    """
    given = {
        "lanes": lanes,
        "stages": stages,
        "layers": layers,
        "batches": batches,
        "model": model,
        "admission": admission,
        "stand_in": stand_in,
        "rooms": rooms,
        "arrivals": arrivals,
        "phases": phases,
        "groups": groups,
        "ep_size": ep_size,
        "full_stages": full_stages,
        "workload": workload,
        "slots": slots,
        "steps": steps,
        "capacity": capacity,
        "stale": stale,
        "interruptions": interruptions,
        "ties": ties,
        "context": context,
    }
    limits = _limits(max_states, max_seconds, max_memory_gb, first_violation)
    engines = _engine_options(
        engine, reduction, threads, hash_compact, checkpoint, checkpoint_every, resume, spill
    )
    if spill is not None and max_memory_gb is None:
        raise UsageError("--spill needs --max-memory-gb: the memory beyond which to use it")
    if first_violation and all_violations:
        raise UsageError("--first-violation and --all-violations are opposites; leave one out")
    require_writable(json_file)
    require_writable(report)
    questions = (asked, fairness, same_as)
    if source is None and all(value is None for value in (*given.values(), *questions)):
        if report is not None:
            raise UsageError("--report is of one scenario; name a case or describe a scenario")
        if engines.packed_only not in (None, "--threads"):
            raise UsageError(f"{engines.packed_only} needs one scenario, not the whole catalogue")
        if first_violation:
            raise UsageError("--first-violation needs one scenario, not the whole catalogue")
        code, data = _check_catalogue(limits, engines, quiet=str(json_file) == "-")
    else:
        scenario = opt.any_scenario_from(source, given)
        if same_as is not None:
            other = {
                "--report": report is not None,
                "--property": asked is not None,
                "--fairness": fairness is not None,
                "--all-violations": all_violations,
                "--first-violation": first_violation,
                "--engine": engine not in ("auto", "reference"),
                engines.packed_only or "": engines.packed_only is not None,
            }
            for name in (name for name, given_too in other.items() if given_too):
                raise UsageError(f"{name} does not go with --same-as, which compares two graphs")
            comparison = check_same_as(scenario, same_as, limits)
            if str(json_file) != "-":
                print_comparison(comparison)
            if json_file is not None:
                emit(json_file, json.dumps(comparison.to_json(), indent=1))
            raise typer.Exit(comparison.exit_code)
        if source is not None:
            usual = opt.asked_by(source)
            asked, fairness = asked or usual[0], fairness or usual[1]
        question = Question.of(scenario, asked, fairness)
        with live_progress("checking") as progress:
            result = check_with(
                scenario,
                engines,
                question=question,
                limits=limits,
                progress=progress,
                all_violations=all_violations,
            )
        code, data = result.exit_code, result.to_json()
        if str(json_file) != "-":
            print_result(result)
    if json_file is not None:
        emit(json_file, json.dumps(data, indent=1))
    if report is not None:  # last: what cannot be drawn or written must not cost the verdict
        write_result(report, render_page(check_page(result)))
    raise typer.Exit(code)


def _case_line(case: Case, result: CheckResult, differences: list[str]) -> str:
    data = result.to_json()
    found = f"{data['classification'] or ''}"
    if data["depth"] is not None:
        found += f" at depth {data['depth']}"
    mark = "[green]as claimed[/]" if not differences else "[bold red]DIFFERS[/]"
    expected = case.expect.verdict
    verdict = data["verdict"]
    return (
        f"{case.name:<44} expected {expected:<9} found {verdict_markup(verdict)}"
        f"{' ' * (13 - len(verdict))}{data['states']:>7} states {data['transitions']:>8} "
        f"transitions  {found:<32} {mark}"
    )


def _check_catalogue(
    limits: Limits, engines: EngineOptions, quiet: bool
) -> tuple[int, dict[str, Any]]:
    cases = catalogue()
    rows: list[dict[str, Any]] = []
    differing, undetermined, not_packed = 0, 0, 0
    for case in cases.values():
        chosen = engines
        if engines.engine != "reference" and obstacle_to_packed(
            case.scenario, Question.of(case.scenario)
        ):
            chosen = replace(engines, engine="reference", threads=None)
            not_packed += 1
        with live_progress(case.name) as progress:
            question = Question.of(case.scenario, case.asked, case.fairness)
            result = check_with(
                case.scenario, chosen, question=question, limits=limits, progress=progress
            )
        data = result.to_json()
        differences = case.expect.differences(data)
        rows.append({"case": case.name, "differences": differences, **data})
        differing += bool(differences) and result.verdict_word != "undetermined"
        undetermined += result.verdict_word == "undetermined"
        if not quiet:
            out.print(_case_line(case, result, differences))
            for line in differences:
                out.print(f"    {line}")
        if data["limit"] is not None and "interrupted" in data["limit"]:
            break
    not_run = len(cases) - len(rows)
    if not quiet:
        out.print(
            f"{len(cases)} cases: {len(rows) - differing - undetermined} as claimed, "
            f"{differing} differ, {undetermined} undetermined, {not_run} not run"
        )
        if not_packed and engines.engine in ("packed", "both"):
            out.print(
                f"{not_packed} cases by the reference engine alone: outside the packed domain"
            )
    code = 1 if differing else UNDETERMINED if undetermined or not_run else 0
    return code, {"as_claimed": code == 0, "cases": rows}
