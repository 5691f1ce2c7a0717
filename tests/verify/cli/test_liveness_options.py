"""The liveness options of ``check``, and the replay of a lasso."""

import json

import pytest
from typer.testing import CliRunner

from verify.cli import app
from verify.cli.errors import UsageError

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
