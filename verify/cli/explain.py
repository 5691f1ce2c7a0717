"""``frontier-verify explain``: a violation told edge by edge and step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from models.view import describe_stages
from verify.cli import options as opt
from verify.cli.dossier import Dossier, dossier_of_example
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.pictures import (
    lanes_over_instants,
    lanes_over_time,
    perfetto_trace,
    picture_bytes,
    waits_picture,
)
from verify.cli.render import out, print_cycle, scenario_line, stage_table
from verify.cli.report import dossier_page, telling_page
from verify.cli.sources import load_counterexample
from verify.cli.telling import Telling, load_telling
from verify.lane_chart import SUFFIXES
from verify.report.page import render_page
from verify.story import Step
from verify.waitgraph import mermaid

MAX_STATES = 100_000

_FILES = "Files"


def explain(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RESULT",
            help="A check or shrink result (JSON), an encoded path, a scenario or case, a timed "
            "witness, or an event log.",
        ),
    ],
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write the report.", rich_help_panel=_FILES),
    ] = None,
    waits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg|png", help="Draw who waits for whom.", rich_help_panel=_FILES
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.svg|png",
            help="Draw lanes over time in the timed witness.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Write the timed witness for Perfetto.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    mermaid_file: Annotated[
        Path | None,
        typer.Option(
            "--mermaid",
            metavar="FILE|-",
            help="Write the wait-for graph as Mermaid text.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    json_file: opt.JsonFile = None,
) -> None:
    """Explain a violation: why it is stuck, every step's changes, and where it was lost.

    Exit code: 0 explained, 2 bad input or no violation, 3 a scenario that is undetermined.
    """
    for path in (html, waits, timeline, trace, mermaid_file, json_file):
        require_writable(path)
    for picture in (waits, timeline):
        if picture is not None and picture.suffix not in SUFFIXES:
            raise UsageError(f"a picture is a {' or '.join(SUFFIXES)} file, got {picture}")
    telling = load_telling(source, MAX_STATES)
    if telling is not None:
        if trace is not None:
            raise UsageError(
                "--trace needs times, and a run that repeats for ever, has stale work or is of a "
                "stage fed by groups has none; --timeline draws it over instants"
            )
        _explain_untimed(telling, html, waits, timeline, mermaid_file, json_file)
        return
    dossier = dossier_of_example(load_counterexample(source, MAX_STATES).example)
    if html is not None:
        write_result(html, render_page(dossier_page(dossier)))
    if waits is not None:
        write_result(waits, picture_bytes(waits_picture(dossier.analysis, ""), waits))
    if timeline is not None:
        write_result(timeline, picture_bytes(lanes_over_time(dossier.witness, ""), timeline))
    if trace is not None:
        write_result(trace, perfetto_trace(dossier.witness))
    if mermaid_file is not None:
        emit(mermaid_file, mermaid(dossier.analysis).rstrip())
    if "-" not in (str(json_file), str(mermaid_file)):
        print_story(dossier)
    if json_file is not None:
        data = {**dossier.to_json(), "story": dossier.story.to_json()}
        emit(json_file, json.dumps(data, indent=1))


def _explain_untimed(
    telling: Telling,
    html: Path | None,
    waits: Path | None,
    timeline: Path | None,
    mermaid_file: Path | None,
    json_file: Path | None,
) -> None:
    """Write and print what is told of a run without times."""
    analysis, everybody = telling.witness.wait_for, bool(telling.repeats)
    if html is not None:
        write_result(html, render_page(telling_page(telling)))
    if waits is not None:
        write_result(waits, picture_bytes(waits_picture(analysis, "", everybody), waits))
    if timeline is not None:
        write_result(timeline, picture_bytes(lanes_over_instants(telling.film, ""), timeline))
    if mermaid_file is not None:
        emit(mermaid_file, mermaid(analysis, everybody).rstrip())
    if "-" not in (str(json_file), str(mermaid_file)):
        _print_telling(telling)
    if json_file is not None:
        emit(json_file, json.dumps(telling.to_json(), indent=1))


def _print_telling(telling: Telling) -> None:
    """Print the explanation, the steps with what changed, and where it repeats."""
    witness = telling.witness
    out.print(scenario_line(telling.scenario))
    out.print(f"\n[bold]Why[/]  {witness.text}")
    print_cycle([edge.source for edge in witness.wait_for.cycle])
    if not telling.repeats:
        out.print(f"\n[bold]Point of no return[/]  {telling.story.fate}.")
    out.print("\n[bold]Step by step[/] (only what changed)")
    no_return = telling.story.no_return
    for step in telling.story.steps:
        if telling.repeats and step.number == telling.stem + 1:
            out.print("\n[bold magenta]from here on for ever:[/]")
        _print_step(step, no_return is not None and step.number == no_return.step)
    if telling.repeats:
        out.print(f"\nThe state is that after instant {telling.stem} again.")
    out.print()
    out.print(stage_table(witness.stages))
    out.print(f"\n[bold]Replay[/]\nfrontier-verify replay {witness.path}")


def print_story(dossier: Dossier) -> None:
    """Print the explanation, the steps with what changed, and the point of no return."""
    example = dossier.example
    out.print(scenario_line(example.scenario))
    out.print(f"\n[bold]Why[/]  {dossier.text}")
    print_cycle([edge.source for edge in dossier.analysis.cycle])
    out.print(f"\n[bold]Point of no return[/]  {dossier.story.fate}.")
    no_return = dossier.story.no_return
    if no_return is not None and no_return.healthy:
        out.print("\n[bold]A healthy run[/] goes on from there:")
        for number, instant in enumerate(no_return.healthy, start=no_return.step):
            out.print(f"  {number:>3}  " + "  together with  ".join(instant))
    out.print("\n[bold]Step by step[/] (only what changed)")
    skipped = dossier.story.steps[0].number
    if skipped:
        out.print(f"the first {skipped} instants are not told; shrink the run for a shorter story")
    for step in dossier.story.steps:
        lost = no_return is not None and step.number == no_return.step
        _print_step(step, lost)
    out.print()
    out.print(stage_table(describe_stages(dossier.played.replica)))
    if dossier.path is not None:
        out.print(f"\n[bold]Replay[/]\nfrontier-verify replay {dossier.path}")


def _print_step(step: Step, lost: bool) -> None:
    title = "  together with  ".join(step.fired) or "start"
    mark = "  [bold red]<- no continuation completes from here on[/]" if lost else ""
    out.print(f"\n[bold]{step.number}[/]  {title}{mark}")
    for handled in step.handled:
        if handled.tone:
            colour = "red" if handled.tone == "refused" else "green"
            out.print(f"     [{colour}]{handled.event}: {handled.note}[/]")
    if step.number == 0:
        return
    for change in step.changes:
        out.print(f"     {change}", markup=False)
