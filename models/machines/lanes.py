"""Level two: lanes over stages with rooms, arrivals and releases chosen by Hypothesis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, ClassVar

from hypothesis import strategies as st

from frontier.events import ATTENTION_DONE, STAGE_END, STAGE_SCHEDULE, WAVE_END, Event
from frontier.replica import Replica
from models.invariants import lane_invariants
from models.machines.quiescent import QuiescentMachine
from models.quiescent import ProtocolState
from models.scenario import Scenario
from verify.properties import Property

LATE_JOIN = "late join"
SEALED_SIBLING = "seal with a queued sibling"
PLACEHOLDER = "wave with a placeholder"
SHARED_WAVE = "wave of several lanes"
INTERESTING = (LATE_JOIN, SEALED_SIBLING, PLACEHOLDER, SHARED_WAVE)


@st.composite
def lane_scenarios(
    draw: st.DrawFn, admission: str = "ep_ordered", stand_in: str = "withdraw_joined"
) -> Scenario:
    """Draw shapes beyond the exhaustive bound, biased to open arrivals and shared rooms."""
    lanes = draw(st.integers(2, 5))
    return Scenario(
        lanes=lanes,
        stages=draw(st.integers(1, 3)),
        layers=draw(st.integers(1, 3)),
        batches=tuple(draw(st.lists(st.integers(1, 3), min_size=lanes, max_size=lanes))),
        model=draw(st.sampled_from(("moe", "moe", "moe", "dense"))),
        admission=admission,
        stand_in=stand_in,
        arrivals=draw(st.sampled_from(("open", "open", "burst"))),
    )


def lane_marks(replica: Replica, event: Event, follow: Sequence[Event]) -> set[str]:
    """Interesting states that handling an event has just shown."""
    marks: set[str] = set()
    admitted = (
        event.kind == STAGE_SCHEDULE
        and bool(follow)
        and follow[0].kind in (ATTENTION_DONE, STAGE_END)
    )
    if admitted and sum(s.busy for s in replica.schedulers[event.stage]) > 1:
        marks.add(LATE_JOIN)
    for wave in [e for e in follow if e.kind == WAVE_END]:
        marks.add(SHARED_WAVE if len(wave.members) > 1 else PLACEHOLDER)
        if any(not s.busy and s.queue for s in replica.schedulers[wave.stage]):
            marks.add(SEALED_SIBLING)
    return marks


class LanesMachine(QuiescentMachine):
    """Lanes, stages and rooms under the repaired rules."""

    scenarios = lane_scenarios()
    interesting = INTERESTING
    reached: ClassVar[Counter[str]] = Counter()

    def marks_of(self, system: Replica, handled: Event, follow: Sequence[Event]) -> set[str]:
        """Return the interesting states that handling an event has just shown."""
        return lane_marks(system, handled, follow)

    def invariants_of(self, scenario: Scenario) -> tuple[Property[ProtocolState], ...]:
        """Return the invariants of a lane replica."""
        return lane_invariants(scenario.config)

    def smaller(self, scenario: Scenario) -> Sequence[Scenario]:
        """Return shapes with as many or fewer lanes, stages, layers and batches."""
        shapes = product(
            range(2, scenario.lanes + 1),
            range(1, scenario.stages + 1),
            range(1, scenario.layers + 1),
            range(1, max(scenario.batches) + 1),
        )
        return [
            replace(scenario, lanes=n, stages=stages, layers=layers, batches=(batches,) * n)
            for n, stages, layers, batches in sorted(shapes, key=lambda shape: (prod(shape), shape))
        ]

    def queued(self, system: Any) -> int:
        """Tickets that are queued at the fullest stage."""
        return max(len(context.queued_tickets) for context in system.contexts)


def lanes_machine(admission: str, stand_in: str) -> type[LanesMachine]:
    """Return a machine for other rules."""
    return type(
        "Lanes",
        (LanesMachine,),
        {"scenarios": lane_scenarios(admission, stand_in), "reached": Counter()},
    )
