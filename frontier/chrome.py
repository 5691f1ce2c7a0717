"""A run as a trace for Perfetto or ``chrome://tracing`` (issue 3).

One process per role, one track per stage and lane, one per stage for its EP waves. A slice is the
time that a batch holds a stage; in it lie its attention, its waits in rooms and its tail. Waits
are flow arrows: from the lanes that met to their wave, and from the lane that left a stage to the
one that had waited for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from frontier.durations import MILLISECOND
from frontier.events import (
    ARRIVE,
    ATTENTION_DONE,
    CHILD_DONE,
    COMBINE_END,
    DECODE_ATTN,
    DECODE_FFN,
    FFN_RETURN,
    GROUP,
    KV_TRANSFER,
    REQUEST,
    STAGE_END,
    STAGE_SCHEDULE,
    WAVE_END,
    Batch,
    Event,
)
from frontier.ledger import StageRow
from frontier.system import ServingSystem

_TRACKS_PER_STAGE: Final = 1000
_WAVES: Final = _TRACKS_PER_STAGE - 1
_TRANSFERS: Final = {KV_TRANSFER: "KV transfer", GROUP: "M2N to FFN", FFN_RETURN: "N2M back"}


class _Place(NamedTuple):
    """A track: process and thread of the trace."""

    pid: int
    tid: int


def _microseconds(nanoseconds: int) -> float:
    return nanoseconds * 1000 / MILLISECOND


class ChromeTrace:
    """Observer, and sink of ledger rows, that builds the trace.

    Parameters
    ----------
    serving
        The system observed.
    """

    def __init__(self, serving: ServingSystem) -> None:
        self._serving = serving
        self._pids = {role: at for at, role in enumerate(serving.spec.roles, start=1)}
        self._records: list[tuple[int, dict[str, Any]]] = []
        self._created: dict[Event, int] = {}
        self._rooms: dict[tuple[str, int, Batch], int] = {}
        self._queued: dict[tuple[str, int, Batch], int] = {}
        self._left: dict[tuple[str, int], tuple[int, int]] = {}
        self._open: dict[tuple[str, int, int], tuple[int, Batch]] = {}
        self._flows = 0

    # ---------------------------------------------------------------- observing

    def row(self, row: StageRow) -> None:
        """Draw a row of the ledger as a slice."""
        self._open.pop((row.role, row.stage, row.lane), None)
        self._slice(
            self._lane(row.role, row.stage, row.lane),
            row.start,
            row.end,
            f"batch {row.batch} ({row.phase})",
            "batch",
            {
                "requests": list(row.requests),
                "prefill_tokens": row.prefill_tokens,
                "decode_tokens": row.decode_tokens,
            },
        )

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:
        """Note one handled event and what it started."""
        role = self._serving.role_of(event)
        if event.kind == ARRIVE and event.batch is not None:
            self._queued[role, event.stage, event.batch] = now
        elif event.kind == STAGE_SCHEDULE and follow:
            self._admitted(now, role, follow[0])
        if not event.is_urgent:
            self._ended(now, role, event)
        for started in follow:
            if not started.is_urgent:
                self._created[started] = now
                if started.kind == WAVE_END:
                    self._dispatched(now, role, started)

    def _admitted(self, now: int, role: str, started: Event) -> None:
        batch = started.batch
        if batch is None:
            return
        self._open[role, started.stage, started.lane] = (now, batch)
        since = self._queued.pop((role, started.stage, batch), None)
        waker = self._left.get((role, started.stage))
        if since is not None and waker is not None and waker[0] > since:
            at, lane = waker
            here = self._lane(role, started.stage, started.lane)
            self._arrow(
                "waited for the stage", self._lane(role, started.stage, lane), at, here, now
            )

    def _dispatched(self, now: int, role: str, wave: Event) -> None:
        for batch in wave.members:
            since = self._rooms.pop((role, wave.stage, batch))
            lane = self._lane(role, wave.stage, batch.lane)
            if since < now:
                self._slice(lane, since, now, f"waits in the room of layer {wave.layer}", "wait")
            self._arrow("waited in the room", lane, since, self._waves(role, wave.stage), now)

    def _ended(self, now: int, role: str, event: Event) -> None:
        if event.kind == REQUEST:
            self._arrived(now, role, event.request)
        elif event in self._created:  # what comes from outside followed from nothing
            start = self._created.pop(event)
            if event.kind in _TRANSFERS:
                self._transfer(role, event, start, now)
            else:
                self._component(role, event, start, now)

    def _arrived(self, now: int, role: str, request: int) -> None:
        mark = {"ph": "i", "s": "p", "name": f"request {request} arrives", "cat": "arrival"}
        self._add(now, {**mark, "pid": self._pids[role], "tid": 0})

    def _component(self, role: str, event: Event, start: int, now: int) -> None:
        number = None if event.batch is None else event.batch.number
        place = self._lane(role, event.stage, event.lane)
        if event.kind == ATTENTION_DONE and event.batch is not None:
            self._slice(place, start, now, f"attention, layer {event.layer}", "attention")
            if role == DECODE_ATTN:
                self._left[role, event.stage] = (now, event.lane)
            else:
                self._rooms[role, event.stage, event.batch] = now
        elif event.kind == WAVE_END:
            lanes = ", ".join(str(batch.lane) for batch in event.members)
            name = f"EP wave, layer {event.layer}, lanes {lanes}"
            self._slice(self._waves(role, event.stage), start, now, name, "wave")
        elif event.kind == STAGE_END:
            whole = role == DECODE_FFN or (not self._serving.spec.moe and role != DECODE_ATTN)
            self._slice(place, start, now, "layers and tail" if whole else "tail", "stage")
            self._left[role, event.stage] = (now, event.lane)
        elif event.kind == CHILD_DONE:
            self._slice(place, start, now, f"expert compute, group {number}", "wave")
        elif event.kind == COMBINE_END:
            waves = self._waves(role, event.stage)
            self._slice(waves, start, now, f"combine, group {number}", "wave")
            self._left[role, event.stage] = (now, 0)

    def _transfer(self, role: str, event: Event, start: int, now: int) -> None:
        self._flows += 1
        what = "" if event.request < 0 else f" of request {event.request}"
        common = {
            "cat": "transfer",
            "id": self._flows,
            "name": _TRANSFERS[event.kind] + what,
            "pid": self._pids[role],
            "tid": 0,
        }
        self._add(start, {"ph": "b", **common})
        self._add(now, {"ph": "e", **common})

    # ---------------------------------------------------------------- drawing

    def _lane(self, role: str, stage: int, lane: int) -> _Place:
        return _Place(self._pids[role], 1 + stage * _TRACKS_PER_STAGE + lane)

    def _waves(self, role: str, stage: int) -> _Place:
        return self._lane(role, stage, _WAVES)

    def _add(self, at: int, record: dict[str, Any]) -> None:
        self._records.append((at, {**record, "ts": _microseconds(at)}))

    def _slice(
        self,
        place: _Place,
        start: int,
        end: int,
        name: str,
        category: str,
        details: dict[str, Any] | None = None,
    ) -> None:
        self._add(
            start,
            {
                "ph": "X",
                "name": name,
                "cat": category,
                "pid": place.pid,
                "tid": place.tid,
                "dur": _microseconds(end - start),
                **({} if details is None else {"args": details}),
            },
        )

    def _arrow(self, name: str, source: _Place, at: int, target: _Place, now: int) -> None:
        self._flows += 1
        common = {"name": name, "cat": "wait", "id": self._flows}
        # An arrow starts inside the slice that ends at `at`, so one nanosecond before its end.
        self._add(at - 1, {"ph": "s", **common, "pid": source.pid, "tid": source.tid})
        self._add(now, {"ph": "f", "bp": "e", **common, "pid": target.pid, "tid": target.tid})

    # ---------------------------------------------------------------- result

    def _names(self) -> list[dict[str, Any]]:
        """Names and order of the tracks."""
        spec, records = self._serving.spec, []
        for role, pid in self._pids.items():
            records.append(_metadata("process_name", pid, 0, {"name": role}))
            for stage in range(spec.stages):
                for lane in range(self._serving.lanes_of(role)):
                    name = self._lane_name(role, stage, lane)
                    place = self._lane(role, stage, lane)
                    records.append(_metadata("thread_name", pid, place.tid, {"name": name}))
                if spec.moe:
                    place = self._waves(role, stage)
                    waves = {"name": f"stage {stage} EP waves"}
                    records.append(_metadata("thread_name", pid, place.tid, waves))
        for record in list(records):
            if record["name"] == "thread_name":
                order = {"sort_index": record["tid"]}
                records.append(_metadata("thread_sort_index", record["pid"], record["tid"], order))
        return records

    def _lane_name(self, role: str, stage: int, lane: int) -> str:
        if role != DECODE_FFN:
            return f"stage {stage} lane {lane}"
        ep_size = self._serving.spec.ffn.ep_size
        return f"stage {stage} " + (f"EP lane {lane}" if lane < ep_size else "full stage")

    def text(self, end: int) -> str:
        """Return the trace file; what never ended is drawn up to the run's end, in nanoseconds."""
        for (role, stage, batch), since in sorted(self._rooms.items()):
            place = self._lane(role, stage, batch.lane)
            self._slice(place, since, end, "waits in a room for ever", "wait")
        for (role, stage, lane), (start, batch) in sorted(self._open.items()):
            name = f"batch {batch.number} ({batch.phase}), never ends"
            self._slice(self._lane(role, stage, lane), start, end, name, "batch")
        # At one instant the longest slice comes first, so that it encloses the others.
        self._records.sort(key=lambda record: (record[0], -record[1].get("dur", 0.0)))
        lines = [json.dumps(record) for record in self._names()]
        lines += [json.dumps(record) for _, record in self._records]
        return '{"displayTimeUnit": "ms", "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"


def _metadata(name: str, pid: int, tid: int, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}
