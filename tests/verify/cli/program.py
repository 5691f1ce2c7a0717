"""Runs the command-line program in this process."""

import sys
from dataclasses import dataclass

import pytest

from verify.cli import main


@dataclass
class Done:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


class Program:
    """``program("check", "published-deadlock")`` runs ``frontier-verify check …``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *args: object) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["frontier-verify", *map(str, args)])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main()
        printed = self._capsys.readouterr()
        code = exit_.value.code
        return Done(code if isinstance(code, int) else 0, printed.out, printed.err)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Program:
    return Program(monkeypatch, capsys)
