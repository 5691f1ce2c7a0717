"""One run of a scenario to look at: first come, first fired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from frontier.events import ENVIRONMENT
from models.quiescent import ProtocolState, QuiescentRun
from models.schedule import Instant, Schedule
from models.subjects import AnyScenario

MOST: Final = 10_000
"""Instants after which a run that neither ended nor repeated is cut."""


@dataclass(frozen=True)
class SampleRun:
    """A schedule to its end, or whose last ``repeats`` instants repeat for ever."""

    schedule: Schedule
    repeats: int


def sample_run(scenario: AnyScenario) -> SampleRun:
    """Fire always the oldest pending event, alone, to the end or until a state comes again.

    What may come from outside never comes.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    seen: dict[ProtocolState, int] = {}
    schedule: list[Instant] = []
    while run.pending and run.failure is None and len(schedule) < MOST:
        first = seen.setdefault(run.state(), len(schedule))
        if first < len(schedule):
            return SampleRun(tuple(schedule), len(schedule) - first)
        if run.pending[0].kind in ENVIRONMENT:
            break
        schedule.append((run.pending[0],))
        run.fire((0,))
    return SampleRun(tuple(schedule), 0)
