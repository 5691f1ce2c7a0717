"""Stale work: batches that are invalidated while in flight, and what is done with them (issue 7).

An ``invalidate`` event comes from outside (a preemption, an abort): the batch's schedule epoch
moves on. A forward that runs cannot be taken back, and other lanes count on its collective; so a
batch that is active, in a room or in a wave goes on to the end of its stage, where it is found
stale. A queued one is found stale when its lane would present it. Nothing of it is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, cast

from frontier.closed import ClosedReplica, Renaming, renamed_batches
from frontier.des import System
from frontier.events import BATCH_DROPPED, INVALIDATE, Batch, Event
from frontier.ffn import FfnConfig, FfnReplica, FfnSnapshot, GroupSource
from frontier.replica import Replica, ReplicaConfig, ReplicaSnapshot, StageContext, batch_of
from frontier.workload import Workload


@dataclass(frozen=True, slots=True)
class StaleRule:
    """How stale work is handled, one switch each.

    ``cancels``: the ticket of a stale batch goes with it, cancelled if it was queued and released
    if it was active; else it stays behind, an orphan that nobody will present or release.
    ``wakes``: its end retries the lanes as a normal end does, else nobody is woken.
    ``frees_owner``: its end frees the lane that ran it, else the next lane (an alias).
    """

    name: str
    cancels: bool = True
    wakes: bool = True
    frees_owner: bool = True


STALE_RULES: Final[dict[str, StaleRule]] = {
    rule.name: rule
    for rule in (
        StaleRule("proper"),
        StaleRule("no_cancel", cancels=False),
        StaleRule("no_wake", wakes=False),
        StaleRule("wrong_lane", frees_owner=False),
    )
}
"""The rules of issue 7 by name."""


class CancellingContext(Protocol):
    """What is asked of a stage context beyond what a replica needs."""

    def cancel(self, ticket: Any) -> None:
        """Withdraw a queued ticket."""
        ...


UNLIMITED: Final = None
"""Number of invalidations that may come without end."""


class Interruptions(NamedTuple):
    """Invalidations that may still come (None: any number), and the stale batches in flight."""

    left: int | None
    stale: tuple[Batch, ...]


class InterruptibleReplica(Replica):
    """A replica whose batches may be invalidated from outside.

    Parameters
    ----------
    config, workload, contexts
        As of :class:`Replica`.
    rule
        How stale work is handled.
    interruptions
        Invalidations that may come, UNLIMITED for any number.
    """

    def __init__(
        self,
        config: ReplicaConfig,
        workload: Workload,
        rule: StaleRule,
        interruptions: int | None = 1,
        contexts: Sequence[StageContext] | None = None,
    ) -> None:
        super().__init__(config, workload, contexts)
        self.rule = rule
        self.left = interruptions
        self.stale: set[Batch] = set()
        self._handlers[INVALIDATE] = self._invalidate
        self._handlers[BATCH_DROPPED] = self._batch_end

    def environment(self) -> list[Event]:
        """Return the invalidations that may come now: one per batch in flight."""
        if self.left == 0:
            return []
        live = set(self.placed()) - self.stale
        return [Event(INVALIDATE, batch.lane, batch) for batch in sorted(live)]

    def placed(self) -> list[Batch]:
        """Batches that are at a stage, running or queued."""
        lanes = [lane for stage in self.schedulers for lane in stage]
        running = [lane.running for lane in lanes if lane.running is not None]
        return running + [batch for lane in lanes for batch in lane.queue]

    def _invalidate(self, event: Event) -> list[Event]:
        if self.left is not UNLIMITED:
            self.left -= 1
        self.stale.add(batch_of(event))
        return []

    def _stage_schedule(self, event: Event) -> list[Event]:
        lane, stage = event.lane, event.stage
        scheduler = self.schedulers[stage][lane]
        if scheduler.running is None and scheduler.queue and scheduler.queue[0] in self.stale:
            batch = scheduler.take_head()
            ticket = self.tickets[stage].pop(batch, None)
            if ticket is not None and self.rule.cancels:
                cast(CancellingContext, self.contexts[stage]).cancel(ticket)
            return self._dropped(batch, stage)
        return super()._stage_schedule(event)

    def _stage_end(self, event: Event) -> list[Event]:
        lane, batch, stage = event.lane, batch_of(event), event.stage
        if batch not in self.stale:
            return super()._stage_end(event)
        freed = lane if self.rule.frees_owner else (lane + 1) % self.config.lanes
        self.schedulers[stage][freed].running = None
        ticket = self.tickets[stage].pop(batch)
        if self.rule.cancels:
            self.contexts[stage].release(ticket)
        return self._dropped(batch, stage)

    def _dropped(self, batch: Batch, stage: int) -> list[Event]:
        self.stale.discard(batch)
        woken = self._retries(batch.lane, stage) if self.rule.wakes else []
        return [*woken, Event(BATCH_DROPPED, batch.lane, batch)]

    def _loose_snapshot(self) -> ReplicaSnapshot:
        """Return a snapshot with what may still come from outside."""
        outside = Interruptions(self.left, tuple(sorted(self.stale)))
        return super()._loose_snapshot()._replace(outside=outside)

    def restore(self, snapshot: ReplicaSnapshot) -> None:
        """Become the replica of a snapshot, whatever this one was before."""
        super().restore(snapshot)
        outside = cast(Interruptions, snapshot.outside)
        self.left = outside.left
        self.stale = set(outside.stale)


class WithInvalidations:
    """A system to which these invalidations come: of a timed run, whose model has their times.

    Parameters
    ----------
    system
        An interruptible replica or stage.
    invalidations
        ``invalidate`` events; they are created at the start.
    """

    def __init__(self, system: System, invalidations: Sequence[Event]) -> None:
        self._system = system
        self._invalidations = tuple(invalidations)

    def start(self) -> list[Event]:
        """Events of the system's start, then the invalidations."""
        return [*self._system.start(), *self._invalidations]

    def handle(self, event: Event) -> list[Event]:
        """Let the system handle an event."""
        return self._system.handle(event)


class InterruptibleClosedReplica(InterruptibleReplica, ClosedReplica):
    """As :class:`InterruptibleReplica`, under a closed workload."""

    def _renamed_outside(self, snapshot: ReplicaSnapshot, name: Renaming) -> Interruptions:
        outside = cast(Interruptions, snapshot.outside)
        return outside._replace(stale=tuple(sorted(renamed_batches(outside.stale, name))))


class InterruptibleFfn(FfnReplica):
    """A ``DECODE_FFN`` stage whose groups may be invalidated from outside.

    A stale group that is queued is found when one of its schedulers would present it: all its
    children are dropped with it, the siblings on the other EP lanes too, for they share its
    ticket. One that runs goes on to its end. Parameters as of :class:`InterruptibleReplica`.
    """

    def __init__(
        self, config: FfnConfig, source: GroupSource, rule: StaleRule, interruptions: int | None = 1
    ) -> None:
        super().__init__(config, source)
        self.rule = rule
        self.left = interruptions
        self.stale: set[Batch] = set()
        self._handlers[INVALIDATE] = self._invalidate

    def environment(self) -> list[Event]:
        """Return the invalidations that may come now: one per group that is here."""
        if self.left == 0:
            return []
        return [Event(INVALIDATE, group.lane, group) for group in sorted(self._here() - self.stale)]

    def _here(self) -> set[Batch]:
        here = {group for s in self.schedulers for group in s.queue}
        return here | {s.running for s in self.schedulers if s.running is not None}

    def _invalidate(self, event: Event) -> list[Event]:
        if self.left is not UNLIMITED:
            self.left -= 1
        self.stale.add(batch_of(event))
        return []

    def _stage_schedule(self, event: Event) -> list[Event]:
        scheduler = self.schedulers[event.lane]
        if scheduler.busy or not scheduler.queue or scheduler.queue[0] not in self.stale:
            return super()._stage_schedule(event)
        group = scheduler.queue[0]
        ticket = self.tickets.get(group)
        if ticket is not None and self.context.is_active(ticket):
            # A sibling runs already: the wave goes on to its end with all its children.
            return super()._stage_schedule(event)
        for lane in self.schedulers_of(group):
            self.schedulers[lane].remove(group)
        self.unfinished.pop(group, None)
        self.tickets.pop(group, None)
        if ticket is not None and self.rule.cancels:
            self.context.cancel(ticket)
        return self._after_drop(group)

    def _end(self, event: Event) -> list[Event]:
        group = batch_of(event)
        if group not in self.stale:
            return super()._end(event)
        count = self.config.schedulers
        for lane in self.schedulers_of(group):
            freed = lane if self.rule.frees_owner else (lane + 1) % count
            self.schedulers[freed].running = None
        self.unfinished.pop(group, None)
        ticket = self.tickets.pop(group)
        if self.rule.cancels:
            self.context.release(ticket)
        return self._after_drop(group)

    def _after_drop(self, group: Batch) -> list[Event]:
        self.stale.discard(group)
        return self._retries(group) if self.rule.wakes else []

    def snapshot(self) -> FfnSnapshot:
        """Return what the future depends on, with what may still come from outside."""
        outside = Interruptions(self.left, tuple(sorted(self.stale)))
        return super().snapshot()._replace(outside=outside)

    def restore(self, snapshot: FfnSnapshot) -> None:
        """Become the stage of a snapshot, whatever this one was before."""
        super().restore(snapshot)
        outside = cast(Interruptions, snapshot.outside)
        self.left = outside.left
        self.stale = set(outside.stale)
