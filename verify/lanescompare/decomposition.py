"""Where non-overlap of two lanes comes from: late starts, late ends, disjoint, unpaired forwards.

Ranks of the real engine step together, so the n-th forwards of two lanes are a pair. The seconds in
which exactly one member of an overlapping pair runs split exactly into the offset of the starts
and the offset of the ends; the members of a disjoint pair and unpaired forwards count whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev

from verify.lanescompare.metrics import busy_times, co_execution, overlap
from verify.lanescompare.runs import Forward


@dataclass(frozen=True)
class Decomposition:
    """The non-overlap of two lanes at one stage; seconds, fractions and counts.

    Parameters
    ----------
    pairs : int
        Forwards paired by position.
    disjoint_pairs, unpaired_forwards : int
        Pairs that never overlap; forwards without a partner.
    observed : float or None
        M5 as measured.
    equal_durations : float or None
        M5 if both forwards of a pair took lane 0's duration: start offsets alone.
    later_starts : float or None
        M5 with both starts of a pair moved to the later one: end offsets alone. A start precedes
        the ranks' exchange, so the earlier rank's wait for its peer counts as busy.
    from_starts, from_ends : float
        Seconds of non-overlap of overlapping pairs, by cause.
    from_disjoint, from_unpaired : float
        Seconds of the forwards of disjoint pairs, and of unpaired ones.
    covered : float
        Seconds counted above that are no non-overlap after all, because a forward other than the
        partner covers them: ``from_starts + from_ends + from_disjoint + from_unpaired - covered``
        is exactly the non-overlap M5 sees.
    median_duration, duration_spread : float or None
        Median forward duration in seconds; standard deviation over mean (population).
    """

    pairs: int
    disjoint_pairs: int
    unpaired_forwards: int
    observed: float | None
    equal_durations: float | None
    later_starts: float | None
    from_starts: float
    from_ends: float
    from_disjoint: float
    from_unpaired: float
    covered: float
    median_duration: float | None
    duration_spread: float | None


def decompose(one: Sequence[Forward], other: Sequence[Forward]) -> Decomposition:
    """Decompose the non-overlap of two lanes' forwards at one stage, each ordered by start."""
    pairs = list(zip(one, other, strict=False))
    together = [(a, b) for a, b in pairs if overlap(a, b) > 0]
    apart = [f for pair in pairs if overlap(*pair) <= 0 for f in pair]
    alone = [*one[len(pairs) :], *other[len(pairs) :]]
    from_starts = sum(abs(a.start - b.start) for a, b in together)
    from_ends = sum(abs(a.end - b.end) for a, b in together)
    from_disjoint = sum(f.duration for f in apart)
    from_unpaired = sum(f.duration for f in alone)
    intervals = [[(f.start, f.end) for f in lane] for lane in (one, other)]
    several, anyone = busy_times(intervals)
    durations = [f.duration for f in (*one, *other)]
    mean = fmean(durations) if durations else 0.0
    return Decomposition(
        pairs=len(pairs),
        disjoint_pairs=len(apart) // 2,
        unpaired_forwards=len(alone),
        observed=co_execution(intervals),
        equal_durations=_equal_durations(one, other),
        later_starts=_later_starts(one, other),
        from_starts=from_starts,
        from_ends=from_ends,
        from_disjoint=from_disjoint,
        from_unpaired=from_unpaired,
        covered=from_starts + from_ends + from_disjoint + from_unpaired - (anyone - several),
        median_duration=median(durations) if durations else None,
        duration_spread=pstdev(durations) / mean if mean > 0 else None,
    )


def _equal_durations(one: Sequence[Forward], other: Sequence[Forward]) -> float | None:
    shared = [a.duration for a in one] + [b.duration for b in other[len(one) :]]
    return co_execution(
        [
            [(f.start, f.start + length) for f, length in zip(lane, shared, strict=False)]
            for lane in (one, other)
        ]
    )


def _later_starts(one: Sequence[Forward], other: Sequence[Forward]) -> float | None:
    """M5 after the move; of a disjoint pair the earlier forward would vanish, so it is kept."""
    moved: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    for a, b in zip(one, other, strict=False):
        start = max(a.start, b.start) if overlap(a, b) > 0 else None
        for lane, f in zip(moved, (a, b), strict=True):
            lane.append((f.start if start is None else start, f.end))
    paired = min(len(one), len(other))
    moved[0].extend((f.start, f.end) for f in one[paired:])
    moved[1].extend((f.start, f.end) for f in other[paired:])
    return co_execution(moved)
