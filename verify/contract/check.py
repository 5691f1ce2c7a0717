"""One contract check: drills, exhaustive explorations, and the verdict clause by clause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from verify.contract.clauses import Clause, clauses_of
from verify.contract.client import Bounds
from verify.contract.drills import drill
from verify.contract.explore import Exploration, Explorer, Finding, replay
from verify.contract.implementation import Implementation
from verify.contract.live import live_runs
from verify.contract.orders import Order
from verify.contract.reference import Reference
from verify.contract.report import ClauseResult, ContractReport
from verify.contract.session import Profile
from verify.contract.shrink import charged, shrink

UNFAITHFUL: Final = "a copy does otherwise than the context that it was copied from"
UNREPEATED: Final = (
    "something was found that the same calls on a new context do not show again: what this "
    "implementation answers depends on chance, or on what other contexts did"
)
SHARED: Final = "what is done to one context shows in another one: instances share state"
"""What there is to say of an implementation that answers otherwise when it is asked again."""


def check_contract(
    implementation: Implementation,
    order: Order,
    bounds: Sequence[Bounds],
    *,
    own_rule: str | None = None,
    max_states: int | None = None,
    stop_at_first: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ContractReport:
    """Check an implementation against the contract of one admission rule.

    Parameters
    ----------
    implementation
        What is checked.
    order
        Reference order of the admission rule whose contract it is.
    bounds
        Bounds of the clients to explore; the capacity becomes 1 where it cannot be chosen.
    own_rule
        Rule that the implementation was given, None for one that has its rule inside.
    max_states
        Positions per exploration after which to stop, undetermined.
    stop_at_first
        End each exploration at its first broken clause.
    progress
        Called with the number of positions now and then.
    """
    broken, seen = drill(implementation)
    findings = {key: Finding(deviation, (), Profile(1, 2)) for key, deviation in broken.items()}
    bounds = _possible(implementation, bounds)

    def explored(implementation: Implementation) -> list[Exploration]:
        return [
            Explorer(
                implementation,
                order,
                bound,
                max_states=max_states,
                until=_stop(implementation, stop_at_first),
                progress=progress,
            ).run()
            for bound in bounds
        ]

    explorations = explored(implementation)
    if implementation.copyable and any(each.unrepeated for each in explorations):
        implementation = implementation.without_copies(UNFAITHFUL)
        explorations = explored(implementation)
    for exploration in explorations:
        for finding in _shrunk(implementation, order, exploration):
            _keep_shortest(findings, finding)
    notes = implementation.notes
    if any(each.unrepeated for each in explorations):
        notes = (*notes, UNREPEATED)
    if not findings:
        for bound in bounds:
            notes = (*notes, *_live(implementation, order, bound, findings))
    evidence = Counter(seen)
    for exploration in explorations:
        evidence.update(exploration.evidence)
    return ContractReport(
        implementation.name,
        order.rule,
        own_rule,
        tuple(
            _judge(implementation, clause, findings.get(clause.key), evidence[clause.key])
            for clause in clauses_of(order.rule)
        ),
        tuple(explorations),
        notes,
    )


def _stop(
    implementation: Implementation, stop_at_first: bool
) -> Callable[[Exploration], bool] | None:
    """Say when to stop early: copies that cannot be trusted make all else pointless."""
    if stop_at_first:
        return lambda result: bool(result.findings)
    return (lambda result: result.unrepeated) if implementation.copyable else None


def _live(
    implementation: Implementation, order: Order, bounds: Bounds, findings: dict[str, Finding]
) -> tuple[str, ...]:
    """Make the live runs; keep what they find, and return what there is to say of it."""
    finding = live_runs(implementation, order, bounds)
    if finding is None:
        return ()
    reference, profile = Reference(order, bounds.capacity), finding.profile
    again = replay(implementation, reference, profile, finding.calls)
    if not finding.calls:
        notes: tuple[str, ...] = (SHARED,)
    elif again is None or again.deviation.clause != finding.deviation.clause:
        notes = (UNREPEATED,)
    else:
        notes = ()
        small = shrink(again, lambda calls: replay(implementation, reference, profile, calls))
        finding = charged(small, reference)
    _keep_shortest(findings, finding)
    return notes


def _possible(implementation: Implementation, bounds: Sequence[Bounds]) -> list[Bounds]:
    if implementation.takes_capacity:
        return list(bounds)
    return list(dict.fromkeys(bound._replace(capacity=1) for bound in bounds))


def _keep_shortest(findings: dict[str, Finding], finding: Finding) -> None:
    key = finding.deviation.clause
    if key not in findings or len(finding.calls) < len(findings[key].calls):
        findings[key] = finding


def _judge(
    implementation: Implementation, clause: Clause, finding: Finding | None, checks: int
) -> ClauseResult:
    missing = implementation.lacks(clause.needs)
    if missing:
        return ClauseResult(clause, "missing", checks, None, missing)
    if finding is not None:
        return ClauseResult(clause, "violated", checks, finding)
    return ClauseResult(clause, "holds" if checks else "unreached", checks)


def _shrunk(
    implementation: Implementation, order: Order, exploration: Exploration
) -> list[Finding]:
    """Shortest forms of what was found, with hidden changes charged to the call that made them."""
    reference = Reference(order, exploration.bounds.capacity)
    profile = Profile(exploration.bounds.capacity, exploration.bounds.ep_size)
    shrunk = []
    for finding in exploration.findings.values():
        small = shrink(finding, lambda calls: replay(implementation, reference, profile, calls))
        shrunk.append(charged(small, reference))
    return shrunk
