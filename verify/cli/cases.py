"""``frontier-verify cases``: look at the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from models.catalogue import CASES, catalogue, find_case
from verify.cli.render import out, print_scenario, verdict_markup

app = typer.Typer(
    help="List or show the cases of the catalogue.", no_args_is_help=True, add_completion=False
)


@app.command("list")
def list_cases() -> None:
    """List every case with its claim."""
    for case in catalogue().values():
        claim = verdict_markup(case.expect.verdict)
        pad = " " * (10 - len(case.expect.verdict))
        name, kind = case.name, case.expect.classification or ""
        out.print(f"{name:<42}{claim}{pad}{kind:<21}{case.title}")


@app.command("show")
def show_case(
    name: Annotated[str, typer.Argument(metavar="CASE", help="Name of a case.")],
) -> None:
    """Show one case: scenario, claim, reason, twin, and the file it is in."""
    case = find_case(name)
    expect = case.expect
    out.print(f"[bold]{case.title}[/]")
    print_scenario(case.scenario)
    claim = f"claim: {verdict_markup(expect.verdict)}"
    if expect.classification:
        claim += f", {expect.classification} at depth {expect.depth}"
        claim += f", {expect.violating_states} violating states"
    out.print(f"{claim}; {expect.states} states, {expect.transitions} transitions")
    out.print(f"reason: {case.reason}")
    if case.twin:
        out.print(f"twin that holds: {case.twin}")
    if expect.reached:
        out.print(f"must be reached: {'; '.join(expect.reached)}")
    out.print(f"file: models/cases/{(CASES / case.name).name}.toml")
