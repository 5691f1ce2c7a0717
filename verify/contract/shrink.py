"""Shrinking of a call sequence: leave calls out as long as the same clause breaks."""

from __future__ import annotations

from collections.abc import Callable

from verify.contract.explore import Finding
from verify.contract.operations import Call

Replay = Callable[[tuple[Call, ...]], Finding | None]


def shrink(finding: Finding, replay: Replay) -> Finding:
    """Return a sequence of which no single call can be left out, in runs of halving length.

    ``replay`` gives the first deviation of a sequence; only one of the same clause counts.
    """
    run = max(len(finding.calls) // 2, 1)
    while True:
        shorter = _without_a_run(finding, run, replay)
        if shorter is not None:
            finding = shorter
            run = min(run, max(len(finding.calls) // 2, 1))
        elif run == 1:
            return finding
        else:
            run //= 2


def _without_a_run(finding: Finding, run: int, replay: Replay) -> Finding | None:
    calls = finding.calls
    for start in range(len(calls) - 1, -1, -run):
        kept = calls[: max(start - run + 1, 0)] + calls[start + 1 :]
        found = replay(kept)
        if (
            found is not None
            and found.deviation.clause == finding.deviation.clause
            and len(found.calls) < len(calls)
        ):
            return found
    return None
