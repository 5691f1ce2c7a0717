"""Progress of a packed search, with an estimate of what is left where one can be made."""

from __future__ import annotations

import math

import numpy as np

from verify.limits import Progress
from verify.packed.search import Search

FITTED_LEVELS = 10
"""Levels that an estimate rests on."""

FARTHEST = 10_000
"""Levels ahead beyond which no estimate is made."""


def states_to_come(levels: list[int]) -> float | None:
    """Estimate how many more states there are from the number found at each depth.

    Level sizes of these graphs rise and fall like a bell, so a parabola is fitted to the logarithms
    of the last levels and summed until it falls below one state. None while the levels are few or
    the parabola does not open downwards: then nothing can be said.
    """
    recent = [size for size in levels[-FITTED_LEVELS:] if size > 0]
    if len(recent) < FITTED_LEVELS:
        return None
    depths = np.arange(len(recent), dtype=np.float64)
    a, b, c = np.polyfit(depths, np.log(recent), 2)
    if a >= -1e-6:
        return None
    total, depth = 0.0, len(recent)
    while depth < FARTHEST:
        exponent = a * depth * depth + b * depth + c
        if exponent < 0:
            return total
        if exponent > 60:
            return None
        total += math.exp(exponent)
        depth += 1
    return None


def progress_of(search: Search) -> Progress:
    """Where a search is now."""
    tally = search.tally
    states = search.states
    rate = search.recent_rate
    ahead = states_to_come(tally.levels)
    queue = tally.unexpanded + states - sum(tally.level_end)
    remaining = None
    if ahead is not None and rate:
        found_already = states - sum(tally.level_end)
        remaining = max(0.0, ahead - found_already) / rate
    return Progress(
        states=states,
        transitions=tally.transitions,
        depth=tally.depth,
        queue=queue,
        violations=sum(len(found) for found in tally.ends.values()),
        seconds=tally.seconds,
        memory=search.memory,
        recent_rate=rate,
        remaining_s=remaining,
    )
