"""``frontier-verify check``, ``replay`` and ``cases`` as a person meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from verify.cli import main; main()"]
FIELDS = {
    "scenario",
    "verdict",
    "violation",
    "classification",
    "states",
    "transitions",
    "depth",
    "violating_states",
    "elapsed_s",
    "states_per_s",
    "path",
    "schedule",
    "wait_for",
    "acyclic",
    "reached",
}


def run(*arguments, cwd=None):
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, cwd=cwd, timeout=120, check=False
    )


def check_json(*arguments):
    done = run("check", *arguments, "--json", "-")
    return done.returncode, json.loads(done.stdout)


def test_violated_exits_1_and_explains():
    done = run("check", "--admission", "strict_fifo")
    assert done.returncode == 1
    for words in ("violated", "circular_wait", "depth 1", "seq 1: lane 1 batch 1", "Replay"):
        assert words in done.stdout


def test_holds_exits_0():
    done = run("check", "published-repair")
    assert done.returncode == 0
    assert "278 states, 1,125 transitions" in done.stdout


def test_json_has_every_field():
    code, data = check_json("--admission", "strict_fifo")
    assert code == 1
    assert set(data) >= FIELDS
    assert set(data["wait_for"]) >= {"stuck", "cycle"}
    assert set(data["wait_for"]["cycle"][0]) == {"from", "to", "reason"}
    assert set(data["schedule"][0][0]) >= {"kind", "lane", "batch", "stage", "layer"}
    code, data = check_json("published-repair")
    assert code == 0
    assert data["acyclic"] is True
    assert data["path"] is data["violation"] is data["wait_for"] is None


def test_all_violations_lists_a_path_for_each():
    _, data = check_json("--admission", "lane_aware", "--all-violations")
    assert data["violating_states"] == len(data["violations"]) == 5
    assert len({v["path"] for v in data["violations"]}) == 5


def test_options_are_put_over_a_case_and_a_file(tmp_path):
    _, data = check_json("published-deadlock", "--admission", "ep_ordered")
    assert (data["verdict"], data["states"]) == ("holds", 278)
    path = tmp_path / "own.toml"
    path.write_text('lanes = 3\nstages = 1\nadmission = "strict_fifo"\n')
    _, data = check_json(str(path), "--no-ties")
    assert (data["states"], data["depth"]) == (45, 8)


def test_more_lanes_than_the_case_has_take_its_batches_anew():
    _, data = check_json("published-deadlock", "--lanes", "3")
    assert data["scenario"]["batches"] == [2, 2, 2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--admission", "fifo"], "unknown admission 'fifo'"),
        (["--lanes", "0"], "lanes must be a whole number of at least 1"),
        (["--batches", "1,2,3"], "batches must have one entry per lane"),
        (["--phases", "p;d;p"], "phases must have one sequence per lane"),
        (["--phases", "p,d;d", "--batches", "1"], "phases of lane 0"),
        (["no-such-case"], "no case named 'no-such-case'"),
        (["missing.toml"], "cannot read missing.toml"),
        (["broken.toml"], "broken.toml is not valid TOML"),
        (["unknown.toml"], "unknown field 'lane'"),
        (["--max-states", "0"], "--max-states must be a number greater than 0"),
        (["--max-seconds", "nan"], "--max-seconds must be a number greater than 0"),
        (["--max-memory-gb", "inf"], "--max-memory-gb must be a number greater than 0"),
        (["--lanes", "99999999999999999999"], "lanes must be at most 10,000"),
        (["--json", "no/such/folder.json"], "does not exist"),
        (["--lanes", "two"], "--lanes"),
    ],
)
def test_bad_input_exits_2_with_one_message_and_writes_nothing(tmp_path, arguments, said):
    (tmp_path / "broken.toml").write_text("lanes = [")
    (tmp_path / "unknown.toml").write_text("lane = 2\n")
    before = sorted(tmp_path.iterdir())
    output = [] if "--json" in arguments else ["--json", "out.json"]
    done = run("check", *arguments, *output, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(tmp_path.iterdir()) == before


def test_a_limit_exits_3_and_is_never_called_success():
    done = run("check", "--lanes", "3", "--stand-in", "withdraw_joined", "--max-states", "100")
    assert done.returncode == 3
    assert "undetermined" in done.stdout
    assert "holds" not in done.stdout


def until_it_has_worked(pid, seconds, most=60.0):
    """Wait until a process has used this much processor time, however busy the machine is."""
    deadline = time.monotonic() + most
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        time.sleep(5)
    while stat.exists() and time.monotonic() < deadline:
        fields = stat.read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") >= seconds:
            break
        time.sleep(0.1)


def test_interrupt_gives_undetermined_with_what_is_known(tmp_path):
    out = tmp_path / "out.json"
    arguments = ["check", "--lanes", "4", "--stages", "3", "--stand-in", "withdraw_joined"]
    child = subprocess.Popen(
        [*PROGRAM, *arguments, "--json", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    until_it_has_worked(child.pid, 4.0)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 3, stderr
    assert "interrupted" in stdout
    data = json.loads(out.read_text())
    assert data["verdict"] == "undetermined"
    assert data["states"] > 0
    assert data["acyclic"] is None


def test_replay_ends_in_the_reported_state():
    _, data = check_json("--admission", "lane_aware")
    done = run("replay", data["path"], "--json", "-")
    assert done.returncode == 1
    again = json.loads(done.stdout)
    assert again["outcome"] == "drained"
    assert again["classification"] == data["classification"]
    assert again["stages"] == data["stages"]
    assert again["wait_for"] == data["wait_for"]
    assert [step["instant"] for step in again["steps"]] == data["schedule"]
    text = run("replay", data["path"]).stdout
    assert "refused: behind ticket seq" in text
    assert "EP wave of lane 0, 1 dispatched" in text


@pytest.mark.parametrize("path", ["nonsense", "fv1-AAAA", "fv0-AAAA"])
def test_a_foreign_path_exits_2(path):
    done = run("replay", path)
    assert done.returncode == 2
    assert "path" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_command_twice_prints_the_same():
    first, second = (run("check", "--admission", "late_ticket").stdout for _ in range(2))
    assert first == second


def test_cases_list_and_show():
    listed = run("cases", "list")
    assert listed.returncode == 0
    assert "published-deadlock" in listed.stdout
    shown = run("cases", "show", "published-deadlock")
    assert "circular_wait at depth 1" in shown.stdout
    assert "twin that holds: published-repair" in shown.stdout
    assert run("cases", "show", "nothing").returncode == 2


def test_catalogue_differs_from_a_wrong_expectation(tmp_path):
    """A catalogue with one wrong count exits 1 and names the difference."""
    cases = tmp_path / "cases"
    cases.mkdir()
    source = Path(__file__).parents[3] / "models" / "cases" / "published-repair.toml"
    (cases / "wrong.toml").write_text(source.read_text().replace("states = 278", "states = 277"))
    program = (
        "import pathlib, models.catalogue as c; "
        f"c.CASES = pathlib.Path({str(cases)!r}); from verify.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "states: expected 277, found 278" in done.stdout


def test_a_limit_is_heeded_among_the_instants_of_one_state():
    """Forty pending events have a million million instants; the time limit ends the search."""
    done = run("check", "--lanes", "40", "--batches", "1", "--max-seconds", "1")
    assert done.returncode == 3
    assert "the limit of 1 seconds was reached" in done.stdout
