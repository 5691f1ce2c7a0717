"""Shrinking of a call sequence: leave calls out as long as the same clause breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from verify.contract.explore import Finding
from verify.contract.operations import Call

Replay = Callable[[tuple[Call, ...]], Finding | None]


def shrink(finding: Finding, replay: Replay) -> Finding:
    """Return a sequence from which no single call and no single operation can be left out.

    Two passes take turns until neither finds anything: runs of calls, halving down to one, and
    all the calls that name one operation (a wave that is queued only to be cancelled goes whole).
    ``replay`` gives the first deviation of a sequence; only one of the same clause counts.
    """
    shorter: Finding | None = finding
    while shorter is not None:
        finding = shorter
        shorter = next(
            (
                found
                for kept in (*_without_an_operation(finding.calls), *_without_a_run(finding.calls))
                if (found := replay(kept)) is not None
                and found.deviation.clause == finding.deviation.clause
                and len(found.calls) < len(finding.calls)
            ),
            None,
        )
    return finding


def _without_an_operation(calls: tuple[Call, ...]) -> Iterator[tuple[Call, ...]]:
    operations = dict.fromkeys(op for call in calls for op in (*call.tickets, *call.new))
    for operation in operations:
        yield tuple(c for c in calls if operation not in c.tickets and operation not in c.new)


def _without_a_run(calls: tuple[Call, ...]) -> Iterator[tuple[Call, ...]]:
    run = len(calls) // 2
    while run:
        for end in range(len(calls), 0, -run):
            yield calls[: max(end - run, 0)] + calls[end:]
        run //= 2
