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
    assert "without any fairness" in printed


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
