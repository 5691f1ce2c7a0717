"""Closed workloads: a fixed number of batch slots per lane that recirculate for ever (issue 7).

A slot is one request after another. When its batch leaves the last stage, the slot is waiting
work of its lane again, behind the slots that wait already: with the next step of the same
request, or, after its last step, with the first step of a new request. So the work never ends,
and what is true of every reachable state is true for any number of requests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, cast

from frontier.context import ContextSnapshot
from frontier.events import LANE_SCHEDULE, REQUEST, Batch, Event, WaveOperation
from frontier.replica import Replica, ReplicaSnapshot, StageSnapshot

FOREVER: Final = None
"""Number of steps of a request that decodes for ever."""


class ClosedLane(NamedTuple):
    """One lane's slots: the number of its next batch, and the steps of waiting and live ones.

    A step is 0 for a prefill and counts on for decode steps; of a request that decodes for ever
    every decode step is 1. ``waiting`` is in order of turn, ``live`` holds ``(number, step)``.
    """

    next_number: int
    waiting: tuple[int, ...]
    live: tuple[tuple[int, int], ...]


class ClosedWorkload:
    """``slots`` batch slots per lane, each with one request after another, for ever.

    Parameters
    ----------
    lanes
        Number of lanes.
    slots
        Slots of each lane, at least 1; a lane may have fewer in flight.
    steps
        Steps of each request, at least 1: a prefill step, then ``steps - 1`` decode steps.
        ``FOREVER`` (None): a prefill step, then decode steps without end.
    arrivals
        ``burst``: every slot has its first request at the start. ``open``: the first request of
        each slot arrives by a timed event of its own, as of a finite workload; later ones take
        its place at once.

    Raises
    ------
    ValueError
        On a number below 1, or other arrivals.
    """

    def __init__(
        self, lanes: int, slots: int, steps: int | None = 1, arrivals: str = "burst"
    ) -> None:
        if arrivals not in ("burst", "open"):
            raise ValueError(f"arrivals must be burst or open, got {arrivals!r}")
        for name, value in (("lanes", lanes), ("slots", slots), ("steps", steps)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self._steps = steps
        self._to_arrive = slots if arrivals == "open" else 0
        self._waiting = [[0] * (slots - self._to_arrive) for _ in range(lanes)]
        self._live: list[dict[int, int]] = [{} for _ in range(lanes)]
        self._next = [0] * lanes

    def start(self) -> list[Event]:
        """``lane_schedule`` for lanes ``1, 2, ..., lanes - 1, 0``, or the first requests."""
        lanes = range(len(self._waiting))
        if self._to_arrive:
            return [Event(REQUEST, lane) for lane in lanes for _ in range(self._to_arrive)]
        return [Event(LANE_SCHEDULE, lane) for lane in [*lanes[1:], *lanes[:1]]]

    def request(self, event: Event) -> int:
        """Let a slot of the event's lane begin: its first request has arrived."""
        if not self._to_arrive:
            raise ValueError(f"every slot has its first request from the start, got {event}")
        self._waiting[event.lane].append(0)
        return event.lane

    def next_batch(self, lane: int) -> Batch | None:
        """Form a batch of the slot whose turn it is, if one waits."""
        if not self._waiting[lane]:
            return None
        step = self._waiting[lane].pop(0)
        number = self._next[lane]
        self._next[lane] += 1
        self._live[lane][number] = step
        return Batch(lane, number, "decode" if step else "prefill")

    def batch_ended(self, batch: Batch) -> None:
        """Let the batch's slot wait again, with its request's next step or a new request."""
        step = self._live[batch.lane].pop(batch.number)
        self._waiting[batch.lane].append(self._following(step))

    def _following(self, step: int) -> int:
        if self._steps is FOREVER:
            return 1
        return (step + 1) % self._steps

    @property
    def all_batches_formed(self) -> bool:
        """Never: there is always another batch."""
        return False

    def snapshot(self) -> tuple[ClosedLane, ...]:
        """Per lane, its slots; batch numbers grow (see :func:`renumbered`)."""
        lanes = zip(self._next, self._waiting, self._live, strict=True)
        return tuple([ClosedLane(n, tuple(w), tuple(sorted(live.items()))) for n, w, live in lanes])

    def restore(self, snapshot: Hashable) -> None:
        """Become the workload of a snapshot."""
        lanes = cast(tuple[ClosedLane, ...], snapshot)
        self._next = [lane.next_number for lane in lanes]
        self._waiting = [list(lane.waiting) for lane in lanes]
        self._live = [dict(lane.live) for lane in lanes]


Renaming = Mapping[Batch, Batch]


def renamed_batches(batches: Iterable[Batch], name: Renaming) -> list[Batch]:
    """Return the batches under their new names."""
    return [name[batch] for batch in batches]


class ClosedReplica(Replica):
    """A replica under a closed workload: its state is told without growing numbers."""

    workload: ClosedWorkload

    def relative(self, pending: Sequence[Event]) -> tuple[ReplicaSnapshot, tuple[Event, ...]]:
        """Return the snapshot and the pending events with :func:`renumbered` batches."""
        original = self._loose_snapshot()
        snapshot, events, name = renumbered(original, tuple(pending))
        if name is not None:
            snapshot = snapshot._replace(outside=self._renamed_outside(original, name))
        return self._compressed(snapshot), events

    def _renamed_outside(self, snapshot: ReplicaSnapshot, name: Renaming) -> Hashable:  # noqa: ARG002
        """Return what may come from outside, renamed: here nothing may."""
        return snapshot.outside


class _Names(dict[Batch, Batch]):
    """New names of batches: live ones by rank in their lane, others in the order met."""

    def __init__(self, lanes: Sequence[ClosedLane]) -> None:
        super().__init__()
        self._ranks = [{n: rank for rank, (n, _) in enumerate(lane.live)} for lane in lanes]
        self._gone = [count(-1, -1) for _ in lanes]

    def __missing__(self, batch: Batch) -> Batch:
        rank = self._ranks[batch.lane].get(batch.number)
        number = next(self._gone[batch.lane]) if rank is None else rank
        self[batch] = batch._replace(number=number)
        return self[batch]


def renumbered(
    snapshot: ReplicaSnapshot, pending: tuple[Event, ...]
) -> tuple[ReplicaSnapshot, tuple[Event, ...], Renaming | None]:
    """Return the state with each lane's live batches numbered from 0: equal futures are equal.

    The protocol compares batch numbers only within a lane (its heaps) and for equality, so a
    renaming that keeps the order of a lane's live batches commutes with every event: the renamed
    state has the renamed future. A lane has at most ``stages`` live batches, hence finitely many
    states. A batch that is named somewhere but has ended gets a negative number. The renaming is
    returned too, None if nothing had to be renamed.
    """
    lanes = cast(tuple[ClosedLane, ...], snapshot.workload)
    if all(lane.next_number == len(lane.live) for lane in lanes):  # so 0, 1, ... are all live
        return snapshot, pending, None
    name = _Names(lanes)
    renamed = ReplicaSnapshot(
        tuple([_stage(stage, name) for stage in snapshot.stages]),
        tuple(
            [
                (key, tuple([(lane, None if b is None else name[b]) for lane, b in room]))
                for key, room in snapshot.rooms
            ]
        ),
        snapshot.in_flight,
        tuple([_lane(lane) for lane in lanes]),
    )
    return renamed, tuple([_event(event, name) for event in pending]), name


def _lane(lane: ClosedLane) -> ClosedLane:
    live = tuple([(rank, step) for rank, (_, step) in enumerate(lane.live)])
    return ClosedLane(len(live), lane.waiting, live)


def _operation(operation: Any, name: Mapping[Batch, Batch]) -> Hashable:
    if isinstance(operation, WaveOperation):
        return WaveOperation(operation.layer, tuple([name[b] for b in operation.batches]))
    return name[operation]


def _stage(stage: StageSnapshot, name: Mapping[Batch, Batch]) -> StageSnapshot:
    context = cast(ContextSnapshot, stage.context)
    active = [(scope, _operation(operation, name)) for scope, operation in context.active]
    queued = [(scope, _operation(operation, name)) for scope, operation in context.queued]
    held = [
        (None if running is None else name[running], tuple([name[b] for b in queue]))
        for running, queue in stage.lanes
    ]
    context = context._replace(active=tuple(sorted(active)), queued=tuple(queued))
    return StageSnapshot(context, tuple(held))


def _event(event: Event, name: Mapping[Batch, Batch]) -> Event:
    batch = None if event.batch is None else name[event.batch]
    return event._replace(batch=batch, members=tuple([name[b] for b in event.members]))
