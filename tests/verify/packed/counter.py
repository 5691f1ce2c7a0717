"""A packed model that has nothing to do with lanes: a grid walked from a corner."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from verify.packed.jit import Array
from verify.packed.model import Block, End
from verify.packed.native import Expander, PythonExpander


@dataclass(frozen=True)
class Grid:
    """From (0, 0) one step right or down; the far corner is complete, ``trap`` drains."""

    width_: int
    height: int
    trap: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return json.dumps(["grid", self.width_, self.height, self.trap])

    @property
    def width(self) -> int:
        return 2

    @property
    def most_choices(self) -> int:
        return 2

    def initial_rows(self) -> Array:
        return np.zeros((1, 2), np.uint32)

    def expander(self) -> Expander:
        return PythonExpander(self.walk, self.width)

    def walk(self, rows: Array, header: int) -> None:
        """Successors of rows, as far as they fit."""
        block, count = Block.at(header), 0
        for i, (x, y) in enumerate(rows):
            steps = [(x + 1, y), (x, y + 1)]
            steps = [(a, b) for a, b in steps if a < self.width_ and b < self.height]
            if (int(x), int(y)) == self.trap:
                steps = []
            if count + len(steps) > len(block.sources):
                block.report(i, count)
                return
            for choice, step in enumerate(steps):
                block.rows[count] = step
                block.sources[count] = i
                block.choices[count] = choice
                count += 1
            far = (int(x), int(y)) == (self.width_ - 1, self.height - 1)
            block.ends[i] = End.GOING if steps else End.COMPLETE if far else End.DRAINED
        block.report(len(rows), count)
