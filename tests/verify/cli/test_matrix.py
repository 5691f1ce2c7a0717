"""``frontier-verify matrix run|compare`` as a person meets it (issue 3)."""

import json

import pytest
from typer.testing import CliRunner

from models.matrix import SETS
from models.rules import RuleError
from verify.cli import app
from verify.cli.errors import UsageError

CASES = "G3a-moe-dp2-pp2-n4,G4-dense-dp2-pp1-n4,G4-dense-dp2-pp2-n8"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def matrix(*arguments):
    return CliRunner().invoke(app, ["matrix", *arguments])


def ok(done, code=0):
    assert done.exit_code == code, (done.output, done.exception)
    return done


def test_run_both_rules_and_compare(tmp_path):
    done = ok(matrix("run", "--case", CASES, "--jobs", "2"))
    assert "every published figure of 3 cases is reproduced" in done.output
    folder = tmp_path / "matrix" / "published" / "strict_fifo" / "cases" / "G3a-moe-dp2-pp2-n4"
    assert {p.name for p in folder.iterdir()} >= {
        "inputs.json",
        "provenance.json",
        "outcome.json",
        "state.json",
        "requests.csv",
    }
    provenance = json.loads((folder / "provenance.json").read_text())
    assert set(provenance["code"]) == {"revision", "clean", "version", "sha256"}
    assert json.loads((folder / "state.json").read_text())["wait_for"]["cycle"]

    assert "(3 kept)" in ok(matrix("run", "--case", CASES)).output
    compared = ok(
        matrix("compare", "--before", "strict_fifo", "--after", "ep_ordered", "--json", "-")
    )
    data = json.loads(compared.stdout)
    assert data["verdicts"] == {"PASS": 2, "EXPLAIN": 1, "STOP": 0}
    assert data["deadlocks_repaired"] == 1

    victim = tmp_path / "matrix/published/ep_ordered/cases/G4-dense-dp2-pp1-n4/stages.jsonl"
    victim.write_text(victim.read_text().replace('"end_s": 0.092', '"end_s": 0.093'))
    stopped = ok(matrix("compare", "--before", "strict_fifo", "--after", "ep_ordered"), code=1)
    assert "STOP" in stopped.output


def test_a_hung_case_is_recorded_and_run_again(tmp_path):
    one = ("run", "--rule", "ep_ordered", "--case", "G4-dense-dp2-pp1-n4", "--root", "m")
    done = ok(matrix(*one, "--case-timeout", "0.001"), code=1)
    assert "timeout: killed after 0.001 s" in done.output
    outcome = json.loads((tmp_path / "m/cases/G4-dense-dp2-pp1-n4/outcome.json").read_text())
    assert outcome["outcome"] == "other_failure"
    assert "(0 kept): 1 success" in ok(matrix(*one)).output


def test_a_set_of_ones_own_and_a_case_that_cannot_be(tmp_path):
    content = json.loads((SETS / "published.json").read_text())
    case = {**content["cases"][0], "case_id": "odd", "pipeline_stages": 4}
    for name in ("outcome_strict_fifo", "outcome_ep_ordered"):
        del case[name]
    (tmp_path / "mine.json").write_text(json.dumps({**content, "cases": [case]}))
    done = ok(matrix("run", "--set", "mine.json", "--rule", "ep_ordered"), code=1)
    assert "1 configuration_rejection" in done.output
    assert "cannot be cut into 4 equal pipeline stages" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--set", "nothing"), "no set 'nothing'; packaged sets: published"),
        (("run", "--group", "G9"), "has no group 'G9'"),
        (("run", "--case", "x"), "has no case 'x'"),
        (("run", "--rule", "best"), "unknown admission 'best'"),
        (("run", "--case-timeout", "0"), "must be greater than 0"),
        (("compare", "--before", "a", "--after", "b"), "no matrix folder 'a'"),
        (("compare", "--before", ".", "--after", "."), "expected a folder of matrix run"),
    ],
)
def test_bad_input(arguments, message, tmp_path):
    done = matrix(*arguments)
    assert isinstance(done.exception, UsageError | RuleError), done.output
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_rule_from_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Nobody:\n    def blockers(self, ticket, queue, active):\n        return ()\n"
    )
    one = ("run", "--rule", "mine.py:Nobody", "--case", "G4-dense-dp2-pp1-n4")
    assert "1 success; in matrix/published/mine.py_Nobody" in ok(matrix(*one)).output
    assert "(0 kept)" in ok(matrix(*one)).output, "the file may have changed"


def test_a_folder_of_the_same_name_where_one_stands_is_not_taken_for_ours(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "__init__.py").write_text("raise SystemExit('not ours')")
    ok(matrix("run", "--rule", "ep_ordered", "--case", "G4-dense-dp2-pp1-n4", "--root", "m"))


def own_set(tmp_path, **changed):
    content = json.loads((SETS / "published.json").read_text())
    small = [case for case in content["cases"] if case["case_id"] == "G4-dense-dp2-pp1-n4"]
    content["cases"] = [{**case, **changed} for case in small]
    (tmp_path / "own.json").write_text(json.dumps(content))


@pytest.mark.parametrize("name", ["../../out", "/out", "..", "", ".new", "a/b", "a" * 300, "a\0b"])
def test_a_case_id_never_leads_out_of_the_matrix(tmp_path, name):
    own_set(tmp_path, case_id=name)
    done = matrix("run", "--set", "own.json", "--rule", "ep_ordered", "--root", "m")
    assert isinstance(done.exception, UsageError)
    assert "case_id must be letters" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["own.json"]


def test_a_set_without_cases_and_a_choice_of_none_are_refused(tmp_path):
    own_set(tmp_path)
    content = json.loads((tmp_path / "own.json").read_text())
    (tmp_path / "own.json").write_text(json.dumps({**content, "cases": []}))
    assert "has no case" in str(matrix("run", "--set", "own.json").exception)
    choice = ("--group", "G3a", "--case", "G4-dense-dp2-pp1-n4")
    assert "no case of set published" in str(matrix("run", *choice).exception)


def test_more_requests_than_a_machine_holds_are_a_bad_configuration(tmp_path):
    for arrival in ("burst", "poisson:10"):
        own_set(tmp_path, requests=10**12, arrival=arrival)
        done = matrix("run", "--set", "own.json", "--rule", "ep_ordered", "--root", arrival[:5])
        assert done.exit_code == 1
        assert "requests must be at most 1,000,000" in done.output.replace("\n", "")


def test_an_interrupted_run_says_how_to_go_on(monkeypatch):
    def interrupted(*_args, **_given):
        raise KeyboardInterrupt

    monkeypatch.setattr("verify.cli.matrix.run_jobs", interrupted)
    done = ok(matrix("run", "--case", "G4-dense-dp2-pp1-n4"), code=3)
    assert "the same command runs the others" in done.stderr
