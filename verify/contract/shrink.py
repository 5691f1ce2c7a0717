"""Shrinking of a call sequence: leave calls out as long as the same clause breaks."""

from __future__ import annotations

from collections.abc import Callable

from verify.contract.clauses import CLAUSE
from verify.contract.explore import Finding
from verify.contract.operations import Call
from verify.contract.reference import ContextState, Reference

Replay = Callable[[tuple[Call, ...]], Finding | None]


def shrink(finding: Finding, replay: Replay) -> Finding:
    """Return a sequence from which no single call and no single operation can be left out.

    Two passes take turns until neither finds anything: runs of calls, halving down to one, and
    all the calls that name one operation (a wave that is queued only to be cancelled goes whole).
    ``replay`` gives the first deviation of a sequence; only one of the same clause counts. A pass
    goes on where it is after a success, so that long sequences take few replays.
    """
    length = len(finding.calls) + 1
    while len(finding.calls) < length:
        length = len(finding.calls)
        finding = _without_operations(_without_runs(finding, replay), replay)
    return finding


def _accepted(finding: Finding, kept: tuple[Call, ...], replay: Replay) -> Finding | None:
    found = replay(kept)
    if found is None or found.deviation.clause != finding.deviation.clause:
        return None
    return found if len(found.calls) < len(finding.calls) else None


def _without_runs(finding: Finding, replay: Replay) -> Finding:
    run = max(len(finding.calls) // 2, 1)
    while run:
        end = len(finding.calls)
        while end > 0:
            calls = finding.calls
            found = _accepted(finding, calls[: max(end - run, 0)] + calls[end:], replay)
            end -= run
            if found is not None:
                finding = found
                end = min(end, len(found.calls))
        run //= 2
    return finding


def _without_operations(finding: Finding, replay: Replay) -> Finding:
    operations = dict.fromkeys(op for call in finding.calls for op in (*call.tickets, *call.new))
    for operation in operations:
        kept = tuple(
            call
            for call in finding.calls
            if operation not in call.tickets and operation not in call.new
        )
        finding = _accepted(finding, kept, replay) or finding
    return finding


def charged(finding: Finding, reference: Reference) -> Finding:
    """Charge a deviation that needs an earlier failed call to that call's atomicity.

    No call of a shrunk sequence can be left out; one that had to change nothing changed something.
    """
    culprit = _ineffective_before_last(finding, reference)
    if culprit is None:
        return finding
    return finding._replace(deviation=finding.deviation._replace(clause=culprit))


def _ineffective_before_last(finding: Finding, reference: Reference) -> str | None:
    """Clause of an error or refusal before the last call, None if there is none."""
    state = ContextState()
    for call in finding.calls[:-1]:
        expectation = reference.expect(state, call)
        if expectation.outcome == "error":
            return CLAUSE["error_atomic"].key
        if expectation.outcome == "false":
            return CLAUSE["refusal_atomic"].key
        state = expectation.after
    return None
