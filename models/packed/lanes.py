"""The lanes protocol as a :class:`verify.packed.model.PackedModel`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import numpy as np

from models.packed import kernel as k
from models.packed.layout import ADMISSION_CODES, ROOM_RULES, STAND_IN_CODES, Layout, layout_of
from models.packed.reductions import REDUCTIONS, plan
from models.scenario import Scenario
from verify.packed.jit import Array, address_of
from verify.packed.native import Expander

CLAIMS: Final = {
    "a batch ended": k.BATCH_ENDED,
    "two lanes shared a stage": k.STAGE_SHARED,
    "a wave joined several lanes": k.WAVE_JOINED,
    "a wave was dispatched with a placeholder": k.WAVE_STOOD_IN,
    "a lane joined late": k.LATE_JOIN,
    "a ticket was refused behind another": k.REFUSED_BEHIND,
    "a ticket was refused by a sealed group": k.REFUSED_SEALED,
    "a ticket was refused during a wave": k.REFUSED_DURING_WAVE,
}
"""The core's reachability claims (:mod:`models.claims`) and the bits that stand for them."""

VERSION: Final = 2
"""Raised whenever rows or the numbering of choices change: old checkpoints are then refused."""

DOMAIN: Final = frozenset(
    {
        "lanes",
        "stages",
        "layers",
        "batches",
        "model",
        "admission",
        "stand_in",
        "rooms",
        "arrivals",
        "phases",
        "ties",
    }
)
"""Scenario fields that the packed model knows; any other must be at its default."""

MEMO_BYTES: Final = 1 << 23
"""Memory of a thread for remembered moves; when it is full they are forgotten."""

MOST_LANES: Final = 16
MOST_STAGES: Final = 32
MOST_PENDING_TIES: Final = 20


def outside_domain(scenario: Scenario, reductions: tuple[str, ...] = ()) -> str | None:
    """Say why the packed engine is not certified for a scenario, or None if it is.

    ``reductions`` are those wanted: with ``ties``, more pending events can be taken.
    """
    extra = sorted(set(scenario.to_compact()) - DOMAIN)
    if extra:
        return f"the packed model does not know: {', '.join(extra)}"
    for name, rule, known in (
        ("admission", scenario.admission, ADMISSION_CODES),
        ("stand_in", scenario.stand_in, STAND_IN_CODES),
        ("rooms", scenario.rooms, ROOM_RULES),
    ):
        if rule not in known:
            return f"the packed model has no {name} rule {rule!r}, only {', '.join(known)}"
    if scenario.lanes > MOST_LANES or scenario.stages > MOST_STAGES:
        return f"the packed model takes at most {MOST_LANES} lanes and {MOST_STAGES} stages"
    if max(scenario.batches) > 1 << 15:
        return f"the packed model takes at most {1 << 15} batches a lane"
    seen = plan(scenario, reductions)
    layout = layout_of(scenario, seen)
    most_room = 2 * scenario.stages * scenario.layers * 2 * scenario.lanes
    if most_room >= 1 << 16 or layout.most_pending > 62:
        return "the shape is too large for the packed model's fields"
    if layout.geometry[k.TIES] and layout.most_pending > MOST_PENDING_TIES:
        return (
            f"with ties, the packed model takes at most {MOST_PENDING_TIES} pending events"
            " (more where --reduction ties,canonical is sound)"
        )
    return None


class PackedLanes:
    """Packed transition system of a scenario.

    Parameters
    ----------
    scenario
        Inside the packed domain (:func:`outside_domain`).
    reductions
        Names of the reductions wanted; those that are not sound here are refused in ``plan``.
    """

    def __init__(self, scenario: Scenario, reductions: tuple[str, ...] = ()) -> None:
        obstacle = outside_domain(scenario, reductions)
        if obstacle is not None:
            raise ValueError(obstacle)
        self.scenario = scenario
        self.plan = plan(scenario, tuple(name for name in REDUCTIONS if name in reductions))
        self.layout = layout_of(scenario, self.plan)

    @property
    def name(self) -> str:
        """Scenario, reductions and version of the rows, as one line of JSON."""
        identity = {
            "model": "lanes",
            "version": VERSION,
            "scenario": self.scenario.to_json(),
            "reductions": self.plan.applied,
        }
        return json.dumps(identity, sort_keys=True)

    @property
    def width(self) -> int:
        """Words of a row."""
        return self.layout.width

    @property
    def most_choices(self) -> int:
        """Most transitions of one state."""
        pending = self.layout.most_pending
        return (1 << pending) - 1 if self.layout.geometry[k.TIES] else pending

    def initial_rows(self) -> Array:
        """Return the one state after the start."""
        scratch = _Scratch(self.layout)
        row = np.zeros((1, self.width), np.uint32)
        scratch.start(row[0])
        if "symmetry" in self.plan:
            unreduced = self.unreduced()
            row[0] = unreduced.projection(self)(unreduced.initial_rows()[0])
        return row

    @property
    def reached_at_start(self) -> int:
        """Claims that the start itself reaches."""
        row = np.zeros(self.width, np.uint32)
        return _Scratch(self.layout).start(row)

    def expander(self) -> LanesExpander:
        """Make an expander for one thread."""
        return LanesExpander(self.layout)

    def unreduced(self) -> PackedLanes:
        """Model that this one's paths are lifted to: without reductions, and ties if it has none.

        Its schedules are schedules of the scenario.
        """
        ties = bool(self.layout.geometry[k.TIES])
        return PackedLanes(replace(self.scenario, ties=ties))

    def projection(self, reduced: PackedLanes) -> Projection:
        """Map this unreduced model's rows to those of a reduced one."""
        return Projection(self.layout, reduced.layout)

    def claims(self, reached: int) -> dict[str, bool]:
        """Name the claims that are true in a set of bits."""
        return {name: bool(reached & bit) for name, bit in CLAIMS.items()}


class _Scratch:
    """Working memory of the kernels."""

    WORK = np.uint16

    def __init__(self, layout: Layout) -> None:
        size = int(layout.geometry[k.SIZE])
        self.layout = layout
        self.base: Array = np.zeros(-size // 4 * -4, self.WORK)
        self.work: Array = np.zeros(-size // 4 * -4, self.WORK)
        self.urgent: Array = np.zeros(layout.most_urgent, np.int64)
        self.keys: Array = np.zeros(int(layout.geometry[k.LANES]), np.int64)

    def start(self, row: Array) -> int:
        at = self.layout
        return int(
            k.start(self.work, row, at.geometry, at.bits, self.urgent, at.phases, at.batches)
        )


class LanesExpander(Expander):
    """Successor generation for one thread: the memory that the kernel works in."""

    def __init__(self, layout: Layout) -> None:
        scratch = _Scratch(layout)
        lanes, stages = (int(layout.geometry[i]) for i in (k.LANES, k.STAGES))
        width = k.M_MOVES + 6 * lanes
        entries = MEMO_BYTES // (8 * width) if layout.geometry[k.PARTS] else 0
        events = np.zeros(2 * (layout.most_pending + lanes * stages), np.int64)
        phases = np.ascontiguousarray(layout.phases)
        memory = {
            k.C_GEOMETRY: layout.geometry,
            k.C_BITS: np.ascontiguousarray(layout.bits),
            k.C_PHASES: phases,
            k.C_BATCHES: layout.batches,
            k.C_CLASSES: layout.classes,
            k.C_BASE: scratch.base,
            k.C_WORK: scratch.work,
            k.C_URGENT: scratch.urgent,
            k.C_EVENTS: events,
            k.C_KEYS: scratch.keys,
            k.C_MEMO: np.zeros((entries, width), np.int64),
            k.C_INDEX: np.zeros(1 << (2 * entries).bit_length(), np.int32),
            k.C_USED: np.zeros(1, np.int64),
            k.C_ROW: np.zeros(layout.width, np.uint32),
            k.C_OUT: np.zeros(layout.width, np.uint32),
            k.C_PARTS: np.zeros(stages, np.int64),
            k.C_ENTRIES: np.zeros(stages, np.int64),
            k.C_LANE_OF: np.arange(lanes * stages) // stages,
        }
        sizes = {
            k.C_PHASE_COLUMNS: phases.shape[1],
            k.C_WORK_SIZE: len(scratch.work),
            k.C_URGENT_SIZE: len(scratch.urgent),
            k.C_EVENTS_SIZE: len(events),
            k.C_MEMO_ENTRIES: entries,
            k.C_MEMO_WIDTH: width,
            k.C_INDEX_SIZE: len(memory[k.C_INDEX]),
            k.C_WIDTH: layout.width,
        }
        self._memory = memory
        self._context: Array = np.zeros(k.C_SIZE, np.int64)
        for place, array in memory.items():
            self._context[place] = array.ctypes.data
        for place, number in sizes.items():
            self._context[place] = number
        expand = k.expand_parts_at if layout.geometry[k.PARTS] else k.expand_at
        super().__init__(address_of(expand), self._context.ctypes.data)


class Projection(_Scratch):
    """From unreduced rows to the rows that represent them in a reduced model."""

    def __init__(self, layout: Layout, to: Layout) -> None:
        super().__init__(layout)
        self.to = to
        self.reduced: Array = np.zeros(int(to.geometry[k.SIZE]), self.WORK)

    def __call__(self, row: Array) -> Array:
        """Row of the representative."""
        at, to = self.layout, self.to
        out = np.zeros(to.width, np.uint32)
        k.project(
            row,
            self.work,
            self.reduced,
            out,
            at.geometry,
            at.bits,
            to.geometry,
            to.bits,
            at.batches,
            at.classes,
            self.keys,
        )
        return out
