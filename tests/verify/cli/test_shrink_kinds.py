"""``shrink`` of stale work, closed workloads, lassos and groups; own rules in kept tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from models.regression import RULES_VARIABLE

from .program import Program, program

__all__ = ["program"]

LASSOS = ("capacity-one-starvation", "partial-deadlock", "preempted-for-ever")
ON_THE_WAY = ("stale-orphan-ticket", "stale-wrong-lane")
DRAINED = ("stale-no-wake", "closed-strict-fifo", "closed-split-phases")

TOO_STRICT = """
class Mine:
    def blockers(self, ticket, queue, active):
        return queue[: queue.index(ticket)]
"""
REPAIRED = """
from frontier.tickets import EP_WAVE
class Mine:
    def blockers(self, ticket, queue, active):
        ahead = queue[: queue.index(ticket)]
        return ahead if ticket.scope == EP_WAVE else [t for t in ahead if t.scope == EP_WAVE]
"""
OTHERWISE_WRONG = """
class Mine:
    def blockers(self, ticket, queue, active):
        ahead = queue[: queue.index(ticket)]
        return [t for t in ahead if t.operation_id.lane != ticket.operation_id.lane]
"""


def run_tests(path: Path, cwd: Path, rules: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(path)]
    environment = {**os.environ, RULES_VARIABLE: rules}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, check=False
    )


@pytest.mark.parametrize("case", [*LASSOS, *ON_THE_WAY, *DRAINED])
def test_any_violated_case_is_shrunk_witnessed_replayed_and_kept(
    program: Program, tmp_path: Path, case: str
):
    witness, test = tmp_path / "w.json", tmp_path / "test_kept.py"
    done = program("shrink", case, "--witness", witness, "--emit-pytest", test, "--json", "-")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["minimal"] is True
    assert all(row["proved"] for row in data["minimality"])
    assert (data["lasso"] is not None) == (case in LASSOS)
    timed = program("simulate", witness, "--json", "-")
    assert timed.code == 1, timed.err
    ran = json.loads(timed.out)
    expected = "repeats" if case in LASSOS else "violated" if case in ON_THE_WAY else "drained"
    assert ran["outcome"] == expected
    assert ran["classification"] == (None if case in LASSOS else data["classification"])
    assert program("replay", data["path"]).code == 1
    kept = run_tests(test, tmp_path)
    repaired = 0 if data["repair"] is None else 1
    assert f"1 failed, {1 + repaired} passed" in kept.stdout, kept.stdout
    again = json.loads(program("shrink", data["path"], "--json", "-").out)
    assert (again["scenario"], again["schedule"]) == (data["scenario"], data["schedule"])


def test_a_lasso_prints_its_period_and_says_what_repeats(program: Program):
    done = program("shrink", "capacity-one-starvation")
    assert "3 instants, the last 2 for ever, 0 ties" in done.out
    assert "from here on for ever, every 2 ms:" in done.out
    assert "repeats the cycle every 2 ms (3 rounds were run)" in done.out
    assert "without a slot of every lane" in done.out


def test_a_stage_fed_by_groups_is_shrunk(program: Program, tmp_path: Path):
    """A rule that lets dense groups pass a wave: of three producers one pair is enough."""
    rule = tmp_path / "mine.py"
    rule.write_text(
        "class Mine:\n    def blockers(self, ticket, queue, active):\n        return []\n"
    )
    scenario = tmp_path / "groups.toml"
    scenario.write_text(
        f'groups = "d,e,d;e,d;d"\nep_size = 3\nadmission = "{rule}:Mine"\n', encoding="utf-8"
    )
    done = program("shrink", scenario, "--json", "-", "--witness", tmp_path / "w.json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["classification"] == "wave_order"
    assert data["minimal"] is True
    assert sum(map(len, data["scenario"]["groups"])) <= 3
    assert data["scenario"]["ep_size"] == 1
    assert program("simulate", tmp_path / "w.json").code == 1
    assert program("explain", data["path"]).code == 0


def test_a_kept_test_of_ones_own_rule_moves_with_it_and_notices_its_repair(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "tests").mkdir(parents=True)
    elsewhere.mkdir()
    rule = home / "mine.py"
    rule.write_text(TOO_STRICT)
    monkeypatch.chdir(home)
    result, test = home / "r.json", home / "tests" / "test_kept.py"
    assert program("check", "--admission", "mine.py:Mine", "--json", result).code == 1
    done = program("shrink", result, "--emit-pytest", test)
    assert done.code == 0, done.err
    assert "../mine.py:Mine" in test.read_text()
    for cwd in (home, elsewhere, home / "tests"):
        assert "1 failed, 2 passed" in run_tests(test, cwd).stdout
    rule.write_text(REPAIRED)
    repaired = run_tests(test, elsewhere)
    assert repaired.returncode == 0, repaired.stdout
    assert "2 passed, 1 skipped" in repaired.stdout
    assert "answers otherwise than when this was recorded" in repaired.stdout
    rule.write_text(OTHERWISE_WRONG)
    wrong = run_tests(test, elsewhere)
    assert wrong.returncode == 1
    stale = program("replay", json.loads(result.read_text())["path"])
    assert stale.code in (1, 2)


@pytest.mark.parametrize(
    ("run", "classification", "shape"),
    [
        ("--lanes 4 --stages 2 --admission strict_fifo", "circular_wait", (2, 2, [1, 2])),
        (
            "--lanes 4 --stages 1 --arrivals poisson:60 --seed 1 --rooms shared --decode 3",
            "stranded_rendezvous",
            (3, 1, [1, 1, 1]),
        ),
    ],
)
def test_the_stuck_replica_of_a_disaggregated_run_is_shrunk(
    program: Program, tmp_path: Path, run: str, classification: str, shape: tuple[object, ...]
):
    log = tmp_path / "run.jsonl"
    pdd = "--architecture pdd --layers 3 --requests 24"
    assert program("simulate", *pdd.split(" "), *run.split(" "), "--events", log).code == 1
    data = json.loads(program("shrink", log, "--json", "-").out)
    assert data["origin"]["classification"] == data["classification"] == classification
    scenario = data["scenario"]
    assert (scenario["lanes"], scenario["stages"], scenario["batches"]) == shape


def test_pd_af_has_no_log_of_one_replica_and_says_why(program: Program, tmp_path: Path):
    log = tmp_path / "run.jsonl"
    shape = "--architecture pd-af --lanes 1 --stages 1 --layers 2 --requests 4"
    done = program("simulate", *shape.split(" "), "--events", log)
    assert (done.code, "in another cluster" in done.err) == (2, True)
    assert not log.exists()
