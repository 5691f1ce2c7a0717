"""``frontier-verify contract``: any implementation against the written admission contract."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from models.contract import own_implementation
from models.skeleton import api, skeleton_text
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.options import JsonFile
from verify.cli.render import err, out, verdict_markup
from verify.contract.check import check_contract
from verify.contract.clauses import CLAUSE_BY_ID, CLAUSES, LATITUDES, RULES
from verify.contract.client import Bounds
from verify.contract.errors import ContractInputError
from verify.contract.implementation import Implementation
from verify.contract.loader import load
from verify.contract.operations import parse_calls
from verify.contract.orders import ORDERS
from verify.contract.reference import Reference
from verify.contract.report import (
    EXIT_CODES,
    ClauseResult,
    ContractReport,
    bounds_text,
    to_junit,
)
from verify.contract.session import Profile
from verify.contract.walk import walk
from verify.words import counted

ADOPTED = "ep_ordered"
_FEW = 10
_MARKS = {"holds": "green", "violated": "bold red", "missing": "yellow", "unreached": "yellow"}


def contract(
    impl: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:Class|package.module:Class",
            help="Implementation to check, loaded in isolation; default: our own context.",
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="Admission rule whose contract is checked: strict_fifo, lane_aware, ep_ordered "
            "or late_ticket. Default: all four for our own context, ep_ordered for another."
        ),
    ] = None,
    own_rule: Annotated[
        str | None,
        typer.Option(help="Rule given to our own context, when it is not the contract's."),
    ] = None,
    max_tickets: Annotated[
        int, typer.Option(help="Tickets live at once.", rich_help_panel="Bounds")
    ] = 3,
    lanes: Annotated[int, typer.Option(help="Lanes of the client.", rich_help_panel="Bounds")] = 2,
    waves: Annotated[
        int, typer.Option(help="EP waves live at once.", rich_help_panel="Bounds")
    ] = 2,
    capacity: Annotated[
        int | None,
        typer.Option(
            help="Full-stage capacity; default: 2, and 1 with ep_size 1 in a second, smaller "
            "exploration.",
            rich_help_panel="Bounds",
        ),
    ] = None,
    ep_size: Annotated[int, typer.Option(help="EP participants.", rich_help_panel="Bounds")] = 2,
    max_states: Annotated[
        int | None, typer.Option(help="Give up beyond this many.", rich_help_panel="Bounds")
    ] = None,
    clause: Annotated[
        list[str] | None,
        typer.Option(help="Report only this clause (AC-01 ...); may be repeated."),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="CALLS",
            help='Run one call sequence, as a finding prints it: "full 0.0; full 1.0; try 1.0". '
            "The words are explained above.",
        ),
    ] = None,
    list_clauses: Annotated[
        bool,
        typer.Option("--list", help="Print the written contract and its API, and stop."),
    ] = False,
    skeleton: Annotated[
        bool,
        typer.Option(
            "--skeleton",
            help="Print a class with every member of the API, to be filled in, and stop: "
            "contract --skeleton > mine.py",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write JUnit XML, a test per clause.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Check a stage execution context clause by clause, over every call sequence in bounds.

    Call sequences: calls are separated by ";". Lane 0 has operations 0.0, 0.1,
    ..., EP waves are w0, w1, ... "full 0.0" and "wave w0" enqueue. "try 0.0",
    "release 0.0", "cancel 0.0", "bind 0.0" and "owns 0.0" pass its ticket to
    try_acquire, release, cancel, bind_forward_group and owns, "ask 0.0" to the
    is_* questions. "shift 0.0 > w1" is transition_active_scope; "promote 0.0 +
    1.0 > w1" turns owners into a wave, "restore w1 > 0.1 + 1.1" it into owners.
    "participants=..." and "odd=..." mark a call that is wrong on purpose: see
    docs/contracts.md.

    To run lanes and stages over the same class:
    frontier-verify check --context FILE.py:Class

    Exit code: 0 every clause holds, 1 a clause is violated or needs members
    that are missing, 2 bad input, 3 undetermined.
    """
    for path in (junit, json_file):
        require_writable(path)
    if list_clauses and skeleton:
        raise UsageError("give either --list or --skeleton, not both")
    if skeleton:
        typer.echo(skeleton_text(), nl=False)
        raise typer.Exit
    if list_clauses:
        _print_contract(rule)
        raise typer.Exit
    quiet = str(json_file) == "-"
    try:
        pairs = list(_targets(impl, rule, own_rule))
        if replay is not None:
            raise typer.Exit(_replay(pairs[0], replay, capacity, ep_size))
        wanted = _wanted(clause)
        bounds = _bounds(max_tickets, lanes, waves, capacity, ep_size)
        reports = []
        for implementation, name, given in pairs:
            started = time.monotonic()
            report = _check(implementation, name, given, bounds, max_states)
            reports.append(report)
            if not quiet:
                _print_report(report, wanted)
                err.print(f"checked in {time.monotonic() - started:.2f} s", style="dim")
    except ContractInputError as error:
        raise UsageError(str(error)) from None
    if junit is not None:
        write_result(junit, to_junit(reports))
    if json_file is not None:
        emit(json_file, json.dumps(_json(reports), indent=1))
    raise typer.Exit(_exit_code(reports, wanted))


def _known_rule(option: str, rule: str) -> str:
    if rule not in RULES:
        raise UsageError(f"unknown {option} {rule!r}; expected one of: {', '.join(RULES)}")
    return rule


def _targets(
    impl: str | None, rule: str | None, own_rule: str | None
) -> Iterator[tuple[Implementation, str, str | None]]:
    """Yield what to check: implementation, the contract's rule, and the rule it was given."""
    if impl is not None:
        if own_rule is not None:
            raise UsageError("--own-rule is for our own context; an --impl has its rule inside")
        yield load(impl), _known_rule("--rule", rule or ADOPTED), None
        return
    for name in RULES if rule is None else (_known_rule("--rule", rule),):
        given = name if own_rule is None else _known_rule("--own-rule", own_rule)
        yield own_implementation(given), name, given


def _bounds(
    max_tickets: int, lanes: int, waves: int, capacity: int | None, ep_size: int
) -> list[Bounds]:
    for option, value, least in (
        ("--max-tickets", max_tickets, 1),
        ("--lanes", lanes, 1),
        ("--waves", waves, 0),
        ("--capacity", capacity if capacity is not None else 2, 1),
        ("--ep-size", ep_size, 1),
    ):
        if value < least:
            raise UsageError(f"{option} must be at least {least}, got {value}")
    if capacity is not None:
        return [Bounds(max_tickets, lanes, waves, capacity, ep_size)]
    first = Bounds(max_tickets, lanes, waves, 2, ep_size)
    return [first, Bounds(min(max_tickets, 3), lanes, min(waves, 1), 1, 1)]


def _wanted(clauses: list[str] | None) -> frozenset[str]:
    if not clauses:
        return frozenset(CLAUSE_BY_ID)
    for name in clauses:
        if name not in CLAUSE_BY_ID:
            raise UsageError(f"unknown --clause {name!r}; expected AC-01 ... {CLAUSES[-1].id}")
    return frozenset(clauses)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int], None]]:
    if err.is_terminal:
        with err.status(label) as status:
            yield lambda states: status.update(f"{label}: {states:,} states")
        return
    yield lambda _: None


def _check(
    implementation: Implementation,
    rule: str,
    own_rule: str | None,
    bounds: list[Bounds],
    max_states: int | None,
) -> ContractReport:
    with _progress(f"{implementation.name} under {rule}") as progress:
        return check_contract(
            implementation,
            ORDERS[rule],
            bounds,
            own_rule=own_rule,
            max_states=max_states,
            progress=progress,
        )


def _exit_code(reports: list[ContractReport], wanted: frozenset[str]) -> int:
    codes = {EXIT_CODES[report.verdict_on(wanted)] for report in reports}
    return 1 if 1 in codes else max(codes, default=0)


def _json(reports: list[ContractReport]) -> dict[str, Any]:
    if len(reports) == 1:
        return reports[0].to_json()
    code = _exit_code(reports, frozenset(CLAUSE_BY_ID))
    verdict = {0: "holds", 1: "violated", 3: "undetermined"}[code]
    return {"verdict": verdict, "reports": [report.to_json() for report in reports]}


def _print_contract(rule: str | None) -> None:
    for each in CLAUSES:
        if rule is None or _known_rule("--rule", rule) in each.rules:
            only = "" if each.rules == RULES else f" ({', '.join(each.rules)})"
            out.print(f"{each.id}  {each.group:<12} {escape(each.text)}{only}")
    out.print("\nLeft open by the protocol page, observed and not judged:")
    for text in LATITUDES.values():
        out.print(f"  {text}")
    out.print("\nThe API that a class offers (PROTOCOL.md section 2), and which clauses need it:")
    for member in api():
        needed = [
            each.id
            for each in CLAUSES
            if member.name in each.needs and (rule is None or rule in each.rules)
        ]
        told = ", ".join(needed) if len(needed) <= _FEW else counted(len(needed), "clause")
        typer.echo(f"  {member.signature}" + (f"  # {told}" if needed else ""))
    out.print(
        "A class that lacks a member is checked all the same; the clauses that need it are then "
        "`missing`. Start with: frontier-verify contract --skeleton > mine.py",
        markup=False,
    )


def _print_report(report: ContractReport, wanted: frozenset[str]) -> None:
    given = report.own_rule
    name = report.implementation if given is None else f"{report.implementation} ({given})"
    out.print(f"\n[bold]{escape(name)} under the contract of {report.rule}[/]")
    for note in report.notes:
        out.print(f"note: {escape(note)}")
    for exploration in report.explorations:
        out.print(escape(bounds_text(exploration)))
    for result in report.clauses:
        if result.clause.id in wanted:
            _print_clause(report, result)
    if report.observed:
        out.print("The protocol page leaves open, so this is told and not judged:", style="dim")
    for point, choice in report.observed.items():
        out.print(f"  {escape(point)}: here {choice}", style="dim")
    counts: list[str] = [result.status for result in report.clauses if result.clause.id in wanted]
    parts = [f"{counts.count(s)} {s}" for s in _MARKS if counts.count(s)]
    asked = counted(len(counts), "clause")
    if len(counts) < len(report.clauses):
        asked += f" asked for, of {len(report.clauses)}"
    out.print(f"{verdict_markup(report.verdict_on(wanted))}: {asked}: {', '.join(parts) or 'none'}")


def _print_clause(report: ContractReport, result: ClauseResult) -> None:
    mark = _MARKS[result.status]
    out.print(
        f"{result.clause.id}  [{mark}]{result.status:<9}[/] {result.extent:>17}  "
        f"{escape(result.clause.text)}"
    )
    if result.status in ("missing", "unreached"):
        out.print(f"       {escape(result.message)}")
    finding = result.finding
    if finding is None or result.status != "violated":
        return
    for number, call in enumerate(finding.calls, start=1):
        out.print(f"       {number:>3}  {escape(call.text)}")
    out.print(f"       expected: {escape(finding.deviation.expected)}")
    out.print(f"       observed: {escape(finding.deviation.observed)}")
    out.print(f"       replay:   {escape(report.replay_command(result))}")


def _replay(
    target: tuple[Implementation, str, str | None],
    text: str,
    capacity: int | None,
    ep_size: int,
) -> int:
    """Run one call sequence and print each step; return the exit code."""
    implementation, rule, _ = target
    capacity = 2 if capacity is None else capacity
    profile = Profile(capacity if implementation.takes_capacity else 1, ep_size)
    reference = Reference(ORDERS[rule], profile.capacity)
    result = walk(implementation, reference, profile, parse_calls(text))
    for step in result.steps:
        out.print(f"{step.number:>3}  {escape(step.text):<40} {escape(step.outcome)}")
    if result.deviation is None:
        out.print(f"{verdict_markup('holds')}: {escape(result.ending)}")
        return 0 if result.whole else 3
    broken = result.clause
    out.print(f"{verdict_markup('violated')}: {broken.id}  {escape(broken.text)}")
    out.print(f"expected: {escape(result.deviation.expected)}")
    out.print(f"observed: {escape(result.deviation.observed)}")
    return 1
