"""``frontier-verify check``: prove or refute one scenario, or the whole catalogue."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from models.catalogue import Case, catalogue
from verify.cli import options as opt
from verify.cli.checking import CheckResult, Question, check_scenario
from verify.cli.errors import UNDETERMINED, UsageError, emit, require_writable
from verify.cli.render import live_progress, out, print_result, verdict_markup
from verify.cli.same_as import check_same_as, print_comparison
from verify.limits import Limits


def _limits(states: int | None, seconds: float | None, gigabytes: float | None) -> Limits:
    for name, value in (
        ("--max-states", states),
        ("--max-seconds", seconds),
        ("--max-memory-gb", gigabytes),
    ):
        if value is not None and value <= 0:
            raise UsageError(f"{name} must be greater than 0, got {value:g}")
    return Limits(states, seconds, gigabytes)


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
    all_violations: Annotated[
        bool, typer.Option("--all-violations", help="Explain every violating state.")
    ] = False,
    max_states: Annotated[int | None, typer.Option(help="Give up beyond this many.")] = None,
    max_seconds: Annotated[float | None, typer.Option(help="Give up after this time.")] = None,
    max_memory_gb: Annotated[
        float | None, typer.Option(help="Give up beyond this much memory of the process.")
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
        "ties": ties,
    }
    limits = _limits(max_states, max_seconds, max_memory_gb)
    require_writable(json_file)
    if source is None and all(
        value is None for value in (*given.values(), asked, fairness, same_as)
    ):
        code, data = _check_catalogue(limits, quiet=str(json_file) == "-")
    else:
        scenario = opt.any_scenario_from(source, given)
        if same_as is not None:
            comparison = check_same_as(scenario, same_as, limits)
            if str(json_file) != "-":
                print_comparison(comparison)
            if json_file is not None:
                emit(json_file, json.dumps(comparison.to_json(), indent=1))
            raise typer.Exit(comparison.exit_code)
        question = Question.of(scenario, asked, fairness)
        with live_progress("checking") as progress:
            result = check_scenario(
                scenario,
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


def _check_catalogue(limits: Limits, quiet: bool) -> tuple[int, dict[str, Any]]:
    cases = catalogue()
    rows: list[dict[str, Any]] = []
    differing, undetermined = 0, 0
    for case in cases.values():
        with live_progress(case.name) as progress:
            question = Question.of(case.scenario, case.asked, case.fairness)
            result = check_scenario(
                case.scenario, question=question, limits=limits, progress=progress
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
    code = 1 if differing else UNDETERMINED if undetermined or not_run else 0
    return code, {"as_claimed": code == 0, "cases": rows}
