"""``frontier-verify explain``: a violation told edge by edge and step by step."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from models.story import PENDING
from verify.cli import options as opt
from verify.cli.dossier import Dossier, dossier_of
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.pictures import (
    lanes_over_instants,
    lanes_over_time,
    perfetto_trace,
    picture_bytes,
    waits_picture,
)
from verify.cli.render import out, print_cycle, print_scenario, stage_table
from verify.cli.report import dossier_page, is_timed
from verify.cli.sources import load_counterexample
from verify.lane_chart import SUFFIXES
from verify.report.page import render_page
from verify.story import NoReturn, Step
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
            help="Draw lanes over time: of an event log its run, else the timed witness.",
            rich_help_panel=_FILES,
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Write that run for Perfetto.",
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
    read = load_counterexample(source, MAX_STATES)
    dossier = dossier_of(read.example, recorded=read.recorded)
    if html is not None:
        write_result(html, render_page(dossier_page(dossier)))
    if waits is not None:
        graph = waits_picture(dossier.analysis, "", dossier.goes_on)
        write_result(waits, picture_bytes(graph, waits))
    if timeline is not None:
        lanes = (
            lanes_over_time(dossier.timed, "")
            if dossier.timed is not None and is_timed(dossier.example)
            else lanes_over_instants(dossier.film, "")
        )
        write_result(timeline, picture_bytes(lanes, timeline))
    if trace is not None:
        if dossier.timed is None:
            reason = "; ".join(dossier.refused[-1].contradiction)
            raise UsageError(f"--trace needs times, and this run has none: {reason}")
        write_result(trace, perfetto_trace(dossier.timed))
    if mermaid_file is not None:
        emit(mermaid_file, mermaid(dossier.analysis, dossier.goes_on).rstrip())
    if "-" not in (str(json_file), str(mermaid_file)):
        print_story(dossier)
    if json_file is not None:
        data = {**dossier.to_json(), "story": dossier.story.to_json()}
        emit(json_file, json.dumps(data, indent=1))


def print_story(dossier: Dossier) -> None:
    """Print the explanation, the steps with what changed, and the point of no return."""
    example = dossier.example
    print_scenario(example.scenario)
    out.print(f"\n[bold]Why[/]  {dossier.text}")
    print_cycle([edge.source for edge in dossier.analysis.cycle])
    if dossier.fate:
        out.print(f"\n[bold]Point of no return[/]  {dossier.fate}.")
    no_return = dossier.story.no_return
    if no_return is not None and no_return.healthy:
        out.print("\n[bold]A healthy run[/] goes on from there:")
        for number, instant in enumerate(no_return.healthy, start=no_return.step):
            out.print(f"  {number:>3}  " + "  together with  ".join(instant))
    out.print("\n[bold]Step by step[/] (only what changed)")
    skipped = dossier.story.steps[0].number
    if skipped:
        out.print(f"the first {skipped} instants are not told; shrink the run for a shorter story")
    first = len(example.schedule) - example.repeats + 1
    for idle, group in groupby(dossier.story.steps, lambda step: _only_arrives(step, no_return)):
        steps = list(group)
        if idle and len(steps) > 1 and not example.repeats:
            _print_folded(steps)
            continue
        for step in steps:
            if example.repeats and step.number == first:
                out.print("\n[bold magenta]from here on for ever:[/]")
            lost = no_return is not None and step.number == no_return.step
            _print_step(step, lost, "goes on" if example.scenario.endless else "completes")
    if example.repeats:
        out.print(f"\nThe state is that after instant {first - 1} again.")
    out.print()
    out.print(stage_table(dossier.stages))
    if dossier.path is not None:
        out.print(f"\n[bold]Replay[/]\nfrontier-verify replay {dossier.path}")


def _only_arrives(step: Step, no_return: NoReturn | None) -> bool:
    """Whether a step changes nothing but what is still to come, so that several are one line."""
    if step.number == 0 or (no_return is not None and step.number == no_return.step):
        return False
    quiet = not any(handled.tone for handled in step.handled)
    return quiet and all(change.section == PENDING for change in step.changes)


def _print_folded(steps: Sequence[Step]) -> None:
    fired = Counter(event for step in steps for event in step.fired)
    events = ", ".join(f"{n} x {event}" if n > 1 else event for event, n in fired.items())
    out.print(f"\n[bold]{steps[0].number}-{steps[-1].number}[/]  {events}")
    out.print(f"     nothing changes in these {len(steps)} instants but what is still to come")


def _print_step(step: Step, lost: bool, goes_well: str) -> None:
    title = "  together with  ".join(step.fired) or "start"
    mark = f"  [bold red]<- no continuation {goes_well} from here on[/]" if lost else ""
    out.print(f"\n[bold]{step.number}[/]  {title}{mark}")
    for handled in step.handled:
        if handled.tone:
            colour = "red" if handled.tone == "refused" else "green"
            out.print(f"     [{colour}]{handled.event}: {handled.note}[/]")
    if step.number == 0:
        return
    for change in step.changes:
        out.print(f"     {change}", markup=False)
