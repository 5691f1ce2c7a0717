"""Runs of other shapes: a simulated run written as a trace must match the run it came from."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from verify.lanescompare.compare import Comparison, compare
from verify.lanescompare.ledger import read_ledgers
from verify.lanescompare.metrics import measure
from verify.lanescompare.prose import findings
from verify.lanescompare.trace import read_trace

from ..programs import run
from .ledgers import Row, read_jsonl, write_jsonl

OFFSET = 1_780_000_000.25


def simulate(path: Path, *options: object) -> Path:
    common = ("--architecture", "co-location", "--durations", "constant", "--ledger", path)
    run("simulate", *common, *options)
    return path


def as_trace(directory: Path, ledger: Path, rounds: int, jitter_s: float) -> Path:
    """Write a simulated run as `rounds` rounds of a real one, every time moved a little."""
    directory.mkdir()
    rows: list[Row] = read_jsonl(ledger)
    head, random = rows[0], Random(7)
    size, last = head["requests"], head["stages"] - 1
    names = [f"b{size}-r{number}" for number in range(rounds)]
    requests: list[Row] = [
        {
            "request_id": f"{name}-q{index}",
            "burst": name,
            "round": number,
            "index": index,
            "lane": head["placement"][str(index)],
            "num_output_tokens": 1,
            "finish_reason": "length",
        }
        for number, name in enumerate(names)
        for index in range(size)
    ]
    forwards = [
        _forward(row, name, 9e6 + 100 * number, row["stage"] == last, random, jitter_s)
        for number, name in enumerate(names)
        for row in rows[1:]
    ]
    random.shuffle(forwards)
    write_jsonl(directory / "requests.jsonl", requests)
    write_jsonl(directory / "forwards.jsonl", forwards)
    offsets: Any = [{"burst": name, "wall_minus_monotonic_s": OFFSET} for name in names]
    (directory / "rounds.json").write_text(json.dumps({"rounds": offsets}))
    return directory


def _forward(row: Row, name: str, begin: float, last: bool, random: Random, jitter_s: float) -> Row:
    end = begin + row["end_s"] - random.uniform(0, jitter_s)
    return {
        "request_ids": [f"{name}-q{index}" for index in row["requests"]],
        "stage": row["stage"],
        "batch_id": row["batch"],
        "num_prefill_tokens": row["prefill_tokens"],
        "num_decode_tokens": row["decode_tokens"],
        "forward_start_monotonic_s": begin + row["start_s"] + random.uniform(0, jitter_s),
        **({"end_wall_s": end + OFFSET} if last else {"send_start_monotonic_s": end}),
    }


def compared(tmp_path: Path, *shape: object, jitter_s: float = 0.0) -> Comparison:
    after = simulate(tmp_path / "after.jsonl", *shape, "--admission", "ep_ordered")
    before = simulate(tmp_path / "before.jsonl", *shape, "--admission", "strict_fifo")
    trace = read_trace(as_trace(tmp_path / "trace", after, rounds=2, jitter_s=jitter_s))
    return compare(trace, read_ledgers(before), read_ledgers(after))


@pytest.mark.parametrize("model", ["moe", "dense"])
@pytest.mark.parametrize(("lanes", "stages", "requests"), [(2, 2, 7), (3, 3, 12), (4, 2, 10)])
def test_other_shapes(tmp_path: Path, model: str, lanes: int, stages: int, requests: int) -> None:
    found = compared(
        tmp_path,
        *("--model", model, "--lanes", lanes, "--stages", stages, "--layers", 2),
        *("--requests", requests, "--prefill", 256, "--decode", 1),
        jitter_s=0.0005,
    )
    assert findings(found) == []
    assert found.status == "PASS"
    assert found.negative_control_holds
    for item in found.bursts[0].rounds:
        assert item.metrics.sequences == measure(found.bursts[0].after.ledger.run).sequences
        assert not any(stage.self_overlap for stage in item.metrics.stages)
        assert len(item.decompositions[0]) == lanes - 1


def test_batches_of_several_requests_with_decode(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        *("--model", "dense", "--lanes", 2, "--stages", 2, "--layers", 2, "--requests", 8),
        *("--prefill", 16, "--decode", 3, "--token-budget", 64),
    )
    assert found.status == "PASS"
    longest = max(
        len(batch)
        for batches in found.bursts[0].rounds[0].metrics.sequences.values()
        for batch in batches
    )
    assert longest > 1


def test_dummy_forwards_are_counted_and_left_out(tmp_path: Path) -> None:
    shape = ("--model", "moe", "--lanes", 2, "--stages", 2, "--layers", 2)
    shape += ("--requests", 7, "--prefill", 256, "--decode", 1)
    after = simulate(tmp_path / "after.jsonl", *shape, "--admission", "ep_ordered")
    directory = as_trace(tmp_path / "trace", after, rounds=1, jitter_s=0)
    rows = read_jsonl(directory / "forwards.jsonl")
    dummy = rows[0] | {"request_ids": [], "num_prefill_tokens": 0}
    write_jsonl(directory / "forwards.jsonl", [*rows, dummy])
    trace = read_trace(directory)
    assert trace.dummies == 1
    assert len(trace.rounds[0].run.forwards) == 14
    found = compare(trace, read_ledgers(after), read_ledgers(after))
    assert "not compared: 1 dummy forwards of ranks without work" in findings(found)
