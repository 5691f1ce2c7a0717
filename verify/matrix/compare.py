"""Judges a matrix against another one, case by case (data of the published matrix).

A case's *path* says what a change may do: ``unchanged`` nothing, ``liveness`` end a deadlock and
conserve requests and tokens, ``timing`` move start times and nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from verify.matrix.root import CaseRecord, MatrixRoot

PASS: Final = "PASS"
EXPLAIN: Final = "EXPLAIN"
STOP: Final = "STOP"

SUCCESS: Final = "success"
DEADLOCK: Final = "admission_deadlock"

_EPSILON: Final = 1e-9


@dataclass(frozen=True)
class Judgement:
    """Verdict on one case.

    ``reasons`` say what stopped it, or what moved; ``overlap`` is the co-execution fraction before
    and after of each stage that both runs have, ``metrics`` the whole lane-overlap metric of each.
    """

    case_id: str
    group: str
    path: str
    verdict: str
    before: str | None
    after: str | None
    reasons: tuple[str, ...] = ()
    overlap: dict[str, tuple[float, float]] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as plain JSON values."""
        return {
            "case_id": self.case_id,
            "group": self.group,
            "path": self.path,
            "verdict": self.verdict,
            "before": self.before,
            "after": self.after,
            "reasons": list(self.reasons),
            "co_execution_fraction": {
                stage: {"before": before, "after": after}
                for stage, (before, after) in self.overlap.items()
            },
            "lane_overlap": self.metrics,
        }


def compare(before: MatrixRoot, after: MatrixRoot) -> list[Judgement]:
    """Judge every case that either matrix has, in order of name.

    Raises
    ------
    MatrixError
        If a folder holds no matrix, or a case cannot be read.
    """
    first, second = set(before.case_ids()), set(after.case_ids())
    before.header()
    after.header()
    judgements = []
    for case_id in sorted(first | second):
        if case_id not in first or case_id not in second:
            record = (before if case_id in first else after).read_case(case_id)
            where = "after" if case_id in first else "before"
            judgements.append(_lonely(record, where))
        else:
            judgements.append(judge(before.read_case(case_id), after.read_case(case_id)))
    return judgements


def _lonely(record: CaseRecord, missing: str) -> Judgement:
    outcome = record.outcome.get("outcome")
    return Judgement(
        record.case_id,
        str(record.inputs.get("group")),
        str(record.inputs.get("path")),
        STOP,
        None if missing == "before" else outcome,
        None if missing == "after" else outcome,
        (f"the case is missing in the matrix {missing} the change",),
    )


def judge(before: CaseRecord, after: CaseRecord) -> Judgement:
    """Judge one case by its path."""
    path = str(after.inputs.get("path"))
    faults = [f"before: {text}" for text in before.damage]
    faults += [f"after: {text}" for text in after.damage]
    if before.inputs != after.inputs:
        faults.append("the inputs differ")
    verdict = PASS
    reasons: list[str] = []
    if not faults:
        rule = {"unchanged": _unchanged, "liveness": _liveness, "timing": _timing}.get(path)
        if rule is None:
            faults = [f"unknown path {path!r}"]
        else:
            faults, reasons = rule(before, after)
            verdict = EXPLAIN if reasons else PASS
    return Judgement(
        after.case_id,
        str(after.inputs.get("group")),
        path,
        STOP if faults else verdict,
        before.outcome.get("outcome"),
        after.outcome.get("outcome"),
        tuple(faults or reasons),
        _overlaps(before, after),
        {
            "before": before.outcome.get("lane_overlap"),
            "after": after.outcome.get("lane_overlap"),
        },
    )


Found = tuple[list[str], list[str]]
"""What stops a case, and what there is to explain."""


def _unchanged(before: CaseRecord, after: CaseRecord) -> Found:
    faults = _expect(before, "before", SUCCESS) + _expect(after, "after", SUCCESS)
    faults += [f"{name} differs" for name in _different_files(before, after)]
    return faults or _totals(after), []


def _liveness(before: CaseRecord, after: CaseRecord) -> Found:
    faults = _expect(before, "before", DEADLOCK) + _expect(after, "after", SUCCESS)
    return faults or [*_totals(after), *_sane_lanes(after)], []


def _timing(before: CaseRecord, after: CaseRecord) -> Found:
    faults = _expect(before, "before", SUCCESS) + _expect(after, "after", SUCCESS)
    faults = faults or _totals(after)
    witness = bool(after.inputs.get("contention_witness"))
    if faults:
        return faults, []
    if not _different_files(before, after):
        return (["a contention witness must change, but nothing moved"] if witness else []), []
    faults = [*_batches_differ(before, after), *_components_differ(before, after)]
    faults += _sane_lanes(after)
    if witness:
        faults += _no_more_contention(before, after)
    return faults, [] if faults else list(_moved(before, after))


def _expect(record: CaseRecord, when: str, outcome: str) -> list[str]:
    found = record.outcome.get("outcome")
    if found == outcome:
        return []
    error = record.outcome.get("error")
    detail = f" ({error['kind']}: {error['message']})" if error else ""
    return [f"{when} the change it must end with {outcome}, but ended with {found}{detail}"]


def _different_files(before: CaseRecord, after: CaseRecord) -> list[str]:
    names = sorted(set(before.metrics) | set(after.metrics))
    return [name for name in names if before.metrics.get(name) != after.metrics.get(name)]


def _totals(record: CaseRecord) -> list[str]:
    """Compare requests and tokens with those that the case put in."""
    inputs, found = record.inputs, record.outcome
    requests = inputs["requests"]
    expected = {
        "requests_completed": requests,
        "prefill_tokens": requests * inputs["prefill_tokens"],
        "decode_tokens": requests * inputs["decode_tokens"],
    }
    faults = [
        f"{name}: {found.get(name)} instead of {value}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    ends = [row.get("end_s") for row in json.loads(record.metrics.get("requests.json", "[]"))]
    ended = sum(end is not None for end in ends)
    if ended != requests:
        faults.append(f"requests.json: {ended} of {requests} requests have an end")
    return faults


def _rows(record: CaseRecord) -> Iterator[dict[str, Any]]:
    for line in record.metrics.get("stages.jsonl", "").splitlines():
        yield json.loads(line)


def _batch(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("role", "replica", "stage", "lane", "batch", "phase", "layer")
    tokens = (row["prefill_tokens"], row["decode_tokens"])
    return (*(row.get(name) for name in names), tuple(row["requests"]), *tokens)


def _batches_differ(before: CaseRecord, after: CaseRecord) -> list[str]:
    first = Counter(_batch(row) for row in _rows(before))
    second = Counter(_batch(row) for row in _rows(after))
    if first == second:
        return []
    lost, new = sum((first - second).values()), sum((second - first).values())
    return [f"the batches differ: {lost} of before are gone, {new} are new"]


def _components(record: CaseRecord) -> Counter[str]:
    """Multiset of component durations with all that identifies them; arrivals are no component."""
    lines = record.metrics.get("components.jsonl", "").splitlines()
    return Counter(line for line in lines if json.loads(line)["kind"] != "request")


def _components_differ(before: CaseRecord, after: CaseRecord) -> list[str]:
    first, second = _components(before), _components(after)
    if first == second:
        return []
    example = next(iter(first - second or second - first))
    return [f"component durations differ, such as {example}"]


def _sane_lanes(record: CaseRecord) -> list[str]:
    lanes = record.inputs["attn_dp"]
    faults = []
    for stage, overlap in record.outcome["lane_overlap"].items():
        if overlap["self_overlap"]:
            faults.append(f"stage {stage}: a lane runs two batches at once")
        # DECODE_FFN is the one role whose schedulers are not attention lanes.
        if overlap["peak_lanes"] > lanes and not stage.startswith("DECODE_FFN"):
            faults.append(f"stage {stage}: {overlap['peak_lanes']} lanes at once, of {lanes}")
    return faults


def _overlaps(before: CaseRecord, after: CaseRecord) -> dict[str, tuple[float, float]]:
    first, second = before.outcome.get("lane_overlap", {}), after.outcome.get("lane_overlap", {})
    return {
        stage: (first[stage]["co_execution_fraction"], second[stage]["co_execution_fraction"])
        for stage in first
        if stage in second
    }


def _no_more_contention(before: CaseRecord, after: CaseRecord) -> list[str]:
    overlaps = _overlaps(before, after)
    smaller = [s for s, (first, second) in overlaps.items() if second < first - _EPSILON]
    if smaller or not any(second > first + _EPSILON for first, second in overlaps.values()):
        return [f"a contention witness must co-execute more than before, got {overlaps}"]
    return []


def _moved(before: CaseRecord, after: CaseRecord) -> Iterable[str]:
    """Say how many starts moved, and what became of the makespan."""
    first = {_batch(row): row["start_s"] for row in _rows(before)}
    second = {_batch(row): row["start_s"] for row in _rows(after)}
    moved = sum(first[key] != second[key] for key in first)
    ends = (before.outcome["makespan_s"], after.outcome["makespan_s"])
    yield (
        f"{moved} of {len(first)} batch starts moved, batches and component durations are equal; "
        f"makespan {ends[0] * 1e3:g} ms before, {ends[1] * 1e3:g} ms after"
    )
