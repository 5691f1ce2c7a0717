"""Builds ``reports/counterexamples.md`` and its pages: ``python -m reports.counterexamples``.

Every violated case of the catalogue, whether a state or a run violates, is shrunk, given times,
run again by the simulator and by ``replay``, and reported as a page of its own; cases that shrink
to the same counterexample share a page.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import jinja2

from models.catalogue import Case, catalogue
from models.counterexample import Counterexample
from models.recorded import recorded_counterexample
from models.regression import decides, find_repair
from models.scenario import Scenario
from models.shrinking import Shrunk, shrink
from models.subjects import AnyScenario
from models.witness import ROUNDS, confirm
from verify.cli.checking import Question, open_path
from verify.cli.dossier import Dossier, dossier_of
from verify.cli.keep import rules_text
from verify.cli.pictures import lanes_over_time, picture_bytes, waits_picture
from verify.cli.report import dossier_page
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
{{ rows|length }} are proved minimal: taking away any single lane, stage, layer, batch, slot, step,
decode phase, open arrival, invalidation, instant or tie leaves no schedule to the same class of
violation, all timings explored. {{ reductions }} single reductions were tried once more for that,
from scratch. The largest page has {{ (largest / 1000)|round|int }} KB.

{% for row in pictured -%}
## {{ row.case.title }}

{{ row.dossier.text }}

Point of no return: {{ row.dossier.story.fate }}.

![Who waits for whom](counterexamples/{{ row.page }}-waits.svg)

![Lanes over time](counterexamples/{{ row.page }}-lanes.svg)

[Step by step](counterexamples/{{ row.page }}.html)

{% endfor -%}
## Every violated case

Shapes are lanes x stages x batches (or slots) of each lane x layers. A lasso's instants are those
of its stem and of its cycle, which repeats for ever; its witness has the cycle
{{ rounds }} times, one a period. *Replayed* says that the simulator, run on the witness, and
`replay`, run on the path, both ended as reported. *Lost after* is the instant after which no
continuation completes, where that can be asked.

| case | class | from | to | instants | ties | minimal | witness | replayed \
| lost after | repaired by | page |
|---|---|---|---|---|---|---|---|---|---|---|---|
{% for row in rows -%}
| `{{ row.case.name }}` | {{ row.best.classification }} | {{ shape(row.case.scenario) }} \
| {{ shape(row.best.scenario) }} | {{ length(row.best) }} | {{ row.best.ties }} \
| {{ "proved" if row.shrunk.is_minimal else "not decided" }} \
| {{ times(row.dossier) }} \
| yes | {{ lost(row.dossier) }} | {{ row.repair }} \
| [page](counterexamples/{{ row.page }}.html) |
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


def shape(scenario: AnyScenario) -> str:
    """Lanes x stages x batches x layers, and what else varies."""
    if not isinstance(scenario, Scenario):
        return "; ".join(" ".join(own) for own in scenario.groups)
    counts = sorted(set(scenario.batches))
    batches = str(counts[0]) if len(counts) == 1 else "+".join(map(str, scenario.batches))
    words = [f"{scenario.lanes} x {scenario.stages} x {batches} x {scenario.layers}"]
    if scenario.arrivals == "open":
        words.append("open")
    if scenario.endless:
        words.append("closed")
    if scenario.steps != 1:
        words.append(f"{scenario.steps} steps")
    if scenario.interrupted:
        words.append(f"invalidations {scenario.interruptions}")
    return ", ".join(words)


def length(example: Counterexample) -> str:
    """Instants; of a lasso those of its stem and of its cycle."""
    stem = len(example.schedule) - example.repeats
    return f"{stem} + {example.repeats} for ever" if example.repeats else str(stem)


def times(dossier: Dossier) -> str:
    """Assumption, and time of the last instant of the witness, or its period, in ms."""
    witness = dossier.witness
    if witness is None:
        return "none: " + "; ".join(dossier.refused[-1].contradiction)
    end = witness.instants[-1] if witness.instants else 0
    clock = f"{end} ms" if witness.period is None else f"every {witness.period} ms"
    return f"{witness.assumption.replace('_', ' ')}, {clock}"


def lost(dossier: Dossier) -> str:
    """Point of no return."""
    no_return = dossier.story.no_return
    return "-" if no_return is None else str(no_return.step)


def reproduced(dossier: Dossier) -> Dossier:
    """Run the simulator on the witness and replay the path; both must end as reported."""
    if dossier.path is None or dossier.witness is None:
        raise AssertionError(f"{dossier.example} has no path or no times")
    confirm(dossier.witness.timed)
    scenario, path = open_path(dossier.path)
    again = recorded_counterexample(scenario, path, MAX_STATES, dossier.example.fairness)
    if again is None or again.classification != dossier.example.classification:
        raise AssertionError(f"replay ends in {again}: {dossier.example}")
    return dossier


def examine(case: Case, pages: dict[Counterexample, str]) -> Row:
    """Shrink, time, replay and explain a violated case."""
    question = Question.of(case.scenario, case.asked, case.fairness)
    found = decides(
        case.scenario, MAX_STATES, question.liveness, question.fairness, question.runs_first
    )
    if not isinstance(found, Counterexample):
        raise AssertionError(f"{case.name} is said to be violated: {found.reason}")
    shrunk = shrink(found)
    page = pages.setdefault(shrunk.best, case.name)
    repair = find_repair(shrunk.best.scenario, fairness=found.fairness)
    dossier = reproduced(dossier_of(shrunk.best))
    return Row(case, shrunk, dossier, rules_text(repair or {}) or "no rule", page)


def build() -> dict[Path, str | bytes]:
    """Examine every violated case; return the files of the report."""
    pages: dict[Counterexample, str] = {}
    violated = [case for case in catalogue().values() if case.expect.verdict == "violated"]
    # The pictured cases first, so that shared pages have their names.
    violated.sort(key=lambda case: (case.name not in PICTURED, case.name))
    rows = sorted((examine(case, pages) for case in violated), key=lambda row: row.case.name)
    files: dict[Path, str | bytes] = {}
    for row in rows:
        if row.page == row.case.name:
            files[FOLDER / f"{row.page}.html"] = render_page(dossier_page(row.dossier))
    largest = max(len(text) for text in files.values())
    if largest > LARGEST:
        raise AssertionError(f"a page has {largest} characters, at most {LARGEST} are wanted")
    pictured = [row for row in rows if row.case.name in PICTURED]
    for row in pictured:
        waits, lanes = FOLDER / f"{row.page}-waits.svg", FOLDER / f"{row.page}-lanes.svg"
        files[waits] = picture_bytes(waits_picture(row.dossier.analysis, ""), waits)
        if row.dossier.witness is not None:
            files[lanes] = picture_bytes(lanes_over_time(row.dossier.witness.timed, ""), lanes)
    environment = jinja2.Environment(autoescape=False, undefined=jinja2.StrictUndefined)
    files[HERE / "counterexamples.md"] = environment.from_string(_PAGE).render(
        rows=rows,
        pages=pages,
        pictured=pictured,
        largest=largest,
        minimal=sum(row.shrunk.is_minimal for row in rows),
        reductions=sum(len(row.shrunk.obstacles) for row in rows),
        rounds=ROUNDS,
        shape=shape,
        length=length,
        times=times,
        lost=lost,
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
