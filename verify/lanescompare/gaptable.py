"""The gap table of one burst: V1 to V5 and the negative controls N1 and N4 (issue 8).

The real run is compared with two simulated ones: *after* has the admission rule under test,
*before* the rule with the known defect. V rows compare the real run with *after*; N rows ask
whether *before* still shows its defect, and are never folded into V.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from verify.lanescompare.ledger import DEADLOCK, SUCCESS, Ledger
from verify.lanescompare.metrics import Pairing, RunMetrics
from verify.lanescompare.runs import Requests

CO_START_LIMIT = 0.5
"""V4 and N4: a first forward later than half a forward is not a common start."""

CO_EXECUTION_TOLERANCE = 0.10
"""V5: how far the simulated co-execution may lie from the mean of the real rounds."""

GATED_STAGE = 0
"""V3 to V5 judge this stage; the metrics of the others are reported only."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Row:
    """One row of the gap table: the same quantity in the real run, *after* and *before*.

    `status` is ``MATCH``, ``MISMATCH``, ``INFORMATIONAL`` (V rows), ``HOLDS`` or ``LOST`` (N rows);
    `note` explains a ``MISMATCH`` or ``LOST`` and is empty otherwise.
    """

    check: str
    burst: int
    round: str
    metric: str
    vllm: Json
    after: Json
    before: Json
    status: str
    note: str = ""


@dataclass(frozen=True)
class Side:
    """The simulated run of one side; cells are null when it did not end in success."""

    ledger: Ledger
    measured: RunMetrics

    @property
    def metrics(self) -> RunMetrics | None:
        """The metrics that may be compared."""
        return self.measured if self.ledger.outcome == SUCCESS else None

    @property
    def sequences(self) -> Json:
        """M2."""
        return sequences_json(self.metrics) if self.metrics else None

    @property
    def pairing(self) -> Json:
        """M3 of the gated stage."""
        return pairing_json(self.metrics.stages[GATED_STAGE].pairing) if self.metrics else None

    @property
    def co_start(self) -> float | None:
        """M4 of the gated stage."""
        return self.metrics.stages[GATED_STAGE].co_start if self.metrics else None

    @property
    def co_execution(self) -> float | None:
        """M5 of the gated stage."""
        return self.metrics.stages[GATED_STAGE].co_execution if self.metrics else None


def sequences_json(metrics: RunMetrics) -> Json:
    """M2 as published: ``lane<l>/stage<s>`` to the list of batches, each a list of indices."""
    return {
        f"lane{lane}/stage{stage}": [list(batch) for batch in batches]
        for (lane, stage), batches in metrics.sequences.items()
    }


def pairing_json(pairing: Pairing) -> Json:
    """M3 as published: per forward of lane 0, the batches that ran side by side, null for none."""
    return [[None if batch is None else list(batch) for batch in group] for group in pairing]


@dataclass(frozen=True)
class GapTable:
    """Builds the rows of one burst from the metrics of its real rounds and both sides.

    Parameters
    ----------
    size : int
        Requests in the burst.
    model : str
        ``moe`` (control N1, V5 gated) or ``dense`` (control N4, V5 informational).
    rounds : tuple of (int, RunMetrics)
        The real rounds by number.
    after, before : Side
        The simulated runs.
    """

    size: int
    model: str
    rounds: tuple[tuple[int, RunMetrics], ...]
    after: Side
    before: Side

    def rows(self) -> Iterator[Row]:
        """Yield the control, V1 to V4 of every round, and V5 over the rounds."""
        yield self._deadlock_control() if self.model == "moe" else self._co_start_control()
        for number, real in self.rounds:
            yield self._completion(str(number), real)
            yield self._sequences(str(number), real)
            yield self._pairing(str(number), real)
            yield self._co_start(str(number), real)
        yield self._co_execution()

    def _deadlock_control(self) -> Row:
        before = self.before.ledger
        held = before.outcome == DEADLOCK and before.run.completed < before.run.requests
        return Row(
            "N1",
            self.size,
            "base",
            "base outcome",
            vllm=None,
            after=self.after.ledger.outcome,
            before=before.outcome,
            status="HOLDS" if held else "LOST",
            note="" if held else "the base was to deadlock; without its defect V proves less",
        )

    def _co_start_control(self) -> Row:
        found = self.before.co_start
        held = found is not None and found >= CO_START_LIMIT
        lost = f"the base was to start its lanes {CO_START_LIMIT} forwards apart or more"
        return Row(
            "N4",
            self.size,
            "base",
            "M4 stage-0 co-start",
            vllm=None,
            after=self.after.co_start,
            before=found,
            status="HOLDS" if held else "LOST",
            note="" if held else lost,
        )

    def _completion(self, number: str, real: RunMetrics) -> Row:
        simulated = self.after.ledger
        fault = ""
        if real.completed < real.requests:
            fault = f"the real run completed {real.completed} of {real.requests}"
        elif not simulated.succeeded:
            run = simulated.run
            fault = f"the simulated run completed {run.completed} of {run.requests}"
        return Row(
            "V1",
            self.size,
            number,
            "M1 completion",
            vllm=f"{real.completed}/{real.requests}",
            after=simulated.outcome,
            before=self.before.ledger.outcome,
            status=_verdict(fault),
            note=fault,
        )

    def _sequences(self, number: str, real: RunMetrics) -> Row:
        fault = _difference_of_sequences(real, self.after.metrics)
        return Row(
            "V2",
            self.size,
            number,
            "M2 lane sequences",
            vllm=sequences_json(real),
            after=self.after.sequences,
            before=self.before.sequences,
            status=_verdict(fault),
            note=fault,
        )

    def _pairing(self, number: str, real: RunMetrics) -> Row:
        ours, simulated = real.stages[GATED_STAGE].pairing, self.after.metrics
        fault = (
            first_difference(f"stage {GATED_STAGE}", ours, simulated.stages[GATED_STAGE].pairing)
            if simulated
            else NO_SUCCESS
        )
        return Row(
            "V3",
            self.size,
            number,
            "M3 stage-0 pairing",
            vllm=pairing_json(ours),
            after=self.after.pairing,
            before=self.before.pairing,
            status=_verdict(fault),
            note=fault,
        )

    def _co_start(self, number: str, real: RunMetrics) -> Row:
        found = real.stages[GATED_STAGE].co_start
        fault = _late("real", found) or _late("simulated", self.after.co_start)
        return Row(
            "V4",
            self.size,
            number,
            "M4 stage-0 co-start",
            vllm=found,
            after=self.after.co_start,
            before=self.before.co_start,
            status=_verdict(fault),
            note=fault,
        )

    def _co_execution(self) -> Row:
        found = [real.stages[GATED_STAGE].co_execution for _, real in self.rounds]
        known = [value for value in found if value is not None]
        mean = fmean(known) if len(known) == len(found) else None
        gated = self.model == "moe"
        fault = _apart(mean, self.after.co_execution) if gated else ""
        return Row(
            "V5",
            self.size,
            "mean",
            "M5 stage-0 co-execution",
            vllm=mean,
            after=self.after.co_execution,
            before=self.before.co_execution,
            status=_verdict(fault) if gated else "INFORMATIONAL",
            note=fault,
        )


NO_SUCCESS = "the simulated run did not end in success"


def _verdict(fault: str) -> str:
    return "MISMATCH" if fault else "MATCH"


def _late(who: str, co_start: float | None) -> str:
    if co_start is None:
        return f"no common start: a lane of the {who} run has no forward, or the run failed"
    if co_start >= CO_START_LIMIT:
        return f"the {who} lanes start {co_start:.3f} forwards apart, limit {CO_START_LIMIT}"
    return ""


def _apart(real: float | None, simulated: float | None) -> str:
    if real is None or simulated is None:
        return "a run has no co-execution to compare"
    gap = abs(real - simulated)
    if gap > CO_EXECUTION_TOLERANCE:
        return f"real and simulated differ by {gap:.3f}, limit {CO_EXECUTION_TOLERANCE}"
    return ""


def _difference_of_sequences(real: RunMetrics, simulated: RunMetrics | None) -> str:
    if simulated is None:
        return NO_SUCCESS
    for (lane, stage), batches in real.sequences.items():
        fault = first_difference(
            f"lane {lane} stage {stage}", batches, simulated.sequences[lane, stage]
        )
        if fault:
            return fault
    return ""


def first_difference(
    where: str,
    real: Sequence[Requests] | Pairing,
    simulated: Sequence[Requests] | Pairing,
) -> str:
    """Say where two sequences of batches or pairings first differ; empty when they are equal."""
    for step, (one, other) in enumerate(zip(real, simulated, strict=False)):
        if one != other:
            return f"{where}, forward {step}: real {_show(one)}, simulated {_show(other)}"
    if len(real) != len(simulated):
        return f"{where}: {len(real)} real forwards, {len(simulated)} simulated"
    return ""


def _show(item: tuple[object, ...] | None) -> str:
    """Show a batch as ``[0, 2]``, a pairing as ``[0] beside [1]``, no batch as ``nothing``."""
    parts = [_show(part) if isinstance(part, tuple) else part for part in item or ()]
    if any(isinstance(part, str) or part is None for part in parts):
        return " beside ".join("nothing" if part is None else str(part) for part in parts)
    return f"[{', '.join(map(str, parts))}]" if parts else "nothing"
