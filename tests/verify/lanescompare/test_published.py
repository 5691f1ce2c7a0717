"""Everything published about the two recorded runs is reproduced from the raw traces."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.lanescompare.compare import compare
from verify.lanescompare.document import document
from verify.lanescompare.ledger import read_ledgers
from verify.lanescompare.trace import read_trace

from ..programs import run
from .ledgers import TRACES, base_rows, ledger_rows, write_jsonl

MODELS = ("moe", "dense")


def published(name: str) -> Any:
    return json.loads((TRACES / f"published_{name}.json").read_text())


def simulate(path: Path, model: str, size: int, admission: str) -> None:
    """Write a ledger with the program itself: the constant times of PROTOCOL.md section 6."""
    arguments = {
        "architecture": "co-location",
        "lanes": 2,
        "stages": 2,
        "layers": {"moe": 4, "dense": 8}[model],
        "model": model,
        "admission": admission,
        "requests": size,
        "prefill": 256,
        "decode": 1,
        "durations": "constant",
        "ledger": path,
    }
    options = [f"--{name}={value}" for name, value in arguments.items()]
    run("simulate", *options)


def by_hand(path: Path, model: str, size: int, admission: str) -> None:
    sound = admission == "ep_ordered"
    write_jsonl(path, ledger_rows(model, size, admission) if sound else base_rows(model, size))


def comparison(directory: Path, model: str, make: Callable[[Path, str, int, str], None]) -> Any:
    sides = {"before": "strict_fifo", "after": "ep_ordered"}
    for side, admission in sides.items():
        (directory / side).mkdir()
        for size in (8, 16):
            make(directory / side / f"{size}.jsonl", model, size, admission)
    ledgers = (read_ledgers(directory / side) for side in sides)
    return document(compare(read_trace(TRACES / model), *ledgers))


@pytest.fixture(scope="module", params=[simulate, by_hand])
def documents(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    return {m: comparison(tmp_path_factory.mktemp(m), m, request.param) for m in MODELS}


def assert_same(found: Any, expected: Any) -> None:
    """Equal structure; floats to 1e-9."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_same(found[key], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=0, abs=1e-9)
    else:
        assert found == expected
        assert type(found) is type(expected)


def test_all_56_rows(documents: dict[str, Any]) -> None:
    rows = [row for model in MODELS for row in documents[model]["rows"]]
    assert len(rows) == 56
    for found, expected in zip(rows, published("gap_table"), strict=True):
        assert_same(found, expected)
    totals = {
        status: sum(documents[m]["counts"][status] for m in MODELS)
        for status in documents["moe"]["counts"]
    }
    assert totals == {"MATCH": 50, "MISMATCH": 0, "INFORMATIONAL": 2, "HOLDS": 4, "LOST": 0}


def test_status_and_controls(documents: dict[str, Any]) -> None:
    for model in MODELS:
        assert documents[model]["status"] == "PASS"
        assert documents[model]["negative_control_holds"] is True
        assert documents[model]["bursts_not_compared"] == []
        assert documents[model]["findings"] == []
        assert all(entry["status"] == "MATCH" for entry in documents[model]["placement"])
        assert all(
            entry["placed_correctly"] == entry["requests"]
            for entry in documents[model]["placement"]
        )


def test_metrics_of_every_round(documents: dict[str, Any]) -> None:
    expected = published("lane_metrics")
    found = documents["moe"]["metrics"] | documents["dense"]["metrics"]
    assert found.keys() == expected.keys()
    for burst, rounds in expected.items():
        assert found[burst].keys() == rounds.keys()
        for name, metrics in rounds.items():
            ours = dict(found[burst][name])
            size = burst.split("-n")[1]
            assert ours.pop("M1_completion") == f"{size}/{size}"
            assert_same(ours, metrics)


def test_decomposition_at_its_printed_digits(documents: dict[str, Any]) -> None:
    expected = published("co_execution_decomposition")
    found = documents["moe"]["decomposition"] | documents["dense"]["decomposition"]
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert {name: found[key][name] for name in values} == values
        assert found[key]["disjoint_pairs"] == found[key]["unpaired_forwards"] == 0
        assert found[key]["ms_covered_by_other_forwards"] == 0


def test_waiting_for_the_peer_explains_the_start_offsets(documents: dict[str, Any]) -> None:
    """With both starts moved to the later one only end offsets remain, so M5 cannot fall."""
    for model in MODELS:
        for values in documents[model]["decomposition"].values():
            assert values["M5_later_starts"] >= values["M5_observed"]
