"""Faults planted in a trace or a ledger are caught, and only where they belong."""

from pathlib import Path
from typing import Any

import pytest

from verify.lanescompare.compare import Comparison, compare
from verify.lanescompare.document import document
from verify.lanescompare.ledger import read_ledgers
from verify.lanescompare.prose import findings
from verify.lanescompare.trace import read_trace

from .ledgers import TRACES, Row, base_rows, ledger_rows, planted, write_jsonl

END = {0: "send_start_monotonic_s", 1: "end_wall_s"}


def against(
    trace: Path,
    directory: Path,
    model: str = "moe",
    *,
    after: list[Row] | None = None,
    before: list[Row] | None = None,
) -> Comparison:
    """Compare the bursts of eight."""
    left = write_jsonl(directory / "before.jsonl", before or base_rows(model, 8))
    right = write_jsonl(directory / "after.jsonl", after or ledger_rows(model, 8, "ep_ordered"))
    return compare(read_trace(trace), read_ledgers(left), read_ledgers(right))


def mismatches(found: Comparison) -> set[tuple[str, str]]:
    return {(row.check, row.round) for row in found.rows if row.status == "MISMATCH"}


def placements(found: Comparison) -> list[Any]:
    entries: Any = document(found)["placement"]
    return [entry for entry in entries if entry["status"] == "MISMATCH"]


def test_unchanged_copy_passes(tmp_path: Path) -> None:
    found = against(planted(tmp_path, "moe", "forwards.jsonl", lambda rows: rows), tmp_path)
    assert found.status == "PASS"
    assert found.not_compared == (16,)
    assert findings(found) == ["not compared: bursts of 16 requests, no ledger was given for them"]


@pytest.mark.parametrize("model", ["moe", "dense"])
def test_real_lane_delayed_by_one_forward(tmp_path: Path, model: str) -> None:
    def delay(rows: list[Row]) -> list[Row]:
        """Give every forward of lane 1 in round 0 the times of its successor."""
        for stage, end in END.items():
            lane = [
                row
                for row in rows
                if row["request_ids"][0].startswith("b8-r0")
                and int(row["request_ids"][0][-1]) % 2
                and row["stage"] == stage
            ]
            lane.sort(key=lambda row: row["forward_start_monotonic_s"])
            names = ("forward_start_monotonic_s", end)
            times = [tuple(row[n] for n in names) for row in lane]
            times.append(tuple(t + 0.01 for t in times[-1]))
            for row, moved in zip(lane, times[1:], strict=True):
                row.update(zip(names, moved, strict=True))
        return rows

    found = against(planted(tmp_path, model, "forwards.jsonl", delay), tmp_path, model)
    assert found.status == "MISMATCH"
    gated = {("V5", "mean")} if model == "moe" else set()
    assert mismatches(found) == {("V3", "0"), ("V4", "0")} | gated
    assert found.negative_control_holds
    pair = found.bursts[0].rounds[0].decompositions[0][0]
    assert pair.disjoint_pairs == 4


@pytest.mark.parametrize("lane", [0, 1])
def test_simulated_lane_delayed_by_one_forward(tmp_path: Path, lane: int) -> None:
    delayed = ledger_rows("moe", 8, "ep_ordered", delay={lane: 1})
    found = against(TRACES / "moe", tmp_path, after=delayed)
    rounds = {(check, str(n)) for check in ("V3", "V4") for n in range(3)}
    assert mismatches(found) == rounds | {("V5", "mean")}


def test_a_delay_after_the_first_forward_is_seen_by_the_pairing(tmp_path: Path) -> None:
    rows = ledger_rows("moe", 8, "ep_ordered")
    for row in rows[1:]:
        if row["lane"] == 1 and row["batch"] >= 1:
            row["start_s"] += 0.064
            row["end_s"] += 0.064
    found = against(TRACES / "moe", tmp_path, after=rows)
    assert {check for check, _ in mismatches(found)} == {"V3", "V5"}


def test_missing_placement_record_in_the_ledger(tmp_path: Path) -> None:
    rows = ledger_rows("moe", 8, "ep_ordered")
    del rows[0]["placement"]["3"]
    found = against(TRACES / "moe", tmp_path, after=rows)
    assert found.status == "MISMATCH"
    assert mismatches(found) == set()
    assert [entry["unrecorded"] for entry in placements(found)] == [{"3": "the simulated run"}] * 3
    assert all(entry["placed_correctly"] == 7 for entry in placements(found))
    assert "request 3: no placement record in the simulated run" in findings(found)[0]


def test_missing_request_record_of_the_real_run(tmp_path: Path) -> None:
    """A request without a record and without a forward is neither complete nor placed."""
    copy = planted(
        tmp_path,
        "moe",
        "requests.jsonl",
        lambda rows: [row for row in rows if row["request_id"] != "b8-r1-q7"],
    )
    forwards = copy / "forwards.jsonl"
    kept = [line for line in forwards.read_text().splitlines() if "b8-r1-q7" not in line]
    forwards.write_text("\n".join(kept))
    found = against(copy, tmp_path)
    assert mismatches(found) == {("V1", "1"), ("V2", "1"), ("V3", "1"), ("V5", "mean")}
    (entry,) = placements(found)
    assert (entry["unseen"], entry["unrecorded"]) == ({"7": "the real run"},) * 2
    (row,) = [row for row in found.rows if (row.check, row.round) == ("V1", "1")]
    assert row.vllm == "7/8"


def test_unseen_request_is_never_placed_correctly(tmp_path: Path) -> None:
    copy = planted(
        tmp_path,
        "moe",
        "forwards.jsonl",
        lambda rows: [row for row in rows if row["request_ids"] != ["b8-r2-q5"]],
    )
    found = against(copy, tmp_path)
    assert mismatches(found) == {("V2", "2"), ("V3", "2"), ("V5", "mean")}
    (entry,) = placements(found)
    assert (entry["unseen"], entry["placed_correctly"]) == ({"5": "the real run"}, 7)


@pytest.mark.parametrize("reason", ["abort", None])
def test_a_request_that_did_not_finish_is_not_complete(tmp_path: Path, reason: str | None) -> None:
    def stop(rows: list[Row]) -> list[Row]:
        rows[2]["finish_reason"] = reason
        return rows

    found = against(planted(tmp_path, "moe", "requests.jsonl", stop), tmp_path)
    assert mismatches(found) == {("V1", "0")}


def test_swapped_lanes_of_the_real_run(tmp_path: Path) -> None:
    def swap(rows: list[Row]) -> list[Row]:
        return [row | {"lane": 1 - row["lane"]} for row in rows]

    found = against(planted(tmp_path, "moe", "requests.jsonl", swap), tmp_path)
    assert {check for check, _ in mismatches(found)} == {"V2", "V3"}
    assert all(entry["placed_correctly"] == 0 for entry in placements(found))
    assert len(placements(found)) == 3


def test_two_requests_with_swapped_lanes(tmp_path: Path) -> None:
    def swap(rows: list[Row]) -> list[Row]:
        rows[4]["lane"], rows[5]["lane"] = 1, 0
        return rows

    found = against(planted(tmp_path, "moe", "requests.jsonl", swap), tmp_path)
    assert mismatches(found) == {("V2", "0"), ("V3", "0")}
    (entry,) = placements(found)
    assert entry["wrong"] == {
        "4": "real lane 1, simulated lane 0",
        "5": "real lane 0, simulated lane 1",
    }


@pytest.mark.parametrize("records", [True, False])
def test_swapped_lanes_of_the_simulated_run(tmp_path: Path, records: bool) -> None:
    rows = ledger_rows("moe", 8, "ep_ordered")
    for row in rows[1:]:
        row["lane"] = 1 - row["lane"]
    if records:
        rows[0]["placement"] = {r: 1 - lane for r, lane in rows[0]["placement"].items()}
    found = against(TRACES / "moe", tmp_path, after=rows)
    assert {check for check, _ in mismatches(found)} == {"V2", "V3"}
    assert all(entry["placed_correctly"] == 0 for entry in placements(found))


def test_unpaired_forward_of_the_real_run(tmp_path: Path) -> None:
    def repeat(rows: list[Row]) -> list[Row]:
        """Let lane 1 run its last batch of round 0 once more, alone, at stage 0."""
        last = max(
            (r for r in rows if r["request_ids"] == ["b8-r0-q7"] and r["stage"] == 0),
            key=lambda r: r["forward_start_monotonic_s"],
        )
        names = ("forward_start_monotonic_s", END[0])
        return [*rows, last | {name: last[name] + 0.02 for name in names}]

    found = against(planted(tmp_path, "moe", "forwards.jsonl", repeat), tmp_path)
    assert ("V2", "0") in mismatches(found)
    assert found.bursts[0].rounds[0].decompositions[0][0].unpaired_forwards == 1


def test_unpaired_forward_of_the_simulated_run(tmp_path: Path) -> None:
    rows = [
        row
        for row in ledger_rows("moe", 8, "ep_ordered")
        if (row.get("lane"), row.get("batch"), row.get("stage")) != (1, 3, 0)
    ]
    found = against(TRACES / "moe", tmp_path, after=rows)
    assert {check for check, _ in mismatches(found)} == {"V2", "V3", "V5"}
    (row,) = [row for row in found.rows if (row.check, row.round) == ("V3", "0")]
    assert row.note == "stage 0, forward 3: real [6] beside [7], simulated [6] beside nothing"


@pytest.mark.parametrize("model", ["moe", "dense"])
def test_base_without_the_defect_loses_the_controls_only(tmp_path: Path, model: str) -> None:
    sound = ledger_rows(model, 8, "strict_fifo")
    usual = against(TRACES / model, tmp_path, model)
    found = against(TRACES / model, tmp_path, model, before=sound)
    assert [row.status for row in found.rows if row.check.startswith("N")] == ["LOST"]
    assert not found.negative_control_holds
    assert found.status == "PASS"
    untouched = [
        [(r.check, r.round, r.vllm, r.after, r.status) for r in c.rows if r.check[0] == "V"]
        for c in (usual, found)
    ]
    assert untouched[0] == untouched[1]


def test_a_deadlock_claimed_by_a_complete_base_is_no_control(tmp_path: Path) -> None:
    rows = ledger_rows("moe", 8, "strict_fifo")
    rows[0]["outcome"] = "admission_deadlock"
    found = against(TRACES / "moe", tmp_path, before=rows)
    assert not found.negative_control_holds


def test_a_drained_run_under_test_matches_nothing(tmp_path: Path) -> None:
    found = against(TRACES / "moe", tmp_path, after=base_rows("moe", 8))
    assert len(mismatches(found)) == 13
    assert all(entry["placed_correctly"] == 0 for entry in placements(found))
