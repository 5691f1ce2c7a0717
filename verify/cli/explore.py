"""``frontier-verify explore``: pick what happens next, in a browser, over a live model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer

from models.counterexample import UNFINISHED
from models.quiescent import QuiescentModel
from models.scenario import Scenario
from models.schedule import Played, Schedule, encode_schedule, play_exactly
from models.story import Known, explore_fates, listable_actions, tell_known
from models.wakeups import schedule_lines
from verify.cli import options as opt
from verify.cli.errors import UsageError, require_writable, write_result
from verify.cli.render import err, out, print_scenario, scenario_line
from verify.path import PathError
from verify.report.page import Page, render_page, story_data
from verify.report.server import PageServer
from verify.story import Story

_SERVER = "Server"


class Exploration:
    """Answers the page: what a list of choices leads to, and where to save it.

    Parameters
    ----------
    scenario
        What is explored.
    save_to
        File that the path is written to.
    """

    def __init__(self, scenario: Scenario, save_to: Path) -> None:
        self.scenario = scenario
        self._save_to = save_to
        self._model = QuiescentModel(scenario.make_replica, scenario.ties)
        self._known: Known | None = explore_fates(scenario)

    def page(self) -> str:
        """Return the page at the start."""
        story = self._tell(())
        return render_page(
            Page(
                title="a schedule of your own",
                verdict="exploring",
                subtitle=scenario_line(self.scenario),
                story=story,
                live=True,
                extra={"actions": []},
            )
        )

    def story(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the story of a list of choices, each a number of the step before it."""
        numbers = self._numbers(question)
        schedule = self._schedule(numbers)
        story = self._tell(schedule)
        played = play_exactly(self.scenario, schedule)
        command = ""
        with suppress(PathError):
            command = f"frontier-verify replay {encode_schedule(self.scenario, schedule)}"
        ended = played.outcome
        return {
            **story_data(story),
            "actions": numbers,
            "command": command if schedule else "",
            "end": self._end(played),
            "message": f"The run is {ended}." if ended != "running" else "",
        }

    def save(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Write the encoded path of a list of choices."""
        path = encode_schedule(self.scenario, self._schedule(self._numbers(question)))
        try:
            write_result(self._save_to, path + "\n")
        except UsageError as error:
            raise ValueError(str(error)) from None
        named = quote(str(self._save_to))
        return {
            "message": f"Saved to {self._save_to}: frontier-verify explain {named} or "
            f"shrink {named} take it once it ends in a violation.",
            "path": path,
        }

    def _tell(self, schedule: Schedule) -> Story:
        return tell_known(self.scenario, schedule, self._known)

    def _numbers(self, question: Mapping[str, Any]) -> list[int]:
        numbers = question.get("actions")
        if not isinstance(numbers, list) or not all(type(n) is int for n in numbers):
            raise ValueError(f"actions must be a list of numbers, got {numbers!r}")
        return numbers

    def _schedule(self, numbers: list[int]) -> Schedule:
        run = self._model.begin()
        schedule = []
        for step, number in enumerate(numbers):
            actions, _ = listable_actions(run.state(), self.scenario.ties)
            if not 0 <= number < len(actions):
                raise ValueError(f"step {step} has {len(actions)} choices, got number {number}")
            schedule.append(tuple(run.pending[position] for position in actions[number]))
            run.fire(actions[number])
        return tuple(schedule)

    def _end(self, played: Played) -> dict[str, Any] | None:
        found = played.classification
        if found is None:
            return None
        message = str(played.run.failure or UNFINISHED)
        schedule, analysis = played.schedule, played.analysis()
        return {"why": list(schedule_lines(self.scenario, schedule, found, analysis, message))}


def explore(
    source: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="A catalogue case or a scenario file.")
    ],
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 for any free one.", rich_help_panel=_SERVER)
    ] = 8765,
    save: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the page saves the path.")
    ] = Path("explored-path.txt"),
) -> None:
    """Serve a page on this machine in which you pick the next events yourself.

    It shows what is enabled, what is refused and why, and saves the path. Ends with Ctrl-C.
    """
    require_writable(save)
    if not 0 <= port <= 65535:
        raise UsageError(f"--port must be between 0 and 65535, got {port}")
    scenario = opt.load_source(source)
    exploration = Exploration(scenario, save)
    answers = {"/story": exploration.story, "/save": exploration.save}
    try:
        server = PageServer(port, exploration.page, answers)
    except OSError as error:
        raise UsageError(
            f"cannot serve on port {port}: {error.strerror}; choose another with --port"
        ) from None
    print_scenario(scenario)
    out.print(f"open {server.address}")
    err.print("Ctrl-C ends it", style="dim")
    with server, suppress(KeyboardInterrupt):
        server.serve_forever()
