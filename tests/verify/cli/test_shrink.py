"""``shrink``, ``explain``, ``simulate --events`` and ``simulate WITNESS``."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.catalogue import load_case
from models.regression import RULES_VARIABLE
from verify.cli.checking import check_scenario

from .program import Program, program

__all__ = ["program"]

POISSON_OPTIONS = (
    "--lanes 4 --stages 2 --layers 3 --requests 24 --arrivals poisson:100 --seed 3 "
    "--rooms shared --admission ep_ordered --stand-in standard"
)
POISSON = ("simulate", *POISSON_OPTIONS.split(" "))


def run_test_file(path: Path, rules: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path), *options]
    environment = {**os.environ, RULES_VARIABLE: rules}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=path.parent, env=environment, check=False
    )


def test_a_drained_poisson_run_to_a_kept_test(program: Program, tmp_path: Path):
    """Must show of issue 5: shrunk, witnessed, and a test that fails until repaired."""
    log, witness, test = (tmp_path / n for n in ("run.jsonl", "witness.json", "test_kept.py"))
    assert program(*POISSON, "--events", log).code == 1
    files = ("--witness", witness, "--emit-pytest", test)
    done = program("shrink", log, *files, "--json", "-")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    scenario = data["scenario"]
    assert (scenario["lanes"], scenario["stages"], scenario["layers"]) == (3, 1, 1)
    assert scenario["batches"] == [1, 1, 1]
    assert data["classification"] == data["origin"]["classification"] == "stranded_rendezvous"
    assert data["origin"]["scenario"]["batches"] == [6, 6, 6, 6]
    assert data["minimal"] is True
    assert data["repair"] == {"stand_in": "withdraw_joined"}
    assert 1 <= data["no_return"]["instant"] <= data["depth"] == 5
    timed = program("simulate", witness, "--json", "-")
    assert timed.code == 1
    assert json.loads(timed.out)["stages"] == data["stages"]
    assert program("replay", data["path"]).code == 1
    defective = run_test_file(test, "")
    assert defective.returncode == 1
    assert "1 failed, 2 passed" in defective.stdout
    assert "frontier-verify replay fv1-" in defective.stdout
    repaired = run_test_file(test, "stand_in=withdraw_joined")
    assert repaired.returncode == 0, repaired.stdout
    without_plugin = run_test_file(test, "", "-p", "no:frontier-verify")
    assert "1 failed, 2 passed" in without_plugin.stdout


def test_a_strict_fifo_run_of_12_requests(program: Program, tmp_path: Path):
    log = tmp_path / "run.jsonl"
    shape = "--lanes 4 --stages 3 --requests 12 --admission strict_fifo"
    assert program("simulate", *shape.split(" "), "--events", log).code == 1
    data = json.loads(program("shrink", log, "--json", "-").out)
    assert (data["scenario"]["lanes"], data["scenario"]["stages"]) == (2, 2)
    assert data["classification"] == "circular_wait"


def test_runs_with_decode_steps_and_hundreds_of_requests(program: Program, tmp_path: Path):
    log = tmp_path / "run.jsonl"
    shape = (
        "--lanes 4 --stages 2 --layers 2 --requests 300 --decode 3 --arrivals "
        "poisson:40 --seed 1 --rooms shared"
    )
    assert program("simulate", *shape.split(" "), "--events", log).code == 1
    data = json.loads(program("shrink", log, "--json", "-").out)
    assert data["scenario"]["batches"] == [1, 1, 1]
    assert sum(data["origin"]["scenario"]["batches"]) > 300


def test_emitted_case_is_a_case_with_a_twin_that_holds(program: Program, tmp_path: Path):
    file = tmp_path / "kept.toml"
    assert program("shrink", "rival-a-lane-aware", "--emit-case", file).code == 0
    case = load_case(file)
    assert case.twin == "kept_repaired"
    assert case.expect.differences(check_scenario(case.scenario).to_json()) == []
    twin = load_case(tmp_path / "kept_repaired.toml")
    assert twin.expect.verdict == "holds"
    assert twin.expect.differences(check_scenario(twin.scenario).to_json()) == []


def test_every_kind_of_source_gives_the_same_minimum(program: Program, tmp_path: Path):
    result, witness, path_file = (tmp_path / n for n in ("r.json", "w.json", "path.txt"))
    case = "published-deadlock"
    assert program("check", case, "--json", result).code == 1
    path = json.loads(result.read_text())["path"]
    path_file.write_text(path + "\n")
    assert program("shrink", case, "--witness", witness).code == 0
    scenario = tmp_path / "s.toml"
    scenario.write_text('admission = "strict_fifo"\n')
    shrunk = [
        json.loads(program("shrink", source, "--json", "-").out)
        for source in (case, result, path, path_file, witness, scenario)
    ]
    assert {json.dumps(data["schedule"]) for data in shrunk} == {json.dumps(shrunk[0]["schedule"])}
    assert all(data["scenario"]["batches"] == [1, 2] for data in shrunk)


def test_explain_ends_in_the_contradiction_and_names_the_point_of_no_return(program: Program):
    done = program("explain", "late-join-open")
    assert done.code == 0
    assert "Point of no return" in done.out
    assert "no continuation completes from here on" in done.out
    assert "A healthy run" in done.out
    assert "stage 0, room, layer 0" in done.out
    lost = program("explain", "published-deadlock")
    assert "waits for itself" in lost.out
    assert "lost before the first instant" in lost.out


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("fv9-abc", "another format version"),
        ("fv1-abc", "cut or changed"),
        ("no-such-case", "no case named"),
        ("missing.json", "there is no such file"),
        ("control-dense", "the scenario has no violation: every timing completes"),
    ],
)
@pytest.mark.parametrize("command", ["shrink", "explain"])
def test_bad_sources_are_refused_with_the_reason(program, command, source, message):
    done = program(command, source)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "not valid JSON"),
        ("[]", "holds no result"),
        ('{"verdict": "holds", "path": null}', "its verdict is holds"),
        ('{"cases": []}', "whole catalogue"),
        ('{"witness": "frontier-verify", "version": 7}', "version 7"),
        ('{"events": "frontier-verify", "version": 7}', "version 7"),
        ('{"hello": 1}', "holds no result"),
    ],
)
def test_broken_files_are_refused_with_the_reason(program, tmp_path, content, message):
    file = tmp_path / "source.json"
    file.write_text(content)
    done = program("shrink", file, "--emit-pytest", tmp_path / "test_x.py")
    assert done.code == 2
    assert message in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source.json"]


def test_a_path_of_another_scenario_or_a_truncated_log_is_refused(program, tmp_path):
    log = tmp_path / "run.jsonl"
    program(*POISSON, "--events", log)
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:9]))
    done = program("shrink", log)
    assert done.code == 2
    assert "the log was cut" in done.err
    changed = "".join(lines).replace('"admission":"ep_ordered"', '"admission":"strict_fifo"')
    log.write_text(changed)
    assert "digest differs" in program("shrink", log).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keep", "nothing"), "--keep must be one of any, class, cycle"),
        (("--max-states", "0"), "--max-states must be greater than 0"),
        (("--emit-case", "x.json"), "ends in .toml"),
        (("--witness", "/no/such/folder/w.json"), "does not exist"),
    ],
)
def test_bad_options(program, options, message):
    done = program("shrink", "published-deadlock", *options)
    assert done.code == 2
    assert message in done.err


def test_a_witness_takes_no_other_scenario(program, tmp_path):
    witness = tmp_path / "w.json"
    program("shrink", "published-deadlock", "--witness", witness)
    done = program("simulate", witness, "--admission", "ep_ordered")
    assert done.code == 2
    assert "leave out --admission" in done.err
