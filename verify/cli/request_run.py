"""A request-level run of ``simulate``: run it, show it, write what was asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frontier.durations import DurationError, Durations, Recording
from frontier.durations_io import write_recording
from frontier.ledger import StageRow
from frontier.outcome import SUCCESS
from frontier.system import ServingSpec
from models.serving import ServingRun
from verify.cli.errors import UsageError, emit, require_writable, write_result
from verify.cli.render import out, print_cycle, stage_table


@dataclass(frozen=True)
class Outputs:
    """Files of a run; None for what was not asked for."""

    json: Path | None = None
    ledger: Path | None = None
    metrics: Path | None = None
    record: Path | None = None

    @property
    def of_requests(self) -> bool:
        """Whether anything is asked for that only a request-level run has."""
        return any(path is not None for name, path in vars(self).items() if name != "json")

    def require_writable(self) -> None:
        """UsageError if a file cannot be written."""
        for path in (self.json, self.ledger, self.record):
            require_writable(path)
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
    rows: list[StageRow] = []
    sinks = [] if outputs.ledger is None else [rows.append]
    recording = Recording(durations)
    run = ServingRun(spec, durations if outputs.record is None else recording, sinks)
    try:
        run.run()
    except DurationError as error:
        raise UsageError(str(error)) from None
    data = run.to_json()
    if str(outputs.json) != "-":
        _print(spec, data)
    for path, text in _files(run, rows, recording, data, outputs):
        emit(path, text) if path == outputs.json else write_result(path, text)
    return 0 if data["outcome"] == SUCCESS else 1


def _files(
    run: ServingRun,
    rows: list[StageRow],
    recording: Recording,
    data: dict[str, Any],
    outputs: Outputs,
) -> Iterator[tuple[Path, str]]:
    if outputs.ledger is not None:
        yield outputs.ledger, run.ledger_text(rows)
    if outputs.record is not None:
        yield outputs.record, write_recording(recording.rows)
    if outputs.metrics is not None:
        outputs.metrics.mkdir(exist_ok=True)
        for name, text in run.metrics_files().items():
            yield outputs.metrics / name, text
    if outputs.json is not None:
        yield outputs.json, json.dumps(data, indent=1)


def _print(spec: ServingSpec, data: dict[str, Any]) -> None:
    out.print(
        f"{spec.architecture}: {spec.lanes} lanes x {spec.stages} stages, {spec.layers} "
        f"layer{'s' if spec.layers > 1 else ''} per stage, {'moe' if spec.moe else 'dense'}, "
        f"{spec.admission.name}, {spec.stand_in.name}, {spec.rooms.name} rooms"
    )
    colour = "green" if data["outcome"] == SUCCESS else "red"
    out.print(
        f"[bold {colour}]{data['outcome']}[/]: {data['requests_completed']} of {data['requests']} "
        f"requests, {data['prefill_tokens']} prompt and {data['decode_tokens']} generated tokens "
        f"in {data['makespan_s'] * 1e3:g} ms, {data['events']} events"
    )
    for key, overlap in data["lane_overlap"].items():
        starts = ", ".join(
            f"lane {lane} at {at * 1e3:g} ms" for lane, at in data["first_start_s"][key].items()
        )
        out.print(
            f"stage {key}: busy {overlap['busy_time_s'] * 1e3:g} ms, at least two lanes "
            f"{overlap['multi_lane_busy_time_s'] * 1e3:g} ms "
            f"({overlap['co_execution_fraction']:.4f}), at most {overlap['peak_lanes']} at once; "
            f"first starts: {starts or 'none'}"
        )
    if data["stages"] is not None:
        out.print(f"\nrole {data['role']}")
        out.print(stage_table(data["stages"]))
        print_cycle([edge["from"] for edge in data["wait_for"]["cycle"]])
        out.print(f"\n[bold]Why[/]  {data['explanation']}")
