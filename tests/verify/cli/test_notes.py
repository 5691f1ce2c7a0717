"""How a context of one's own is run is said by every command that tells of a scenario."""

import json
from dataclasses import replace

import pytest

from models.catalogue import find_case
from models.groups import GroupScenario
from verify.cli import cases

from .program import program

__all__ = ["program"]

NOTE = "the context takes no full_stage_capacity: every stage has the capacity 1"
OLD = """
from frontier.context import StageExecutionContext


class Old(StageExecutionContext):
    def __init__(self, *, replica_id, stage_id, ep_size):
        super().__init__(replica_id=replica_id, stage_id=stage_id, ep_size=ep_size)
"""


@pytest.fixture
def result(program, tmp_path):
    (tmp_path / "old.py").write_text(OLD)
    checked, page = tmp_path / "checked.json", tmp_path / "checked.html"
    done = program(
        *("check", "--context", f"{tmp_path / 'old.py'}:Old", "--admission", "strict_fifo"),
        *("--json", checked, "--report", page),
    )
    assert done.code == 1, done.err
    assert f"note: {NOTE}" in done.out
    assert NOTE in page.read_text()
    return checked


@pytest.mark.parametrize("command", ["replay", "explain", "shrink"])
def test_whoever_tells_of_a_counterexample_says_how_its_context_is_run(program, result, command):
    source = json.loads(result.read_text())["path"] if command == "replay" else result
    assert f"note: {NOTE}" in program(command, source).out
    data = json.loads(program(command, source, "--json", "-").out)
    assert NOTE in data["notes"]


def test_so_do_a_page_and_a_run_with_times(program, result, tmp_path):
    page, witness = tmp_path / "page.html", tmp_path / "witness.json"
    assert program("explain", result, "--html", page).code == 0
    assert NOTE in page.read_text()
    assert program("shrink", result, "--witness", witness).code == 0
    assert f"note: {NOTE}" in program("simulate", witness).out


def test_there_is_nothing_to_say_of_the_context_here(program):
    done = program("explain", "late-join-burst", "--json", "-")
    assert json.loads(done.out)["notes"] == []
    assert "note:" not in program("explain", "late-join-burst").out


def test_so_does_a_case_of_the_catalogue(program, monkeypatch):
    case = find_case("late-join-burst")
    unspecified = GroupScenario(groups=(("dense",),), ep_size=2, admission="late_ticket")
    noted = replace(case, scenario=unspecified)
    monkeypatch.setattr(cases, "find_case", lambda _: noted)
    assert "is not specified" in program("cases", "show", "late-join-burst").out
