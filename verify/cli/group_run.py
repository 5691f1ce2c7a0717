"""A timed run of the ``DECODE_FFN`` stage alone: ``simulate --groups`` (PROTOCOL.md section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from frontier.des import Simulation
from frontier.durations import DurationError, Durations
from frontier.events import CHILD_DONE, COMBINE_END, DECODE_FFN, GROUP, STAGE_END, CoreError, Event
from frontier.ffn import FfnReplica
from frontier.ledger import seconds
from frontier.outcome import OTHER_FAILURE, SUCCESS
from models.explanation import explain
from models.group_view import describe_group_stage, group_waits
from models.groups import GroupScenario
from models.waits import CORE_ERROR, classify
from verify.cli.errors import UsageError
from verify.cli.render import out, print_cycle, stage_table


class _AtFfn:
    """An execution-time model asked about the events of a stage that stands alone."""

    def __init__(self, durations: Durations) -> None:
        self._durations = durations

    def of(self, event: Event) -> int:
        """Ask as for an event of the ``DECODE_FFN`` role."""
        return self._durations.of(event._replace(role=DECODE_FFN))


@dataclass(slots=True)
class _Times:
    """When a group arrived, started and ended, in nanoseconds; -1 where it did not."""

    kind: str
    producer: int
    arrival: int
    start: int = -1
    end: int = -1


class _GroupTimes:
    """Observer that notes the times of each group."""

    def __init__(self, replica: FfnReplica) -> None:
        self._replica = replica
        self.times: list[_Times] = []

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:
        """Note an arrival, a start or an end."""
        if event.kind == GROUP:
            newest = next(
                group
                for scheduler in self._replica.schedulers
                for group in scheduler.queue
                if group.number == len(self.times)
            )
            self.times.append(_Times(newest.phase, event.lane, now))
        if event.kind in (COMBINE_END, STAGE_END) and event.batch is not None:
            self.times[event.batch.number].end = now
        for started in follow:
            if started.kind in (CHILD_DONE, STAGE_END) and started.batch is not None:
                times = self.times[started.batch.number]
                times.start = now if times.start < 0 else times.start

    def to_json(self) -> list[dict[str, Any]]:
        """One object per group in the order of arrival; None where a time does not exist."""
        return [
            {
                "group": number,
                "kind": times.kind,
                "producer": times.producer,
                "arrival_s": seconds(times.arrival),
                "start_s": seconds(times.start) if times.start >= 0 else None,
                "end_s": seconds(times.end) if times.end >= 0 else None,
            }
            for number, times in enumerate(self.times)
        ]


def run_groups(scenario: GroupScenario, durations: Durations) -> dict[str, Any]:
    """Run the stage to its end and return what became of each group, as JSON values.

    Raises
    ------
    UsageError
        If the execution-time model has no time for an event.
    """
    replica = scenario.make_replica()
    watch = _GroupTimes(replica)
    simulation = Simulation(replica, _AtFfn(durations), (watch,))
    failure: CoreError | None = None
    try:
        simulation.run()
    except CoreError as error:
        failure = error
    except DurationError as error:
        raise UsageError(str(error)) from None
    done = failure is None and replica.is_complete
    data: dict[str, Any] = {
        "scenario": scenario.to_json(),
        "outcome": SUCCESS if done else OTHER_FAILURE,
        "makespan_s": seconds(simulation.now),
        "events": simulation.handled,
        "groups": watch.to_json(),
        "classification": None,
        "wait_for": None,
        "stages": None,
        "explanation": None,
    }
    if not done:
        analysis = group_waits(replica, [event for _, event in simulation.pending])
        data["classification"] = CORE_ERROR if failure else classify(analysis)
        data["wait_for"] = analysis.to_json()
        data["stages"] = describe_group_stage(replica)
        message = str(failure or "no event is left, but work is unfinished")
        when = f"at {simulation.now / 1e6:g} ms"
        data["explanation"] = explain(data["classification"], analysis, when, message)
    return data


def print_groups(scenario: GroupScenario, data: dict[str, Any]) -> None:
    """Print a run: one line a group, and the explanation if it drained."""
    colour = "green" if data["outcome"] == SUCCESS else "red"
    out.print(
        f"DECODE_FFN stage, ep_size {scenario.ep_size}, {scenario.admission}: "
        f"[bold {colour}]{data['outcome']}[/] at {data['makespan_s'] * 1e3:g} ms after "
        f"{data['events']} events"
    )
    table = Table(box=None, pad_edge=False)
    for column in ("group", "kind", "producer", "arrives ms", "starts ms", "ends ms"):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for row in data["groups"]:
        times = [row[name] for name in ("arrival_s", "start_s", "end_s")]
        table.add_row(
            str(row["group"]),
            row["kind"],
            str(row["producer"]),
            *["-" if time is None else f"{time * 1e3:g}" for time in times],
        )
    out.print(table)
    if data["stages"] is not None:
        out.print(stage_table(data["stages"]))
        print_cycle([edge["from"] for edge in data["wait_for"]["cycle"]])
        out.print(f"\n[bold]Why[/]  {data['explanation']}")
