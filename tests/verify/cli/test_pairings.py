"""The pairings command: the lanes model against lockstep, on small shapes."""

import json
from pathlib import Path
from typing import Any

import pytest

from frontier.standin import STAND_IN_RULES
from models.pairings import WholeRun, shapes
from models.scenario import Scenario
from verify.cli.compare_lanes import STDOUT
from verify.cli.pairings import ShapeResult, compare_shape
from verify.limits import Limits

from ..programs import run

SMALL = ("--lanes", "2", "--batches", "1", "--layers", "1")


def compared(*args: object) -> list[Any]:
    found = run("pairings", *args, "--json", STDOUT)
    assert found.exit_code == 0
    return list(json.loads(found.stdout)["rules"])


def counts(entry: Any) -> list[tuple[int, int, int]]:
    return [
        tuple(entry[side][kind]["count"] for kind in ("waves", "whole_runs", "unfinished"))
        for side in ("only_simulator", "only_reference")
    ]


def test_one_stage_in_a_burst_pairs_alike_under_every_stand_in_rule() -> None:
    entries = compared(*SMALL, "--stages", 1)
    assert [e["stand_in"] for e in entries] == ["standard", "withdraw_joined", "blocked_is_idle"]
    assert all(counts(e) == [(0, 0, 0), (0, 0, 0)] for e in entries)


def test_behind_the_first_stage_a_lane_may_go_alone() -> None:
    """While its peer is still in the tail of stage 0, a lane is alone at stage 1."""
    for entry in compared(*SMALL, "--stages", 2):
        assert counts(entry) == [(2, 1, 0), (0, 0, 0)]
        smallest = entry["only_simulator"]["waves"]["smallest"]
        assert smallest["pairing"] == "stage 1, layer 0: lane 0 batch 0 alone"
        assert len(smallest["schedule"]) == 4
        assert run("replay", smallest["path"]).exit_code == 0


def test_only_lockstep_completes_where_strict_fifo_drains() -> None:
    (entry,) = compared(
        *("--lanes", 2, "--stages", 2, "--batches", 2, "--layers", 1),
        *("--admission", "strict_fifo", "--stand-in", "standard"),
    )
    assert counts(entry) == [(0, 0, 1), (4, 1, 0)]
    smallest = entry["only_reference"]["waves"]["smallest"]
    assert smallest["pairing"] == "stage 0, layer 0: lane 0 batch 0 with lane 1 batch 0"
    assert smallest["path"] is None
    path = entry["only_simulator"]["unfinished"]["smallest"]["path"]
    assert run("replay", path).exit_code == 1


def test_only_lockstep_pairs_across_phases_when_rooms_are_split() -> None:
    (entry,) = compared(
        *("--stages", 1, "--layers", 1, "--phases", "p;d"),
        *("--rooms", "by_phase", "--stand-in", "standard"),
    )
    assert counts(entry)[1] == (1, 1, 0)


def test_late_join_drains_only_the_rules_that_do_not_withdraw() -> None:
    shape = ("--lanes", 3, "--stages", 1, "--batches", 1, "--arrivals", "open")
    assert {e["stand_in"]: counts(e)[0][2] for e in compared(*shape)} == {
        "standard": 1,
        "withdraw_joined": 0,
        "blocked_is_idle": 1,
    }


def test_text_names_the_smallest_schedule() -> None:
    found = run("pairings", *SMALL, "--stages", 2, "--stand-in", "standard")
    assert "EP waves only in the simulator: 2" in found.stdout
    assert "EP waves only in the lockstep: 0" in found.stdout
    assert "frontier-verify replay fv1-" in found.stdout


def test_a_limit_is_undetermined(tmp_path: Path) -> None:
    found = run("pairings", *SMALL, "--stages", 2, "--max-states", 3, "--json", tmp_path / "a.json")
    assert found.exit_code == 3
    assert "undetermined" in found.stdout
    data = json.loads((tmp_path / "a.json").read_text())
    assert all("limit of 3 states" in entry["limit"] for entry in data["rules"])


def test_bad_rule() -> None:
    found = run("pairings", "--stand-in", "never")
    assert found.exit_code == 2
    assert found.stderr.startswith("frontier-verify: unknown stand_in 'never'")


def of_rules(stand_in: str) -> list[ShapeResult]:
    """Compare all small shapes but the four largest."""
    return [
        compare_shape(scenario, Limits())
        for scenario in shapes(Scenario(stand_in=stand_in))
        if scenario.lanes * scenario.stages * sum(scenario.batches) <= 12
    ]


@pytest.mark.parametrize("stand_in", STAND_IN_RULES)
def test_the_simulator_adds_only_changes_of_partner_between_stages(stand_in: str) -> None:
    results = of_rules(stand_in)
    assert len(results) == 24
    for result in results:
        for kind in ("waves", "whole_runs"):
            assert result.only("reference", kind) == {}
        shown = [x for x in result.simulator.witnesses if isinstance(x, WholeRun)]
        new = result.only("simulator", "whole_runs")
        assert {x for x in shown if x.partners_change} == set(new)
        assert all(x.partners_change != "layers" for x in shown)
        assert all(wave.stage > 0 for wave in result.only("simulator", "waves"))  # type: ignore[union-attr]


@pytest.mark.heavy
def test_all_shapes_under_every_stand_in_rule() -> None:
    """No pairing is the lockstep's alone while rooms are shared and the admission completes."""
    for entry in compared():
        assert counts(entry)[0][:2] == (27, 79)
        assert counts(entry)[1] == (0, 0, 0)
