"""``simulate WITNESS.json``: the timed run of a witness, up to where its violation is reached."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from frontier.durations import MILLISECOND
from frontier.events import CoreError
from models.counterexample import DRAINED, bad_states
from models.eventlog import RunRecorder, write_event_log
from models.explanation import explain
from models.quiescent import QuiescentRun
from models.scenario import NOTHING_STALE, Scenario
from models.subjects import AnyScenario, invariants_of, stages_of, waits_of
from models.witness import ROUNDS, Witness
from verify.cli.errors import UsageError, emit, write_result
from verify.cli.render import out, print_cycle, print_scenario, stage_table
from verify.cli.request_run import Outputs
from verify.words import counted

REPEATS = "repeats"
VIOLATED = "violated"


def simulate_witness(witness: Witness, outputs: Outputs) -> int:
    """Run the simulator on a witness, print or write what it did, and return the exit code."""
    scenario = witness.scenario
    if outputs.events is not None:
        require_loggable(scenario)
    replica, recorder = scenario.make_replica(), RunRecorder()
    timed = witness.timed
    simulation = timed.simulation(replica, (recorder,))
    run = QuiescentRun(replica)
    try:
        simulation.run(timed.until)
    except CoreError as error:
        run.failure = error
    run.pending = [event for event in simulation.created if not event.is_urgent]
    data = _result(witness, run, simulation.now, simulation.handled)
    if str(outputs.json) != "-":
        print_timed(scenario, data)
        if witness.period is not None:
            out.print(
                f"\nOne round of the cycle takes {witness.period} ms; {ROUNDS} rounds were run, "
                f"and the state after each is the same"
            )
    if outputs.events is not None and isinstance(scenario, Scenario):
        log = recorder.log(replace(scenario, ties=True))
        write_result(outputs.events, write_event_log(log, data["outcome"]))
    if outputs.json is not None:
        emit(outputs.json, json.dumps(data, indent=1))
    return 0 if data["outcome"] == "complete" else 1


def require_loggable(scenario: AnyScenario) -> None:
    """UsageError unless the runs of a scenario can be kept as event logs."""
    lanes = isinstance(scenario, Scenario) and not scenario.endless
    if not lanes or scenario.stale != NOTHING_STALE:
        raise UsageError(
            "an event log is of finite work of lanes without invalidations; leave out --events"
        )


def _result(witness: Witness, run: QuiescentRun, now: int, handled: int) -> dict[str, Any]:
    state, system = run.state(), run.system
    scenario = witness.scenario
    analysis = waits_of(system, run.pending)
    found = next(bad_states(run, state, invariants_of(scenario)), None)
    if witness.repeats:
        outcome, found = REPEATS, None
    elif run.failure is not None:
        outcome = "failed"
    elif found is not None:
        outcome = DRAINED if found[2].name == DRAINED else VIOLATED
    else:
        outcome = "running" if run.pending else "complete"
    data: dict[str, Any] = {
        "scenario": scenario.to_json(),
        "outcome": outcome,
        "makespan_s": now / MILLISECOND / 1e3,
        "events": handled,
        "classification": None if found is None else found[0],
        "wait_for": analysis.to_json(),
        "stages": stages_of(system),
        "explanation": None,
        "period_ms": witness.period,
    }
    if found is not None:
        when = f"at {now / MILLISECOND:g} ms"
        data["explanation"] = explain(found[0], analysis, when, found[2].message)
    return data


def print_timed(scenario: AnyScenario, data: dict[str, Any]) -> None:
    """Print how a timed run ended, the last state, and why."""
    print_scenario(scenario, timed=True)
    colour = "green" if data["outcome"] == "complete" else "red"
    word = "repeats for ever, looked at" if data["outcome"] == REPEATS else data["outcome"]
    out.print(
        f"[bold {colour}]{word}[/] at {data['makespan_s'] * 1e3:g} ms after "
        f"{counted(data['events'], 'event')}"
    )
    if data["stages"] is not None:
        out.print(stage_table(data["stages"]))
        print_cycle([edge["from"] for edge in data["wait_for"]["cycle"]])
    if data["explanation"] is not None:
        out.print(f"\n[bold]Why[/]  {data['explanation']}")
