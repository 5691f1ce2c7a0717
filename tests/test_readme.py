"""Every command that README shows is run again, and what it shows must be what it prints.

A ``console`` block holds commands after ``$`` and their output; a line ``...`` stands for any
lines, and ``...`` inside a line for any text. A ``python`` block that begins with a comment naming
a file is that file.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
FILES = {
    match[1]: text
    for kind, text in BLOCKS
    if kind == "python" and (match := re.match(r"# (\S+\.py)\n", text))
}


def shown():
    """Every command with the output shown for it."""
    for kind, text in BLOCKS:
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield command, output.splitlines()


def pattern(lines):
    """Regular expression that the whole output must match."""
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            text = ".*".join(re.escape(piece) for piece in line.rstrip().split("..."))
            parts.append(text + r" *\n")
    return "".join(parts)


@pytest.mark.parametrize(
    ("command", "output"), list(shown()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_command_prints_what_is_shown(tmp_path, command, output):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        shlex.split(command),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    assert "Traceback" not in done.stderr
    assert re.fullmatch(pattern(output), done.stdout), done.stdout + done.stderr


def test_readme_shows_commands_of_its_own_files():
    assert FILES
    assert len(list(shown())) >= 5
