"""Unusable traces and ledgers: one message that says what, where and what was expected."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from verify.lanescompare.compare import compare
from verify.lanescompare.fields import LaneDataError
from verify.lanescompare.ledger import Ledger, read_ledgers
from verify.lanescompare.trace import read_trace

from .ledgers import TRACES, Row, base_rows, ledger_rows, planted, write_jsonl

REQUEST_FIELDS = ("request_id", "burst", "round", "index", "lane", "num_output_tokens")
FORWARD_FIELDS = (
    "request_ids",
    "stage",
    "batch_id",
    "num_prefill_tokens",
    "num_decode_tokens",
    "forward_start_monotonic_s",
)


def without(place: int, field: str) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        del rows[place][field]
        return rows

    return change


def having(place: int, **fields: object) -> Callable[[list[Row]], list[Row]]:
    def change(rows: list[Row]) -> list[Row]:
        rows[place].update(fields)
        return rows

    return change


def twice(rows: list[Row]) -> list[Row]:
    return [*rows, rows[3]]


def nothing(rows: list[Row]) -> list[Row]:
    return []


@pytest.mark.parametrize("field", [*REQUEST_FIELDS, "finish_reason"])
def test_missing_field_of_a_request(tmp_path: Path, field: str) -> None:
    copy = planted(tmp_path, "moe", "requests.jsonl", without(4, field))
    with pytest.raises(LaneDataError, match=f"requests.jsonl:5: missing field '{field}'"):
        read_trace(copy)


@pytest.mark.parametrize("field", [*FORWARD_FIELDS, "send_start_monotonic_s"])
def test_missing_field_of_a_forward(tmp_path: Path, field: str) -> None:
    copy = planted(tmp_path, "moe", "forwards.jsonl", without(1, field))
    with pytest.raises(LaneDataError, match=f"forwards.jsonl:2: missing field '{field}'"):
        read_trace(copy)


def test_last_stage_without_its_end(tmp_path: Path) -> None:
    copy = planted(tmp_path, "moe", "forwards.jsonl", without(2, "end_wall_s"))
    with pytest.raises(LaneDataError, match=r"forwards\.jsonl:3: missing field 'end_wall_s'"):
        read_trace(copy)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("forwards.jsonl", having(0, request_ids=["b8-r0-q9"]), ":1: unknown request 'b8-r0-q9'"),
        ("forwards.jsonl", having(0, request_ids=[]), "expected a non-empty list of str"),
        ("forwards.jsonl", having(0, request_ids=["b8-r0-q0", "b8-r0-q1"]), "rounds or lanes"),
        ("forwards.jsonl", having(0, stage=True), "field 'stage' is True"),
        ("forwards.jsonl", having(0, send_start_monotonic_s=1.0), "before it starts"),
        ("forwards.jsonl", having(0, send_start_monotonic_s="soon"), "finite number of seconds"),
        ("forwards.jsonl", having(0, forward_start_monotonic_s=float("nan")), "finite number"),
        ("forwards.jsonl", nothing, "no forward"),
        ("requests.jsonl", nothing, "no request"),
        ("requests.jsonl", twice, "request 'b8-r0-q3' appears twice"),
        ("requests.jsonl", having(3, lane=None), "field 'lane' is None"),
        ("requests.jsonl", having(3, index=8), "taken or out of range"),
        ("requests.jsonl", having(3, index=2), "taken or out of range"),
        ("requests.jsonl", having(3, round=1), "round number 1 in round 'b8-r0'"),
        ("requests.jsonl", having(3, burst="b8-r9"), "round 'b8-r9' has no clock offset"),
    ],
)
def test_broken_trace(
    tmp_path: Path, file: str, change: Callable[[list[Row]], list[Row]], message: str
) -> None:
    copy = planted(tmp_path, "moe", file, change)
    with pytest.raises(LaneDataError, match=message):
        read_trace(copy)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda rounds: rounds.pop(0), "round 'b8-r0' has no clock offset"),
        (lambda rounds: rounds[1].pop("wall_minus_monotonic_s"), r"rounds\[1\]: missing field"),
        (lambda rounds: rounds.append(rounds[0]), "round 'b8-r0' appears twice"),
        (
            lambda rounds: rounds.append({"burst": "b4-r0", "wall_minus_monotonic_s": 0}),
            "round 'b4-r0' has no request",
        ),
    ],
)
def test_broken_rounds(tmp_path: Path, edit: Callable[[list[Row]], object], message: str) -> None:
    copy = planted(tmp_path, "moe", "forwards.jsonl", lambda rows: rows)
    document = json.loads((copy / "rounds.json").read_text())
    edit(document["rounds"])
    (copy / "rounds.json").write_text(json.dumps(document))
    with pytest.raises(LaneDataError, match=message):
        read_trace(copy)


def test_text_that_is_not_json(tmp_path: Path) -> None:
    copy = planted(tmp_path, "moe", "forwards.jsonl", lambda rows: rows)
    (copy / "forwards.jsonl").write_text("{}\n[1]\n")
    with pytest.raises(LaneDataError, match=r"forwards\.jsonl:2: a JSON list"):
        read_trace(copy)
    (copy / "forwards.jsonl").write_text("{")
    with pytest.raises(LaneDataError, match=r"forwards\.jsonl:1: not valid JSON"):
        read_trace(copy)


def test_absent_directory(tmp_path: Path) -> None:
    with pytest.raises(LaneDataError, match="cannot be read"):
        read_trace(tmp_path / "none")


@pytest.mark.parametrize("field", ["outcome", "model", "lanes", "stages", "requests", "placement"])
def test_missing_field_of_a_ledger_header(tmp_path: Path, field: str) -> None:
    rows = without(0, field)(ledger_rows("moe", 8, "ep_ordered"))
    with pytest.raises(LaneDataError, match=f"l.jsonl:1: missing field '{field}'"):
        read_ledgers(write_jsonl(tmp_path / "l.jsonl", rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows[1:], "l.jsonl:1: the first line is not a ledger header"),
        (nothing, "empty"),
        (having(0, version=2), "version 2"),
        (having(0, model="llama"), "model 'llama'"),
        (having(0, requests_completed=9), "9 of 8 requests completed"),
        (having(0, placement={"8": 0}), "placement of request '8'"),
        (having(0, placement={"0": 2}), "on lane 2"),
        (having(1, role="PREFILL"), "role PREFILL"),
        (having(1, replica=1), "replica 1"),
        (having(1, lane=2), "lane 2"),
        (having(1, stage=2), "stage 2"),
        (having(1, requests=[8]), r"requests \[8\]"),
        (having(1, end_s=-1), "before its start"),
        (without(1, "end_s"), "l.jsonl:2: missing field 'end_s'"),
        (twice, "batch 0 of lane 1 at stage 0 appears twice"),
    ],
)
def test_broken_ledger(
    tmp_path: Path, change: Callable[[list[Row]], list[Row]], message: str
) -> None:
    rows = change(ledger_rows("moe", 8, "ep_ordered"))
    with pytest.raises(LaneDataError, match=message):
        read_ledgers(write_jsonl(tmp_path / "l.jsonl", rows))


def test_a_file_may_hold_several_ledgers(tmp_path: Path) -> None:
    rows = [*ledger_rows("moe", 8, "ep_ordered"), *base_rows("moe", 16)]
    first, second = read_ledgers(write_jsonl(tmp_path / "l.jsonl", rows))
    assert (first.run.requests, len(first.run.forwards), first.succeeded) == (8, 16, True)
    assert (second.run.requests, len(second.run.forwards), second.succeeded) == (16, 0, False)


def test_ledgers_that_do_not_fit(tmp_path: Path) -> None:
    def ledger(name: str, rows: list[Row], **fields: object) -> list[Ledger]:
        return list(read_ledgers(write_jsonl(tmp_path / name, having(0, **fields)(rows))))

    moe = read_trace(TRACES / "moe")
    base = ledger("base.jsonl", base_rows("moe", 8))
    good = ledger("good.jsonl", ledger_rows("moe", 8, "ep_ordered"))
    other = ledger("dense.jsonl", ledger_rows("dense", 8, "ep_ordered"))
    larger = ledger("larger.jsonl", ledger_rows("moe", 16, "ep_ordered"))
    odd = ledger("odd.jsonl", ledger_rows("moe", 6, "ep_ordered"))
    wide = ledger("wide.jsonl", base_rows("moe", 8), lanes=3)
    for before, after, message in (
        (base, other, "a ledger of the dense model"),
        (base, larger, "a --before ledger of 8 requests without a --after ledger"),
        (base, [*good, *larger], "a --after ledger of 16 requests without a --before ledger"),
        (base, odd, "the trace has bursts of 8, 16"),
        (base, [*good, *good], "a second --after ledger of 8 requests"),
        (wide, good, "3 lanes and 2 stages"),
    ):
        with pytest.raises(LaneDataError, match=message):
            compare(moe, before, after)
    with pytest.raises(LaneDataError, match="a trace of the dense model"):
        compare(read_trace(TRACES / "dense"), base, good)


def test_empty_directory_of_ledgers(tmp_path: Path) -> None:
    with pytest.raises(LaneDataError, match=r"no \*\.jsonl file"):
        read_ledgers(tmp_path)
