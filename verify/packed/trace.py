"""From a state's id back to a schedule: ancestors by stored parents, choices by expanding anew.

Only four bytes are stored per state for this, the parent's id. Which choice led from parent to
child is found by expanding the parent again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify.packed.jit import Array
from verify.packed.kernels import SHARDS, hash_row
from verify.packed.model import Block, PackedModel
from verify.packed.search import Search


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
    """What the store keeps of a row: the row, or its hash under hash compaction."""
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


def lift(path: Trace, model: PackedModel, project: Callable[[Array], Array]) -> Trace:
    """Turn a path of a reduced model into one of the unreduced ``model``.

    ``project`` maps an unreduced row to the reduced row that represents it. Every reduction here
    is such that a step between representatives is, from any state they represent, a step of the
    real system; the step is searched for, not assumed.
    """
    start = [r for r in model.initial_rows() if np.array_equal(project(r), path.rows[0])]
    if not start:
        raise TraceError("the path starts in no initial state")
    rows, choices = [start[0]], []
    for wanted in path.rows[1:]:
        choice, row = follow(
            model,
            rows[-1],
            lambda candidate, wanted=wanted: np.array_equal(project(candidate), wanted),  # type: ignore[misc]
        )
        choices.append(choice)
        rows.append(row)
    return Trace(tuple(rows), tuple(choices))
