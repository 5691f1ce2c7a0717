"""A request-level run of ``simulate``: run it, show it, write what was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from frontier.chrome import ChromeTrace
from frontier.des import Observer
from frontier.durations import DurationError, Durations, Recording
from frontier.durations_io import write_recording
from frontier.ledger import StageRow, seconds
from frontier.outcome import SUCCESS
from frontier.system import CO_LOCATION, PD_AF, ServingSpec, ServingSystem
from models.eventlog import EventLogError, RunRecorder, write_event_log
from models.scenario import Scenario
from models.serving import ServingRun
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.render import out, print_cycle, stage_table
from verify.lane_chart import SUFFIXES, Bar, draw, render
from verify.words import counted


@dataclass(frozen=True)
class Outputs:
    """Files of a run; None for what was not asked for."""

    json: Path | None = None
    ledger: Path | None = None
    trace: Path | None = None
    plot: Path | None = None
    metrics: Path | None = None
    record: Path | None = None
    events: Path | None = None

    @property
    def of_requests(self) -> bool:
        """Whether anything is asked for that only a request-level run has."""
        kinds = vars(self).items()
        return any(path is not None for name, path in kinds if name not in ("json", "events"))

    def require_writable(self) -> None:
        """UsageError if a file cannot be written."""
        for path in (self.json, self.ledger, self.trace, self.plot, self.record, self.events):
            require_writable(path)
        if self.plot is not None and self.plot.suffix not in SUFFIXES:
            raise UsageError(f"the chart must be a {' or '.join(SUFFIXES)} file, got {self.plot}")
        if self.metrics is not None:
            if self.metrics.exists() and not self.metrics.is_dir():
                raise UsageError(f"cannot write metrics to {self.metrics}: it is not a folder")
            if not self.metrics.parent.is_dir():
                raise UsageError(
                    f"cannot make the folder {self.metrics}: {self.metrics.parent} does not exist"
                )


def simulate_requests(spec: ServingSpec, durations: Durations, outputs: Outputs) -> int:
    """Run a serving system, print and write the results; return the exit code.

    Raises
    ------
    UsageError
        If the execution-time model has no time for an event, or a file cannot be written.
    """
    run = _Recorded(spec, durations, outputs)
    try:
        run.run.run()
    except DurationError as error:
        raise UsageError(str(error)) from None
    data = run.run.to_json()
    if outputs.metrics is not None:
        outputs.metrics.mkdir(exist_ok=True)
    for path, content in list(run.files()):
        write_result(path, content)
    if outputs.json is not None:
        emit(outputs.json, json.dumps(data, indent=1))
    if str(outputs.json) != "-":
        _print(spec, data, run.run)
    return 0 if data["outcome"] == SUCCESS else 1


class _Recorded:
    """A run with the observers that its outputs need."""

    def __init__(self, spec: ServingSpec, durations: Durations, outputs: Outputs) -> None:
        self.outputs = outputs
        self.rows: list[StageRow] = []
        self.times = Recording(durations)
        self.traces: list[ChromeTrace] = []
        several = spec.architecture != CO_LOCATION
        self.events = {role: RunRecorder(role if several else "") for role in spec.roles}
        watching: list[Callable[[ServingSystem], Observer]] = []
        if outputs.trace is not None:
            watching.append(self._make_trace)
        if outputs.events is not None:
            require_recordable(spec)
            watching += [lambda _s, own=own: own for own in self.events.values()]  # type: ignore[misc]
        sinks: list[Callable[[StageRow], object]] = []
        if outputs.ledger is not None or outputs.plot is not None:
            sinks.append(self.rows.append)
        if outputs.trace is not None:
            sinks.append(lambda row: self.traces[0].row(row))
        self.run = ServingRun(
            spec,
            durations if outputs.record is None else self.times,
            sinks,
            watching,
        )

    def _make_trace(self, serving: ServingSystem) -> ChromeTrace:
        self.traces.append(ChromeTrace(serving))
        return self.traces[0]

    def files(self) -> Iterator[tuple[Path, str | bytes]]:
        """Every file that was asked for, but for the result itself."""
        outputs, run = self.outputs, self.run
        if outputs.ledger is not None:
            yield outputs.ledger, run.ledger_text(self.rows)
        if outputs.trace is not None:
            yield outputs.trace, self.traces[0].text(run.simulation.now)
        if outputs.plot is not None:
            yield outputs.plot, render(chart_of(run, self.rows), outputs.plot)
        if outputs.record is not None:
            yield outputs.record, write_recording(self.times.rows)
        if outputs.events is not None:
            yield outputs.events, self._event_log()
        if outputs.metrics is not None:
            for name, text in run.metrics_files().items():
                yield outputs.metrics / name, text

    def _event_log(self) -> str:
        run, spec = self.run, self.run.spec
        explained = run.explain()
        classification = None if explained is None else explained.classification
        # Of several replicas the one that is stuck: what waits for it tells nothing more.
        role = spec.roles[0] if explained is None else explained.states[0].role
        placed = run.serving.workloads[role].placed
        try:
            log = self.events[role].protocol_log(_scenario_of(spec), placed, classification)
        except EventLogError as error:
            raise UsageError(f"cannot write the event log: {error}") from None
        return write_event_log(log, run.outcome)


def require_recordable(spec: ServingSpec) -> None:
    """UsageError unless every replica of a system is one of lanes, as the protocol's own."""
    if spec.architecture == PD_AF:
        raise UsageError(
            "--events records replicas of lanes; in pd-af a layer's FFN runs in another cluster, "
            "whose waits no log of one replica shows: check --groups explores that stage"
        )


def _scenario_of(spec: ServingSpec) -> Scenario:
    """Shape and rules of a serving system, without its work."""
    return Scenario(
        lanes=spec.lanes,
        stages=spec.stages,
        layers=spec.layers,
        batches=(0,) * spec.lanes,
        model="moe" if spec.moe else "dense",
        admission=spec.admission.name,
        stand_in=spec.stand_in.name,
        rooms=spec.rooms.name,
    )


def chart_of(run: ServingRun, rows: list[StageRow]) -> Figure:
    """Draw the lanes of a run over time: one track per role, stage and lane."""
    spec, serving = run.spec, run.serving
    several = len(spec.roles) > 1

    def track(role: str, stage: int, lane: int) -> str:
        return f"{role + ' ' if several else ''}stage {stage} lane {lane}"

    tracks = [
        track(role, stage, lane)
        for role in spec.roles
        for stage in range(spec.stages)
        for lane in range(serving.lanes_of(role))
    ]
    end = seconds(run.simulation.now)
    bars = [
        Bar(
            track(row.role, row.stage, row.lane),
            seconds(row.start),
            seconds(row.end),
            row.phase,
            ",".join(map(str, row.requests)),
        )
        for row in rows
    ]
    bars += [
        Bar(
            track(role, stage, lane),
            seconds(start),
            end,
            batch.phase,
            f"batch {batch.number}",
            finished=False,
        )
        for role, stage, lane, batch, start in run.ledger.still_open
    ]
    title = (
        f"{spec.architecture}, {'moe' if spec.moe else 'dense'}, {spec.admission.name}: "
        f"{run.outcome} after {end * 1e3:g} ms"
    )
    return draw(title, tracks, bars, end)


def _headline(data: dict[str, Any]) -> str:
    """Outcome in words: of a run that drained, that first, then the published class."""
    if data["classification"] is None:
        return str(data["outcome"])
    return f"drained ({data['classification']}), outcome {data['outcome']}"


def _stage_line(key: str, first: dict[str, float], run: ServingRun) -> str:
    """How the lanes of a stage overlap, what still holds it at the end counted up to then."""
    overlap, held = run.occupied(key)
    line = (
        f"stage {key}: busy {_ms(overlap.busy)}, at least two lanes {_ms(overlap.multi_lane_busy)} "
        f"({overlap.co_execution_fraction:.4f}), at most {overlap.peak_lanes} at once; "
        f"first starts: {_by_lane('at', first) or 'none'}"
    )
    since = _by_lane("since", {str(lane): seconds(start) for lane, start in held.items()})
    return f"{line}; unfinished at the end: {since}" if held else line


def _ms(nanoseconds: int) -> str:
    return f"{seconds(nanoseconds) * 1e3:g} ms"


def _by_lane(word: str, times: dict[str, float]) -> str:
    return ", ".join(f"lane {lane} {word} {at * 1e3:g} ms" for lane, at in times.items())


def _print(spec: ServingSpec, data: dict[str, Any], run: ServingRun) -> None:
    out.print(
        f"{spec.architecture}: {counted(spec.lanes, 'lane')} x {counted(spec.stages, 'stage')}, "
        f"{counted(spec.layers, 'layer')} per stage, {'moe' if spec.moe else 'dense'}, "
        f"{spec.admission.name}, {spec.stand_in.name}, {spec.rooms.name} rooms"
    )
    colour = "green" if data["outcome"] == SUCCESS else "red"
    out.print(
        f"[bold {colour}]{_headline(data)}[/]: {data['requests_completed']} of {data['requests']} "
        f"requests, {data['prefill_tokens']} prompt and {data['decode_tokens']} generated tokens "
        f"in {data['makespan_s'] * 1e3:g} ms, {data['events']} events"
    )
    for key in data["lane_overlap"]:
        out.print(_stage_line(key, data["first_start_s"][key], run))
    if data["stages"] is not None:
        out.print(f"\nrole {data['role']}")
        out.print(stage_table(data["stages"]))
        print_cycle([edge["from"] for edge in data["wait_for"]["cycle"]])
        out.print(f"\n[bold]Why[/]  {data['explanation']}")
        if spec.architecture != PD_AF:
            out.print(
                "\nHow it came to this, and a smallest such schedule: run it with --events "
                "FILE.jsonl, then frontier-verify explain FILE.jsonl, or shrink FILE.jsonl"
            )
