"""``frontier-verify compare-lanes``: simulated lanes against forward traces of a real engine."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from verify.cli.errors import UsageError, emit, require_writable
from verify.cli.render import out
from verify.lanescompare.compare import Comparison, compare
from verify.lanescompare.document import to_csv, to_json
from verify.lanescompare.fields import LaneDataError
from verify.lanescompare.ledger import Ledger, read_ledgers
from verify.lanescompare.page import to_html
from verify.lanescompare.prose import cell, findings, headline
from verify.lanescompare.trace import read_trace

STDOUT = "-"
OUTPUTS: dict[str, Callable[[Comparison], str]] = {
    "--json": to_json,
    "--csv": to_csv,
    "--html": to_html,
}
CELL_WIDTH = 26
"""Columns a cell takes at most; the whole is in the JSON, the CSV and the page."""

_COLOURS = {"MATCH": "green", "HOLDS": "green", "INFORMATIONAL": "dim"}


class OptionalOutputs(TyperCommand):
    """Lets an output option stand alone: without a file it means standard output."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Insert ``-`` after every output option that no value follows."""
        filled = []
        for place, arg in enumerate(args):
            filled.append(arg)
            following = args[place + 1 : place + 2]
            alone = not following or (following[0] != STDOUT and following[0].startswith("-"))
            if arg in OUTPUTS and alone:
                filled.append(STDOUT)
        return super().parse_args(ctx, filled)


def compare_lanes(
    trace: Annotated[
        Path, typer.Option(help="Directory of one model's forward trace.", metavar="DIR")
    ],
    before: Annotated[
        list[Path],
        typer.Option(
            help="Stage ledger of the rule with the known defect; repeat it for each burst, or "
            "give a directory of ledgers.",
            metavar="LEDGER",
        ),
    ],
    after: Annotated[
        list[Path],
        typer.Option(
            help="Stage ledger of the rule under test; likewise.",
            metavar="LEDGER",
        ),
    ],
    json: Annotated[
        str | None, typer.Option(help="Write everything as JSON.", metavar="[FILE|-]")
    ] = None,
    csv: Annotated[
        str | None, typer.Option(help="Write the gap table as CSV.", metavar="[FILE|-]")
    ] = None,
    html: Annotated[
        str | None, typer.Option(help="Write a page with pictures.", metavar="[FILE|-]")
    ] = None,
) -> None:
    """Compare simulated stage ledgers with forward traces of a real engine (M1-M5, V1-V5, N1, N4).

    The ledgers choose which bursts are compared. Exit status: 0 all checks hold, 1 a mismatch, a
    request not placed correctly or a negative control that is lost, 2 unusable input.
    """
    wanted = {
        option: target
        for option, target in zip(OUTPUTS, (json, csv, html), strict=True)
        if target is not None
    }
    _require_places(wanted)
    try:
        comparison = compare(read_trace(trace), _read_all(before), _read_all(after))
    except LaneDataError as error:
        raise UsageError(str(error)) from None
    texts = [(target, OUTPUTS[option](comparison)) for option, target in wanted.items()]
    for target, text in texts:
        emit(Path(target), text.removesuffix("\n"))
    if STDOUT not in wanted.values():
        _show(comparison)
    if comparison.status != "PASS" or not comparison.negative_control_holds:
        raise typer.Exit(1)


def _read_all(paths: Sequence[Path]) -> list[Ledger]:
    return [ledger for path in paths for ledger in read_ledgers(path)]


def _require_places(wanted: dict[str, str]) -> None:
    """Check that every output has a place of its own, before anything is read or written."""
    if list(wanted.values()).count(STDOUT) > 1:
        raise UsageError(
            f"{' and '.join(wanted)} both go to standard output: name a file for all but one"
        )
    for target in wanted.values():
        require_writable(Path(target))


def _show(comparison: Comparison) -> None:
    """Print the headline, every finding, and the gap table, one line a row."""
    failed = comparison.status != "PASS" or not comparison.negative_control_holds
    out.print(Text(headline(comparison), style="bold red" if failed else "bold green"))
    for line in findings(comparison):
        out.print(Text(f"  {line}"))
    first = comparison.bursts[0]
    table = Table(box=None, pad_edge=False, header_style="bold")
    rules = (first.after.ledger.admission, first.before.ledger.admission)
    for name in ("check", "burst", "round", "status", "real", *rules):
        table.add_column(name, no_wrap=True)
    for row in comparison.rows:
        table.add_row(
            row.check,
            str(row.burst),
            row.round,
            Text(row.status, style=_COLOURS.get(row.status, "bold red")),
            *(_short(cell(value)) for value in (row.vllm, row.after, row.before)),
        )
    out.print(table)


def _short(text: str) -> Text:
    shown = Text(text)
    shown.truncate(CELL_WIDTH, overflow="ellipsis")
    return shown


app = typer.Typer(add_completion=False)
app.command("compare-lanes", cls=OptionalOutputs)(compare_lanes)
