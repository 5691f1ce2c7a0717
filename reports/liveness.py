"""Builds ``reports/liveness.md``: runs that never end, rule by rule, with their controls (issue 7).

Run ``python -m reports.liveness``. ``python -m reports.liveness --large`` also measures graphs of
hundreds of thousands of states, which takes some ten minutes.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

from frontier.admission import ADMISSION_RULES
from models.groups import GroupScenario
from models.scenario import Scenario
from verify.cli.checking import Question, check_scenario
from verify.cli.render import err
from verify.cli.same_as import check_same_as
from verify.files import write_text_atomically
from verify.limits import Limits, memory_bytes

HERE = Path(__file__).parent
SIZES = HERE / "liveness.json"
LIMITS: Final = Limits(max_states=2_000_000, max_memory_gb=8)

SHAPES: Final[dict[str, Mapping[str, Any]]] = {
    "2 lanes x 2 stages, moe": {},
    "2 lanes x 2 stages, moe, first requests at any time": {"arrivals": "open"},
    "2 lanes x 2 stages, moe, 2 steps": {"steps": 2, "slots": 1},
    "2 lanes x 1 stage, dense, capacity 1": {"model": "dense", "capacity": 1, "stages": 1},
    "2 lanes x 2 stages, dense, capacity 1": {"model": "dense", "capacity": 1},
    "2 lanes x 2 stages, dense, capacity 2": {"model": "dense", "capacity": 2},
    "3 lanes x 1 stage, moe, withdrawn placeholders": {
        "lanes": 3,
        "stages": 1,
        "stand_in": "withdraw_joined",
    },
    "3 lanes x 1 stage, 1 slot, first requests at any time": {
        "lanes": 3,
        "stages": 1,
        "slots": 1,
        "arrivals": "open",
    },
    "the same, withdrawn placeholders": {
        "lanes": 3,
        "stages": 1,
        "slots": 1,
        "arrivals": "open",
        "stand_in": "withdraw_joined",
    },
}

LARGE: Final[dict[str, Mapping[str, Any]]] = {
    "3 lanes x 2 stages": {"lanes": 3, "stages": 2},
    "4 lanes x 2 stages": {"lanes": 4, "stages": 2},
    "3 lanes x 3 stages": {"lanes": 3, "stages": 3},
    "3 lanes x 3 stages, first requests at any time": {
        "lanes": 3,
        "stages": 3,
        "arrivals": "open",
    },
}
"""Shapes that hold, with ``withdraw_joined`` and without ties."""


@dataclass(frozen=True)
class Row:
    """One shape under one admission rule."""

    shape: str
    rule: str
    states: int
    drained: str
    weak: dict[str, str]
    strong: str
    controls: str
    bound: str

    def __str__(self) -> str:
        """Write it as a row of the table."""
        cells = (self.rule, f"{self.states:,}", self.drained, self.weak["progress"],
                 self.weak["starvation"], self.strong, self.controls, self.bound)  # fmt: skip
        return "| " + " | ".join(cells) + " |"


def _verdict(data: Mapping[str, Any]) -> str:
    if data["vacuous"]:
        return "holds (nothing is owed)"
    if data["verdict"] != "violated":
        return str(data["verdict"])
    return f"**{data['classification']}**"


def _kinds(data: Mapping[str, Any]) -> str:
    kinds = Counter(row["control"]["kind"] for row in data["liveness"] if row["control"])
    return ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in sorted(kinds.items()))


def _row(shape: str, fields: Mapping[str, Any], rule: str) -> Row:
    scenario = Scenario.of({"workload": "closed", **fields, "admission": rule})
    data = {
        (name, fairness): check_scenario(scenario, question=Question(name, fairness)).to_json()
        for name, fairness in (
            ("drained", "weak"),
            ("progress", "weak"),
            ("starvation", "weak"),
            ("starvation", "strong"),
        )
    }
    starvation = data["starvation", "weak"]
    bound = starvation["overtaken"]
    weak = {name: _verdict(data[name, "weak"]) for name in ("progress", "starvation")}
    return Row(
        shape,
        f"`{rule}`",
        starvation["states"],
        _verdict(data["drained", "weak"]),
        weak,
        _verdict(data["starvation", "strong"]),
        _kinds(data["progress", "weak"]),
        "no bound" if bound["unbounded"] else str(bound["bound"]),
    )


def _closed() -> Iterator[str]:
    for shape, fields in SHAPES.items():
        err.print(shape)
        yield f"\n### {shape}\n"
        yield (
            "| admission | states | drained | progress | starvation | starvation, strong | "
            "controls of progress | overtaken |"
        )
        yield "|---|---|---|---|---|---|---|---|"
        yield from (str(_row(shape, fields, rule)) for rule in ADMISSION_RULES)


def _scripts(most: int) -> Iterator[str]:
    """Every order of up to ``most`` groups of one or two producers."""
    for count in range(1, most + 1):
        for kinds in product("de", repeat=count):
            yield ",".join(kinds)
            for cut in range(1, count):
                yield ",".join(kinds[:cut]) + ";" + ",".join(kinds[cut:])


def _groups() -> Iterator[str]:
    yield "| admission | EP lanes | orders | hold | most overtaken | largest graph | same graph |"
    yield "|---|---|---|---|---|---|---|"
    scripts = tuple(_scripts(4))
    for rule, ep_size in product(("strict_fifo", "ep_ordered"), (1, 2, 3)):
        err.print(f"{rule}, {ep_size} EP lanes")
        held = most = states = same = 0
        for groups in scripts:
            scenario = GroupScenario.of({"groups": groups, "ep_size": ep_size, "admission": rule})
            data = check_scenario(scenario).to_json()
            held += data["verdict"] == "holds"
            most = max(most, data["overtaken"]["bound"])
            states = max(states, data["states"])
            if rule != "strict_fifo":
                same += check_same_as(scenario, "strict_fifo", Limits()).verdict == "holds"
        compared = "-" if rule == "strict_fifo" else same
        cells = (f"`{rule}`", ep_size, len(scripts), held, most, states, compared)
        yield "| " + " | ".join(map(str, cells)) + " |"


def _measure() -> None:
    """Measure the large graphs and keep the figures beside the report."""
    found = []
    for shape, fields in LARGE.items():
        err.print(shape)
        values = {"workload": "closed", "stand_in": "withdraw_joined", "ties": False, **fields}
        start, cpu = time.monotonic(), time.process_time()
        data = check_scenario(Scenario.of(values), limits=LIMITS).to_json()
        whole, cpu = time.monotonic() - start, time.process_time() - cpu
        judging = cpu * (1 - data["elapsed_s"] / whole)
        found.append(
            {
                "shape": shape,
                "verdict": data["verdict"],
                "states": data["states"],
                "transitions": data["transitions"],
                "explored_s": round(cpu - judging),
                "runs_s": round(judging),
                "memory_mb": round(memory_bytes() / 1e6),
            }
        )
        write_text_atomically(SIZES, json.dumps(found, indent=1) + "\n")


def _sizes() -> Iterator[str]:
    yield "| shape | verdict | states | transitions | exploring, s | judging runs, s | memory, MB |"
    yield "|---|---|---|---|---|---|---|"
    for row in json.loads(SIZES.read_text(encoding="utf-8")):
        yield (
            f"| {row['shape']} | {row['verdict']} | {row['states']:,} | {row['transitions']:,} | "
            f"{row['explored_s']} | {row['runs_s']} | {row['memory_mb']} |"
        )


def report() -> str:
    """Return the report's text."""
    lines = [
        "# Runs that never end",
        "",
        "Built by `python -m reports.liveness`; what the words mean is in",
        "[docs/liveness.md](../docs/liveness.md).",
        "",
        "## Closed workloads",
        "",
        "Two slots a lane unless said otherwise, ties on. A class in bold is a violation. "
        "*Controls* are the runs",
        "that violate each lane's (and wave's) progress if nothing is assumed fair: `stops`, "
        "`unfair cycle`, or",
        "`fair cycle` and `drains`, which violate it under weak fairness too. *Overtaken*: most "
        "later tickets",
        "admitted past a waiting lane in one wait.",
        *_closed(),
        "",
        "## Queued EP waves",
        "",
        "Every order of up to four groups of one or two producers, one full-stage scheduler: how "
        "many hold (each",
        "wave and batch ends, each ticket is admitted, no ticket passes a wave), and how many "
        "have the graph of",
        "`strict_fifo`.",
        "",
        *_groups(),
        "",
        "## Large graphs",
        "",
        "`python -m reports.liveness --large`: `withdraw_joined`, without ties, all properties at "
        "once (`--property all`).",
        "Seconds of one core; memory is what the process has at the end.",
        "",
        *_sizes(),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Build the report; with ``--large`` measure first."""
    if "--large" in sys.argv[1:]:
        _measure()
    write_text_atomically(HERE / "liveness.md", report())


if __name__ == "__main__":
    main()
