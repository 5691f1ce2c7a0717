"""``frontier-verify contract`` as a person and as CI uses it."""

import inspect
import json
import re
from typing import get_args

import pytest
from typer.testing import CliRunner

from frontier.context import StageExecutionContext as Core
from tests.verify.contract.samples import foreign, without
from verify.cli import app
from verify.cli.errors import UsageError
from verify.contract.implementation import ARGUMENTS, MEMBERS
from verify.contract.loader import load
from verify.contract.operations import Kind

runner = CliRunner()
SEAL = ("forward_group_sealed", "joinable_forward_group_id")
METHODS = {name for name in MEMBERS if inspect.isfunction(getattr(Core, name, None))}
SMALL = ("--max-tickets", "2", "--waves", "1", "--capacity", "2")


def run(*args):
    return runner.invoke(app, ["contract", *args])


def test_the_strict_revision_is_violated_with_a_replay(tmp_path):
    json_file, junit = tmp_path / "r.json", tmp_path / "r.xml"
    result = run(
        "--impl", foreign("second"), *SMALL, "--json", str(json_file), "--junit", str(junit)
    )
    assert result.exit_code == 1
    data = json.loads(json_file.read_text())
    (broken,) = [c for c in data["clauses"] if c["status"] == "violated"]
    assert broken["id"] == "AC-59"
    assert broken["length"] == 3
    assert data["verdict"] == "violated"
    assert data["bounds"][0]["complete"]
    assert "<testsuite " in junit.read_text()
    assert run("--impl", foreign("second"), "--replay", "; ".join(broken["calls"])).exit_code == 1


def test_a_replay_that_deviates_nowhere_holds():
    result = run("--rule", "ep_ordered", "--replay", "full 0.0; full 1.0; try 1.0")
    assert result.exit_code == 0
    assert "as expected (true)" in result.output


def test_the_written_contract_is_printed():
    result = run("--list", "--rule", "strict_fifo")
    assert result.exit_code == 0
    assert "AC-54" in result.output
    assert "AC-59" not in result.output


def test_the_summary_counts_the_clauses_that_were_asked_for():
    args = ("--own-rule", "strict_fifo", "--rule", "ep_ordered", "--max-tickets", "2")
    result = run(*args, "--waves", "1", "--capacity", "2", "--clause", "AC-59", "--clause", "AC-01")
    lines = result.output.splitlines()
    assert re.fullmatch(r"AC-59  violated +in 3 calls  A full-stage ticket .*", lines[4])
    assert re.fullmatch(r"AC-01  holds +\d checks  The constructor .*", lines[3])
    assert lines[2].startswith("2 live tickets, 2 lanes, 1 wave, capacity 2, ep_size 2: ")
    assert "violated: 2 clauses asked for, of 56: 1 holds, 1 violated" in lines
    only = run(*args, "--waves", "1", "--capacity", "2", "--clause", "AC-01")
    assert only.exit_code == 0
    assert "holds: 1 clause asked for, of 56: 1 holds" in only.output.splitlines()
    assert "AC-59" not in only.output


def test_the_help_explains_the_words_of_a_call_sequence():
    text = " ".join(run("--help").output.split())
    for word in get_args(Kind):
        assert f'"{word} ' in text
    assert "check --context FILE.py:Class" in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--impl", "nowhere.py:C"), "no file"),
        (("--rule", "fifo"), "expected one of: strict_fifo"),
        (("--clause", "AC-99"), "AC-01"),
        (("--max-tickets", "0"), "at least 1"),
        (
            ("--impl", "frontier.context:StageExecutionContext", "--own-rule", "late_ticket"),
            "--impl",
        ),
        (("--rule", "ep_ordered", "--replay", "jump"), "unknown call"),
        (("--json", "/nowhere/at/all.json"), "does not exist"),
    ],
)
def test_bad_input_is_said_plainly(args, message):
    result = run(*args)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


OUTSIDE = "wave w0; try w0; restore w0 > 0.0 + 1.0; bind 0.0; promote 1.0 > w1"
"""A wave made of an owner that is outside the bound group: the page leaves open if that seals."""

NOT_SEALED = """
    def replace_full_stage_owners_with_ep_wave(self, owner_tickets, **rest):
        before = self._sealed
        wave = super().replace_full_stage_owners_with_ep_wave(owner_tickets, **rest)
        self._sealed = before
        return wave
"""


@pytest.mark.parametrize("hidden", [(), SEAL[:1], SEAL])
@pytest.mark.parametrize("more", ["", NOT_SEALED])
def test_a_seal_that_is_left_open_is_read_off_what_the_class_shows(tmp_path, hidden, more):
    name = without(tmp_path, *hidden)
    path = tmp_path / "without.py"
    path.write_text(path.read_text() + "    pass\n" + more)
    shape = ("--capacity", "2", "--ep-size", "2")
    result = run("--impl", name, "--rule", "ep_ordered", *shape, "--replay", OUTSIDE)
    assert result.exit_code == 0, result.output
    whole = run("--impl", name, "--rule", "ep_ordered", "--max-tickets", "3", *shape)
    violated = {line[:5] for line in whole.output.splitlines() if " violated " in line}
    # A class that never seals breaks what the page does say of promoting the group's own owners.
    assert not violated if not more else "AC-28" not in violated or hidden == SEAL[:1]


def test_the_api_is_printed_with_the_contract():
    text = run("--list").output
    assert "property forward_group_sealed -> bool  # AC-29, AC-30, AC-31, AC-32, AC-33" in text
    assert "cancel(ticket: StageAdmissionTicket) -> None" in text
    assert "operation_id: Hashable, participant_ep_ids: Sequence[int]) -> " in text
    assert "rule" not in text[text.index("StageExecutionContext(*") :].splitlines()[0]


def test_the_skeleton_is_a_class_with_every_member(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(run("--skeleton").output)
    made = load(f"{path}:StageExecutionContext")
    assert made.members == MEMBERS
    assert made.arguments == frozenset(ARGUMENTS)
    own = {name: inspect.signature(getattr(Core, name)) for name in vars(Core) if name in METHODS}
    assert {name: inspect.signature(getattr(made.cls, name)) for name in own} == own
    result = run("--impl", f"{path}:StageExecutionContext", *SMALL)
    assert result.exit_code == 1
    assert re.search(r"AC-01  holds", result.output)


def test_list_and_skeleton_exclude_each_other():
    assert "not both" in str(run("--list", "--skeleton").exception)
