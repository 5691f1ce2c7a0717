"""Long runs on contexts that are never copied, beside the exhaustive check.

The exhaustive check matches positions by what the public API shows and works on copies. What an
implementation remembers beside that, or shares between its instances, shows here: random calls of
the same client, on one new context after the other, each for many more calls than any position of
the exhaustive check is away from the start.
"""

from __future__ import annotations

import random
from typing import Final

from verify.contract.client import Bounds, Client, Position
from verify.contract.explore import Finding, moved
from verify.contract.implementation import Implementation
from verify.contract.operations import Call
from verify.contract.orders import Order
from verify.contract.reference import Reference
from verify.contract.session import Deviation, Profile, Session

RUNS: Final = 60
CALLS: Final = 100
"""Runs, and calls of each."""

_SEED: Final = 20
_WRONG: Final = 0.15
"""Share of calls that must change nothing."""


def live_runs(implementation: Implementation, order: Order, bounds: Bounds) -> Finding | None:
    """Make the runs; return the first deviation with all the calls of its run."""
    draw, client = random.Random(_SEED), Client(bounds)
    profile = Profile(bounds.capacity, bounds.ep_size)
    reference = Reference(order, bounds.capacity)
    kept = []
    for number in range(RUNS):
        session = Session(implementation, reference, profile)
        kept.append(session)  # contexts that live on must not be felt by later ones either
        wrong = session.newly_made() or _run(session, client, draw)
        if wrong is None and number % 2:
            wrong = session.drain()
        if wrong is not None:
            return Finding(wrong, session.calls, profile)
    return None


def _run(session: Session, client: Client, draw: random.Random) -> Deviation | None:
    position = Position(session.state)
    for _ in range(CALLS):
        call = _drawn(session, client, position, draw)
        if call is None:
            return None
        before = session.state
        wrong = session.apply(call)
        if wrong is not None or session.open_ended:
            return wrong
        if session.state != before:
            position = moved(position, session, call)
    return None


def _drawn(
    session: Session, client: Client, position: Position, draw: random.Random
) -> Call | None:
    calls = client.ineffective if draw.random() < _WRONG else client.effective
    able = [call for call in calls(position) if _leads_on(session, call)]
    return draw.choice(able) if able else None


def _leads_on(session: Session, call: Call) -> bool:
    """Whether the call can be made, and the page says what follows it."""
    return session.can(call) and (
        call.kind in ("owns", "ask")
        or session.reference.expect(session.state, call).outcome != "open"
    )
