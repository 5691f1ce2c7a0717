"""What the packed engine knows of a system: rows in, successor rows out."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, Protocol

import numpy as np

from verify.packed.jit import Array
from verify.packed.native import (
    CAPACITY,
    CHOICES,
    COUNT,
    ENDS,
    FIRST,
    HEADER_SIZE,
    REACHED,
    ROWS,
    SOURCES,
    Expander,
)


class End(IntEnum):
    """What an expanded state is: it goes on, or the run ends there in one of three ways."""

    GOING = 0
    COMPLETE = 1
    DRAINED = 2
    FAILED = 3


class Block:
    """Successors of consecutive rows: written by an expander, read by the search.

    Attributes
    ----------
    rows
        ``(capacity, width)`` uint32; successor rows.
    sources, choices
        ``(capacity,)`` int64; from which row of the expanded range, by which choice of the model.
    ends
        ``(rows expanded at a time,)`` uint8; an :class:`End` per expanded row.
    header
        ``(HEADER_SIZE,)`` int64; addresses and sizes of the above, then what the expander says.
    """

    def __init__(
        self, rows: Array, sources: Array, choices: Array, ends: Array, header: Array
    ) -> None:
        self.rows, self.sources, self.choices, self.ends = rows, sources, choices, ends
        self.header = header

    @staticmethod
    def of(width: int, capacity: int, span: int, header: Array | None = None) -> Block:
        """Allocate a block for ``capacity`` successors of at most ``span`` rows."""
        block = Block(
            rows=np.zeros((capacity, width), np.uint32),
            sources=np.zeros(capacity, np.int64),
            choices=np.zeros(capacity, np.int64),
            ends=np.zeros(span, np.uint8),
            header=np.zeros(HEADER_SIZE, np.int64) if header is None else header,
        )
        arrays = (block.rows, block.sources, block.choices, block.ends)
        block.header[:CAPACITY] = [array.ctypes.data for array in arrays]
        block.header[CAPACITY:FIRST] = capacity, span, width
        return block

    @staticmethod
    def at(address: int) -> Block:
        """Look at a block through its header's address, from inside an expander."""
        header = _array(address, ctypes.c_int64, HEADER_SIZE)
        capacity, span, width = (int(n) for n in header[CAPACITY:FIRST])
        return Block(
            rows=_array(header[ROWS], ctypes.c_uint32, capacity, width),
            sources=_array(header[SOURCES], ctypes.c_int64, capacity),
            choices=_array(header[CHOICES], ctypes.c_int64, capacity),
            ends=_array(header[ENDS], ctypes.c_uint8, span),
            header=header,
        )

    @property
    def first(self) -> int:
        """First row that was not expanded for want of room."""
        return int(self.header[FIRST])

    @property
    def count(self) -> int:
        """Number of successors."""
        return int(self.header[COUNT])

    @property
    def reached(self) -> int:
        """Claims reached, as bits."""
        return int(self.header[REACHED])

    def report(self, first: int, count: int, reached: int = 0) -> None:
        """Set what an expander says of its work."""
        self.header[[FIRST, COUNT, REACHED]] = first, count, reached


def _array(address: int, kind: Any, *shape: int) -> Array:
    if not np.prod(shape):
        return np.zeros(shape, kind)
    return np.ctypeslib.as_array((kind * int(np.prod(shape))).from_address(int(address))).reshape(
        shape
    )


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
