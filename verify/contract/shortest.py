"""A shortest call sequence that breaks the clause a longer one breaks.

Leaving calls out of a sequence ends in a sequence that needs all its calls, which need not be a
shortest one: another way to the same clause may take fewer. So the sequences of a client that is
no larger than the finding (tickets live at once, lanes, waves) are explored breadth first, as the
exhaustive check does, up to one call less than are known.
"""

from __future__ import annotations

from typing import Final

from verify.contract.client import Bounds
from verify.contract.explore import Exploration, Explorer, Finding, replay
from verify.contract.implementation import Implementation
from verify.contract.operations import Call
from verify.contract.orders import Order
from verify.contract.reference import ContextState, Reference
from verify.contract.shrink import shrink

_MOST_STATES: Final = 3000
"""Positions to explore in all for a shorter sequence; beyond them the shrunk one stays."""


def shortest(finding: Finding, implementation: Implementation, order: Order) -> Finding:
    """Return the shortest sequence found for the clause of a finding.

    No call of the result can be left out. It is a shortest one at all, among sequences whose calls
    all take effect, unless exploring the clients below its size takes more than a few thousand
    positions.
    """
    reference = Reference(order, finding.profile.capacity)

    def again(calls: tuple[Call, ...]) -> Finding | None:
        return replay(implementation, reference, finding.profile, calls)

    finding = shrink(finding, again)
    largest, left = _bounds(finding, reference), _MOST_STATES
    for tickets in range(1, largest.max_tickets + 1):
        if left <= 0:
            break
        bounds = largest._replace(max_tickets=tickets, waves=min(largest.waves, tickets))
        explored = _explored(finding, implementation, order, bounds, left)
        left -= explored.states
        found = explored.findings.get(finding.deviation.clause)
        if found is not None:
            finding = min(finding, shrink(found, again), key=lambda each: len(each.calls))
    return finding


def _explored(
    finding: Finding, implementation: Implementation, order: Order, bounds: Bounds, states: int
) -> Exploration:
    clause, length = finding.deviation.clause, len(finding.calls)

    def done(result: Exploration) -> bool:
        return clause in result.findings or result.depth >= length - 1

    return Explorer(implementation, order, bounds, max_states=states, until=done).run()


def _bounds(finding: Finding, reference: Reference) -> Bounds:
    """Smallest client that can make the calls of a finding."""
    state, tickets, waves = ContextState(), 1, 0
    for call in finding.calls:
        state = reference.expect(state, call).after
        live = (*state.queue, *state.active)
        tickets = max(tickets, len(live))
        waves = max(waves, sum(op.is_wave for op in live), sum(op.is_wave for op in call.new))
    lanes = {op.lane for call in finding.calls for op in call.new if not op.is_wave}
    return Bounds(tickets, max(len(lanes), 1), waves, *finding.profile)
