"""``frontier-verify contract`` as a person and as CI uses it."""

import json
import re
from typing import get_args

import pytest
from typer.testing import CliRunner

from tests.verify.contract.samples import foreign
from verify.cli import app
from verify.cli.errors import UsageError
from verify.contract.operations import Kind

runner = CliRunner()
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
