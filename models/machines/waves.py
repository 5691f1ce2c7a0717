"""Level three: EP waves with child lanes on a context of capacity 1 (PROTOCOL.md section 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hypothesis import strategies as st

from frontier.events import DENSE, EXPERT, GROUP, STAGE_SCHEDULE, Event
from frontier.ffn import FfnReplica
from models.group_invariants import group_invariants
from models.groups import GroupScenario
from models.machines.quiescent import QuiescentMachine
from models.quiescent import ProtocolState
from verify.properties import Property

WAVE_BEHIND_TWO = "wave behind two full-stage tickets"
SIBLING_ACQUIRED = "child of a wave that a sibling acquired"
SEVERAL_WAVES = "several waves queued"
INTERESTING = (WAVE_BEHIND_TWO, SIBLING_ACQUIRED, SEVERAL_WAVES)


@st.composite
def group_scenarios(draw: st.DrawFn, admission: str = "ep_ordered") -> GroupScenario:
    """Draw producers of dense and expert groups for one capacity-1 context."""
    kinds = st.sampled_from((DENSE, EXPERT))
    scripts = st.lists(kinds, min_size=1, max_size=5).map(tuple)
    return GroupScenario(
        groups=tuple(draw(st.lists(scripts, min_size=2, max_size=4))),
        ep_size=draw(st.integers(1, 4)),
        admission=admission,
    )


def wave_marks(stage: FfnReplica, event: Event, follow: Sequence[Event]) -> set[str]:
    """Interesting states that handling an event has just shown."""
    marks: set[str] = set()
    queue = [ticket.operation_id for ticket in stage.context.queued_tickets]
    kinds = [getattr(group, "phase", "") for group in queue]
    if event.kind == GROUP and kinds[-1:] == [EXPERT] and kinds.count(DENSE) >= 2:
        marks.add(WAVE_BEHIND_TWO)
    if kinds.count(EXPERT) > 1:
        marks.add(SEVERAL_WAVES)
    if event.kind == STAGE_SCHEDULE and follow and event.lane < stage.config.ep_size:
        running = stage.schedulers[event.lane].running
        if sum(s.running == running for s in stage.schedulers) > 1:
            marks.add(SIBLING_ACQUIRED)
    return marks


class WavesMachine(QuiescentMachine):
    """Waves and dense groups that queue for one context."""

    scenarios = group_scenarios()
    interesting = INTERESTING
    reached: ClassVar[Counter[str]] = Counter()

    def marks_of(self, system: FfnReplica, handled: Event, follow: Sequence[Event]) -> set[str]:
        """Return the interesting states that handling an event has just shown."""
        return wave_marks(system, handled, follow)

    def invariants_of(self, scenario: GroupScenario) -> tuple[Property[ProtocolState], ...]:
        """Return the invariants of a ``DECODE_FFN`` stage."""
        return group_invariants(scenario.config)

    def smaller(self, scenario: GroupScenario) -> Sequence[GroupScenario]:
        """Return scenarios whose producers send only their first groups."""
        most = max(map(len, scenario.groups))
        return [
            replace(scenario, groups=tuple(script[:sent] for script in scenario.groups[:producers]))
            for sent in range(1, most + 1)
            for producers in range(1, len(scenario.groups) + 1)
        ]

    def queued(self, system: Any) -> int:
        """Tickets that are queued."""
        return len(system.context.queued_tickets)
