"""Puts one model's real trace beside the ledgers of its simulated runs (issue 8)."""

from collections.abc import Sequence
from dataclasses import dataclass

from verify.lanescompare.decomposition import Decomposition, decompose
from verify.lanescompare.fields import LaneDataError
from verify.lanescompare.gaptable import GapTable, Row, Side
from verify.lanescompare.ledger import MODELS, Ledger
from verify.lanescompare.metrics import RunMetrics, measure
from verify.lanescompare.placement import Placement, check_placement
from verify.lanescompare.runs import LaneRun
from verify.lanescompare.trace import Round, Trace


@dataclass(frozen=True)
class RealRound:
    """One real round with everything computed from it.

    `decompositions` holds, per stage, one decomposition for lane 0 and each other lane.
    """

    round: Round
    metrics: RunMetrics
    decompositions: tuple[tuple[Decomposition, ...], ...]
    placement: Placement


@dataclass(frozen=True)
class BurstComparison:
    """Everything about one burst size."""

    size: int
    rounds: tuple[RealRound, ...]
    after: Side
    before: Side
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Comparison:
    """The outcome of comparing one model's trace with its ledgers."""

    trace: Trace
    model: str
    bursts: tuple[BurstComparison, ...]
    not_compared: tuple[int, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, by burst."""
        return tuple(row for burst in self.bursts for row in burst.rows)

    @property
    def status(self) -> str:
        """``PASS`` when no V row is a mismatch and every request is placed correctly.

        Else ``MISMATCH``. The negative controls are not part of it.
        """
        matched = all(row.status != "MISMATCH" for row in self.rows)
        placed = all(item.placement.holds for burst in self.bursts for item in burst.rounds)
        return "PASS" if matched and placed else "MISMATCH"

    @property
    def negative_control_holds(self) -> bool:
        """Whether every *before* run shows the defect it is there for."""
        return all(row.status != "LOST" for row in self.rows)


def compare(trace: Trace, before: Sequence[Ledger], after: Sequence[Ledger]) -> Comparison:
    """Compare `trace` with one ledger of each side per burst size.

    The ledgers choose what is compared: burst sizes of the trace without ledgers are listed as
    not compared.

    Raises
    ------
    LaneDataError
        The ledgers are of another shape or model, two are of one burst, or one lacks its
        counterpart on the other side or in the trace.
    """
    model = _common_model(trace, [*before, *after])
    befores, afters = _by_size(trace, before, "before"), _by_size(trace, after, "after")
    _check_counterparts(befores, afters, "before", "after")
    _check_counterparts(afters, befores, "after", "before")
    return Comparison(
        trace=trace,
        model=model,
        bursts=tuple(
            _compare_burst(trace.of_size(size), befores[size], afters[size])
            for size in sorted(afters)
        ),
        not_compared=tuple(size for size in trace.sizes if size not in afters),
    )


def _common_model(trace: Trace, ledgers: Sequence[Ledger]) -> str:
    if trace.lanes < 2:
        raise LaneDataError(
            "the run has one lane", where=str(trace.path), remedy="expected at least two"
        )
    model = ledgers[0].model
    for ledger in ledgers:
        if ledger.model != model:
            raise LaneDataError(
                f"a ledger of the {ledger.model} model",
                where=str(ledger.path),
                remedy=f"{ledgers[0].path} is of {model}; compare one model at a time",
            )
        if (ledger.run.lanes, ledger.run.stages) != (trace.lanes, trace.stages):
            raise LaneDataError(
                f"{ledger.run.lanes} lanes and {ledger.run.stages} stages",
                where=str(ledger.path),
                remedy=f"the trace {trace.path} has {trace.lanes} and {trace.stages}",
            )
    named = trace.path.resolve().name
    if named in MODELS and named != model:
        raise LaneDataError(
            f"a trace of the {named} model",
            where=str(trace.path),
            remedy=f"the ledgers are of {model}; compare one model at a time",
        )
    return model


def _by_size(trace: Trace, ledgers: Sequence[Ledger], side: str) -> dict[int, Ledger]:
    found: dict[int, Ledger] = {}
    for ledger in ledgers:
        size = ledger.run.requests
        if size not in trace.sizes:
            raise LaneDataError(
                f"a ledger of {size} requests",
                where=str(ledger.path),
                remedy=f"the trace has bursts of {', '.join(map(str, trace.sizes))}",
            )
        if size in found:
            raise LaneDataError(
                f"a second --{side} ledger of {size} requests",
                where=str(ledger.path),
                remedy=f"the first is {found[size].path}; give one per burst",
            )
        found[size] = ledger
    return found


def _check_counterparts(
    ledgers: dict[int, Ledger], others: dict[int, Ledger], side: str, other: str
) -> None:
    for size, ledger in ledgers.items():
        if size not in others:
            raise LaneDataError(
                f"a --{side} ledger of {size} requests without a --{other} ledger",
                where=str(ledger.path),
                remedy=f"give --{other} the ledger of the same burst",
            )


def _compare_burst(rounds: Sequence[Round], before: Ledger, after: Ledger) -> BurstComparison:
    real = tuple(_real_round(item, after.run) for item in rounds)
    sides = Side(after, measure(after.run)), Side(before, measure(before.run))
    table = GapTable(
        size=after.run.requests,
        model=after.model,
        rounds=tuple((r.round.number, r.metrics) for r in real),
        after=sides[0],
        before=sides[1],
    )
    return BurstComparison(table.size, real, *sides, rows=tuple(table.rows()))


def _real_round(item: Round, simulated: LaneRun) -> RealRound:
    run = item.run
    return RealRound(
        round=item,
        metrics=measure(run),
        decompositions=tuple(
            tuple(decompose(run.of(stage, 0), run.of(stage, k)) for k in range(1, run.lanes))
            for stage in range(run.stages)
        ),
        placement=check_placement(item, simulated),
    )
