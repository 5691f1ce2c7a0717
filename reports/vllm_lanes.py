"""Builds ``reports/vllm_lanes.md`` and its pictures: ``python -m reports.vllm_lanes``."""

from __future__ import annotations

import csv
import io
import sys
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jinja2

from frontier.admission import ADMISSION_RULES
from models.pairings import PairingModel, Wave, WholeRun, shapes
from models.scenario import Scenario
from verify.cli import main
from verify.cli.pairings import compare_rules, compare_shape
from verify.files import write_text_atomically
from verify.labels import shown_labels
from verify.lanescompare.compare import Comparison, RealRound, compare
from verify.lanescompare.document import document, status_counts, to_csv
from verify.lanescompare.ledger import read_ledgers
from verify.lanescompare.pictures import pictures
from verify.lanescompare.trace import read_trace
from verify.limits import Limits

HERE = Path(__file__).parent
TRACES = HERE.parent / "tests" / "data" / "vllm_traces"
STAND_INS = ("standard", "withdraw_joined", "blocked_is_idle")
LAYERS_PER_STAGE = {"moe": 4, "dense": 8}
SIDES = {"before": "strict_fifo", "after": "ep_ordered"}
LIMITS = Limits(500_000)
SIMULATE = (
    "simulate --architecture co-location --lanes 2 --stages 2 --prefill 256 --decode 1 "
    "--durations constant"
)

_PAGE = """\
# Lanes: simulated against two real vLLM runs

Built by `python -m reports.vllm_lanes`. Real: vLLM 0.10.2, 2 data-parallel ranks x 2 pipeline
stages, bursts of 8 and 16 prompts of 256 tokens, three rounds each. Simulated: the same bursts,
constant times. What is compared and how: [docs/lanes_compare.md](../docs/lanes_compare.md).

## Verdict

| model | status | rows | MATCH | INFORMATIONAL | HOLDS | MISMATCH | LOST | placed correctly |
|---|---|---|---|---|---|---|---|---|
{% for c in comparisons -%}
| {{ c.model }} | **{{ c.status }}** | {{ c.rows | length }} | {{ counts(c).MATCH }} \
| {{ counts(c).INFORMATIONAL }} | {{ counts(c).HOLDS }} | {{ counts(c).MISMATCH }} \
| {{ counts(c).LOST }} | {{ placed(c) }} |
{% endfor %}
All rows: [gap_table.csv](vllm_lanes/gap_table.csv). The negative controls show that the checks
can fail: under `strict_fifo` the moe run deadlocks (N1), and the dense lanes take turns, one
forward apart (N4).

## First stage, round by round

M4 is the distance of the lanes' first starts in median forwards (limit 0.5), M5 the share of busy
time in which both lanes are busy. Non-overlap splits into start and end offsets of paired
forwards; *later starts* is M5 with both starts of a pair moved to the later one. A start precedes
the ranks' exchange, so that a rank's wait for its peer counts as busy.

| round | M4 | M5 real | M5 simulated | from starts, ms | from ends, ms | M5 later starts \
| disjoint | unpaired |
|---|---|---|---|---|---|---|---|---|
{% for c in comparisons %}{% for burst in c.bursts %}{% for item in burst.rounds -%}
{% set d = item.decompositions[0][0] -%}
| {{ c.model }} {{ item.round.name }} | {{ "%.4f" % item.metrics.stages[0].co_start }} \
| {{ "%.4f" % d.observed }} | {{ "%.4f" % burst.after.co_execution }} \
| {{ "%.3f" % (d.from_starts * 1e3) }} | {{ "%.3f" % (d.from_ends * 1e3) }} \
| {{ "%.4f" % d.later_starts }} | {{ d.disjoint_pairs }} | {{ d.unpaired_forwards }} |
{% endfor %}{% endfor %}{% endfor %}
{% for c in comparisons -%}
![co-execution per round, {{ c.model }}](vllm_lanes/co_execution_{{ c.model }}.svg)
{% endfor %}
## Lanes over time

Real left, simulated right, one scale in median first-stage forwards. The simulator's stages follow
without a gap; the engine's first forward is followed by a pause, and its later forwards by the
host's own work. The checks look at order, pairing and shares of time, which that does not enter.

{% for c in comparisons -%}
![lanes of {{ c.model }}, bursts of 8](vllm_lanes/lanes_{{ c.model }}_n8.svg)

{% endfor -%}
Bursts of 16: {% for c in comparisons -%}
[{{ c.model }}](vllm_lanes/lanes_{{ c.model }}_n16.svg){{ ", " if not loop.last }}
{%- endfor %}.

## What the join rule can do that the real engine cannot

In the real engine a forward of one rank pairs with one forward of every other, the same at every
layer and stage, and a rank without work runs a dummy forward. `models/lockstep.py` is that rule as
a model. Of the {{ rounds }} real rounds {{ lockstep_rounds }} pair, at both stages, as the model's
only possible run does. Every timing of both models was explored, with ties, on {{ shape_count }}
small shapes (up to 3 lanes, 2 stages, 2 layers, 2 batches a lane; bursts and open arrivals). The
table counts EP waves, pairings of whole runs, and runs left unfinished (drained or failed, one a
shape and reason); "only" means that the other model cannot show it under any timing.

| admission | stand-in | rooms | only simulator: waves | runs | unfinished | only lockstep: waves \
| runs | unfinished |
|---|---|---|---|---|---|---|---|---|
{% for e in entries -%}
| {{ e.admission }} | {{ e.stand_in }} | {{ e.rooms }} {% for side in sides %}\
{% for kind in kinds %}| {{ e[side][kind].count }} {% endfor %}{% endfor %}|
{% endfor %}{% for title, found in smallest %}
**{{ title }}**: {{ found.pairing }}, in {{ found.scenario.lanes }} lanes x \
{{ found.scenario.stages }} stages, batches {{ found.scenario.batches | join(",") }}, \
{{ found.scenario.arrivals }}, `{{ found.scenario.admission }}`, \
`{{ found.scenario.stand_in }}`, {{ found.scenario.rooms }} rooms:

{% for line in found.schedule %}{{ loop.index }}. {{ line }}
{% endfor %}{% if found.path %}
`frontier-verify replay {{ found.path }}`
{% endif %}{% endfor %}
Under `ep_ordered` with shared rooms, checked on every shape and stand-in rule:

* No pairing is the reference's alone: however the real engine pairs, the simulator can.
* What the simulator adds are exactly the runs in which a batch's partners **change from one stage
  to the next**; they never change between the layers of a stage, because the group is sealed. A
  lane that is ahead behind the first stage finds its peer's queue empty and goes alone, and later
  meets another batch of the peer. Every wave that only the simulator has is behind the first stage
  of a burst. V3 to V5 judge the first stage and cannot see it; with the constant times of the
  published runs it does not happen (the simulated pairing of both stages is the same).
* The stand-in rules do not differ in whom they pair but in what they strand: `standard` and
  `blocked_is_idle` leave runs unfinished when a lane joins late, `withdraw_joined` none.

Under `strict_fifo` the rules differ in pairings too: with `blocked_is_idle` two of the reference's
four missing waves come back, at the price of first-stage waves out of step:
{{ out_of_step }}.

## Commands

```
{% for line in commands %}{{ line }}
{% endfor %}```
"""


def build(folder: Path = HERE) -> None:
    """Write the page into `folder` and the pictures and the gap table into a folder beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        comparisons = [_comparison(Path(scratch) / model, model) for model in LAYERS_PER_STAGE]
    beside = folder / "vllm_lanes"
    beside.mkdir(exist_ok=True)
    for comparison in comparisons:
        for stem, _, svg in pictures(comparison):
            write_text_atomically(beside / f"{stem}.svg", svg)
    write_text_atomically(beside / "gap_table.csv", _joined(map(to_csv, comparisons)))
    write_text_atomically(folder / "vllm_lanes.md", _page(comparisons))


def _program(*arguments: object) -> None:
    """Run the command-line program in this process, without its text."""
    words = ["frontier-verify", *map(str, arguments)]
    with redirect_stdout(io.StringIO()), patch.object(sys, "argv", words):
        try:
            main()
        except SystemExit as ended:
            if ended.code not in (0, 1):
                raise


def _comparison(folder: Path, model: str) -> Comparison:
    for side, admission in SIDES.items():
        (folder / side).mkdir(parents=True)
        for size in (8, 16):
            shape = ("--model", model, "--layers", LAYERS_PER_STAGE[model], "--requests", size)
            ledger = folder / side / f"{size}.jsonl"
            _program(*SIMULATE.split(), *shape, "--admission", admission, "--ledger", ledger)
    before, after = (read_ledgers(folder / side) for side in SIDES)
    return compare(read_trace(TRACES / model), before, after)


def _joined(tables: Any) -> str:
    """Put CSV tables of the same columns under one header."""
    rows = [list(csv.reader(io.StringIO(table))) for table in tables]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0][0])
    for table in rows:
        writer.writerows(table[1:])
    return out.getvalue()


def _entries() -> list[dict[str, Any]]:
    rules = [(a, s, "shared") for a in ADMISSION_RULES for s in STAND_INS]
    rules += [("ep_ordered", s, "by_phase") for s in STAND_INS]
    return [
        compare_rules(
            list(shapes(Scenario(admission=admission, stand_in=stand_in, rooms=rooms))),
            LIMITS,
        )
        for admission, stand_in, rooms in rules
    ]


def _smallest(entries: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    def of(side: str, kind: str, admission: str, rooms: str = "shared") -> Any:
        (entry,) = [
            e
            for e in entries
            if (e["admission"], e["stand_in"], e["rooms"]) == (admission, "standard", rooms)
        ]
        return entry[side][kind]["smallest"]

    return [
        ("Smallest wave only in the simulator", of("only_simulator", "waves", "ep_ordered")),
        ("Smallest run left unfinished", of("only_simulator", "unfinished", "ep_ordered")),
        (
            "Smallest wave only in the lockstep, under the base",
            of("only_reference", "waves", "strict_fifo"),
        ),
        (
            "Smallest wave only in the lockstep, rooms split by phase",
            of("only_reference", "waves", "ep_ordered", "by_phase"),
        ),
    ]


def require_consequences(comparisons: list[Comparison]) -> None:
    """Check what the page says in words.

    Raises
    ------
    AssertionError
        A sentence of the page is no longer true.
    """
    for stand_in in STAND_INS:
        for scenario in shapes(Scenario(stand_in=stand_in)):
            result = compare_shape(scenario, LIMITS)
            runs = [x for x in result.simulator.witnesses if isinstance(x, WholeRun)]
            _require(not result.only("reference", "waves"), scenario)
            _require(not result.only("reference", "whole_runs"), scenario)
            changing = {run for run in runs if run.partners_change}
            _require(changing == set(result.only("simulator", "whole_runs")), scenario)
            _require(all(run.partners_change != "layers" for run in runs), scenario)
            alone = [x for x in result.only("simulator", "waves") if isinstance(x, Wave)]
            _require(all(wave.stage for wave in alone), scenario)
            _require(not alone or scenario.arrivals == "burst", scenario)
    for comparison in comparisons:
        for burst in comparison.bursts:
            first, *others = (stage.pairing for stage in burst.after.measured.stages)
            _require(all(pairing == first for pairing in others), burst.after.ledger)


def _require(holds: bool, where: object) -> None:
    if not holds:
        raise AssertionError(f"the page's conclusions do not hold for {where}")


def _out_of_step() -> str:
    """Return the first-stage waves of ``blocked_is_idle`` that no burst of the reference has."""
    rules = Scenario(admission="strict_fifo", stand_in="blocked_is_idle")
    found = [
        str(label)
        for scenario in shapes(rules)
        for label in compare_shape(scenario, LIMITS).only("simulator", "waves")
        if isinstance(label, Wave) and label.stage == 0
    ]
    return "; ".join(dict.fromkeys(found))


def pairs_as_lockstep(item: RealRound) -> bool:
    """Whether a round's pairing at every stage is that of the reference's only run."""
    run = item.round.run
    model = PairingModel.reference(
        Scenario(
            lanes=run.lanes,
            stages=run.stages,
            batches=tuple(len(run.of(0, lane)) for lane in range(run.lanes)),
        )
    )
    shown = shown_labels(model.recorded, model.labels).witnesses
    (whole,) = [label for label in shown if isinstance(label, WholeRun)]
    return all(
        {tuple(b.number for b in wave.members) for wave in whole.waves if wave.stage == stage}
        == _positions(item, stage)
        for stage in range(run.stages)
    )


def _positions(item: RealRound, stage: int) -> set[tuple[int, ...]]:
    """Return the pairing of a stage with each batch as its place in its lane's order."""
    order = item.metrics.sequences
    return {
        tuple(
            order[lane, stage].index(batch) for lane, batch in enumerate(group) if batch is not None
        )
        for group in item.metrics.stages[stage].pairing
    }


def _page(comparisons: list[Comparison]) -> str:
    require_consequences(comparisons)
    rounds = [r for c in comparisons for burst in c.bursts for r in burst.rounds]
    entries = _entries()
    return (
        jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=False)
        .from_string(_PAGE)
        .render(
            comparisons=comparisons,
            counts=status_counts,
            placed=_placed,
            rounds=len(rounds),
            lockstep_rounds=sum(map(pairs_as_lockstep, rounds)),
            shape_count=entries[0]["shapes"],
            entries=entries,
            sides=("only_simulator", "only_reference"),
            kinds=("waves", "whole_runs", "unfinished"),
            smallest=_smallest(entries),
            out_of_step=_out_of_step(),
            commands=_commands(),
        )
        + "\n"
    )


def _placed(comparison: Comparison) -> str:
    placements: Any = document(comparison)["placement"]
    correct = sum(entry["placed_correctly"] for entry in placements)
    return f"{correct}/{sum(entry['requests'] for entry in placements)}"


def _commands() -> list[str]:
    lines: list[str] = []
    for model, layers in LAYERS_PER_STAGE.items():
        for side, admission in SIDES.items():
            lines.extend(
                f"frontier-verify {SIMULATE} --model {model} --layers {layers} "
                f"--requests {size} --admission {admission} --ledger {model}/{side}/{size}.jsonl"
                for size in (8, 16)
            )
        lines.append(
            f"frontier-verify compare-lanes --trace tests/data/vllm_traces/{model} "
            f"--before {model}/before --after {model}/after --html {model}.html"
        )
    lines.extend(f"frontier-verify pairings --admission {name}" for name in ADMISSION_RULES)
    lines.append("frontier-verify pairings --rooms by_phase")
    return lines


if __name__ == "__main__":
    build()
