"""However a run ends, its exit code never says more than is known."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify.cli.errors import UsageError, require_writable

RUN = [sys.executable, "-c", "from verify.cli import main; main()"]
FULL = Path("/dev/full")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and devices of Linux")


def run(*args: str, **given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RUN, *args], check=False, text=True, **given)  # type: ignore[call-overload]


@pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("case", ["published-repair", "published-deadlock"])
def test_output_that_cannot_be_written_is_no_verdict(case: str) -> None:
    with FULL.open("w") as full:
        done = run("check", case, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.endswith("cannot read or write the output: No space left on device\n")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not FULL.is_char_device(), reason="needs /dev/full")
def test_a_report_that_cannot_be_written_does_not_cost_the_verdict(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    args = ("check", "published-deadlock", "--report", str(FULL), "--json", str(result))
    done = run(*args, capture_output=True)
    assert done.returncode == 2
    assert "violated: drained" in done.stdout
    assert json.loads(result.read_text())["verdict"] == "violated"
    assert "cannot write /dev/full: No space left on device" in done.stderr
    assert FULL.is_char_device()


def test_a_folder_that_takes_no_files_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="takes no new files"):
        require_writable(tmp_path / "result.json")


def test_an_error_that_nobody_foresaw_is_no_violation(tmp_path: Path) -> None:
    rule = tmp_path / "mine.py"
    rule.write_text(
        "class Odd(BaseException): pass\nclass Mine:\n    def blockers(self, *a): raise Odd('x')\n"
    )
    done = run("check", "--admission", f"{rule}:Mine", capture_output=True)
    assert done.returncode == 3
    assert "Odd: x in mine.py, line 3; nothing is proved" in done.stderr
    assert "Traceback" not in done.stderr
    debug = {**os.environ, "FRONTIER_VERIFY_DEBUG": "1"}
    done = run("check", "--admission", f"{rule}:Mine", capture_output=True, env=debug)
    assert "Traceback" in done.stderr


def test_a_request_to_end_tells_what_is_known(tmp_path: Path) -> None:
    rule = tmp_path / "slow.py"
    rule.write_text(
        "import pathlib, time\n"
        "class Mine:\n"
        "    def blockers(self, *a):\n"
        "        pathlib.Path(__file__).with_name('begun').touch()\n"
        "        time.sleep(0.1)\n"
        "        return []\n"
    )
    args = [*RUN, "check", "--admission", f"{rule}:Mine"]
    with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 30
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 3
    assert "undetermined: interrupted" in out


def test_where_letters_are_few_a_verdict_is_still_told(tmp_path: Path) -> None:
    rule = tmp_path / os.fsdecode(b"r\xff\xc3.py")
    rule.write_text("class Mine:\n    def blockers(self, *a): return []\n")
    few = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for args in (("check", "--help"), ("check", "--admission", f"{rule}:Mine")):
        for env in (few, dict(os.environ)):
            done = run(*args, capture_output=True, env=env, encoding="utf-8", errors="replace")
            assert done.returncode == 0, done.stderr
            assert "\ufffd" in done.stdout or "?" in done.stdout or "help" in args[1]
