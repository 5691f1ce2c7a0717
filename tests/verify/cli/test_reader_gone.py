"""A reader that closes the pipe never turns a verdict into another one."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "published-repair", "--json", "-"],
        ["check", "published-repair"],
        ["check", "--help"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_has_an_exit_code_of_its_own(arguments: list[str]) -> None:
    run = "from verify.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", run, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 141
    assert b"Traceback" not in said
    assert b"Exception ignored" not in said
