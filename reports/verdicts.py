"""Builds ``reports/verdicts.md``: what holds and what fails, for every rule and small shape.

Run ``python -m reports.verdicts``. Every sentence of the report that depends on a verdict is
written from the verdicts computed here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from frontier.admission import ADMISSION_RULES
from frontier.durations import ConstantDurations
from frontier.standin import STAND_IN_RULES
from models.matrix import load_set
from models.packed.reductions import REDUCTIONS, plan
from models.scenario import Scenario
from models.serving import ServingRun
from verify.cli.engines import EngineOptions, check_with
from verify.cli.render import err
from verify.cli.simulate import run_timed
from verify.files import write_text_atomically
from verify.limits import Limits

HERE = Path(__file__).parent
LANES = (1, 2, 3, 4)
STAGES = (1, 2, 3)
WORK = {"burst": 2, "open": 1}
WITH_TIES = Limits(max_states=400_000)
LARGE = Limits(max_states=8_000_000)
TIES_REDUCED = ("ties", "canonical")
DEPLOYED = (4, 6, 8)
REPAIRS = {
    "A": ("lane_aware", "standard"),
    "B": ("ep_ordered", "standard"),
    "C": ("late_ticket", "standard"),
    "D": ("strict_fifo", "blocked_is_idle"),
}


@dataclass(frozen=True)
class Cell:
    """Verdict on one shape under one pair of rules.

    ``ties`` says whether the verdict covers ties: a large shape may be decided without only;
    ``shortest``, whether ``depth`` is that of a shortest schedule.
    """

    verdict: str
    classification: str | None
    depth: int | None
    states: int
    ties: bool
    shortest: bool = True

    @property
    def holds(self) -> bool:
        """Whether every timing was proved to complete (without ties only, unless ``ties``)."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        """Write the cell of a table."""
        if self.verdict == "violated":
            name = (self.classification or "").replace("_", " ")
            return f"{name} @{self.depth}" + ("" if self.ties else "*")
        return self.verdict + ("" if self.ties else "*")


def check(**values: Any) -> Cell:
    """Decide a scenario with ties: unreduced if it is small enough, else its ties reduced.

    Where they cannot be reduced, or a shortest schedule is to be told, ties are left out.
    """
    cell = _decide(values, ties=True, limits=WITH_TIES)
    if cell.verdict == "undetermined" and "ties" in plan(Scenario.of(values), TIES_REDUCED):
        cell = _decide(values, ties=True, reductions=TIES_REDUCED)
    if cell.verdict == "holds" or (cell.verdict == "violated" and cell.shortest):
        return cell
    return _decide(values, ties=False)


def _decide(
    values: dict[str, Any],
    *,
    ties: bool,
    limits: Limits = LARGE,
    reductions: tuple[str, ...] = (),
) -> Cell:
    scenario = Scenario.of({**values, "ties": ties})
    options = EngineOptions(reductions=reductions)
    data = check_with(scenario, options, limits=limits).to_json()
    return Cell(
        data["verdict"],
        data["classification"],
        data["depth"],
        data["states"],
        ties,
        data.get("shortest", True),
    )


Grid = dict[tuple[str, str, int, int], Cell]


def grid(arrivals: str) -> Grid:
    """Decide every pair of rules on every shape."""
    cells: Grid = {}
    for stages in STAGES:
        for lanes in LANES:
            err.print(f"verdicts: {arrivals}, {lanes} lanes x {stages} stages")
            for admission in ADMISSION_RULES:
                for stand_in in STAND_IN_RULES:
                    cells[admission, stand_in, lanes, stages] = check(
                        lanes=lanes,
                        stages=stages,
                        batches=WORK[arrivals],
                        admission=admission,
                        stand_in=stand_in,
                        arrivals=arrivals,
                    )
    return cells


def table(cells: Grid) -> Iterator[str]:
    """Write a table in Markdown: a row a pair of rules, a column a shape."""
    shapes = [(lanes, stages) for stages in STAGES for lanes in LANES]
    yield "| admission | stand-in | " + " | ".join(f"{n} x {s}" for n, s in shapes) + " |"
    yield "|---|---|" + "---|" * len(shapes)
    for admission in ADMISSION_RULES:
        for stand_in in STAND_IN_RULES:
            row = [str(cells[admission, stand_in, n, s]) for n, s in shapes]
            yield f"| `{admission}` | `{stand_in}` | " + " | ".join(row) + " |"


def deployed() -> Iterator[str]:
    """Write the table of the repaired protocol on larger shapes, with the states explored."""
    yield "| stages | " + " | ".join(f"{lanes} lanes" for lanes in DEPLOYED) + " |"
    yield "|---|" + "---|" * len(DEPLOYED)
    for stages in (1, 2, 3, 4):
        row = []
        for lanes in DEPLOYED:
            err.print(f"verdicts: {lanes} lanes x {stages} stages, reduced")
            values = {"lanes": lanes, "stages": stages, "stand_in": "withdraw_joined"}
            cell = _decide(values, ties=True, reductions=REDUCTIONS)
            row.append(f"{cell} ({cell.states:,} states)")
        yield f"| {stages} | " + " | ".join(row) + " |"


def shapes_where(cells: Grid, admission: str, stand_in: str, holds: bool) -> str:
    """List the shapes on which a pair of rules holds, or fails."""
    found = [
        f"{n} x {s}"
        for s in STAGES
        for n in LANES
        if cells[admission, stand_in, n, s].holds == holds
    ]
    return ", ".join(found) or "none"


def timed_failures(admission: str, stand_in: str) -> list[str]:
    """Return the published cases that do not complete under constant times."""
    failed = []
    for case in load_set("published").cases:
        run = ServingRun(case.spec(admission, stand_in=stand_in))
        if run.run() != "success":
            failed.append(case.case_id)
    return failed


def three_requests() -> tuple[Cell, str]:
    """Decide the published control of three requests, and run it once with constant times."""
    values = {"batches": [2, 1], "admission": "strict_fifo"}
    run = run_timed(Scenario.of(values), ConstantDurations(moe=True, layers=1))
    return check(**values), run["outcome"]


def phases() -> list[tuple[str, Cell, Cell]]:
    """Decide small mixes of phases with rooms by phase and with shared rooms."""
    mixes = ["p;d", "p,d;d,p", "p,d;p,d"]
    return [
        (
            f"{stages} stage{'s' if stages > 1 else ''}, `{mix}`",
            check(stages=stages, phases=mix, rooms="by_phase"),
            check(stages=stages, phases=mix, rooms="shared"),
        )
        for stages in (1, 2)
        for mix in mixes
    ]


PAGE = """\
# What holds and what fails

Built by `python -m reports.verdicts`. Every cell is an exhaustive check of all timings: moe, one
layer a stage, shared rooms. `holds`: every timing completes. Otherwise the class of the first
violation, and after `@` the number of instants of a shortest schedule to it. Where the graph with
ties has more than {{ with_ties }} states and shows no violation in that many, `holds` is proved
with [ties reduced](../docs/packed_engine.md#ties-one-event-at-a-time), and a violation, marked `*`,
was looked for without ties: it stands all the same, but its shortest schedule with ties may be
shorter.

## Burst, two batches a lane

Columns are lanes x stages.

{{ burst }}

## Open arrivals, one batch a lane

{{ open }}

## Shapes that are deployed

`ep_ordered` with `withdraw_joined`, ties on, burst, two batches a lane, every reduction.

{{ deployed }}

## Rooms by phase

Two lanes, `ep_ordered`, `standard`; `p,d;d,p` is lane 0 prefill then decode, lane 1 the reverse.

| work | by phase | shared |
|---|---|---|
{% for work, split, shared in phases -%}
| {{ work }} | {{ split }} | {{ shared }} |
{% endfor %}
## The published claims against the proof

**"One stage is unaffected."** Narrower than claimed. Strict FIFO on one stage, burst: with 2 lanes
it {{ verb(b['strict_fifo', 'standard', 2, 1]) }}; with 3 lanes it {{ verb(b['strict_fifo',
'standard', 3, 1]) }}, with 4 lanes it {{ verb(b['strict_fifo', 'standard', 4, 1]) }}. A lane that
was refused behind the head becomes the head when the head is admitted, and an admission wakes
nobody. The published runs of one stage complete because equal durations let all lanes end together.

**"`lane_aware`'s stall is unverified."** It is real. On 2 lanes x 2 stages, burst, it
{{ verb(b['lane_aware', 'standard', 2, 2]) }} (without ties {{ verb(a_no_ties) }}). In the published
cases, timed with constant durations, {{ timed_failed('A') }}.

**"The repair completes."** Narrower than claimed for `ep_ordered` with `standard` stand-ins: it
holds on {{ where('burst', 'ep_ordered', 'standard', True) }} in a burst, and fails on
{{ where('burst', 'ep_ordered', 'standard', False) }}; with open arrivals it fails on
{{ where('open', 'ep_ordered', 'standard', False) }}. Whoever fails is a lane that joined after its
placeholder had been stored. Together with `withdraw_joined` the shapes that fail are: in a burst
{{ where('burst', 'ep_ordered', 'withdraw_joined', False) }}, with open arrivals
{{ where('open', 'ep_ordered', 'withdraw_joined', False) }}.

**"Three requests do not deadlock."** The published cycle needs a fourth, and the run with constant
times ends {{ three[1] }}; but of all timings the scenario of three requests (2 on lane 0, 1 on
lane 1) under strict FIFO {{ verb(three[0]) }}.

**The other rejected repairs**, on 2 x 2 in a burst. C (`late_ticket`)
{{ verb(b['late_ticket', 'standard', 2, 2]) }}. D (`blocked_is_idle` on strict FIFO)
{{ verb(b['strict_fifo', 'blocked_is_idle', 2, 2]) }}. Put on top of `ep_ordered`, D
{{ 'changes no verdict' if d_adds_nothing else 'changes verdicts' }} in these tables.

**"With constant times the runs of three of the four repairs all complete."** Of the
{{ published }} published cases:
{% for name, failed in timed.items() %}
* {{ name }} (`{{ repairs[name][0] }}`, `{{ repairs[name][1] }}`): {{ failed | length }} do not
  complete{{ ': ' + failed | join(', ') if failed else '' }}.
{%- endfor %}

A and C are wrong all the same: no matrix of runs with equal durations shows it.
"""


def verb(cell: Cell) -> str:
    """Say a cell in a sentence."""
    if cell.verdict == "violated":
        name = (cell.classification or "").replace("_", " ")
        return f"fails ({name} after {cell.depth} instants)"
    return cell.verdict if cell.ties else f"{cell.verdict} without ties"


def build() -> str:
    """Compute every verdict and write the page."""
    cells = {arrivals: grid(arrivals) for arrivals in WORK}
    timed = {name: timed_failures(*rules) for name, rules in REPAIRS.items()}

    def timed_failed(name: str) -> str:
        failed: Sequence[str] = timed[name]
        return f"{len(failed)} fail" if failed else "no run fails"

    no_ties = Scenario.of({"admission": "lane_aware", "ties": False})
    found = check_with(no_ties, EngineOptions()).to_json()
    same = all(
        str(cell) == str(cells[arrivals]["ep_ordered", "standard", *shape])
        for arrivals in WORK
        for (admission, stand_in, *shape), cell in cells[arrivals].items()
        if (admission, stand_in) == ("ep_ordered", "blocked_is_idle")
    )
    page = jinja2.Template(PAGE, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return page.render(
        with_ties=f"{WITH_TIES.max_states:,}",
        burst="\n".join(table(cells["burst"])),
        open="\n".join(table(cells["open"])),
        deployed="\n".join(deployed()),
        phases=phases(),
        b=cells["burst"],
        a_no_ties=Cell("violated", found["classification"], found["depth"], 0, False),
        where=lambda arrivals, *rest: shapes_where(cells[arrivals], *rest),
        three=three_requests(),
        d_adds_nothing=same,
        published=len(load_set("published").cases),
        timed=timed,
        timed_failed=timed_failed,
        repairs=REPAIRS,
        verb=verb,
    )


if __name__ == "__main__":
    write_text_atomically(HERE / "verdicts.md", build())
