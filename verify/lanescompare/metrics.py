"""M1 to M5 of one run: completion, order, pairing, co-start and co-execution of lanes.

Source: the published comparison's definitions (``docs/lanes_compare.md``), issue 8.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from statistics import median

from verify.lanescompare.runs import Forward, LaneRun, Requests

Pairing = tuple[tuple[Requests | None, ...], ...]
"""Per forward of lane 0: its requests, then of each other lane the requests it ran beside."""


@dataclass(frozen=True)
class StageMetrics:
    """M3 to M5 of one stage.

    Parameters
    ----------
    pairing : Pairing
        M3.
    co_start : float or None
        M4, in median forward durations; None when a lane has no forward here.
    co_execution : float or None
        M5 in ``[0, 1]``; None when no lane was ever busy here.
    median_duration : float or None
        Seconds.
    self_overlap : bool
        Whether one lane ever ran two forwards of this stage at once.
    """

    pairing: Pairing
    co_start: float | None
    co_execution: float | None
    median_duration: float | None
    self_overlap: bool


@dataclass(frozen=True)
class RunMetrics:
    """M1 (``completed`` of ``requests``), M2 per ``(lane, stage)``, and the rest per stage."""

    requests: int
    completed: int
    sequences: dict[tuple[int, int], tuple[Requests, ...]]
    stages: tuple[StageMetrics, ...]


def measure(run: LaneRun) -> RunMetrics:
    """Compute M1 to M5 of `run`."""
    return RunMetrics(
        requests=run.requests,
        completed=run.completed,
        sequences={
            (lane, stage): tuple(f.requests for f in run.of(stage, lane))
            for lane in range(run.lanes)
            for stage in range(run.stages)
        },
        stages=tuple(
            measure_stage([run.of(stage, lane) for lane in range(run.lanes)])
            for stage in range(run.stages)
        ),
    )


def measure_stage(lanes: Sequence[Sequence[Forward]]) -> StageMetrics:
    """Compute M3 to M5 of one stage from its forwards per lane, each ordered by start."""
    durations = [f.duration for lane in lanes for f in lane]
    typical = median(durations) if durations else None
    return StageMetrics(
        pairing=tuple(
            zip((f.requests for f in lanes[0]), *_partners(lanes[0], lanes[1:]), strict=True)
        ),
        co_start=_co_start(lanes, typical),
        co_execution=co_execution([[(f.start, f.end) for f in lane] for lane in lanes]),
        median_duration=typical,
        self_overlap=any(
            earlier.end > later.start for lane in lanes for earlier, later in pairwise(lane)
        ),
    )


def overlap(one: Forward, other: Forward) -> float:
    """Seconds both forwards run; negative by the gap between them when they are disjoint."""
    return min(one.end, other.end) - max(one.start, other.start)


def _partners(
    forwards: Sequence[Forward], lanes: Sequence[Sequence[Forward]]
) -> Iterator[list[Requests | None]]:
    """Yield per other lane the requests of each forward's largest overlap, None without any.

    Of equal overlaps the earliest counts. All forwards are ordered by start, so those that can
    overlap one forward are a slice of the other lane, even where that lane overlaps itself.
    """
    for others in lanes:
        starts = [other.start for other in others]
        ends = list(accumulate((other.end for other in others), max))
        found: list[Requests | None] = []
        for forward in forwards:
            near = others[bisect_right(ends, forward.start) : bisect_left(starts, forward.end)]
            best = max(near, key=partial(overlap, forward), default=None)
            found.append(best.requests if best is not None and overlap(forward, best) > 0 else None)
        yield found


def _co_start(lanes: Sequence[Sequence[Forward]], typical: float | None) -> float | None:
    if not typical or not all(lanes):
        return None
    firsts = [lane[0].start for lane in lanes]
    return (max(firsts) - min(firsts)) / typical


def busy_times(lanes: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    """Return the time at least two lanes are busy, and the time any lane is busy.

    Parameters
    ----------
    lanes : sequence of sequences of (start, end)
        Half-open busy intervals of each lane, in seconds; those of one lane may overlap.
    """
    changes = sorted(
        (time, lane, step)
        for lane, intervals in enumerate(lanes)
        for start, end in intervals
        for time, step in ((start, 1), (end, -1))
    )
    depth = [0] * len(lanes)
    several = anyone = 0.0
    previous = 0.0
    for time, lane, step in changes:
        busy = sum(d > 0 for d in depth)
        several += (time - previous) if busy >= 2 else 0.0
        anyone += (time - previous) if busy >= 1 else 0.0
        depth[lane] += step
        previous = time
    return several, anyone


def co_execution(lanes: Sequence[Sequence[tuple[float, float]]]) -> float | None:
    """M5: the share of busy time in which at least two lanes are busy; None without busy time."""
    several, anyone = busy_times(lanes)
    return several / anyone if anyone > 0 else None
