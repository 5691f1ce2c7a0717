"""``frontier-verify bench``: speed and memory, measured, never asserted by a timed test."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from models.scenario import Scenario
from verify.cli.bench_packed import bench_packed
from verify.cli.bench_simulator import bench_simulator
from verify.cli.checking import check_scenario
from verify.cli.errors import UsageError
from verify.cli.render import live_progress, out, scenario_line
from verify.verdict import Stats


@dataclass(frozen=True)
class Rung:
    """One shape of the ladder and what the project promises for it."""

    scenario: Scenario
    least_transitions_per_s: float
    most_bytes_per_state: float


def reference_rung() -> Rung:
    """Return the shape by which the reference engine is judged (issue 2)."""
    scenario = Scenario.of(
        {"lanes": 3, "stages": 3, "batches": 2, "stand_in": "withdraw_joined", "ties": False}
    )
    return Rung(scenario, 8_000, 2_000)


def _against(measured: float, promised: float) -> str:
    return f"{measured:,.0f} ({measured / promised:.2f}x of {promised:,.0f})"


def _row(table: Table, name: str, stats: Stats, rung: Rung) -> None:
    rate = stats.transitions / stats.elapsed_s
    size = stats.memory_bytes / stats.states
    table.add_row(
        name,
        f"{stats.states:,}",
        f"{stats.transitions:,}",
        f"{stats.elapsed_s:.2f}",
        _against(rate, rung.least_transitions_per_s),
        _against(size, rung.most_bytes_per_state),
    )


def bench(
    report: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write engine.md, engine.json, engine.svg here."),
    ] = None,
    heavy: Annotated[
        bool, typer.Option("--heavy", help="Also shapes that take minutes and gigabytes.")
    ] = False,
    max_memory_gb: Annotated[
        float, typer.Option(help="Memory that a single exploration may take.")
    ] = 6.0,
) -> None:
    """Measure both engines and the simulator, beside what the project promises."""
    if report is not None and not report.is_dir():
        raise UsageError(f"cannot write the report: {report} is not a folder")
    rung = reference_rung()
    out.print(
        f"Python {platform.python_version()} on {sys.platform}; {scenario_line(rung.scenario)}"
    )
    with live_progress("reference engine") as progress:
        result = check_scenario(rung.scenario, progress=progress)
    if not result.exploration.verdict.stats.complete:
        raise KeyboardInterrupt
    table = Table(box=None, pad_edge=False)
    for column in ("engine", "states", "transitions", "seconds", "transitions/s", "bytes/state"):
        table.add_column(column, no_wrap=True)
    _row(table, "reference", result.exploration.verdict.stats, rung)
    out.print(table)
    bench_packed(
        result.exploration.verdict.stats, heavy=heavy, report=report, max_memory_gb=max_memory_gb
    )
    bench_simulator()
    raise typer.Exit(0)
