"""Hand-made stage ledgers and copies of the recorded traces with one fault planted."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRACES = Path(__file__).parents[2] / "data" / "vllm_traces"
DURATION = {"moe": 0.064, "dense": 0.12}

Row = dict[str, Any]


def ledger_rows(
    model: str, requests: int, admission: str, *, delay: dict[int, int] | None = None
) -> list[Row]:
    """One request a batch, constant durations; `delay` holds lanes back by whole forwards."""
    length = DURATION[model]
    rows = []
    for request in range(requests):
        lane, batch = request % 2, request // 2
        for stage in range(2):
            begin = (batch + stage + (delay or {}).get(lane, 0)) * length
            rows.append(
                {
                    "role": "MONOLITHIC",
                    "replica": 0,
                    "stage": stage,
                    "lane": lane,
                    "batch": batch,
                    "phase": "prefill",
                    "start_s": round(begin, 9),
                    "end_s": round(begin + length, 9),
                    "requests": [request],
                    "prefill_tokens": 256,
                    "decode_tokens": 0,
                }
            )
    return [header(model, requests, admission), *rows]


def header(model: str, requests: int, admission: str, outcome: str = "success") -> Row:
    return {
        "ledger": "frontier-verify",
        "version": 1,
        "outcome": outcome,
        "admission": admission,
        "model": model,
        "lanes": 2,
        "stages": 2,
        "requests": requests,
        "requests_completed": requests if outcome == "success" else 0,
        "placement": {str(r): r % 2 for r in range(requests)},
    }


def base_rows(model: str, requests: int) -> list[Row]:
    """Return the base with its known defect: moe drains at once, dense takes turns."""
    if model == "moe":
        return [header(model, requests, "strict_fifo", "admission_deadlock")]
    return ledger_rows(model, requests, "strict_fifo", delay={0: 1})


def write_jsonl(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read_jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def planted(
    tmp_path: Path, model: str, file: str, change: Callable[[list[Row]], list[Row]]
) -> Path:
    """Copy the recorded trace of `model` and change the rows of one of its JSON-lines files."""
    copy = tmp_path / "planted"
    shutil.copytree(TRACES / model, copy)
    write_jsonl(copy / file, change(read_jsonl(copy / file)))
    return copy
