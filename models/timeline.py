"""Lanes over time: what each lane did at each stage in a timed run, and for what it waited."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from frontier.events import (
    ARRIVE,
    ATTENTION_DONE,
    STAGE_END,
    STAGE_SCHEDULE,
    WAVE_END,
    Batch,
    CoreError,
    Event,
)
from models.witness import TimedSchedule

QUEUED: Final = "queued"
ATTENTION: Final = "attention"
IN_ROOM: Final = "in room"
WAVE: Final = "EP wave"
TAIL: Final = "tail"
FORWARD: Final = "forward"


@dataclass(frozen=True)
class Span:
    """What one batch did at one stage from ``start`` to ``end`` (ns).

    ``finished`` is False for a wait or a work that the run never ended; ``layer`` is -1 where
    there is none.
    """

    stage: int
    batch: Batch
    kind: str
    layer: int
    start: int
    end: int
    finished: bool


class TimelineRecorder:
    """An observer of the discrete-event loop that cuts a lane replica's run into spans."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._open: dict[tuple[int, Batch], tuple[str, int, int]] = {}

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:
        """Note one handled event."""
        batch, stage = event.batch, event.stage
        if event.kind == ARRIVE and batch is not None:
            self._begin(now, stage, batch, QUEUED)
        elif event.kind == ATTENTION_DONE and batch is not None:
            self._begin(now, stage, batch, IN_ROOM, event.layer)
        elif event.kind == STAGE_END and batch is not None:
            self._close(now, stage, batch)
        for next_event in follow:
            self._started(now, event, next_event)

    def _started(self, now: int, event: Event, started: Event) -> None:
        """Begin what an event that was just created stands for."""
        stage, batch = started.stage, started.batch
        if started.kind == WAVE_END:
            for member in started.members:
                self._begin(now, stage, member, WAVE, started.layer)
        elif started.kind == ATTENTION_DONE and batch is not None:
            self._begin(now, stage, batch, ATTENTION, started.layer)
        elif started.kind == STAGE_END and batch is not None:
            whole = event.kind == STAGE_SCHEDULE
            self._begin(now, stage, batch, FORWARD if whole else TAIL)

    def _begin(self, now: int, stage: int, batch: Batch, kind: str, layer: int = -1) -> None:
        self._close(now, stage, batch)
        self._open[stage, batch] = (kind, layer, now)

    def _close(self, now: int, stage: int, batch: Batch, finished: bool = True) -> None:
        begun = self._open.pop((stage, batch), None)
        if begun is not None and (begun[2] < now or not finished):
            kind, layer, start = begun
            self.spans.append(Span(stage, batch, kind, layer, start, now, finished))

    def finish(self, end: int) -> tuple[Span, ...]:
        """Return every span, in order of start; those that never ended reach to ``end``."""
        for stage, batch in list(self._open):
            self._close(end, stage, batch, finished=False)
        return tuple(sorted(self.spans, key=lambda s: (s.start, s.stage, s.batch, s.end)))


@dataclass(frozen=True)
class Timeline:
    """Spans of a timed run and the time that the picture ends at, in ns."""

    spans: tuple[Span, ...]
    end: int


def timeline_of(timed: TimedSchedule, begin: int = 0) -> Timeline:
    """Run the simulator on a timed schedule and return its spans.

    Waits that never end reach a fifth of the time since ``begin`` (ns) beyond the last event.
    """
    recorder = TimelineRecorder()
    simulation = timed.simulation(timed.scenario.make_replica(), (recorder,))
    with suppress(CoreError):
        simulation.run(timed.until)
    end = simulation.now + max(1_000_000, (simulation.now - begin) // 5)
    return Timeline(recorder.finish(end), end)
