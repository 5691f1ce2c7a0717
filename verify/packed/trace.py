"""From a state's id back to a schedule: ancestors by stored parents, choices by expanding anew.

Only four bytes are stored per state for this, the parent's id. Which choice led from parent to
child is found by expanding the parent again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.packed.jit import Array
from verify.packed.kernels import SHARDS, hash_row
from verify.packed.model import Block, PackedModel
from verify.packed.search import BLOCK, SPAN, Search, ranges_between
from verify.packed.store import Routing


class TraceError(RuntimeError):
    """A stored chain of parents is no path of the model: the store or the model is broken."""


@dataclass(frozen=True)
class Trace:
    """A path: rows from the initial state on, and the choice that leads to each next row."""

    rows: tuple[Array, ...]
    choices: tuple[int, ...]


def ancestors(search: Search, state: int) -> list[int]:
    """Ids from an initial state to ``state``, both included."""
    chain = [state]
    for _ in range(len(search.tally.levels)):
        number, shard = divmod(chain[-1], SHARDS)
        parent = int(search.shards[shard].parents[number])
        if _is_initial(search, chain[-1]):
            return chain[::-1]
        chain.append(parent)
    raise TraceError(f"state {state} has no initial state among its ancestors")


def _is_initial(search: Search, state: int) -> bool:
    number, shard = divmod(state, SHARDS)
    key = search.shards[shard].keys[number]
    return any(np.array_equal(key, key_of(search, row)) for row in search.model.initial_rows())


def key_of(search: Search, row: Array) -> Array:
    """Return what the store keeps of a row: itself, or its hash under hash compaction."""
    if search.compact:
        return np.array([hash_row(row)], np.uint64).view(np.uint32)
    return row


def successors(model: PackedModel, row: Array) -> Block:
    """Expand one row."""
    block = Block.of(model.width, max(1, model.most_choices), 1)
    model.expander()(row[np.newaxis], block)
    return block


def follow(model: PackedModel, row: Array, accepts: Callable[[Array], bool]) -> tuple[int, Array]:
    """First choice of a row whose successor is accepted, and that successor.

    Raises
    ------
    TraceError
        If no successor is.
    """
    block = successors(model, row)
    for i in range(block.count):
        if accepts(block.rows[i]):
            return int(block.choices[i]), block.rows[i].copy()
    raise TraceError("no successor of a state on the path is the next state of the path")


def trace(search: Search, state: int) -> Trace:
    """Path from an initial state to ``state``; a shortest one of the model that was searched."""
    chain = ancestors(search, state)
    keys = [search.shards[i % SHARDS].keys[i // SHARDS] for i in chain]
    rows = [
        row for row in search.model.initial_rows() if np.array_equal(key_of(search, row), keys[0])
    ][:1]
    choices = []
    for key in keys[1:]:
        choice, row = follow(
            search.model,
            rows[-1],
            lambda candidate, key=key: np.array_equal(key_of(search, candidate), key),  # type: ignore[misc]
        )
        choices.append(choice)
        rows.append(row)
    return Trace(tuple(rows), tuple(choices))


def marked_levels(search: Search, targets: Sequence[int]) -> list[Array]:
    """Mark every state from which a target can be reached in the fewest steps there are.

    ``targets`` are states of one depth; a state at depth ``i`` is marked when a target can be
    reached from it in ``depth - i`` steps. Returns the marks of each shard's states.
    """
    marks: list[Array] = [np.zeros(shard.count, np.uint8) for shard in search.shards]
    for target in targets:
        marks[target % SHARDS][target // SHARDS] = 1
    bounds = search.tally.bounds
    depth = depth_of(search, targets[0])
    probe = _Probe(search)
    for level in range(depth - 1, -1, -1):
        for number, first, last in ranges_between(bounds[level], bounds[level + 1]):
            while first < last:
                probe.expand(search.shards[number].rows(first, last))
                leads = np.unique(probe.block.sources[probe.marked(marks, level + 1)])
                marks[number][first + leads] = 1
                first += probe.block.first
    return marks


class _Probe:
    """Expands rows of a finished search and looks their successors up."""

    def __init__(self, search: Search) -> None:
        self.search = search
        capacity = max(BLOCK, search.model.most_choices)
        self.block = Block.of(search.model.width, capacity, SPAN)
        self.routing = Routing(capacity)
        self.expander = search.model.expander()

    def expand(self, rows: Array) -> None:
        self.expander(rows, self.block)
        self.routing.fill(self.block)

    def marked(self, marks: list[Array], depth: int) -> list[int]:
        """Numbers of the successors that are marked states of a depth."""
        found: list[int] = []
        first, last = self.search.tally.bounds[depth : depth + 2]
        for shard in self.search.shards:
            share = self.routing.share(shard.number)
            if len(share):
                numbers = shard.locate(self.block, self.routing)
                hit = (numbers >= first[shard.number]) & (numbers < last[shard.number])
                hit &= marks[shard.number][numbers] != 0
                found.extend(int(i) for i in share[hit])
        return found


def depth_of(search: Search, state: int) -> int:
    """Depth at which a state was found."""
    number, shard = divmod(state, SHARDS)
    ends = [bounds[shard] for bounds in search.tally.bounds[1:]]
    return bisect_right(ends, number)


def first_trace(search: Search, targets: Sequence[int], order: Callable[[int], Any]) -> Trace:
    """Of all shortest paths to any of the targets, the first one.

    Paths are compared choice by choice, and choices by ``order(choice)``: this is the path that
    an engine which explores breadth-first in that order reports. Targets have one depth.
    """
    marks = marked_levels(search, targets)
    initial = search.model.initial_rows()
    probe = _Probe(search)
    probe.block.rows[: len(initial)] = initial
    probe.block.report(0, len(initial))
    probe.routing.fill(probe.block)
    rows = [initial[min(probe.marked(marks, 0))]]
    choices: list[int] = []
    for depth in range(1, depth_of(search, targets[0]) + 1):
        probe.expand(rows[-1][np.newaxis])
        block = probe.block
        best = min(probe.marked(marks, depth), key=lambda i: order(int(block.choices[i])))
        choices.append(int(block.choices[best]))
        rows.append(block.rows[best].copy())
    return Trace(tuple(rows), tuple(choices))


def lift(path: Trace, model: PackedModel, project: Callable[[Array], Array]) -> Trace:
    """Turn a path of a reduced model into one of the unreduced ``model``.

    ``project`` maps an unreduced row to the reduced row that represents it. Every reduction here
    is such that a step between representatives is, from any state they represent, a step or a few
    of the real system; they are searched for, not assumed.
    """
    start = [r for r in model.initial_rows() if np.array_equal(project(r), path.rows[0])]
    if not start:
        raise TraceError("the path starts in no initial state")
    rows, choices = [start[0]], []
    for wanted in path.rows[1:]:
        steps = _steps_to(wanted, rows[-1], model, project)
        choices += [choice for choice, _ in steps]
        rows += [row for _, row in steps]
    return Trace(tuple(rows), tuple(choices))


def _steps_to(
    wanted: Array, row: Array, model: PackedModel, project: Callable[[Array], Array]
) -> list[tuple[int, Array]]:
    """Fewest steps from a row to one that ``wanted`` represents.

    Steps before the last stay among rows with the first one's representative: a reduction that
    takes several steps at once passes through nothing else.
    """
    here = project(row).tobytes()
    queue: deque[tuple[Array, list[tuple[int, Array]]]] = deque([(row, [])])
    seen = {row.tobytes()}
    while queue:
        at, steps = queue.popleft()
        block = successors(model, at)
        for i in range(block.count):
            following = block.rows[i].copy()
            taken = [*steps, (int(block.choices[i]), following)]
            representative = project(following)
            if np.array_equal(representative, wanted):
                return taken
            if representative.tobytes() == here and following.tobytes() not in seen:
                seen.add(following.tobytes())
                queue.append((following, taken))
    raise TraceError("no way leads from a state on the path to the next state of the path")
