"""Where each part of a packed lanes state lies: fields, their widths, and the derived values.

A row is a string of bits in 32-bit words: one part per stage, all parts alike, then the pending
events, then the rest. Which fields exist depends on what can matter to the future of the scenario
(docs/packed_engine.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.packed import kernel as k
from models.packed.reductions import Plan, key_widths
from models.scenario import Scenario
from verify.packed.jit import Array

ADMISSION_CODES = {
    "strict_fifo": k.STRICT_FIFO,
    "lane_aware": k.LANE_AWARE,
    "ep_ordered": k.EP_ORDERED,
    "late_ticket": k.LATE_TICKET,
}
STAND_IN_CODES = {
    "standard": k.STANDARD,
    "withdraw_joined": k.WITHDRAW_JOINED,
    "blocked_is_idle": k.BLOCKED_IS_IDLE,
}


ROOM_RULES = ("shared", "by_phase")


@dataclass(frozen=True)
class Layout:
    """Arrays that the kernels read: see :mod:`models.packed.kernel` for their meaning."""

    geometry: Array
    bits: Array
    phases: Array
    batches: Array
    classes: Array
    width: int
    used_bits: int

    @property
    def cells(self) -> int:
        """Number of (lane, stage) pairs."""
        return int(self.geometry[k.LANES] * self.geometry[k.STAGES])

    @property
    def most_pending(self) -> int:
        """Most timed events that can be pending at once."""
        in_flight = np.minimum(self.batches, self.geometry[k.STAGES]).sum()
        requests = self.batches.sum() if self.geometry[k.OPEN] else 0
        return int(in_flight + requests)

    @property
    def most_urgent(self) -> int:
        """Most urgent events that one instant can create.

        Each cell's timed event creates at most ``lanes + 1``; the arrival that follows a stage end
        creates one more; a batch's end or a request creates a ``lane_schedule`` that creates at
        most ``stages`` arrivals, each followed by one ``stage_schedule``.
        """
        lanes, stages = int(self.geometry[k.LANES]), int(self.geometry[k.STAGES])
        per_event = lanes + 4 + 2 * stages
        return 2 + per_event * (self.most_pending + lanes + 1)


class _Fields:
    """Gives numbers to fields, packed ones first."""

    def __init__(self, geometry: Array) -> None:
        self.geometry = geometry
        self.widths: list[int] = []
        self.size = 0
        self.values: dict[int, tuple[int, int]] = {}

    def packed(self, at: int, count: int, greatest: int) -> None:
        self.geometry[at] = len(self.widths)
        self.widths.extend([int(greatest).bit_length()] * count)
        self.size = len(self.widths)

    def worth(self, at: int, kind: int, floors: Sequence[int]) -> None:
        """Say what a step of each of these fields is worth (see ``pack_change``)."""
        for field, floor in enumerate(floors, start=int(self.geometry[at])):
            self.values[field] = (kind, floor)

    def derived(self, at: int, count: int) -> None:
        self.geometry[at] = self.size
        self.size += count

    def place(self, order: Sequence[int]) -> Array:
        """Word, shift, mask and worth of each field, one after the other."""
        bits = np.zeros((5, len(self.widths)), np.int64)
        at = 0
        for field in order:
            width = self.widths[field]
            if width:  # else it is always 0, and lies nowhere
                bits[:3, field] = at // 32, at % 32, (1 << width) - 1
            bits[3:, field] = self.values.get(field, (k.OTHER, 0))
            at += width
        return bits


def layout_of(scenario: Scenario, plan: Plan) -> Layout:
    """Lay out the states of a scenario inside the packed domain, under a plan of reductions."""
    lanes, stages = scenario.lanes, scenario.stages
    moe = scenario.model == "moe"
    ties = scenario.ties and "ties" not in plan
    layers = scenario.layers if moe else 0
    split = moe and scenario.rooms == "by_phase"
    most = max(1, *scenario.batches)
    in_flight = [min(stages, count) for count in scenario.batches]
    g = np.zeros(k.G_SIZE, np.int64)
    g[k.LANES], g[k.STAGES], g[k.LAYERS], g[k.PHASES] = lanes, stages, layers, 1 + split
    g[k.ADMISSION] = ADMISSION_CODES[scenario.admission]
    g[k.STAND_IN] = STAND_IN_CODES[scenario.stand_in]
    g[k.MOE], g[k.OPEN], g[k.TIES] = moe, scenario.arrivals == "open", ties
    g[k.ORDERED], g[k.FIFO] = "canonical" not in plan, "symmetry" not in plan
    g[k.SYMMETRY], g[k.PARTIAL] = "symmetry" in plan, "por" in plan
    g[k.MEET] = "rendezvous" in plan
    g[k.KEY_STATUS], g[k.KEY_HEAP], g[k.KEY_BATCHES], _ = key_widths(scenario, bool(g[k.MEET]))
    g[k.FIFO_SLOTS] = sum(in_flight) if g[k.FIFO] else 0
    g[k.PENDING_SLOTS] = sum(in_flight) if g[k.ORDERED] else 0
    rooms = stages * layers * (1 + split)

    fields = _Fields(g)
    meets = "rendezvous" in plan
    highest = k.ATTENTION if meets else k.TAIL + k.PER_LAYER * layers
    fields.packed(k.AT_STATUS, lanes * stages, highest)
    counted = g[k.FIFO] and g[k.ADMISSION] != k.LATE_TICKET  # every batch has a ticket in the FIFO
    fields.packed(k.AT_QUEUED, lanes * stages, 0 if counted else max(in_flight))
    left_over = max(count - held for count, held in zip(scenario.batches, in_flight, strict=True))
    fields.packed(k.AT_WAITING, lanes, most if g[k.OPEN] else left_over)
    fields.packed(k.AT_REQUESTS, lanes if g[k.OPEN] else 0, most)
    if moe:
        fields.packed(k.AT_SEALED, stages, 1)
    if moe and not meets:
        fields.packed(k.AT_ROOM, rooms, (1 << lanes) - 1)
    fields.packed(k.AT_FIFO, stages * int(g[k.FIFO_SLOTS]), lanes)
    fields.packed(k.AT_PENDING, int(g[k.PENDING_SLOTS]), lanes * stages)
    if moe:
        fields.packed(k.AT_FAILED, 1, 2 * rooms * lanes)
    loses_batches = moe and ties
    if loses_batches:
        fields.packed(k.AT_IN_FLIGHT, lanes, max(in_flight))
        fields.packed(k.AT_ADMITTED, lanes * stages, most)
    g[k.FIELDS] = len(fields.widths)
    if not moe:
        fields.derived(k.AT_SEALED, stages)
        fields.derived(k.AT_FAILED, 1)
    if meets:
        fields.derived(k.AT_ROOM, rooms)
    if not loses_batches:
        fields.derived(k.AT_IN_FLIGHT, lanes)
        fields.derived(k.AT_ADMITTED, lanes * stages)
    for at in (k.AT_BUSY, k.AT_WAVE, k.AT_BACKLOG, k.AT_FIFO_LENGTH):
        fields.derived(at, stages)
    fields.derived(k.AT_PENDING_LENGTH, 1)
    fields.derived(k.AT_REACHED, 1)
    g[k.SIZE] = fields.size

    per_stage = k.PER_LAYER * layers + 2
    floors = [stage * per_stage for _ in range(lanes) for stage in range(stages)]
    fields.worth(k.AT_STATUS, k.RUNS, floors)
    fields.worth(k.AT_QUEUED, k.COUNTS, floors)
    fields.worth(k.AT_WAITING, k.COUNTS, [-1] * lanes)
    if g[k.OPEN]:
        fields.worth(k.AT_REQUESTS, k.COUNTS, [-2] * lanes)
    parts = [_part_of_stage(g, stage) for stage in range(stages)]
    pending = list(range(g[k.AT_PENDING], g[k.AT_PENDING] + g[k.PENDING_SLOTS]))
    first = [field for part in parts for field in part] + pending
    placed = set(first)
    order = first + [field for field in range(g[k.FIELDS]) if field not in placed]
    bits = fields.place(order)
    widths = fields.widths
    g[k.PART_BITS] = sum(widths[field] for field in parts[0])
    tickets = widths[int(g[k.AT_FIFO])] if g[k.FIFO_SLOTS] else 0
    g[k.FIFO_WIDTH] = tickets
    g[k.CONTROL_BITS] = g[k.PART_BITS] - tickets * g[k.FIFO_SLOTS]
    unread = scenario.admission == "ep_ordered" and scenario.stand_in != "blocked_is_idle"
    count_bits = max(in_flight).bit_length()
    if unread and g[k.FIFO_SLOTS] and g[k.CONTROL_BITS] + lanes * count_bits <= k.MOST_BITS:
        g[k.COUNTED] = count_bits
    g[k.PENDING_AT] = g[k.PART_BITS] * stages if pending else 0
    g[k.PENDING_WIDTH] = widths[pending[0]] if pending else 0
    g[k.PARTS] = _has_parts(scenario, plan, g)
    return Layout(
        geometry=g,
        bits=bits,
        phases=_phase_columns(scenario, most),
        batches=np.array(scenario.batches, np.int64),
        classes=_next_of_class(scenario, split),
        width=max(1, -(-sum(widths) // 32)),
        used_bits=sum(widths),
    )


def _part_of_stage(g: Array, stage: int) -> list[int]:
    """Fields that belong to one stage alone."""
    lanes, stages = g[k.LANES], g[k.STAGES]
    rooms = g[k.LAYERS] * g[k.PHASES] if g[k.MOE] and not g[k.MEET] else 0
    part = [
        int(g[at]) + lane * stages + stage
        for at in (k.AT_STATUS, k.AT_QUEUED)
        for lane in range(lanes)
    ]
    if g[k.MOE]:
        part.append(g[k.AT_SEALED] + stage)
    for at, count in ((k.AT_ROOM, rooms), (k.AT_FIFO, g[k.FIFO_SLOTS])):
        part += [g[at] + stage * count + i for i in range(count)]
    return part


def _has_parts(scenario: Scenario, plan: Plan, g: Array) -> bool:
    """Whether an event's effect is that on its stage, then that of an arrival at the next.

    Not so with ties. Rooms by phase depend on which of the lane's batches is at the stage.
    """
    return (
        not g[k.TIES]
        and set(plan.applied) <= {"ties", "canonical"}
        and g[k.PHASES] == 1
        and scenario.lanes * k.LOAD_BITS <= k.MOST_BITS
        and scenario.lanes * scenario.stages <= k.MOST_BITS
        and min(scenario.stages, max(scenario.batches)) <= k.LOAD_MASK
        and g[k.PART_BITS] <= k.MOST_BITS
        and g[k.PENDING_SLOTS] * g[k.PENDING_WIDTH] <= k.MOST_BITS
    )


def _phase_columns(scenario: Scenario, most: int) -> Array:
    columns = np.zeros((scenario.lanes, most), np.int64)
    for lane, sequence in enumerate(scenario.batch_phases):
        for number, phase in enumerate(sequence):
            columns[lane, number] = phase == "decode"
    return columns


def _next_of_class(scenario: Scenario, split: bool) -> Array:
    """Per lane the next higher lane with the same work, or -1; phases count if rooms are split."""
    work = [
        (count, phases if split else ())
        for count, phases in zip(scenario.batches, scenario.batch_phases, strict=True)
    ]
    following = np.full(scenario.lanes, -1, np.int64)
    for lane, mine in enumerate(work):
        later = [other for other in range(lane + 1, scenario.lanes) if work[other] == mine]
        following[lane] = later[0] if later else -1
    return following
