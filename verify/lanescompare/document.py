"""A comparison as JSON and CSV, in the field names of the published files (issue 8)."""

import csv
import io
import json
from collections.abc import Mapping

from verify.lanescompare.compare import BurstComparison, Comparison, RealRound
from verify.lanescompare.decomposition import Decomposition
from verify.lanescompare.gaptable import (
    GATED_STAGE,
    Json,
    Row,
    Side,
    pairing_json,
    sequences_json,
)
from verify.lanescompare.metrics import RunMetrics

AFTER_COLUMN = "ep_ordered"
BEFORE_COLUMN = "strict_fifo"
"""The published names of the *after* and *before* columns; `ledgers` says which rules ran."""


def row_json(row: Row, model: str) -> dict[str, Json]:
    """Return one row under the published keys."""
    return {
        "check": row.check,
        "model": model,
        "burst": row.burst,
        "round": row.round,
        "metric": row.metric,
        "vllm": row.vllm,
        AFTER_COLUMN: row.after,
        BEFORE_COLUMN: row.before,
        "status": row.status,
    }


def document(comparison: Comparison) -> dict[str, Json]:
    """Return the whole comparison; times in seconds unless a key says ``ms``."""
    return {
        "status": comparison.status,
        "negative_control_holds": comparison.negative_control_holds,
        "model": comparison.model,
        "bursts": [burst.size for burst in comparison.bursts],
        "bursts_not_compared": list(comparison.not_compared),
        "dummy_forwards": comparison.trace.dummies,
        "counts": dict(status_counts(comparison)),
        "rows": [row_json(row, comparison.model) for row in comparison.rows],
        "findings": [
            {"check": row.check, "burst": row.burst, "round": row.round, "finding": row.note}
            for row in comparison.rows
            if row.note
        ],
        "placement": [
            _placement(burst, item) for burst in comparison.bursts for item in burst.rounds
        ],
        "metrics": {
            f"{comparison.model}-n{burst.size}": {
                f"round {item.round.number}": metrics_json(item.metrics) for item in burst.rounds
            }
            for burst in comparison.bursts
        },
        "simulated_metrics": {
            f"{comparison.model}-n{burst.size}": {
                AFTER_COLUMN: _side_metrics(burst.after),
                BEFORE_COLUMN: _side_metrics(burst.before),
            }
            for burst in comparison.bursts
        },
        "decomposition": _decompositions(comparison),
        "ledgers": [
            {
                "column": column,
                "admission": side.ledger.admission,
                "outcome": side.ledger.outcome,
                "requests": side.ledger.run.requests,
                "requests_completed": side.ledger.run.completed,
            }
            for burst in comparison.bursts
            for column, side in ((AFTER_COLUMN, burst.after), (BEFORE_COLUMN, burst.before))
        ],
    }


def status_counts(comparison: Comparison) -> dict[str, int]:
    """Return how many rows have each status, every status named."""
    counts = dict.fromkeys(("MATCH", "MISMATCH", "INFORMATIONAL", "HOLDS", "LOST"), 0)
    for row in comparison.rows:
        counts[row.status] += 1
    return counts


def metrics_json(metrics: RunMetrics) -> dict[str, Json]:
    """Return M1 to M5 under the published keys (M1, which they lack, is added)."""
    stages: dict[str, Json] = {
        f"stage{number}": {
            "M3_pairing": pairing_json(stage.pairing),
            "M4_co_start": stage.co_start,
            "M5_co_execution": stage.co_execution,
            "median_forward_duration": stage.median_duration,
            "self_overlap": stage.self_overlap,
        }
        for number, stage in enumerate(metrics.stages)
    }
    return {
        "M1_completion": f"{metrics.completed}/{metrics.requests}",
        "M2_sequences": sequences_json(metrics),
        **stages,
    }


def decomposition_json(found: Decomposition) -> dict[str, Json]:
    """Return a decomposition: published keys at their printed digits, then what they lack."""
    return {
        "pairs": found.pairs,
        "M5_observed": _rounded(found.observed, 4),
        "M5_equal_durations": _rounded(found.equal_durations, 4),
        "non_overlap_ms_from_start_offsets": _rounded(found.from_starts * 1e3, 3),
        "non_overlap_ms_from_end_offsets": _rounded(found.from_ends * 1e3, 3),
        "stage0_duration_ms_median": _rounded(_ms(found.median_duration), 3),
        "stage0_duration_ms_cv": _rounded(found.duration_spread, 3),
        "M5_later_starts": _rounded(found.later_starts, 4),
        "disjoint_pairs": found.disjoint_pairs,
        "unpaired_forwards": found.unpaired_forwards,
        "non_overlap_ms_from_disjoint_pairs": _rounded(found.from_disjoint * 1e3, 3),
        "non_overlap_ms_from_unpaired_forwards": _rounded(found.from_unpaired * 1e3, 3),
        "ms_covered_by_other_forwards": _rounded(found.covered * 1e3, 3),
    }


def _side_metrics(side: Side) -> Json:
    return metrics_json(side.metrics) if side.metrics else None


def _decompositions(comparison: Comparison) -> dict[str, Json]:
    """Key ``<model>/n<size>/r<round>``; with more than two lanes ``/lanes0-<k>`` is added."""
    found: dict[str, Json] = {}
    for burst in comparison.bursts:
        for item in burst.rounds:
            key = f"{comparison.model}/n{burst.size}/r{item.round.number}"
            pairs = item.decompositions[GATED_STAGE]
            for other, pair in enumerate(pairs, start=1):
                suffix = f"/lanes0-{other}" if len(pairs) > 1 else ""
                found[key + suffix] = decomposition_json(pair)
    return found


def _placement(burst: BurstComparison, item: RealRound) -> dict[str, Json]:
    placement = item.placement
    return {
        "burst": burst.size,
        "round": item.round.number,
        "requests": item.round.size,
        "placed_correctly": len(placement.correct),
        "wrong": _by_name(placement.wrong),
        "unseen": _by_name(placement.unseen),
        "unrecorded": _by_name(placement.unrecorded),
        "status": "MATCH" if placement.holds else "MISMATCH",
    }


def _by_name(faults: Mapping[int, str]) -> dict[str, Json]:
    return {str(request): fault for request, fault in faults.items()}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3


def _rounded(value: float | None, digits: int) -> float | None:
    """Round, with no negative zero."""
    return None if value is None else round(value, digits) + 0.0


def to_json(comparison: Comparison) -> str:
    """Return the document as text, ending in a newline."""
    return json.dumps(document(comparison), indent=1) + "\n"


def to_csv(comparison: Comparison) -> str:
    """Return the gap table as CSV; M2, M3 and null cells are JSON."""
    rows = [{**row_json(row, comparison.model), "finding": row.note} for row in comparison.rows]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    return out.getvalue()
