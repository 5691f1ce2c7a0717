"""``frontier-verify simulate``: one timed run of a scenario through the discrete-event loop.

With batches only it runs the protocol's own work (PROTOCOL.md section 4); with requests it runs
a serving system with batch formation, and can write its ledger, metrics, trace and chart.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from frontier.des import Observer, Simulation
from frontier.durations import (
    MILLISECOND,
    ConstantDurations,
    DurationError,
    Durations,
    WithArrivals,
)
from frontier.events import CoreError
from frontier.outcome import SUCCESS
from models.eventlog import RunRecorder, write_event_log
from models.explanation import explain
from models.groups import GroupScenario
from models.scenario import CAPACITY_LANES, NOTHING_STALE, Scenario, ScenarioError
from models.view import describe_stages
from models.waits import CORE_ERROR, classify, lane_waits
from verify.cli import options as opt
from verify.cli import serving_options as serving
from verify.cli.errors import UsageError, emit, write_result
from verify.cli.group_run import print_groups, run_groups
from verify.cli.request_run import Outputs, simulate_requests
from verify.cli.sources import load_witness
from verify.cli.witness_run import print_timed, simulate_witness

_TIMES = "Times"
_GROUP_OPTIONS = ("groups", "ep_size", "admission", "durations", "seed", "wave_ms", "json_file")
Millis = Annotated[float, typer.Option(help="Milliseconds.", rich_help_panel=_TIMES)]


LONGEST_MS = 1e12
"""Longest time that is taken, about thirty years."""


def _nanoseconds(name: str, milliseconds: float, least: int = 1) -> int:
    if not 0 < milliseconds <= LONGEST_MS or round(milliseconds * MILLISECOND) < least:
        raise ScenarioError(
            f"{name} must be greater than 0 and at most {LONGEST_MS:g} ms, got {milliseconds:g}"
        )
    return round(milliseconds * MILLISECOND)


def parse_times(text: str, batches: tuple[int, ...]) -> list[list[int]]:
    """Read arrival times: milliseconds per batch separated by commas, lanes by semicolons.

    Raises
    ------
    ScenarioError
        If the times are no numbers, negative, or do not match the batches of the lanes.
    """
    lanes = [[word for word in lane.split(",") if word.strip()] for lane in text.split(";")]
    if [len(lane) for lane in lanes] != list(batches):
        raise ScenarioError(
            f"times must give one arrival per batch, lanes separated by ';': expected "
            f"{list(batches)} per lane, got {[len(lane) for lane in lanes]}"
        )
    try:
        given = [[float(word) for word in lane] for lane in lanes]
    except ValueError:
        raise ScenarioError(f"times must be milliseconds such as '0;2;8', got {text!r}") from None
    if not all(0 <= time <= LONGEST_MS for lane in given for time in lane):
        raise ScenarioError(f"times must be from 0 to {LONGEST_MS:g} ms, got {text!r}")
    return [[round(time * MILLISECOND) for time in lane] for lane in given]


def simulate(
    context: typer.Context,
    source: opt.Source = None,
    lanes: opt.Lanes = None,
    stages: opt.Stages = None,
    layers: opt.Layers = None,
    batches: opt.Batches = None,
    model: opt.ModelKind = None,
    admission: opt.Admission = None,
    stand_in: opt.StandIn = None,
    rooms: opt.Rooms = None,
    arrivals: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Batches: burst or open. Requests: burst, poisson:RATE (per second) or "
            "times:FILE.csv.",
            rich_help_panel="Work",
        ),
    ] = None,
    phases: opt.Phases = None,
    times: Annotated[
        str | None,
        typer.Option(
            metavar="a,b;c,d",
            help="Arrival of each batch in ms, lane by lane; implies --arrivals open.",
            rich_help_panel=_TIMES,
        ),
    ] = None,
    attention_ms: Millis = 8.0,
    wave_ms: Millis = 6.0,
    tail_ms: Millis = 8.0,
    architecture: serving.Architecture = None,
    requests: serving.Requests = None,
    prefill: serving.Prefill = None,
    decode: serving.Decode = None,
    placement: serving.Placement = None,
    seed: serving.Seed = 0,
    fault: serving.Fault = None,
    durations: serving.DurationsOption = None,
    token_budget: serving.TokenBudget = None,
    max_sequences: serving.MaxSequences = None,
    block_size: serving.BlockSize = None,
    num_blocks: serving.NumBlocks = None,
    chunked_prefill: serving.ChunkedPrefill = None,
    groups: serving.Groups = None,
    ep_size: serving.EpSize = None,
    dense_layers: serving.DenseLayers = None,
    micro_batches: serving.MicroBatches = None,
    ledger: serving.LedgerFile = None,
    trace: serving.TraceFile = None,
    plot: serving.PlotFile = None,
    metrics: serving.MetricsDir = None,
    record: serving.RecordFile = None,
    events: serving.EventsFile = None,
    json_file: opt.JsonFile = None,
) -> None:
    """Run one timing of a scenario and say how it ends, and why.

    Exit code: 0 complete, 1 drained or failed, 2 bad input.
    """
    outputs = Outputs(json_file, ledger, trace, plot, metrics, record, events)
    outputs.require_writable()
    if source is not None and Path(source).suffix == ".json":
        _require_only(
            context,
            "a timed witness has its own scenario and times, and",
            ("source", "json_file", "events"),
        )
        witness = load_witness(Path(source))
        raise typer.Exit(simulate_witness(witness, outputs))
    if groups is not None:
        _require_only(context, "a run of groups", _GROUP_OPTIONS)
        stage = GroupScenario.of(
            {
                "groups": groups,
                "ep_size": 2 if ep_size is None else ep_size,
                "admission": admission or "ep_ordered",
            }
        )
        constant = ConstantDurations(True, 1, wave=_nanoseconds("wave-ms", wave_ms, least=2))
        raise typer.Exit(
            _simulate_groups(stage, serving.parse_durations(durations, constant, seed), json_file)
        )
    asked = serving.ServingOptions(
        architecture,
        requests,
        prefill,
        decode,
        arrivals,
        placement,
        seed,
        fault,
        token_budget,
        max_sequences,
        block_size,
        num_blocks,
        chunked_prefill,
        ep_size,
        dense_layers,
        micro_batches,
    )
    by_request = asked.asked_for or outputs.of_requests
    given: dict[str, Any] = {
        "lanes": lanes,
        "stages": stages,
        "layers": layers,
        "batches": batches,
        "model": model,
        "admission": admission,
        "stand_in": stand_in,
        "rooms": rooms,
        "arrivals": "open" if times is not None and arrivals is None else arrivals,
        "phases": phases,
    }
    if by_request:
        for name, value in (("batches", batches), ("phases", phases), ("times", times)):
            if value is not None:
                raise UsageError(
                    f"--{name} describes batches, but the other options describe requests; "
                    "leave one of them out"
                )
        given["arrivals"] = None
        if source is None:
            given |= asked.default_shape(lanes, rooms)
    scenario = opt.scenario_from(source, given)
    if scenario.stale != NOTHING_STALE:
        raise UsageError("stale work comes from outside at any time; use check, not simulate")
    if scenario.workload == "closed":
        raise UsageError("a closed workload never ends, so simulate cannot run it; use check")
    if by_request and scenario.capacity != CAPACITY_LANES:
        raise UsageError("capacity is of batch scenarios; leave it out of a run of requests")
    constant = ConstantDurations(
        scenario.model == "moe",
        scenario.layers,
        _nanoseconds("attention-ms", attention_ms),
        _nanoseconds("wave-ms", wave_ms),
        _nanoseconds("tail-ms", tail_ms),
    )
    model_of_times = serving.parse_durations(durations, constant, seed)
    if by_request:
        raise typer.Exit(simulate_requests(asked.spec(scenario), model_of_times, outputs))
    _simulate_batches(scenario, model_of_times, times, outputs)


def _require_only(context: typer.Context, what: str, allowed: Collection[str]) -> None:
    """UsageError if an option was given that has no meaning here."""
    given = [
        name
        for name in context.params
        if name not in allowed
        and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{what} takes no such option; leave out {options}")


def _simulate_groups(stage: GroupScenario, durations: Durations, json_file: Path | None) -> int:
    if stage.stale != NOTHING_STALE:
        raise UsageError("stale work comes from outside at any time; use check, not simulate")
    data = run_groups(stage, durations)
    if str(json_file) != "-":
        print_groups(stage, data)
    if json_file is not None:
        emit(json_file, json.dumps(data, indent=1))
    return 0 if data["outcome"] == SUCCESS else 1


def _simulate_batches(
    scenario: Scenario, durations: Durations, times: str | None, outputs: Outputs
) -> None:
    if times is not None:
        if scenario.arrivals != "open":
            raise ScenarioError("times need open arrivals; leave out --arrivals or say open")
        durations = WithArrivals(durations, parse_times(times, scenario.batches))
    recorder = RunRecorder()
    data = run_timed(scenario, durations, (recorder,))
    if str(outputs.json) != "-":
        print_timed(scenario, data)
    if outputs.events is not None:
        log = recorder.log(replace(scenario, ties=True))
        write_result(outputs.events, write_event_log(log, data["outcome"]))
    if outputs.json is not None:
        emit(outputs.json, json.dumps(data, indent=1))
    raise typer.Exit(0 if data["outcome"] == "complete" else 1)


def run_timed(
    scenario: Scenario, durations: Durations, observers: Sequence[Observer] = ()
) -> dict[str, Any]:
    """Run a scenario to its end and return the outcome with its explanation, as JSON values."""
    replica = scenario.make_replica()
    simulation = Simulation(replica, durations, observers)
    failure: CoreError | None = None
    try:
        simulation.run()
    except CoreError as error:
        failure = error
    except DurationError as error:
        raise UsageError(str(error)) from None
    outcome = "failed" if failure else "complete" if replica.is_complete else "drained"
    data: dict[str, Any] = {
        "scenario": scenario.to_json(),
        "outcome": outcome,
        "makespan_s": simulation.now / 1e9,
        "events": simulation.handled,
        "classification": None,
        "wait_for": None,
        "stages": None,
        "explanation": None,
    }
    if outcome != "complete":
        analysis = lane_waits(replica, [event for _, event in simulation.pending])
        data["classification"] = CORE_ERROR if failure else classify(analysis)
        data["wait_for"] = analysis.to_json()
        data["stages"] = describe_stages(replica)
        message = str(failure or "no event is left, but work is unfinished")
        data["explanation"] = explain(
            data["classification"], analysis, f"at {simulation.now / 1e6:g} ms", message
        )
    return data
