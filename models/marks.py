"""What happens on a transition, as marks that liveness properties speak of (issue 7)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

from frontier.events import (
    ATTENTION_DONE,
    BATCH_DROPPED,
    BATCH_END,
    COMBINE_END,
    STAGE_END,
    STAGE_SCHEDULE,
    WAVE_END,
    Batch,
    Event,
)
from frontier.ffn import FfnReplica
from frontier.replica import Replica
from frontier.tickets import EP_WAVE
from models.contexts import ExplainingContext
from models.quiescent import (
    Action,
    CheckableSystem,
    Observer,
    ProtocolState,
    QuiescentModel,
)

OLDEST_FIRED: Final = "oldest_fired"
ENDED: Final = "ended"
ADMITTED: Final = "admitted"
DROPPED: Final = "dropped"
OPPORTUNITY: Final = "opportunity"
OVERTAKEN: Final = "overtaken"
WAVE_ENDED: Final = "wave_ended"
WAVE_OVERTAKEN: Final = "wave_overtaken"


class Mark(NamedTuple):
    """One thing that happened: its kind, and the lane and stage it happened to (-1: none).

    ``ended``: a batch of the lane left its last stage. ``admitted``: the lane was admitted.
    ``dropped``: the lane's first queued batch was found stale and is gone.
    ``opportunity``: the lane, not busy, would have been admitted at that moment. ``overtaken``:
    a ticket behind the lane's first one was admitted while the lane was not busy.
    ``wave_overtaken``: a ticket behind a queued EP wave was admitted.
    """

    kind: str
    lane: int = -1
    stage: int = -1


class Marker:
    """An observer that collects the marks of one transition, in the order of events."""

    def __init__(self, opportunities: bool) -> None:
        self._opportunities = opportunities
        self._marks: list[Mark] = []

    def begin(self, action: Action) -> None:
        """Start a transition."""
        self._marks = [Mark(OLDEST_FIRED)] if 0 in action else []

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks since the last :meth:`begin`."""
        return tuple(self._marks)

    def label(self) -> Hashable:
        """Return the marks as the label of a transition."""
        return self.marks

    def __call__(self, system: Any, event: Event, follow: Sequence[Event]) -> None:
        """Look at one handled event."""
        self._look(system, event, follow)

    def _look(self, replica: Any, event: Event, follow: Sequence[Event]) -> None:
        if event.kind == BATCH_END:
            self._marks.append(Mark(ENDED, event.lane))
            return
        if event.kind == WAVE_END:
            self._marks.append(Mark(WAVE_ENDED, -1, event.stage))
        elif event.kind == STAGE_SCHEDULE and follow and follow[0].kind in _RUNS:
            self._overtakes(replica, event)
            self._marks.append(Mark(ADMITTED, event.lane, event.stage))
        elif event.kind == STAGE_SCHEDULE and any(e.kind == BATCH_DROPPED for e in follow):
            self._marks.append(Mark(DROPPED, event.lane, event.stage))
        if self._opportunities and event.stage >= 0:
            self._look_for_opportunities(replica, event.stage)

    def _overtakes(self, replica: Replica, event: Event) -> None:
        """Mark each idle lane with a ticket ahead of the one just admitted."""
        schedulers, tickets = replica.schedulers[event.stage], replica.tickets[event.stage]
        running = schedulers[event.lane].running
        own = tickets[running].admission_seq
        for lane, scheduler in enumerate(schedulers):
            if lane != event.lane and not scheduler.busy and scheduler.queue:
                first = tickets.get(scheduler.queue[0])
                if first is not None and first.admission_seq < own:
                    self._marks.append(Mark(OVERTAKEN, lane, event.stage))

    def _look_for_opportunities(self, replica: Replica, stage: int) -> None:
        context = replica.contexts[stage]
        if not isinstance(context, ExplainingContext):
            raise TypeError(f"strong fairness needs refusals as data, got {type(context).__name__}")
        for lane, scheduler in enumerate(replica.schedulers[stage]):
            if not scheduler.busy and scheduler.queue:
                ticket = replica.tickets[stage].get(scheduler.queue[0])
                mark = Mark(OPPORTUNITY, lane, stage)
                if ticket is not None and not context.refusals(ticket) and mark not in self._marks:
                    self._marks.append(mark)


_RUNS: Final = (ATTENTION_DONE, STAGE_END)


class GroupMarker(Marker):
    """As :class:`Marker`, for a ``DECODE_FFN`` stage: its lanes are the schedulers, at stage 0."""

    def _look(self, replica: Any, event: Event, follow: Sequence[Event]) -> None:
        if event.kind in (COMBINE_END, STAGE_END) and event.batch is not None:
            if event.kind == COMBINE_END:
                self._marks.append(Mark(WAVE_ENDED, -1, 0))
            self._marks += [Mark(ENDED, lane) for lane in replica.schedulers_of(event.batch)]
        elif event.kind == STAGE_SCHEDULE and follow and follow[0].batch is not None:
            self._admission(replica, event.lane, follow[0].batch)
        if self._opportunities:
            self._look_at_heads(replica)

    def _admission(self, replica: FfnReplica, lane: int, group: Batch) -> None:
        """Mark an admission, and whom the first child of a group overtakes with its ticket."""
        others = [n for n in replica.schedulers_of(group) if n != lane]
        if not any(replica.schedulers[n].running == group for n in others):
            own = replica.tickets[group].admission_seq
            behind = [t for t in replica.context.queued_tickets if t.admission_seq < own]
            self._marks += [Mark(WAVE_OVERTAKEN) for t in behind if t.scope == EP_WAVE]
            ahead = {t.operation_id for t in behind}
            self._marks += [
                Mark(OVERTAKEN, number, 0)
                for number, s in enumerate(replica.schedulers)
                if number != lane and not s.busy and s.queue and s.queue[0] in ahead
            ]
        self._marks.append(Mark(ADMITTED, lane, 0))

    def _look_at_heads(self, replica: FfnReplica) -> None:
        context = replica.context
        for lane, scheduler in enumerate(replica.schedulers):
            if not scheduler.busy and scheduler.queue:
                ticket = replica.tickets.get(scheduler.queue[0])
                mark = Mark(OPPORTUNITY, lane, 0)
                if ticket is not None and not context.refusals(ticket) and mark not in self._marks:
                    self._marks.append(mark)


class MarkedModel(QuiescentModel):
    """The quiescent model with a marker that is told where each transition begins."""

    def __init__(
        self,
        make_system: Callable[[], CheckableSystem],
        ties: bool,
        marker: Marker,
        observers: Sequence[Observer] = (),
    ) -> None:
        super().__init__(make_system, ties, (*observers, marker))
        self.marker = marker

    def step(self, state: ProtocolState, action: Action) -> ProtocolState:
        """State after an instant, whose marks the marker then holds."""
        self.marker.begin(action)
        return super().step(state, action)
