"""Running the command-line program in this process."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

import pytest

from verify.cli import main


class Run(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


def run(*args: object) -> Run:
    out, err = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", ["frontier-verify", *map(str, args)]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return Run(int(ended.value.code or 0), out.getvalue(), err.getvalue())
