"""How often something can happen during a wait: longest weighted paths on the stored graph."""

from __future__ import annotations

import numpy as np

from verify.fairness import Edges, Index, Mask


def most_during_wait(
    edges: Edges, waiting: Mask, served: Mask, before: Index, after: Index
) -> int | None:
    """Most that any one wait collects from its beginning to its end, or None if unbounded.

    Parameters
    ----------
    edges
        The graph.
    waiting
        Per state, whether the wait is on.
    served
        Per transition, whether it ends the wait that was on; another may begin in it.
    before, after
        Per transition, what it adds to the wait that is on before it is served, and to one that
        begins after that. Without service all counts as ``before``.

    Notes
    -----
    A cycle of waiting that adds something makes the sum unbounded, whatever the fairness: a fair
    run may go round it any finite number of times. Without such a cycle the longest path over
    the acyclic rest is found by relaxation.
    """
    stays = waiting[edges.sources] & waiting[edges.targets] & ~served
    component = edges.components(stays)
    round_trip = stays & (component[edges.sources] == component[edges.targets])
    if (round_trip & (before > 0)).any():
        return None
    best = np.zeros(edges.states, dtype=np.int64)
    ends = served & waiting[edges.sources]
    np.maximum.at(best, edges.sources[ends], before[ends])
    kept = np.flatnonzero(stays)
    while True:
        found = before[kept] + best[edges.targets[kept]]
        better = found > best[edges.sources[kept]]
        if not better.any():
            break
        np.maximum.at(best, edges.sources[kept][better], found[better])
    starts = waiting[edges.targets] & (served | ~waiting[edges.sources])
    opening = np.where(served, after, before) + best[edges.targets]
    whole = before[served]
    first = best[np.flatnonzero(waiting)]
    candidates = (opening[starts], whole, first)
    return max((int(found.max()) for found in candidates if len(found)), default=0)
