"""Timed runs of serving systems, with their outcome and its explanation (issue 3)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frontier.des import Observer, Simulation
from frontier.durations import ConstantDurations, Durations, WithRequestTimes
from frontier.events import DECODE_FFN, CoreError
from frontier.ledger import (
    LaneOverlap,
    Occupancy,
    StageKey,
    StageLedger,
    StageRow,
    lane_overlap,
    seconds,
)
from frontier.metrics import ConservationCheck, RequestMetrics
from frontier.outcome import (
    OTHER_FAILURE,
    SUCCESS,
    AdmissionDeadlock,
    admission_deadlock,
    outcome_of,
)
from frontier.system import CO_LOCATION, ServingSpec, ServingSystem
from models.explanation import explain
from models.group_view import describe_group_stage, group_waits
from models.view import describe_stages
from models.waits import CORE_ERROR, classify, lane_waits
from verify.waitfor import WaitFor

LEDGER_NAME: Final = "frontier-verify"
LEDGER_VERSION: Final = 1


@dataclass(frozen=True)
class RoleState:
    """One role of a run that drained: who waits for whom, and the table of its stages."""

    role: str
    analysis: WaitFor
    stages: list[dict[str, Any]]
    deadlock: AdmissionDeadlock | None


@dataclass(frozen=True)
class Explanation:
    """Why a run drained or failed.

    ``states`` are the roles that still hold work; ``text`` explains the first that is stuck.
    """

    classification: str
    text: str
    states: tuple[RoleState, ...]

    @property
    def analysis(self) -> WaitFor:
        """Wait-for analysis of the role that the text explains."""
        return self.states[0].analysis


class ServingRun:
    """One timed run: the system, its observers, and how it ended.

    Parameters
    ----------
    spec
        The system and its requests.
    durations
        Execution times, without arrivals; the published constants unless given.
    sinks
        Called with each row of the stage ledger.
    observers
        Make further observers of every event, from the system.

    Raises
    ------
    ConfigurationError
        If the system cannot be.
    """

    def __init__(
        self,
        spec: ServingSpec,
        durations: Durations | None = None,
        sinks: Sequence[Callable[[StageRow], object]] = (),
        observers: Sequence[Callable[[ServingSystem], Observer]] = (),
    ) -> None:
        self.spec = spec
        self.serving = ServingSystem(spec)
        self.occupancy = Occupancy()
        self.ledger = StageLedger(self.serving, (self.occupancy, *sinks))
        self.metrics = RequestMetrics(self.serving)
        watching: list[Observer] = [ConservationCheck(self.serving), self.ledger, self.metrics]
        watching += [make(self.serving) for make in observers]
        times = durations or ConstantDurations(spec.moe, spec.layers)
        arrivals = [request.arrival_ns for request in spec.requests]
        self.simulation = Simulation(
            self.serving.system, WithRequestTimes(times, arrivals), watching
        )
        self.failure: CoreError | None = None

    def run(self) -> str:
        """Run to the end and return the outcome class."""
        try:
            self.simulation.run()
        except CoreError as error:
            self.failure = error
        return self.outcome

    @property
    def outcome(self) -> str:
        """Class of the run: success, admission deadlock or another failure."""
        return OTHER_FAILURE if self.failure else outcome_of(self.serving)

    def _key(self, key: StageKey) -> str:
        """Name of a stage in the result: its number, with the role before it where roles differ."""
        role, stage = key
        return str(stage) if self.spec.architecture == CO_LOCATION else f"{role}/{stage}"

    def _stage_keys(self) -> Iterator[StageKey]:
        return ((role, stage) for role in self.spec.roles for stage in range(self.spec.stages))

    def occupied(self, name: str) -> tuple[LaneOverlap, dict[int, int]]:
        """Overlap of a stage's lanes with what still holds it, and since when which lane does.

        The published ``lane_overlap`` counts what has ended; in a run that drained the rest
        occupies the stage as well, until the last event. Times in nanoseconds.
        """
        held = {
            lane: start
            for role, stage, lane, _, start in self.ledger.still_open
            if self._key((role, stage)) == name
        }
        ended = next(
            self.occupancy.intervals.get(key, [])
            for key in self._stage_keys()
            if self._key(key) == name
        )
        now = self.simulation.now
        return lane_overlap([*ended, *((start, now, lane) for lane, start in held.items())]), held

    def to_json(self) -> dict[str, Any]:
        """Return the fields that issue 3 names, as plain JSON values."""
        serving, explanation = self.serving, self.explain()
        first = self.ledger.first_starts
        stuck = explanation.states[0] if explanation else None
        return {
            "outcome": self.outcome,
            "architecture": self.spec.architecture,
            "admission": self.spec.admission.name,
            "requests": len(self.spec.requests),
            "requests_completed": serving.finished,
            "prefill_tokens": serving.prefill_tokens,
            "decode_tokens": serving.decode_tokens,
            "makespan_s": seconds(self.simulation.now),
            "events": self.simulation.handled,
            "request_end_s": self.metrics.request_end_s,
            "lane_overlap": {
                self._key(key): self.occupancy.overlap(key).to_json() for key in self._stage_keys()
            },
            "first_start_s": {
                self._key(key): {
                    str(lane): seconds(at) for lane, at in sorted(first.get(key, {}).items())
                }
                for key in self._stage_keys()
            },
            "classification": explanation and explanation.classification,
            "wait_for": explanation and explanation.analysis.to_json(),
            "role": stuck and stuck.role,
            "stages": stuck and stuck.stages,
            "explanation": explanation and explanation.text,
        }

    def ledger_header(self) -> dict[str, Any]:
        """First line of the ledger file; the placement is that of the first role."""
        placed = {
            role: {str(request): lane for request, lane in sorted(workload.placed.items())}
            for role, workload in self.serving.workloads.items()
        }
        header: dict[str, Any] = {
            "ledger": LEDGER_NAME,
            "version": LEDGER_VERSION,
            "outcome": self.outcome,
            "architecture": self.spec.architecture,
            "admission": self.spec.admission.name,
            "stand_in": self.spec.stand_in.name,
            "rooms": self.spec.rooms.name,
            "model": "moe" if self.spec.moe else "dense",
            "lanes": self.spec.lanes,
            "stages": self.spec.stages,
            "layers": self.spec.layers,
            "requests": len(self.spec.requests),
            "requests_completed": self.serving.finished,
            "placement": placed[self.spec.roles[0]],
        }
        return header if len(placed) == 1 else {**header, "placements": placed}

    def ledger_text(self, rows: Iterable[StageRow]) -> str:
        """Return the ledger file: header and rows as JSON lines."""
        lines = [self.ledger_header(), *[row.to_json() for row in rows]]
        return "".join(json.dumps(line) + "\n" for line in lines)

    def metrics_files(self) -> dict[str, str]:
        """Return the metrics of the run as files: name to content."""
        rows = self.metrics.rows()
        table = io.StringIO()
        writer = csv.DictWriter(table, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        system = {"outcome": self.outcome, **self.metrics.system()}
        return {
            "requests.csv": table.getvalue(),
            "requests.json": json.dumps(rows, indent=1) + "\n",
            "system.json": json.dumps(system, indent=1) + "\n",
        }

    def explain(self) -> Explanation | None:
        """Explain a run that did not succeed; None if it did."""
        if self.outcome == SUCCESS:
            return None
        pending = [event for _, event in self.simulation.pending]
        states = [
            RoleState(
                role,
                lane_waits(replica, [e for e in pending if self.serving.role_of(e) == role]),
                describe_stages(replica),
                admission_deadlock(replica),
            )
            for role, replica in self.serving.replicas.items()
            if not replica.is_complete
        ]
        states += [
            RoleState(
                DECODE_FFN,
                group_waits(stage, [e for e in pending if e.role == DECODE_FFN]),
                describe_group_stage(stage),
                None,
            )
            for stage in self.serving.ffn
            if not stage.is_complete
        ]
        # Later roles wait for what an earlier one never sends, so the first stuck one is the cause.
        states.sort(key=lambda state: not state.analysis.stuck)
        first = states[0].analysis
        classification = CORE_ERROR if self.failure else classify(first)
        message = str(self.failure or "no event is left, but work is unfinished")
        when = f"at {self.simulation.now / 1e6:g} ms"
        return Explanation(
            classification, explain(classification, first, when, message), tuple(states)
        )
