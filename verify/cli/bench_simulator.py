"""Speed of the timed simulator: one large run, and the whole published matrix (issue 3)."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

from rich.table import Table

from frontier.batching import BatchingConfig
from frontier.requests import uniform_requests
from frontier.system import CO_LOCATION, ServingSpec
from models.matrix import load_set
from models.serving import ServingRun
from verify.cli.matrix import BEFORE_AND_AFTER, matrix_jobs
from verify.cli.render import out
from verify.matrix.root import MatrixRoot
from verify.matrix.runner import run_jobs

REQUESTS: Final = 10_000
RUN_LIMIT_S: Final = 30.0
MATRIX_LIMIT_S: Final = 60.0


def bench_simulator() -> None:
    """Run both and print the seconds beside what the project promises."""
    table = Table(box=None, pad_edge=False)
    for column in ("simulator", "work", "seconds", "rate"):
        table.add_column(column, no_wrap=True)
    spec = ServingSpec(
        architecture=CO_LOCATION,
        lanes=4,
        stages=4,
        layers=2,
        moe=True,
        requests=uniform_requests(REQUESTS, 16, 3),
        batching=BatchingConfig(),
    )
    begin = time.perf_counter()
    run = ServingRun(spec)
    outcome = run.run()
    elapsed = time.perf_counter() - begin
    table.add_row(
        "4 lanes x 4 stages, moe",
        f"{REQUESTS:,} requests, {outcome}",
        _against(elapsed, RUN_LIMIT_S),
        f"{run.simulation.handled / elapsed:,.0f} events/s",
    )
    cases, seconds = _whole_matrix()
    table.add_row(
        "published matrix, both rules",
        f"{cases} cases",
        _against(seconds, MATRIX_LIMIT_S),
        f"{cases / seconds:.1f} cases/s",
    )
    out.print(table)


def _whole_matrix() -> tuple[int, float]:
    """Run every case under both rules, each in its own process; return count and seconds."""
    cases = load_set("published").cases
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for rule in BEFORE_AND_AFTER:
            root = MatrixRoot(Path(folder) / rule)
            with root.writing({"set": "published", "rule": rule}):
                run_jobs(
                    root,
                    matrix_jobs("published", cases, rule),
                    {},
                    parallel=os.cpu_count() or 1,
                    timeout_s=60,
                    done=_ignore,
                )
    return len(cases) * len(BEFORE_AND_AFTER), time.perf_counter() - begin


def _ignore(*_: object) -> None:
    """Nothing is said about single cases."""


def _against(measured: float, promised: float) -> str:
    return f"{measured:.1f} ({measured / promised:.2f}x of {promised:.0f})"
