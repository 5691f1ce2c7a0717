"""The stage ledger: one row per batch and stage that ran, and who overlapped with whom (issue 3).

In the two decode roles of PD-AF a batch visits a stage once per layer, and each visit is a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from frontier.durations import SECOND
from frontier.events import (
    ATTENTION_DONE,
    COMBINE_END,
    DECODE_ATTN,
    DECODE_FFN,
    FFN_RETURN,
    STAGE_END,
    STAGE_SCHEDULE,
    Batch,
    Event,
)
from frontier.replica import batch_of
from frontier.system import ServingSystem


def seconds(nanoseconds: int) -> float:
    """Time in seconds, the nearest there is to these nanoseconds."""
    return nanoseconds / SECOND


class StageRow(NamedTuple):
    """One occupation of a stage by a lane; times in nanoseconds, half-open.

    ``batch`` is the lane's batch number, or the group id in ``DECODE_FFN``, where ``lane`` is the
    scheduler; ``layer`` is -1 where the row covers all layers of the stage.
    """

    role: str
    replica: int
    stage: int
    lane: int
    batch: int
    phase: str
    start: int
    end: int
    requests: tuple[int, ...]
    prefill_tokens: int
    decode_tokens: int
    layer: int = -1

    def to_json(self) -> dict[str, Any]:
        """Row of the ledger file, times in seconds."""
        row: dict[str, Any] = {
            "role": self.role,
            "replica": self.replica,
            "stage": self.stage,
            "lane": self.lane,
            "batch": self.batch,
            "phase": self.phase,
            "start_s": seconds(self.start),
            "end_s": seconds(self.end),
            "requests": list(self.requests),
            "prefill_tokens": self.prefill_tokens,
            "decode_tokens": self.decode_tokens,
        }
        return row if self.layer < 0 else {**row, "layer": self.layer}


StageKey = tuple[str, int]
"""Role and stage."""


class StageLedger:
    """Observer that turns events into rows.

    Parameters
    ----------
    serving
        The system observed.
    sinks
        Called with each row when it ends.

    Attributes
    ----------
    first_starts
        By role and stage, the time at which each lane started first, in nanoseconds.
    """

    def __init__(
        self, serving: ServingSystem, sinks: Sequence[Callable[[StageRow], object]] = ()
    ) -> None:
        self._serving = serving
        self._sinks = tuple(sinks)
        self._open: dict[tuple[str, int, int], tuple[int, Batch, int]] = {}
        self.first_starts: dict[StageKey, dict[int, int]] = {}

    @property
    def still_open(self) -> list[tuple[str, int, int, Batch, int]]:
        """What occupies a stage now: role, stage, lane, batch, start."""
        return [(*key, batch, start) for key, (start, batch, _) in sorted(self._open.items())]

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:
        """Open a row when a lane starts at a stage, close it when the lane leaves."""
        kind = event.kind
        if kind == STAGE_SCHEDULE:
            if follow:
                self._start(now, follow[0])
        elif kind == STAGE_END or (kind == ATTENTION_DONE and event.role == DECODE_ATTN):
            self._end(now, event, (event.lane,), follow)
        elif kind == COMBINE_END:
            ep_size = self._serving.spec.ffn.ep_size
            self._end(now, event, range(ep_size), follow)

    def _start(self, now: int, started: Event) -> None:
        role = self._serving.role_of(started)
        self._open[role, started.stage, started.lane] = (now, batch_of(started), started.layer)
        first = self.first_starts.setdefault((role, started.stage), {})
        first.setdefault(started.lane, now)

    def _end(self, now: int, event: Event, lanes: Iterable[int], follow: Sequence[Event]) -> None:
        role = self._serving.role_of(event)
        for lane in lanes:
            start, batch, layer = self._open.pop((role, event.stage, lane))
            content, content_role = batch, role
            if role == DECODE_FFN:
                back = next(e for e in follow if e.kind == FFN_RETURN)
                content, content_role, layer = batch_of(back), DECODE_ATTN, back.layer
            chunks = self._serving.workloads[content_role].contents(content)
            row = StageRow(
                role,
                0,
                event.stage,
                lane,
                batch.number,
                batch.phase,
                start,
                now,
                tuple([chunk.request for chunk in chunks]),
                sum([chunk.prefill_tokens for chunk in chunks]),
                sum([chunk.decode_tokens for chunk in chunks]),
                layer if role in (DECODE_ATTN, DECODE_FFN) else -1,
            )
            for sink in self._sinks:
                sink(row)


@dataclass(frozen=True, slots=True)
class LaneOverlap:
    """How the lanes of one stage overlap, over half-open intervals; times in nanoseconds.

    ``self_overlap`` says that a lane ran two batches at once, which a lane never may.
    """

    multi_lane_busy: int
    busy: int
    peak_lanes: int
    self_overlap: bool

    @property
    def co_execution_fraction(self) -> float:
        """Share of the busy time in which at least two lanes are busy; 0 if never busy."""
        return self.multi_lane_busy / self.busy if self.busy else 0.0

    def to_json(self) -> dict[str, Any]:
        """Field names of the published cases, times in seconds."""
        return {
            "multi_lane_busy_time_s": seconds(self.multi_lane_busy),
            "busy_time_s": seconds(self.busy),
            "co_execution_fraction": round(self.co_execution_fraction, 9),
            "peak_lanes": self.peak_lanes,
            "self_overlap": self.self_overlap,
        }


def lane_overlap(intervals: Iterable[tuple[int, int, int]]) -> LaneOverlap:
    """Sweep over ``(start, end, lane)`` of one stage."""
    edges: list[tuple[int, int, int]] = []
    for start, end, lane in intervals:
        if end > start:
            edges += [(start, 1, lane), (end, -1, lane)]
    edges.sort()  # at one instant, ends come before starts
    running: dict[int, int] = {}
    multi = busy = peak = last = 0
    twice = False
    for at, change, lane in edges:
        busy += at - last if running else 0
        multi += at - last if len(running) > 1 else 0
        last = at
        count = running.get(lane, 0) + change
        if count:
            running[lane] = count
            twice = twice or count > 1
        else:
            del running[lane]
        peak = max(peak, len(running))
    return LaneOverlap(multi, busy, peak, twice)


class Occupancy:
    """Sink that keeps the intervals of each stage."""

    def __init__(self) -> None:
        self.intervals: dict[StageKey, list[tuple[int, int, int]]] = {}

    def __call__(self, row: StageRow) -> None:
        """Keep a row's interval."""
        self.intervals.setdefault((row.role, row.stage), []).append((row.start, row.end, row.lane))

    def overlap(self, key: StageKey) -> LaneOverlap:
        """Overlap of the lanes of one stage."""
        return lane_overlap(self.intervals.get(key, ()))
