"""What the packed engine knows of a system: rows in, successor rows out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

import numpy as np

from verify.packed.jit import Array


class End(IntEnum):
    """What an expanded state is: it goes on, or the run ends there in one of three ways."""

    GOING = 0
    COMPLETE = 1
    DRAINED = 2
    FAILED = 3


@dataclass
class Block:
    """Successors of consecutive rows: written by an expander, read by the search.

    Attributes
    ----------
    rows
        ``(capacity, width)`` uint32; successor rows.
    sources, choices
        ``(capacity,)``; from which row of the expanded range, by which choice of the model.
    ends
        ``(rows expanded at a time,)`` uint8; an :class:`End` per expanded row.
    first, count, reached
        First row not expanded for want of room; number of successors; claims reached, as bits.
    """

    rows: Array
    sources: Array
    choices: Array
    ends: Array
    first: int = 0
    count: int = 0
    reached: int = 0

    @staticmethod
    def of(width: int, capacity: int, span: int) -> Block:
        """Allocate a block for ``capacity`` successors of at most ``span`` rows."""
        return Block(
            rows=np.zeros((capacity, width), np.uint32),
            sources=np.zeros(capacity, np.int64),
            choices=np.zeros(capacity, np.int64),
            ends=np.zeros(span, np.uint8),
        )


class Expander(Protocol):
    """Successor generation with its own scratch memory: one per thread."""

    def __call__(self, rows: Array, block: Block) -> None:
        """Fill ``block`` with all successors of ``rows``, row by row, while they fit."""
        ...


class PackedModel(Protocol):
    """A transition system over fixed-width rows of 32-bit words.

    Rows are equal exactly when states are equal. Expanding is a function of the row alone: the
    same row has the same successors in the same order on every run and thread.
    """

    @property
    def name(self) -> str:
        """Identity of the transition system: a checkpoint of another name is refused."""
        ...

    @property
    def width(self) -> int:
        """Words of a row."""
        ...

    @property
    def most_choices(self) -> int:
        """At least the number of transitions that any state has."""
        ...

    def initial_rows(self) -> Array:
        """``(n, width)`` uint32, n at least 1."""
        ...

    def expander(self) -> Expander:
        """Make an expander for one thread."""
        ...
