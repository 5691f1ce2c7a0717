"""The admission contract's evidence: ``python -m reports.contracts`` builds ``contracts.md``."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from models.contract import own_implementation
from models.machines.lanes import LanesMachine
from models.machines.waves import WavesMachine
from tests.verify.contract.samples import foreign
from verify.contract.check import check_contract
from verify.contract.clauses import RULES
from verify.contract.client import Bounds
from verify.contract.loader import load
from verify.contract.operations import format_calls
from verify.contract.orders import ORDERS
from verify.contract.report import ContractReport, bounds_text
from verify.files import write_text_atomically
from verify.machines.context_api import INTERESTING, context_machine
from verify.machines.profiles import PROFILES

HERE = Path(__file__).parent
SMALL = [Bounds(3, 2, 1, 2, 2)]
RUNS = settings(PROFILES["ci"], max_examples=300)

HEAD = """# Admission contracts

Built by `python -m reports.contracts`. The contract: `frontier-verify contract --list`; how it is
checked: [docs/contracts.md](../docs/contracts.md). Which layer kills which mutant:
[kill_matrix.md](kill_matrix.md).
"""


def _broken(report: ContractReport) -> str:
    rows = [
        f"{r.clause.id} `{format_calls(r.finding.calls)}` ({len(r.finding.calls)} calls)"
        for r in report.clauses
        if r.status == "violated" and r.finding is not None
    ]
    missing = sum(r.status == "missing" for r in report.clauses)
    if missing:
        rows.append(f"{missing} clauses missing")
    return "; ".join(rows) or "every clause holds"


def _rules() -> Iterator[str]:
    """Our context with each rule under each rule's contract."""
    yield "## Our context: given rule (row) under the contract of a rule (column)\n"
    yield "| given | " + " | ".join(RULES) + " |\n|" + "---|" * (len(RULES) + 1)
    for own in RULES:
        cells = [
            _broken(check_contract(own_implementation(own), ORDERS[rule], SMALL, own_rule=own))
            for rule in RULES
        ]
        yield f"| {own} | " + " | ".join(cells) + " |"
    yield (
        "\n`late_ticket` differs from `strict_fifo` in when a batch gets its ticket, not in what "
        "the context does with it. Within: "
        + "; ".join(bounds_text(e) for e in _last(SMALL).explorations)
        + ".\n"
    )


def _last(bounds: list[Bounds]) -> ContractReport:
    return check_contract(own_implementation("ep_ordered"), ORDERS["ep_ordered"], bounds)


def _depth() -> Iterator[str]:
    """Show counts and time of the largest exploration."""
    yield "## Every call sequence of five live tickets\n"
    yield "`frontier-verify contract --rule ep_ordered --max-tickets 5 --capacity 2`\n"
    started = time.process_time()
    report = _last([Bounds(5, 2, 2, 2, 2)])
    spent = time.process_time() - started
    (explored,) = report.explorations
    yield f"{report.verdict}: {bounds_text(explored)}; {spent:.0f} s of processor time.\n"


def _foreign() -> Iterator[str]:
    """Three implementations whose package is called like ours."""
    yield "## Three foreign implementations (`tests/verify/contract/foreign`)\n"
    yield "| revision | under strict_fifo | under ep_ordered |\n|---|---|---|"
    for revision in ("first", "second", "third"):
        implementation = load(foreign(revision))
        cells = [
            _broken(check_contract(implementation, ORDERS[rule], SMALL))
            for rule in ("strict_fifo", "ep_ordered")
        ]
        yield f"| {revision} | " + " | ".join(cells) + " |"
    yield ""


def _shares(machine: Any, interesting: tuple[str, ...]) -> str:
    machine.reached.clear()
    run_state_machine_as_test(machine, settings=RUNS)
    reached: Counter[str] = machine.reached
    runs = reached["runs"]
    parts = [f"{mark}: {reached[mark] / runs:.0%}" for mark in interesting]
    return f"{runs} runs; " + ", ".join(parts)


def _statistics() -> Iterator[str]:
    """How often the machines get to the states that matter."""
    yield "## Hypothesis: share of runs that reach the interesting states\n"
    yield "Profile `ci`, 300 examples of at most 40 steps each.\n"
    for rule in ("strict_fifo", "lane_aware", "ep_ordered"):
        machine = context_machine(own_implementation(rule), ORDERS[rule])
        yield f"* Context API, {rule}: {_shares(machine, INTERESTING)}."
    yield (
        "* Lanes x stages x rooms, ep_ordered with withdraw_joined: "
        f"{_shares(LanesMachine, LanesMachine.interesting)}."
    )
    yield (
        "* EP waves with child lanes, capacity 1: "
        f"{_shares(WavesMachine, WavesMachine.interesting)}."
    )


def main() -> None:
    """Write the page."""
    lines = [HEAD, *_rules(), *_depth(), *_foreign(), *_statistics()]
    write_text_atomically(HERE / "contracts.md", "\n".join(lines) + "\n")
    print(f"{HERE / 'contracts.md'} written", file=sys.stderr)


if __name__ == "__main__":
    main()
