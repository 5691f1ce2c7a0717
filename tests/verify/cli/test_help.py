"""The help says what happens without an option, and the program which version it is."""

from importlib.metadata import version

import pytest

from .program import program

__all__ = ["program"]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_version(program):
    done = program("--version")
    assert (done.code, done.out.strip()) == (0, f"frontier-verify {version('frontier-verify')}")


@pytest.mark.parametrize(
    ("option", "usual"),
    [("--lanes", "2"), ("--admission", "ep_ordered"), ("--capacity", "lanes"), ("--ties", "ties")],
)
def test_the_help_of_check_shows_what_is_usual(program, option, usual):
    lines = program("check", "--help").out.splitlines()
    (line,) = [line for line in lines if f"{option} " in line]
    assert f"[default: ({usual})]" in line
