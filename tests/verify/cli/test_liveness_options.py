"""The liveness options of ``check``, and the replay of a lasso."""

import json

import pytest
from typer.testing import CliRunner

from models.quiescent import QuiescentModel
from models.scenario import Scenario
from verify.cli import app, checking
from verify.cli.checking import check_scenario
from verify.cli.errors import UsageError
from verify.limits import LimitReachedError, Limits, watch

STARVING = ["--workload", "closed", "--slots", "2", "--model", "dense", "--capacity", "1"]


def run(*arguments):
    return CliRunner().invoke(app, arguments)


def test_a_lasso_is_printed_and_replayed():
    result = run("check", *STARVING, "--json", "-")
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["violation"] == "starvation"
    assert data["schedule"] == data["lasso"]["stem"] + data["lasso"]["cycle"]
    replayed = run("replay", data["path"], "--json", "-")
    assert replayed.exit_code == 1
    assert json.loads(replayed.stdout)["outcome"] == "repeating"
    printed = run("check", *STARVING).stdout
    assert "from here on for ever" in printed
    assert "control, without fairness: 4 of 4 such properties are violated" in printed


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        (["--admission", "strict_fifo"], {"stops"}),
        (["--stages", "1"], {"stops"}),
        (["--lanes", "2", "--capacity", "2"], {"unfair_cycle"}),
        (["--fairness", "strong"], {"fair_cycle"}),
    ],
)
def test_each_liveness_verdict_has_a_control_of_a_known_kind_that_replays(options, kinds):
    data = json.loads(run("check", *STARVING, *options, "--json", "-").stdout)
    assert data["verdict"] == "holds"
    controls = [row["control"] for row in data["liveness"]]
    assert {control["kind"] for control in controls} == kinds
    for row, control in zip(data["liveness"], controls, strict=True):
        assert (row["verdict"], row["without_fairness"]) == ("holds", "violated")
        assert (control["held_back"] is None) == (control["kind"] == "fair_cycle")
        replayed = json.loads(run("replay", control["path"], "--json", "-").stdout)
        assert replayed["outcome"] == ("repeating" if control["cycle"] else "running")
        assert replayed["depth"] == control["stem"] + control["cycle"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--batches", "0"], "there is no work"),
        (["--groups", "d", "--property", "starvation"], "nothing is ever owed that starvation"),
    ],
)
def test_a_verdict_about_nothing_is_called_vacuous(options, words):
    printed = run("check", *options)
    assert printed.exit_code == 0
    assert f"holds vacuously: {words}" in printed.stdout
    data = json.loads(run("check", *options, "--json", "-").stdout)
    assert (data["verdict"], data["vacuous"]) == ("holds", True)
    assert not json.loads(run("check", "--batches", "1", "--json", "-").stdout)["vacuous"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--property", "drained"], 0),
        (["--property", "progress"], 1),
        (["--property", "starvation", "--fairness", "strong"], 0),
        (["--property", "starvation", "--fairness", "none"], 1),
        (["--max-states", "5"], 3),
    ],
)
def test_exit_codes(options, code):
    assert run("check", *STARVING, *options).exit_code == code


def test_a_closed_workload_cannot_be_simulated(tmp_path):
    file = tmp_path / "closed.toml"
    file.write_text('workload = "closed"\nslots = 1\n')
    assert run("check", str(file)).exit_code == 0
    result = run("simulate", str(file))
    assert isinstance(result.exception, UsageError)
    assert "never ends" in str(result.exception)


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (LimitReachedError("the limit of 1 seconds was reached"), "the limit of 1 seconds"),
    ],
)
def test_runs_that_were_not_all_judged_prove_nothing(monkeypatch, trouble, words):
    def give_up(*_):
        raise trouble

    monkeypatch.setattr(checking, "judge_liveness", give_up)
    closed = ["--workload", "closed", "--stages", "1"]
    printed = run("check", *closed)
    assert printed.exit_code == 3
    assert f"undetermined: {words}" in printed.stdout
    assert "not every run was judged" in printed.stdout
    data = json.loads(run("check", *closed, "--json", "-").stdout)
    assert (data["verdict"], data["complete"], data["liveness"]) == ("undetermined", True, None)
    assert words in data["limit"]
    # A bad state stays one, whatever became of the runs.
    drained = run("check", *closed, "--lanes", "3", "--admission", "strict_fifo")
    assert drained.exit_code == 1


def test_limits_are_heeded_between_two_properties():
    scenario = Scenario.of({"workload": "closed", "stages": 1})
    look = watch(Limits(max_seconds=1), 5, 2.0)
    with pytest.raises(LimitReachedError, match="1 seconds"):
        look()
    result = check_scenario(scenario, limits=Limits(max_seconds=1000))
    assert result.verdict_word == "holds"


@pytest.mark.parametrize(
    "option", [["--report", "x.html"], ["--property", "all"], ["--fairness", "weak"],
               ["--all-violations"], ["--threads", "2"]],
)  # fmt: skip
def test_what_a_comparison_would_ignore_is_refused(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("check", "--groups", "d;d", "--same-as", "strict_fifo", *option)
    assert isinstance(result.exception, UsageError)
    assert f"{option[0]} does not go with --same-as" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_comparison_decides_nothing(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(QuiescentModel, "actions", interrupt)
    result = run("check", "--groups", "d;d", "--same-as", "strict_fifo")
    assert result.exit_code == 3
    assert "interrupted" in result.stdout


def test_what_is_left_open_by_the_specification_is_noted():
    asked = ["check", "--groups", "d,e", "--admission", "late_ticket"]
    assert "is not specified" in run(*asked).stdout
    assert "is not specified" in json.loads(run(*asked, "--json", "-").stdout)["notes"][0]
    assert json.loads(run("check", "--groups", "d,e", "--json", "-").stdout)["notes"] == []


def test_an_own_rule_under_a_closed_workload_is_confirmed_by_runs_of_bounded_length(tmp_path):
    rule = tmp_path / "lifo.py"
    rule.write_text(
        "class Lifo:\n"
        "    def blockers(self, ticket, queue, active):\n"
        "        return queue[queue.index(ticket) + 1 :]\n"
    )
    closed = ["--workload", "closed", "--model", "dense", "--capacity", "1", "--stages", "1"]
    result = run("check", *closed, "--admission", f"{rule}:Lifo")
    assert result.exit_code == 0
    assert "for any number of requests" in result.stdout


def test_the_headline_names_every_violated_property():
    done = CliRunner().invoke(app, ["check", *STARVING])
    text = " ".join(done.output.split())
    assert "violated: starvation (starvation) at depth 1, and progress; 4 violating" in text


def test_a_case_file_is_asked_what_it_says(tmp_path):
    path = tmp_path / "case.toml"
    path.write_text('property = "progress"\n[scenario]\nworkload = "closed"\nslots = 1\n')
    shown = run("check", str(path), "--json", "-")
    assert {found["property"] for found in json.loads(shown.stdout)["liveness"]} == {"progress"}
