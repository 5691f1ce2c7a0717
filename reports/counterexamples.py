"""Builds ``reports/counterexamples.md`` and its pages: ``python -m reports.counterexamples``.

Every violated case of the catalogue that a schedule tells whole is shrunk, given times, run again
by the simulator and by ``replay``, and reported as a page of its own; cases that shrink to the
same counterexample share a page. The others are checked and told step by step.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import jinja2

from models.catalogue import Case, catalogue, schedule_cases
from models.regression import decides, find_repair
from models.scenario import Scenario
from models.schedule import walk_path
from models.shrinking import Counterexample, Shrunk, shrink
from models.witness import confirm
from verify.cli.checking import Question, check_scenario, open_path
from verify.cli.dossier import Dossier, dossier_of_example
from verify.cli.keep import rules_text
from verify.cli.pictures import lanes_over_time, picture_bytes, waits_picture
from verify.cli.report import check_page, dossier_page
from verify.files import write_bytes_atomically, write_text_atomically
from verify.report.page import render_page

HERE = Path(__file__).parent
FOLDER = HERE / "counterexamples"
MAX_STATES = 200_000
LARGEST = 1_000_000
PICTURED = ("published-deadlock", "late-join-open", "rival-a-lane-aware")
"""Cases that the page explains and draws."""

_PAGE = """\
# Counterexamples

Built by `python -m reports.counterexamples` from the violated cases of the catalogue: the shortest
violating schedule is shrunk, given times in whole milliseconds, run again by the simulator under
these times and by `replay`, both ending in the same state, and reported as a page with a stepper
(`frontier-verify shrink CASE`, `frontier-verify explain CASE --html FILE` do the same for one).

{{ rows|length }} cases shrink to {{ pages|length }} counterexamples; {{ minimal }} of \
{{ rows|length }} are proved minimal: taking any single lane, stage, layer, batch, decode
phase, open arrival, instant or tie away leaves no schedule to the same class of violation, all
timings explored. The largest page has {{ (largest / 1000)|round|int }} KB.

{% for row in pictured -%}
## {{ row.case.title }}

{{ row.dossier.text }}

Point of no return: {{ row.dossier.story.fate }}.

![Who waits for whom](counterexamples/{{ row.page }}-waits.svg)

![Lanes over time](counterexamples/{{ row.page }}-lanes.svg)

[Step by step](counterexamples/{{ row.page }}.html)

{% endfor -%}
## Every violated case

Shapes are lanes x stages x batches of each lane x layers.

| case | class | from | to | instants | ties | minimal | witness | lost after | repaired by | page |
|---|---|---|---|---|---|---|---|---|---|---|
{% for row in rows -%}
| `{{ row.case.name }}` | {{ row.best.classification }} | {{ shape(row.case.scenario) }} \
| {{ shape(row.best.scenario) }} | {{ row.best.schedule|length }} | {{ row.best.ties }} \
| {{ "proved" if row.shrunk.is_minimal else "not decided" }} \
| {{ row.dossier.witness.assumption.replace("_", " ") }}, {{ end(row.dossier) }} ms \
| {{ row.dossier.story.no_return.step }} | {{ row.repair }} \
| [page](counterexamples/{{ row.page }}.html) |
{% endfor %}
## Cases that are not shrunk

Work that never ends has no smaller finite schedule, and events from outside have no times to solve
for. These cases are checked, explained and told step by step.

| case | class | instants | page |
|---|---|---|---|
{% for case, data in whole -%}
| `{{ case.name }}` | {{ data.classification }} | {{ data.depth }} \
| [page](counterexamples/{{ case.name }}.html) |
{% endfor -%}
"""


@dataclass(frozen=True)
class Row:
    """One violated case and what became of it; ``page`` names the page it shares."""

    case: Case
    shrunk: Shrunk
    dossier: Dossier
    repair: str
    page: str

    @property
    def best(self) -> Counterexample:
        """The smallest counterexample."""
        return self.shrunk.best


def shape(scenario: Scenario) -> str:
    """Lanes x stages x batches x layers, and open arrivals."""
    counts = sorted(set(scenario.batches))
    batches = str(counts[0]) if len(counts) == 1 else "+".join(map(str, scenario.batches))
    opened = ", open" if scenario.arrivals == "open" else ""
    return f"{scenario.lanes} x {scenario.stages} x {batches} x {scenario.layers}{opened}"


def end(dossier: Dossier) -> int:
    """Time of the last instant of the witness, in ms."""
    return dossier.witness.instants[-1] if dossier.witness.instants else 0


def reproduced(dossier: Dossier) -> Dossier:
    """Run the simulator on the witness and replay the path; both must end as reported."""
    confirm(dossier.witness)
    if dossier.path is None:
        raise AssertionError(f"{dossier.example} has no path")
    walked = walk_path(*open_path(dossier.path))
    if walked.classification != dossier.example.classification:
        raise AssertionError(f"replay ends in {walked.classification}: {dossier.example}")
    return dossier


def examine(case: Case, pages: dict[Counterexample, str]) -> Row:
    """Shrink, time, replay and explain a violated case."""
    found = decides(case.scenario, MAX_STATES)
    if not isinstance(found, Counterexample):
        raise AssertionError(f"{case.name} is said to be violated: {found.reason}")
    shrunk = shrink(found)
    page = pages.setdefault(shrunk.best, case.name)
    repair = find_repair(shrunk.best.scenario)
    dossier = reproduced(dossier_of_example(shrunk.best))
    return Row(case, shrunk, dossier, rules_text(repair or {}) or "nothing known", page)


def build() -> dict[Path, str | bytes]:
    """Examine every violated case; return the files of the report."""
    pages: dict[Counterexample, str] = {}
    violated = [catalogue()[name] for name in schedule_cases()]
    # The pictured cases first, so that shared pages have their names.
    violated.sort(key=lambda case: (case.name not in PICTURED, case.name))
    rows = sorted((examine(case, pages) for case in violated), key=lambda row: row.case.name)
    files: dict[Path, str | bytes] = {}
    for row in rows:
        if row.page == row.case.name:
            files[FOLDER / f"{row.page}.html"] = render_page(dossier_page(row.dossier))
    whole = []
    for case in catalogue().values():
        if case.expect.verdict == "violated" and case.name not in schedule_cases():
            question = Question.of(case.scenario, case.asked, case.fairness)
            result = check_scenario(case.scenario, question=question)
            whole.append((case, result.to_json()))
            files[FOLDER / f"{case.name}.html"] = render_page(check_page(result))
    largest = max(len(text) for text in files.values())
    if largest > LARGEST:
        raise AssertionError(f"a page has {largest} characters, at most {LARGEST} are wanted")
    pictured = [row for row in rows if row.case.name in PICTURED]
    for row in pictured:
        waits, lanes = FOLDER / f"{row.page}-waits.svg", FOLDER / f"{row.page}-lanes.svg"
        files[waits] = picture_bytes(waits_picture(row.dossier.analysis, ""), waits)
        files[lanes] = picture_bytes(lanes_over_time(row.dossier.witness, ""), lanes)
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)
    files[HERE / "counterexamples.md"] = environment.from_string(_PAGE).render(
        rows=rows,
        whole=whole,
        pages=pages,
        pictured=pictured,
        largest=largest,
        minimal=sum(row.shrunk.is_minimal for row in rows),
        shape=shape,
        end=end,
    )
    return files


def main() -> None:
    """Write the page, and the pages of the cases."""
    files = build()
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        if old not in files:
            old.unlink()
    for path, content in files.items():
        if isinstance(content, str):
            write_text_atomically(path, content)
        else:
            write_bytes_atomically(path, content)
    print(f"{HERE / 'counterexamples.md'} written", file=sys.stderr)


if __name__ == "__main__":
    main()
