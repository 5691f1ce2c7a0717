"""The ``DECODE_FFN`` stage: queued EP waves and dense groups (PROTOCOL.md section 7).

One stage of the FFN cluster is a state machine of its own, driven like a replica: the
discrete-event loop, the explorer and the replay all call ``handle``. Groups come from a
:class:`GroupSource`: a script, or the attention cluster of a PD-AF run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, cast

from frontier.admission import AdmissionRule, EpOrdered
from frontier.context import ContextSnapshot, StageExecutionContext
from frontier.events import (
    CHILD_DONE,
    COMBINE_END,
    EXPERT,
    GROUP,
    GROUP_KINDS,
    STAGE_END,
    STAGE_SCHEDULE,
    Batch,
    CoreError,
    Event,
)
from frontier.lanes import LaneStageScheduler
from frontier.replica import batch_of

ALL_EP_LANES: Final = -1
"""``lane`` of an expert group: it belongs to no single scheduler."""


class GroupSource(Protocol):
    """Where the groups of a ``DECODE_FFN`` stage come from, in the order of each producer."""

    def start(self) -> list[Event]:
        """One pending ``group`` event per producer that has a group to send."""
        ...

    def deliver(self, producer: int) -> str:
        """Take the producer's next group, which has arrived, and return its kind."""
        ...

    def following(self, producer: int) -> list[Event]:
        """Return the producer's next ``group`` event, if one becomes pending now."""
        ...

    @property
    def exhausted(self) -> bool:
        """Whether no producer has a group on its way."""
        ...

    def snapshot(self) -> Hashable:
        """Return what the future depends on, as a hashable value."""
        ...

    def restore(self, snapshot: Hashable) -> None:
        """Become the source of a snapshot."""
        ...


class ScriptedGroups:
    """A fixed sequence of groups per producer.

    Parameters
    ----------
    scripts
        Per producer, the kinds of its groups in order, each ``dense`` or ``expert``.
    stage
        Stage that the groups are sent to.

    Raises
    ------
    ValueError
        On another kind.
    """

    def __init__(self, scripts: Sequence[Sequence[str]], stage: int = 0) -> None:
        for producer, script in enumerate(scripts):
            for kind in script:
                if kind not in GROUP_KINDS:
                    raise ValueError(
                        f"groups of producer {producer} must be {' or '.join(GROUP_KINDS)}, "
                        f"got {kind!r}"
                    )
        self._scripts = [tuple(script) for script in scripts]
        self._stage = stage
        self._delivered = [0] * len(scripts)

    def start(self) -> list[Event]:
        """One ``group`` event per producer, in their order."""
        return [event for p in range(len(self._scripts)) for event in self.following(p)]

    def deliver(self, producer: int) -> str:
        """Return the kind of the producer's next group."""
        kind = self._scripts[producer][self._delivered[producer]]
        self._delivered[producer] += 1
        return kind

    def following(self, producer: int) -> list[Event]:
        """Return the next ``group`` event, unless the script has ended."""
        if self._delivered[producer] >= len(self._scripts[producer]):
            return []
        return [Event(GROUP, producer, None, self._stage)]

    @property
    def exhausted(self) -> bool:
        """Whether every script has ended."""
        return all(
            done == len(script) for done, script in zip(self._delivered, self._scripts, strict=True)
        )

    def snapshot(self) -> tuple[int, ...]:
        """Per producer, how many groups have arrived."""
        return tuple(self._delivered)

    def restore(self, snapshot: Hashable) -> None:
        """Become the source of a snapshot."""
        self._delivered = list(cast(tuple[int, ...], snapshot))


@dataclass(frozen=True, slots=True)
class FfnConfig:
    """Shape and rule of one ``DECODE_FFN`` stage.

    Parameters
    ----------
    ep_size
        EP lanes, at least 1.
    full_stages
        Full-stage schedulers after the EP lanes: 1 as specified. With more, the dense groups of
        producer ``p`` go to scheduler ``ep_size + p % full_stages``, which puts several
        full-stage producers on one context.
    admission
        Admission rule of the context.
    capacity
        Full-stage owners, 1 as specified.
    """

    ep_size: int
    full_stages: int = 1
    admission: AdmissionRule = field(default_factory=EpOrdered)
    capacity: int = 1
    replica_id: int = 0
    stage: int = 0

    @property
    def schedulers(self) -> int:
        """Number of schedulers: the EP lanes, then the full-stage ones."""
        return self.ep_size + self.full_stages


class FfnSnapshot(NamedTuple):
    """A ``DECODE_FFN`` stage between two events, as a hashable value.

    ``schedulers`` hold ``(running, queue in order)``; ``unfinished`` the EP lanes that the active
    waves still wait for; ``arrived`` is the id of the next group.
    """

    context: ContextSnapshot
    schedulers: tuple[tuple[Batch | None, tuple[Batch, ...]], ...]
    unfinished: tuple[tuple[Batch, tuple[int, ...]], ...]
    arrived: int
    source: Hashable
    outside: Hashable = ()


class FfnReplica:
    """One ``DECODE_FFN`` stage: EP lanes ``0 ... ep_size-1``, then the full-stage scheduler.

    A group is a :class:`~frontier.events.Batch` whose ``number`` is the group id and whose
    ``phase`` is its kind; ``lane`` is its scheduler, or ``ALL_EP_LANES``. An event's ``lane`` is
    the producer of a ``group``, else a scheduler.

    Parameters
    ----------
    config
        Shape and rule.
    source
        Where groups come from.
    """

    def __init__(self, config: FfnConfig, source: GroupSource) -> None:
        self.config = config
        self.source = source
        self.context = StageExecutionContext(
            replica_id=config.replica_id,
            stage_id=config.stage,
            ep_size=config.ep_size,
            full_stage_capacity=config.capacity,
            rule=config.admission,
        )
        self.schedulers = [LaneStageScheduler() for _ in range(config.schedulers)]
        self.tickets: dict[Hashable, Any] = {}
        self.unfinished: dict[Batch, set[int]] = {}
        self.arrived = 0
        self._ep_lanes = tuple(range(config.ep_size))
        self._handlers: dict[str, Callable[[Event], list[Event]]] = {
            GROUP: self._group,
            STAGE_SCHEDULE: self._stage_schedule,
            CHILD_DONE: self._child_done,
            COMBINE_END: self._end,
            STAGE_END: self._end,
        }

    # ---------------------------------------------------------------- driving

    def start(self) -> list[Event]:
        """Events of the start: one ``group`` per producer."""
        return self.source.start()

    def handle(self, event: Event) -> list[Event]:
        """Handle one event and return those that follow, in order of creation.

        Raises
        ------
        CoreError
            If the stage context rejects a call; the stage is then in a failing state.
        """
        try:
            return self._handlers[event.kind](event)
        except ValueError as error:
            raise CoreError(event, str(error)) from error

    @property
    def is_complete(self) -> bool:
        """Whether every group has arrived and has ended."""
        return self.source.exhausted and not any(s.busy or s.queue for s in self.schedulers)

    # ---------------------------------------------------------------- handling

    def schedulers_of(self, group: Batch) -> tuple[int, ...]:
        """Numbers of the schedulers that a group's children, or its one batch, are pushed on."""
        return self._ep_lanes if group.phase == EXPERT else (group.lane,)

    def _group(self, event: Event) -> list[Event]:
        producer = event.lane
        kind = self.source.deliver(producer)
        full = self.config.ep_size + producer % self.config.full_stages
        group = Batch(ALL_EP_LANES if kind == EXPERT else full, self.arrived, kind)
        self.arrived += 1
        if self.config.admission.ticket_at == "arrival":
            self._mint(group)
        lanes = self.schedulers_of(group)
        for lane in lanes:
            self.schedulers[lane].push(group)
        wake = [self._schedule(lane) for lane in lanes if not self.schedulers[lane].busy]
        return wake + self.source.following(producer)

    def _schedule(self, lane: int) -> Event:
        return Event(STAGE_SCHEDULE, lane, None, self.config.stage)

    def _mint(self, group: Batch) -> Any:
        if group.phase == EXPERT:
            ticket = self.context.enqueue_ep_wave(
                operation_id=group, participant_ep_ids=self._ep_lanes
            )
            self.unfinished[group] = set(self._ep_lanes)
        else:
            ticket = self.context.enqueue_full_stage(operation_id=group)
        self.tickets[group] = ticket
        return ticket

    def _stage_schedule(self, event: Event) -> list[Event]:
        lane = event.lane
        scheduler = self.schedulers[lane]
        if scheduler.busy or not scheduler.queue:
            return []
        group = scheduler.queue[0]
        ticket = self.tickets.get(group)
        if ticket is None:
            ticket = self._mint(group)
        if not (self.context.owns(ticket) or self.context.try_acquire(ticket)):
            return []
        scheduler.run_head()
        kind = CHILD_DONE if group.phase == EXPERT else STAGE_END
        return [Event(kind, lane, group, self.config.stage)]

    def _child_done(self, event: Event) -> list[Event]:
        group = batch_of(event)
        waits_for = self.unfinished[group]
        waits_for.remove(event.lane)
        return [] if waits_for else [Event(COMBINE_END, -1, group, self.config.stage)]

    def _end(self, event: Event) -> list[Event]:
        group = batch_of(event)
        own = self.schedulers_of(group)
        for lane in own:
            self.schedulers[lane].running = None
        self.unfinished.pop(group, None)
        self.context.release(self.tickets.pop(group))
        return self._retries(group)

    def _retries(self, group: Batch) -> list[Event]:
        """Whom the end of a group wakes: its own schedulers, then the others."""
        own = self.schedulers_of(group)
        others = [lane for lane in range(self.config.schedulers) if lane not in own]
        return [
            self._schedule(lane)
            for lane in (*own, *others)
            if self.schedulers[lane].queue and not self.schedulers[lane].busy
        ]

    # ---------------------------------------------------------------- snapshot

    def snapshot(self) -> FfnSnapshot:
        """Return what the future depends on."""
        return FfnSnapshot(
            self.context.snapshot(),
            tuple([(s.running, s.in_order) for s in self.schedulers]),
            tuple(sorted([(g, tuple(sorted(left))) for g, left in self.unfinished.items()])),
            self.arrived,
            self.source.snapshot(),
        )

    def restore(self, snapshot: FfnSnapshot) -> None:
        """Become the stage of a snapshot, whatever this one was before."""
        self.tickets = dict(self.context.restore(snapshot.context))
        for scheduler, (running, queue) in zip(self.schedulers, snapshot.schedulers, strict=True):
            scheduler.restore(running, queue)
        self.unfinished = {group: set(left) for group, left in snapshot.unfinished}
        self.arrived = snapshot.arrived
        self.source.restore(snapshot.source)
