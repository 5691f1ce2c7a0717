"""The command-line program ``frontier-verify``: one file per command, composed here."""

from __future__ import annotations

import sys

import typer

from models.rules import RuleError
from models.scenario import ScenarioError
from verify.cli import cases, matrix
from verify.cli.bench import bench
from verify.cli.check import check
from verify.cli.compare_lanes import OptionalOutputs, compare_lanes
from verify.cli.contract import contract
from verify.cli.engines import EngineDisagreementError
from verify.cli.errors import BAD_INPUT, UNDETERMINED, UsageError
from verify.cli.explain import explain
from verify.cli.explore import explore
from verify.cli.pairings import pairings
from verify.cli.replay import replay
from verify.cli.shrink import shrink
from verify.cli.simulate import simulate
from verify.path import PathError

app = typer.Typer(
    name="frontier-verify",
    help="Prove or refute stage admission protocols of mixture-of-experts serving engines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(check)
app.command()(simulate)
app.command()(bench)
app.command()(replay)
app.command()(shrink)
app.command()(explain)
app.command()(explore)
app.command()(pairings)
app.command()(contract)
app.command("compare-lanes", cls=OptionalOutputs)(compare_lanes)
app.add_typer(cases.app, name="cases")
app.add_typer(matrix.app, name="matrix")


def main() -> None:
    """Run the program; bad input ends with one message on standard error and exit code 2."""
    try:
        app()
    except (UsageError, ScenarioError, RuleError, PathError) as error:
        print(f"frontier-verify: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except EngineDisagreementError as error:
        print(f"frontier-verify: {error}", file=sys.stderr)
        sys.exit(UNDETERMINED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
