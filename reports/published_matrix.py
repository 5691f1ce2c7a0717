"""Builds ``reports/published_matrix.md`` and its charts: ``python -m reports.published_matrix``."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jinja2

from frontier.ledger import StageRow
from models.matrix import MatrixCase, load_set, published_differences
from models.matrix_case import run_case
from models.serving import ServingRun
from verify.cli.request_run import chart_of
from verify.files import write_bytes_atomically, write_text_atomically
from verify.lane_chart import render
from verify.matrix.compare import EXPLAIN, PASS, STOP, Judgement, judge
from verify.matrix.root import CaseRecord

HERE = Path(__file__).parent
RULES = ("strict_fifo", "ep_ordered")
CHARTED = ("G3a-moe-dp2-pp2-n4", "G4-dense-dp4-pp3-n8")

_PAGE = """\
# The published before/after matrix

Built by `python -m reports.published_matrix`; `frontier-verify matrix run` and `matrix compare` do
the same with every case in a process of its own. Published: {{ published }} cases of
NetX-lab/Frontier's pull request 36, `by_phase` rooms, `standard` stand-ins, constant times.

* Cases whose outcome, totals, overlap (1e-6 s, fractions 1e-4) or first starts differ from what was
  published: **{{ differing }}** of {{ published * 2 }} runs.
* `strict_fifo` -> `ep_ordered`: **{{ counts.PASS }} PASS, {{ counts.EXPLAIN }} EXPLAIN,
  {{ counts.STOP }} STOP**; {{ repaired }} deadlocks repaired.

{% for name in charted -%}
| `{{ name }}` before | after |
|---|---|
| ![before](published_matrix/{{ name }}-strict_fifo.svg) \
| ![after](published_matrix/{{ name }}-ep_ordered.svg) |

{% endfor -%}
## What moved

Cases on the path `timing` with another schedule: batches and component durations are equal.

| case | stage | co-execution before | after | multi-lane busy before, s | after, s | peak before \
| after |
|---|---|---|---|---|---|---|---|
{% for case, stage, before, after in moved -%}
| `{{ case }}` | {{ stage }} | {{ "%.4f" | format(before.co_execution_fraction) }} \
| {{ "%.4f" | format(after.co_execution_fraction) }} | {{ before.multi_lane_busy_time_s }} \
| {{ after.multi_lane_busy_time_s }} | {{ before.peak_lanes }} | {{ after.peak_lanes }} |
{% endfor %}
## Every case

| case | path | verdict | `strict_fifo` | `ep_ordered` | requests | prompt tokens | generated |
|---|---|---|---|---|---|---|---|
{% for j, found in rows -%}
| `{{ j.case_id }}` | {{ j.path }} | {{ j.verdict }} | {{ j.before }} | {{ j.after }} \
| {{ found.requests_completed }} | {{ found.prefill_tokens }} | {{ found.decode_tokens }} |
{% endfor -%}
"""


def _record(case: MatrixCase, result: dict[str, Any]) -> CaseRecord:
    return CaseRecord(case.case_id, dict(case.inputs), {}, result["outcome"], result["files"], ())


def _charts(cases: dict[str, MatrixCase]) -> dict[str, bytes]:
    pictures = {}
    for name in CHARTED:
        for rule in RULES:
            rows: list[StageRow] = []
            run = ServingRun(cases[name].spec(rule), sinks=(rows.append,))
            run.run()
            file = Path(f"{name}-{rule}.svg")
            pictures[file.name] = render(chart_of(run, rows), file)
    return pictures


def build() -> tuple[str, dict[str, bytes]]:
    """Run every case under both rules; return the page and its charts."""
    cases = {case.case_id: case for case in load_set("published").cases}
    found = {name: {r: run_case(case, r) for r in RULES} for name, case in cases.items()}
    judgements: list[Judgement] = [
        judge(*(_record(case, found[name][rule]) for rule in RULES)) for name, case in cases.items()
    ]
    differing = sum(
        bool(published_differences(case, rule, found[name][rule]["outcome"]))
        for name, case in cases.items()
        for rule in RULES
    )
    counts = Counter(judgement.verdict for judgement in judgements)
    page = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined).from_string(_PAGE)
    return page.render(
        published=len(cases),
        differing=differing,
        counts={verdict: counts[verdict] for verdict in (PASS, EXPLAIN, STOP)},
        repaired=sum(j.before == "admission_deadlock" and j.after == "success" for j in judgements),
        charted=CHARTED,
        moved=[
            (j.case_id, stage, j.metrics["before"][stage], j.metrics["after"][stage])
            for j in judgements
            if j.verdict == EXPLAIN
            for stage in j.overlap
        ],
        rows=[(j, found[j.case_id]["ep_ordered"]["outcome"]) for j in judgements],
    ), _charts(cases)


def main() -> None:
    """Write the page and its charts."""
    page, charts = build()
    folder = HERE / "published_matrix"
    folder.mkdir(exist_ok=True)
    for name, picture in charts.items():
        write_bytes_atomically(folder / name, picture)
    write_text_atomically(HERE / "published_matrix.md", page)
    print(f"{HERE / 'published_matrix.md'} written", file=sys.stderr)


if __name__ == "__main__":
    main()
