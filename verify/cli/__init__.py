"""The command-line program ``frontier-verify``: one file per command, composed here.

A command's module is loaded when the command is asked for, so that nobody waits for the drawing
and compiling libraries of the others.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from models.rules import RuleError
from models.scenario import ScenarioError
from verify.cli.demand import load
from verify.cli.errors import (
    BAD_INPUT,
    UNDETERMINED,
    EngineDisagreementError,
    UsageError,
    end_unforeseen,
    end_without_output,
    end_without_reader,
    tell,
)
from verify.path import PathError

COMMANDS: Final = {
    "check": "verify.cli.check:check",
    "simulate": "verify.cli.simulate:simulate",
    "replay": "verify.cli.replay:replay",
    "shrink": "verify.cli.shrink:shrink",
    "explain": "verify.cli.explain:explain",
    "explore": "verify.cli.explore:explore",
    "contract": "verify.cli.contract:contract",
    "cases": "verify.cli.cases:app",
    "matrix": "verify.cli.matrix:app",
    "compare-lanes": "verify.cli.compare_lanes:app",
    "pairings": "verify.cli.pairings:pairings",
    "bench": "verify.cli.bench:bench",
}
"""Every command, in the order of the help, with the function or sub-program that runs it."""


class CommandsOnDemand(TyperGroup):
    """The group of :data:`COMMANDS`."""

    def list_commands(self, _ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        """Load a command, or return None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        found = load(COMMANDS[cmd_name])
        if isinstance(found, typer.Typer):
            program = found
        else:
            program = typer.Typer(add_completion=False)
            program.command(cmd_name)(found)
        command = typer.main.get_command(program)
        command.name = cmd_name
        return command

    def make_context(self, *args: Any, **more: Any) -> Any:
        """Read the command line; what that prints (help, version) must be read as well."""
        with _all_of_it_read():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for, and see to it that all of its output is read."""
        with _all_of_it_read():
            return super().invoke(ctx)


@contextmanager
def _all_of_it_read() -> Iterator[None]:
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        end_without_reader()
    except SystemExit as end:  # rich, which prints the help, turns the same into an exit with 1
        if isinstance(end.__context__, BrokenPipeError):
            end_without_reader()
        raise


app = typer.Typer(
    name="frontier-verify",
    cls=CommandsOnDemand,
    help="Prove or refute stage admission protocols of mixture-of-experts serving engines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"frontier-verify {version('frontier-verify')}")
        raise typer.Exit


@app.callback()
def program(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Prove or refute stage admission protocols of mixture-of-experts serving engines."""


def main() -> None:
    """Run the program; bad input ends with one message on standard error and exit code 2.

    A request to end (SIGTERM, as of ``timeout``) is an interruption like Ctrl-C: what is known so
    far is told, as undetermined.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # where letters are few, a verdict is still told
            stream.reconfigure(errors="replace")
    try:
        app()
    except (UsageError, ScenarioError, RuleError, PathError) as error:
        tell(str(error))
        sys.exit(BAD_INPUT)
    except EngineDisagreementError as error:
        tell(str(error))
        sys.exit(UNDETERMINED)
    except OSError as error:
        end_without_output(error)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        end_unforeseen(error)
