"""The ladder of ``frontier-verify bench``: both engines, reductions off and on, and SPIN."""

from __future__ import annotations

import json
import math
import os
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from rich.table import Table

from models.packed.lanes import PackedLanes
from models.packed.reductions import REDUCTIONS, Plan
from models.promela import promela
from models.scenario import Scenario
from verify.cli.render import err, out
from verify.files import write_text_atomically
from verify.limits import INTERRUPTED, Limits
from verify.packed.search import Search
from verify.verdict import Stats

CANONICAL: Final = ("canonical",)


class Shape(NamedTuple):
    """A rung of the ladder."""

    lanes: int
    stages: int
    batches: int
    layers: int = 1
    ties: bool = False

    def __str__(self) -> str:
        """Lanes x stages x batches, and what is not as usual."""
        layers = "" if self.layers == 1 else f", {self.layers} layers"
        return f"{self.lanes}x{self.stages}x{self.batches}{layers}{', ties' if self.ties else ''}"


SHAPES: Final = (Shape(3, 3, 2), Shape(4, 2, 2), Shape(4, 3, 2))
"""Every engine climbs these."""

LARGE: Final = (
    Shape(8, 2, 2),
    Shape(8, 2, 2, layers=4),
    Shape(8, 2, 4),
    Shape(16, 2, 2),
    Shape(8, 3, 2),
    Shape(12, 3, 2),
    Shape(8, 3, 3),
    Shape(8, 4, 2),
    Shape(8, 4, 2, layers=4),
    Shape(3, 2, 2, ties=True),
    Shape(8, 2, 2, ties=True),
    Shape(8, 3, 3, ties=True),
    Shape(8, 4, 2, ties=True),
)
"""For the packed engine with every reduction."""

TIED: Final = Shape(3, 2, 2, ties=True)
"""With ties, and without any reduction."""

HEAVY: Final = (Shape(5, 3, 2), Shape(4, 3, 3))
"""Without a reduction these take gigabytes and minutes."""


REPEATS: Final = 40
"""Most runs of one measurement; the fastest is kept: others use the machine too.

``pan``'s own clock has ticks of 10 ms, too coarse for short runs. What it takes is its process's
time less that of a process that starts alike and gives up at the first step.
"""

SHORT_S: Final = 1.5
"""Runs are repeated until they have taken this long together."""

DEPTH: Final = 10_000
"""Steps that ``pan``'s stack has room for; far more than any schedule of the ladder has."""

LEAST_TABLE: Final = 16
LARGEST_TABLE: Final = 23
"""Bits of the hash tables that ``pan`` gets: at least twice as many slots as states."""

PAN_LINES: Final = {
    "states": re.compile(r"^\s*(\d+) states, stored", re.M),
    "transitions": re.compile(r"^\s*(\d+) transitions", re.M),
    "errors": re.compile(r"errors: (\d+)"),
    "megabytes": re.compile(r"([\d.]+)\s+actual memory usage for states"),
    "vector": re.compile(r"state-vector as stored = (\d+) byte \+ (\d+) byte overhead"),
}


@dataclass(frozen=True)
class Measurement:
    """One run: what was explored, by what, and what it took."""

    shape: Shape
    engine: str
    threads: int
    reductions: str
    states: int
    transitions: int
    seconds: float
    bytes_per_state: float
    verdict: str
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Transitions a second."""
        return self.transitions / max(self.seconds, 1e-9)


def ladder_scenario(shape: Shape) -> Scenario:
    """Return the scenario of a rung: the repaired protocol, a burst."""
    return Scenario(
        lanes=shape.lanes,
        stages=shape.stages,
        layers=shape.layers,
        batches=(shape.batches,) * shape.lanes,
        stand_in="withdraw_joined",
        ties=shape.ties,
    )


def _packed(
    shape: Shape,
    reductions: tuple[str, ...],
    threads: int,
    limits: Limits,
) -> Measurement:
    model = PackedLanes(ladder_scenario(shape), reductions)
    seconds, cpu = [], []
    while True:
        search = Search(model, threads=threads)
        search.prepare()
        began = time.process_time()
        limit = search.run(limits)
        cpu.append(time.process_time() - began)
        seconds.append(search.tally.seconds)
        if limit == INTERRUPTED:
            raise KeyboardInterrupt
        if limit is not None or _long_enough(seconds):
            break
    found = any(search.tally.ends.values())
    return Measurement(
        shape=shape,
        engine="packed",
        threads=threads,
        reductions=_label(reductions, model.plan),
        states=search.states,
        transitions=search.tally.transitions,
        seconds=min(seconds),
        bytes_per_state=search.stored_bytes / search.states,
        verdict=limit or ("violated" if found else "holds"),
        cpu_seconds=min(cpu),
    )


def _long_enough(seconds: Sequence[float]) -> bool:
    return len(seconds) >= REPEATS or sum(seconds) > SHORT_S


def _label(wanted: tuple[str, ...], plan: Plan) -> str:
    return "all" if wanted == REDUCTIONS and not plan.refused else "+".join(plan.applied) or "none"


def _reference(shape: Shape, stats: Stats) -> Measurement:
    return Measurement(
        shape=shape,
        engine="reference",
        threads=1,
        reductions="none",
        states=stats.states,
        transitions=stats.transitions,
        seconds=stats.elapsed_s,
        bytes_per_state=stats.memory_bytes / stats.states,
        verdict="holds" if stats.complete else "undetermined",
        cpu_seconds=stats.elapsed_s,
    )


def spin_version() -> str | None:
    """Version of SPIN, or None unless it and a C compiler are installed."""
    if shutil.which("spin") is None or shutil.which("gcc") is None:
        return None
    done = subprocess.run(["spin", "-V"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def run_spin(shape: Shape) -> Measurement | None:
    """Explore a shape with SPIN's ``pan`` at -O2; None if it reports an error."""
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        (where / "model.pml").write_text(promela(ladder_scenario(shape)), encoding="utf-8")
        for command in (
            ["spin", "-a", "model.pml"],
            ["gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-DMEMLIM=8000", "-o", "pan", "pan.c"],
        ):
            subprocess.run(command, cwd=where, check=True, capture_output=True)
        text, _, _ = _run_pan(where, DEPTH, LARGEST_TABLE)
        if _pan(text, "errors"):
            return None
        slots = max(LEAST_TABLE, math.ceil(math.log2(_pan(text, "states"))) + 1)
        whole: list[tuple[float, float]] = []
        while not _long_enough([seconds for seconds, _ in whole]):
            text, *took = _run_pan(where, DEPTH, slots)
            whole.append((took[0], took[1]))
        start = [_run_pan(where, 1, slots)[1:] for _ in whole]
    seconds, cpu = (min(run[i] for run in whole) - min(run[i] for run in start) for i in range(2))
    vector = PAN_LINES["vector"].search(text)
    stored = sum(map(int, vector.groups())) if vector else 0
    states = int(_pan(text, "states"))
    return Measurement(
        shape=shape,
        engine="spin",
        threads=1,
        reductions="canonical",
        states=states,
        transitions=int(_pan(text, "transitions")),
        seconds=seconds,
        bytes_per_state=stored or _pan(text, "megabytes") * 2**20 / states,
        verdict="holds",
        cpu_seconds=cpu,
    )


def _run_pan(where: Path, depth: int, slots: int) -> tuple[str, float, float]:
    """Run ``pan`` down to a depth, with ``2 ** slots`` slots: output, seconds, processor time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = ["./pan", f"-m{depth}", f"-w{slots}"]
    done = subprocess.run(command, cwd=where, check=True, capture_output=True, text=True)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, seconds, cpu


def _pan(text: str, name: str) -> float:
    found = PAN_LINES[name].search(text)
    if found is None:
        raise ValueError(f"pan printed no {name}:\n{text}")
    return float(found.group(1))


def measure(
    reference: Stats, heavy: bool, threads: Sequence[int], limits: Limits
) -> Iterator[Measurement]:
    """Climb the ladder; the kernels are compiled before anything is timed."""
    yield _reference(SHAPES[0], reference)
    _packed(Shape(2, 2, 2), (), 1, limits)
    spin = spin_version()
    for shape in SHAPES:
        for reductions in ((), CANONICAL, REDUCTIONS):
            for count in threads:
                yield _packed(shape, reductions, count, limits)
        if spin is not None:
            found = run_spin(shape)
            if found is not None:
                yield found
    for shape in LARGE:
        yield _packed(shape, REDUCTIONS, max(threads), limits)
    yield _packed(TIED, (), max(threads), limits)
    for shape in HEAVY if heavy else ():
        yield _packed(shape, (), max(threads), limits)


def bench_packed(
    reference: Stats, *, heavy: bool = False, report: Path | None = None, max_memory_gb: float = 6.0
) -> list[Measurement]:
    """Measure, print a table and the ratios, and write the report if asked to.

    ``reference`` is what the reference engine just took for the first shape of the ladder.
    """
    limits = Limits(max_memory_gb=max_memory_gb, max_seconds=900)
    rows = []
    for row in measure(reference, heavy, (1, 2), limits):
        rows.append(row)
        err.print(
            f"{row.shape} {row.engine} x{row.threads} {row.reductions}: {row.seconds:.2f} s",
            style="dim",
        )
    out.print(_table(rows))
    for line in findings(rows):
        out.print(line)
    if report is not None:
        _write(rows, report)
    return rows


def _table(rows: Sequence[Measurement]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, no_wrap=True)
    for row in rows:
        table.add_row(*_cells(row))
    return table


_COLUMNS: Final = (
    "shape",
    "engine",
    "threads",
    "reductions",
    "states",
    "transitions",
    "seconds",
    "cpu s",
    "states/s",
    "trans./s",
    "B/state",
    "verdict",
)


def _cells(row: Measurement) -> list[str]:
    return [
        str(row.shape),
        row.engine,
        str(row.threads),
        row.reductions,
        f"{row.states:,}",
        f"{row.transitions:,}",
        f"{row.seconds:.3f}",
        f"{row.cpu_seconds:.3f}",
        f"{row.states / max(row.seconds, 1e-9):,.0f}",
        f"{row.rate:,.0f}",
        f"{row.bytes_per_state:,.0f}",
        row.verdict,
    ]


def _of(rows: Sequence[Measurement], **wanted: Any) -> Measurement | None:
    return next((row for row in rows if all(getattr(row, k) == v for k, v in wanted.items())), None)


def findings(rows: Sequence[Measurement]) -> list[str]:
    """Say, in sentences, how the measurements stand to what is promised (issue 6)."""
    lines = []
    reference = _of(rows, engine="reference")
    one = _of(rows, engine="packed", shape=SHAPES[0], reductions="none", threads=1)
    if reference and one:
        lines.append(
            f"{SHAPES[0]}, one core: packed {one.rate / reference.rate:,.0f}x the reference "
            f"engine's transitions a second (promised: 100x); {one.bytes_per_state:.0f} bytes a "
            f"state (promised: at most 90)"
        )
    for shape in dict.fromkeys(row.shape for row in rows):
        alone = _of(rows, engine="packed", shape=shape, reductions="none", threads=1)
        both = _of(rows, engine="packed", shape=shape, reductions="none", threads=2)
        if alone and both:
            lines.append(
                f"{shape}: two cores {alone.seconds / both.seconds:.2f}x one (promised on a free "
                f"machine: 1.6x)"
            )
        lines += _against_spin(rows, shape)
    return lines


def _against_spin(rows: Sequence[Measurement], shape: Shape) -> list[str]:
    spin = _of(rows, engine="spin", shape=shape)
    if spin is None:
        return []
    lines = []
    for threads in (1, 2):
        equal = _of(rows, engine="packed", shape=shape, reductions="canonical", threads=threads)
        if equal:
            same = "equal" if equal.states == spin.states else "DIFFERENT"
            lines.append(
                f"{shape}: against SPIN on equal work ({same} counts), packed on {threads} "
                f"core{'s' if threads > 1 else ''} is {spin.seconds / equal.seconds:.2f}x as fast"
                f" (by processor time {spin.cpu_seconds / equal.cpu_seconds:.2f}x)"
            )
    reduced = _of(rows, engine="packed", shape=shape, reductions="all", threads=1)
    if reduced:
        lines.append(
            f"{shape}: to the verdict with reductions {spin.seconds / reduced.seconds:,.0f}x as "
            f"fast as SPIN"
        )
    return lines


def _write(rows: Sequence[Measurement], report: Path) -> None:
    text = [
        "# The two engines, measured",
        "",
        "Written by `frontier-verify bench --report reports` (`make bench`). All shapes: "
        "`ep_ordered`, `withdraw_joined`, moe, one layer and ties off unless named, burst. Short "
        f"runs are repeated, up to {REPEATS} times, and the fastest is kept. "
        "`canonical` is the work that SPIN does "
        f"({spin_version() or 'SPIN was not installed'}; `pan` at -O2, with a hash table of two to "
        "four slots a state). Seconds are of the wall "
        "clock, for the search alone: ours without loading kernels (half a second); SPIN's without "
        "translating and compiling the model (seconds for each shape), and less the time of a "
        "process that gives up at the first step, because `pan`'s own clock has ticks of 10 ms; "
        "`cpu s` is processor time, likewise; "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f} over the last five "
        "minutes: where that is above the number of cores others were running too, and ratios "
        "of single runs, above all of two cores to one, mean little.",
        "",
        *_markdown(_COLUMNS, [_cells(row) for row in rows]),
        "",
        *(f"* {line}" for line in findings(rows)),
        "",
        "![States a second and time to the verdict](engine.svg)",
        "",
        "## The frontier of what is proved",
        "",
        "Every shape above that was decided, largest last; without ties a proof is one for events "
        "that never fall due together, but [ties add nothing](../docs/packed_engine.md"
        "#ties-one-event-at-a-time) under `ep_ordered`.",
        "",
        *_markdown(_FRONTIER, frontier(rows)),
        "",
    ]
    write_text_atomically(report / "engine.md", "\n".join(text))
    named = [{**asdict(row), "shape": str(row.shape), **row.shape._asdict()} for row in rows]
    data = json.dumps(named, indent=1)
    write_text_atomically(report / "engine.json", data + "\n")
    write_text_atomically(report / "engine.svg", _plot(rows))


_FRONTIER: Final = (
    "lanes",
    "stages",
    "batches a lane",
    "layers",
    "ties",
    "reductions",
    "states",
    "seconds",
    "verdict",
)


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a table in Markdown, line by line."""
    head = [columns, ["---"] * len(columns)]
    return ["| " + " | ".join(cells) + " |" for cells in (*head, *rows)]


def frontier(rows: Sequence[Measurement]) -> list[list[str]]:
    """Rows of a table: what the packed engine decided, on most cores, by the size of the shape."""
    decided = {
        (row.shape, row.reductions): row
        for row in rows
        if row.engine == "packed" and row.verdict in ("holds", "violated")
    }
    ordered = sorted(decided.values(), key=lambda row: (row.reductions != "none", row.shape))
    return [
        [
            *map(str, (row.shape.lanes, row.shape.stages, row.shape.batches, row.shape.layers)),
            "on" if row.shape.ties else "off",
            row.reductions,
            f"{row.states:,}",
            f"{row.seconds:.3f}",
            row.verdict,
        ]
        for row in ordered
    ]


def _plot(rows: Sequence[Measurement]) -> str:
    """Draw time to the verdict per shape, engine and reductions, as SVG."""
    series: dict[str, list[tuple[Shape, float]]] = {}
    for row in rows:
        name = f"{row.engine}, {row.threads} core{'s' if row.threads > 1 else ''}, {row.reductions}"
        series.setdefault(name, []).append((row.shape, row.seconds))
    shapes = list(dict.fromkeys(row.shape for row in rows))
    figure = Figure(figsize=(9, 5), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    for number, (name, points) in enumerate(series.items()):
        axes.plot(
            [shapes.index(shape) for shape, _ in points],
            [seconds for _, seconds in points],
            marker="osd^v<>pX"[number % 9],
            linestyle=":",
            label=name,
        )
    axes.set_xticks(range(len(shapes)), [str(shape) for shape in shapes])
    axes.set_yscale("log")
    axes.set_xlabel("lanes x stages x batches")
    axes.set_ylabel("seconds to the verdict")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    with tempfile.TemporaryDirectory() as folder, mpl.rc_context({"svg.hashsalt": "engine"}):
        path = Path(folder) / "plot.svg"
        figure.savefig(path, metadata={"Date": None})
        return path.read_text(encoding="utf-8")
