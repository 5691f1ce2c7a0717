"""Between the core's states and packed rows: the ground on which the two engines are compared.

Written against the core's snapshots alone and in plain Python, so that it shares no code with the
kernels it is used to check. Only the layout (which field lies where) is common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from frontier.events import ATTENTION_DONE, STAND_IN, WAVE_END, Batch, Event, WaveOperation
from frontier.replica import ReplicaSnapshot
from frontier.rooms import RoomKey
from models.packed import kernel as k
from models.packed.lanes import PackedLanes
from models.quiescent import Action, ProtocolState
from verify.packed.jit import Array


class Bridge:
    """Rows of an unreduced packed model for the core's states of the same scenario."""

    def __init__(self, model: PackedLanes) -> None:
        if model.plan.applied:
            raise ValueError("only the unreduced model has a row for every state of the core")
        self.scenario = model.scenario
        self.layout = model.layout
        self._g = [int(value) for value in model.layout.geometry]

    def row_of(self, state: ProtocolState) -> Array:
        """Packed row of a state of the core."""
        fields = np.zeros(self._g[k.FIELDS], np.int64)
        for field, value in self._values(state):
            fields[field] = value
        whole = 0
        for field, (word, shift, mask) in enumerate(self.layout.bits[:3].T.tolist()):
            if not 0 <= fields[field] <= mask:
                raise OverflowError(f"field {field} cannot hold {fields[field]}")
            whole |= int(fields[field]) << 32 * word + shift
        return np.frombuffer(whole.to_bytes(4 * self.layout.width, "little"), np.uint32).copy()

    def action_of(self, state: ProtocolState, choice: int) -> Action:
        """Instant of the core that the packed model's choice stands for.

        Bit ``i`` of a choice is the ``i``-th pending event in the order of creation; that is the
        core's order of pending events too, because requests are created before anything else.
        """
        return tuple(i for i in range(len(state.pending)) if choice >> i & 1)

    # ---------------------------------------------------------------- fields

    def _cell(self, lane: int, stage: int) -> int:
        return lane * self.scenario.stages + stage

    def _room(self, key: RoomKey) -> int:
        split = self._g[k.PHASES] == 2
        room = key.stage * self.scenario.layers + key.layer
        return room * 2 + (key.phase == "decode") if split else room

    def _values(self, state: ProtocolState) -> Iterator[tuple[int, int]]:
        snapshot = state.system
        if not isinstance(snapshot, ReplicaSnapshot):
            raise TypeError(f"expected the state of a lane replica, got {type(snapshot).__name__}")
        yield from self._lane_values(snapshot)
        yield from self._stage_values(snapshot, state.pending)
        for key, entries in snapshot.rooms:
            held = sum(1 << lane for lane, batch in entries if batch is None)
            yield self._g[k.AT_ROOM] + self._room(key), held
        cells = [self._pending_cell(event) for event in state.pending]
        for place, cell in enumerate(cell for cell in cells if cell is not None):
            yield self._g[k.AT_PENDING] + place, 1 + cell
        if state.failed is not None:
            yield self._g[k.AT_FAILED], self._failed(state.failed)

    def _lane_values(self, snapshot: ReplicaSnapshot) -> Iterator[tuple[int, int]]:
        formed, arrived = _finite(snapshot)
        packed = self._g[k.AT_IN_FLIGHT] < self._g[k.FIELDS]
        for lane in range(self.scenario.lanes):
            yield self._g[k.AT_WAITING] + lane, arrived[lane] - formed[lane]
            if self._g[k.OPEN]:
                requests = self.scenario.batches[lane] - arrived[lane]
                yield self._g[k.AT_REQUESTS] + lane, requests
            if packed:
                yield self._g[k.AT_IN_FLIGHT] + lane, snapshot.in_flight[lane]

    def _stage_values(
        self, snapshot: ReplicaSnapshot, pending: Sequence[Event]
    ) -> Iterator[tuple[int, int]]:
        packed = self._g[k.AT_ADMITTED] < self._g[k.FIELDS]
        for number, stage in enumerate(snapshot.stages):
            context = stage.context
            if self._g[k.MOE]:
                yield self._g[k.AT_SEALED] + number, int(context.sealed)  # type: ignore[attr-defined]
            fifo = [operation.lane for _, operation in context.queued]  # type: ignore[attr-defined]
            for place, lane in enumerate(fifo):
                slot = number * self._g[k.FIFO_SLOTS] + place
                yield self._g[k.AT_FIFO] + slot, 1 + lane
            for lane, (running, queue) in enumerate(stage.lanes):
                cell = self._cell(lane, number)
                if self.layout.bits[k.MASK, self._g[k.AT_QUEUED]]:  # else the FIFO tells
                    yield self._g[k.AT_QUEUED] + cell, len(queue)
                status = self._status(snapshot, number, running, pending)
                yield self._g[k.AT_STATUS] + cell, status
                if packed:
                    admitted = self._admitted(snapshot, lane, number)
                    yield self._g[k.AT_ADMITTED] + cell, admitted

    def _status(
        self,
        snapshot: ReplicaSnapshot,
        stage: int,
        running: Batch | None,
        pending: Sequence[Event],
    ) -> int:
        if running is None:
            return k.IDLE
        for _, operation in snapshot.stages[stage].context.active:  # type: ignore[attr-defined]
            if isinstance(operation, WaveOperation) and running in operation.batches:
                return k.IN_WAVE + k.PER_LAYER * operation.layer
        for key, entries in snapshot.rooms:
            if key.stage == stage and (running.lane, running) in entries:
                return k.IN_ROOM + k.PER_LAYER * key.layer
        for event in pending:
            if event.kind == ATTENTION_DONE and (event.batch, event.stage) == (running, stage):
                return k.ATTENTION + k.PER_LAYER * event.layer
        return k.TAIL

    def _admitted(self, snapshot: ReplicaSnapshot, lane: int, stage: int) -> int:
        """Batches of the lane admitted at the stage so far: batches go in order."""
        running, _ = snapshot.stages[stage].lanes[lane]
        if running is not None:
            return running.number + 1
        earlier = [q[0] for r, q in [s.lanes[lane] for s in snapshot.stages[: stage + 1]] if q]
        earlier += [r for r, _ in [s.lanes[lane] for s in snapshot.stages[:stage]] if r is not None]
        formed, _ = _finite(snapshot)
        return min((batch.number for batch in earlier), default=formed[lane])

    def _pending_cell(self, event: Event) -> int | None:
        if event.kind == WAVE_END:
            return self._cell(event.members[0].lane, event.stage)
        return self._cell(event.lane, event.stage) if event.stage >= 0 else None

    def _failed(self, event: Event) -> int:
        phase = event.phase if event.kind == STAND_IN else ""
        if event.kind == ATTENTION_DONE and event.batch is not None and self._g[k.PHASES] == 2:
            phase = event.batch.phase
        room = self._room(RoomKey(event.stage, event.layer, phase))
        entered = event.kind == ATTENTION_DONE
        return 1 + 2 * (room * self.scenario.lanes + event.lane) + entered


def _finite(snapshot: ReplicaSnapshot) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Per lane, batches formed and batches arrived: the snapshot of a finite workload."""
    return cast(tuple[tuple[int, ...], tuple[int, ...]], snapshot.workload)
