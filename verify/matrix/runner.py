"""Runs cases side by side, each in a child process of its own with a timeout."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Final

from verify.matrix.root import CHILD_FAILURES, MatrixRoot

FAILED: Final = "other_failure"
_TIMEOUT, _CRASH, _BAD_RESULT = CHILD_FAILURES
_ERROR_TAIL: Final = 2000


@dataclass(frozen=True)
class Job:
    """One case: its inputs, and the command whose standard output is its result.

    The result is one JSON object: ``outcome`` (an object with at least the outcome class under
    ``outcome``) and ``files`` (name to content).
    """

    case_id: str
    inputs: Mapping[str, Any]
    command: Sequence[str]


@dataclass(frozen=True)
class JobResult:
    """What a child process said, or that it failed."""

    outcome: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)


def _failure(kind: str, message: str) -> JobResult:
    return JobResult({"outcome": FAILED, "error": {"kind": kind, "message": message}})


def run_job(job: Job, timeout_s: float) -> JobResult:
    """Run one case; a child that hangs is killed, one that dies or talks nonsense has failed."""
    process = subprocess.Popen(
        list(job.command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return _failure(_TIMEOUT, f"killed after {timeout_s:g} s without a result")
    finally:
        # Also on Ctrl-C: no child outlives the matrix.
        if process.poll() is None:
            process.kill()
            process.communicate()
    if process.returncode != 0:
        return _failure(_CRASH, f"exit code {process.returncode}: {errors[-_ERROR_TAIL:].strip()}")
    try:
        result = json.loads(output)
        return JobResult(dict(result["outcome"]), dict(result["files"]))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        return _failure(_BAD_RESULT, f"{error!r} in {output[:_ERROR_TAIL]!r}")


def run_jobs(
    root: MatrixRoot,
    jobs: Sequence[Job],
    provenance: Mapping[str, Any],
    *,
    parallel: int,
    timeout_s: float,
    done: Callable[[Job, JobResult, float], None],
) -> None:
    """Run cases and store each as it ends; the caller holds the root's lock.

    Parameters
    ----------
    provenance
        Stored with every case, with the elapsed seconds.
    parallel
        Child processes at once.
    timeout_s
        Seconds that a child may take.
    done
        Called after each case has been stored, with its elapsed seconds.
    """

    def timed(job: Job) -> tuple[Job, JobResult, float]:
        begin = time.monotonic()
        return job, run_job(job, timeout_s), time.monotonic() - begin

    pool = ThreadPoolExecutor(parallel)
    try:
        for future in as_completed([pool.submit(timed, job) for job in jobs]):
            job, result, elapsed = future.result()
            root.write_case(
                job.case_id,
                job.inputs,
                {**provenance, "elapsed_s": round(elapsed, 3)},
                result.outcome,
                result.files,
            )
            done(job, result, elapsed)
    finally:
        pool.shutdown(cancel_futures=True)
