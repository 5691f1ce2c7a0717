"""Child processes of a matrix: timeouts, crashes, nonsense, lock, whole or not at all."""

import json
import subprocess
import sys
import time

import pytest

from verify.matrix.root import MatrixError, MatrixRoot
from verify.matrix.runner import Job, run_job, run_jobs

CODE = {"sha256": "abc"}


def job(source, case_id="one"):
    return Job(case_id, {"n": 1}, [sys.executable, "-c", source])


def saying(value):
    return f"import json; print(json.dumps({value!r}))"


GOOD = {"outcome": {"outcome": "success"}, "files": {"a.csv": "x\n1\n"}}


def test_result_is_what_the_child_says():
    result = run_job(job(saying(GOOD)), 30)
    assert result.outcome == {"outcome": "success"}
    assert result.files == {"a.csv": "x\n1\n"}


def test_hung_child_is_killed_and_recorded():
    begin = time.monotonic()
    result = run_job(job("import time; time.sleep(60)"), 0.5)
    assert time.monotonic() - begin < 20
    assert result.outcome["outcome"] == "other_failure"
    assert result.outcome["error"] == {
        "kind": "timeout",
        "message": "killed after 0.5 s without a result",
    }


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("raise SystemExit(3)", "crash"),
        ("import os; os.abort()", "crash"),
        ("print('hello')", "bad result"),
        ("print('{}')", "bad result"),
    ],
)
def test_child_that_dies_or_talks_nonsense_has_failed(source, kind):
    assert run_job(job(source), 30).outcome["error"]["kind"] == kind


def run_all(root, jobs, timeout_s=30):
    with root.writing({"set": "s", "rule": "r"}):
        run_jobs(
            root,
            jobs,
            {"code": CODE},
            parallel=2,
            timeout_s=timeout_s,
            done=lambda job, result, elapsed: None,
        )


def test_cases_are_stored_whole_and_found_complete(tmp_path):
    root = MatrixRoot(tmp_path / "m")
    run_all(root, [job(saying(GOOD), "one"), job("raise SystemExit(1)", "two")])
    assert root.case_ids() == ["one", "two"]
    assert root.read_case("one").metrics == {"a.csv": "x\n1\n"}
    assert root.is_complete("one", {"n": 1}, CODE)
    assert not root.is_complete("one", {"n": 2}, CODE), "other inputs"
    assert not root.is_complete("one", {"n": 1}, {"sha256": "other"}), "other code"
    assert not root.is_complete("two", {"n": 1}, CODE), "a crash is run again"
    assert not list((tmp_path / "m" / "cases").glob(".tmp*"))


def test_a_case_is_replaced_whole(tmp_path):
    root = MatrixRoot(tmp_path / "m")
    run_all(root, [job(saying(GOOD))])
    run_all(root, [job(saying({"outcome": {"outcome": "other"}, "files": {}}))])
    assert root.read_case("one").outcome["outcome"] == "other"
    assert root.read_case("one").metrics == {}
    assert [p.name for p in (tmp_path / "m" / "cases").iterdir()] == ["one"]


def test_leftovers_of_a_killed_run_are_cleared(tmp_path):
    root = MatrixRoot(tmp_path / "m")
    run_all(root, [])
    half = tmp_path / "m" / "cases" / ".tmp-half"
    half.mkdir()
    (half / "outcome.json").write_text("{")
    assert root.case_ids() == []
    run_all(root, [job(saying(GOOD))])
    assert root.case_ids() == ["one"]
    assert not half.exists()


def test_lock_is_exclusive_between_processes(tmp_path):
    holder = (
        "import sys, time\nfrom pathlib import Path\nfrom verify.matrix.root import MatrixRoot\n"
        f"with MatrixRoot(Path({str(tmp_path / 'm')!r})).writing({{'set': 's', 'rule': 'r'}}):\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        with (
            pytest.raises(MatrixError, match="another process is writing"),
            MatrixRoot(tmp_path / "m").writing({"set": "s", "rule": "r"}),
        ):
            pass
        process.stdin.close()
    run_all(MatrixRoot(tmp_path / "m"), [])


def test_a_folder_of_another_matrix_is_refused(tmp_path):
    run_all(MatrixRoot(tmp_path), [])
    with (
        pytest.raises(MatrixError, match="holds another matrix"),
        MatrixRoot(tmp_path).writing({"set": "s", "rule": "other"}),
    ):
        pass


def test_a_file_that_was_changed_is_seen(tmp_path):
    root = MatrixRoot(tmp_path)
    run_all(root, [job(saying(GOOD))])
    (tmp_path / "cases" / "one" / "a.csv").write_text("x\n2\n")
    assert root.read_case("one").damage == ("a.csv does not match its recorded sha256",)
    outcome = json.loads((tmp_path / "cases" / "one" / "outcome.json").read_text())
    assert len(outcome["sha256"]["a.csv"]) == 64


PARENT = """
import sys
from pathlib import Path
from verify.matrix.root import MatrixRoot
from verify.matrix.runner import Job, run_jobs
say = 'import json, time; time.sleep({}); print(json.dumps({}))'
good = {"outcome": {"outcome": "success"}, "files": {"a.csv": "x" * 100000}}
jobs = [
    Job(f"case{n}", {"n": 1}, [sys.executable, "-c", say.format(0 if n < 2 else 20, repr(good))])
    for n in range(4)
]
root = MatrixRoot(Path(sys.argv[1]))
with root.writing({"set": "s", "rule": "r"}):
    run_jobs(root, jobs, {"code": {"sha256": "abc"}}, parallel=2, timeout_s=100,
             done=lambda job, result, elapsed: print(job.case_id, flush=True))
"""


def test_a_killed_run_leaves_whole_cases_and_is_completed_by_a_rerun(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        done = {parent.stdout.readline().strip() for _ in range(2)}
        parent.kill()
    root = MatrixRoot(tmp_path)
    assert set(root.case_ids()) == done == {"case0", "case1"}
    assert all(root.is_complete(name, {"n": 1}, CODE) for name in done)
    assert not any(root.read_case(name).damage for name in done)
    missing = [f"case{n}" for n in range(4) if not root.is_complete(f"case{n}", {"n": 1}, CODE)]
    assert missing == ["case2", "case3"]
    run_all(root, [job(saying(GOOD), name) for name in missing])
    assert root.case_ids() == ["case0", "case1", "case2", "case3"]
