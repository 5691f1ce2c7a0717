"""Reachability claims: what an exploration must have seen, so that no verdict passes vacuously."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from frontier.events import (
    ATTENTION_DONE,
    BATCH_DROPPED,
    BATCH_END,
    CHILD_DONE,
    COMBINE_END,
    INVALIDATE,
    STAGE_END,
    STAGE_SCHEDULE,
    STAND_IN,
    WAVE_END,
    Event,
)
from frontier.ffn import FfnReplica
from frontier.replica import Replica
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD
from models.contexts import ExplainingContext

Claim = Callable[[Replica, Event, Sequence[Event]], bool]


def _refused_for(reason: str) -> Claim:
    def holds(replica: Replica, event: Event, follow: Sequence[Event]) -> bool:
        scheduler = replica.schedulers[event.stage][event.lane]
        if follow or scheduler.busy or not scheduler.queue:
            return False
        context = replica.contexts[event.stage]
        ticket = replica.tickets[event.stage].get(scheduler.queue[0])
        if ticket is None or not isinstance(context, ExplainingContext):
            return False
        return any(refusal.reason == reason for refusal in context.refusals(ticket))

    return holds


def _admitted(follow: Sequence[Event]) -> bool:
    return bool(follow) and follow[0].kind in (ATTENTION_DONE, STAGE_END)


def _late_join(replica: Replica, event: Event, follow: Sequence[Event]) -> bool:
    if not _admitted(follow):
        return False
    return any(
        key.stage == event.stage and event.lane in room and room[event.lane] is None
        for key, room in replica.rooms.items()
    )


def _lanes_share_a_stage(replica: Replica, event: Event, follow: Sequence[Event]) -> bool:
    return _admitted(follow) and sum(s.busy for s in replica.schedulers[event.stage]) > 1


def _wave(several: bool) -> Claim:
    def holds(replica: Replica, _event: Event, follow: Sequence[Event]) -> bool:
        lanes = replica.config.lanes
        return any(
            e.kind == WAVE_END and (len(e.members) > 1 if several else len(e.members) < lanes)
            for e in follow
        )

    return holds


_CLAIMS: Final[dict[str, tuple[tuple[str, ...], Claim]]] = {
    "a batch ended": ((BATCH_END,), lambda *_: True),
    "two lanes shared a stage": ((STAGE_SCHEDULE,), _lanes_share_a_stage),
    "a wave joined several lanes": ((ATTENTION_DONE, STAND_IN), _wave(several=True)),
    "a wave was dispatched with a placeholder": ((ATTENTION_DONE, STAND_IN), _wave(several=False)),
    "a lane joined late": ((STAGE_SCHEDULE,), _late_join),
    "a ticket was refused behind another": ((STAGE_SCHEDULE,), _refused_for("behind")),
    "a ticket was refused by a sealed group": ((STAGE_SCHEDULE,), _refused_for("sealed")),
    "a ticket was refused during a wave": ((STAGE_SCHEDULE,), _refused_for("ep_wave_active")),
}


def _second_child(replica: FfnReplica, event: Event, follow: Sequence[Event]) -> bool:
    if not follow or follow[0].kind != CHILD_DONE:
        return False
    running = [s.running for n, s in enumerate(replica.schedulers) if n != event.lane]
    return follow[0].batch in running


def _waits_behind(scope: str) -> Callable[[FfnReplica, Event, Sequence[Event]], bool]:
    def holds(replica: FfnReplica, event: Event, follow: Sequence[Event]) -> bool:
        scheduler = replica.schedulers[event.lane]
        if follow or scheduler.busy or not scheduler.queue:
            return False
        ticket = replica.tickets.get(scheduler.queue[0])
        if ticket is None:
            # The head was dropped as stale just now: the next one was not presented yet.
            return False
        own = ticket.admission_seq
        queued = replica.context.queued_tickets
        return any(t.scope == scope and t.admission_seq < own for t in queued)

    return holds


GROUP_CLAIMS: Final[dict[str, tuple[tuple[str, ...], Callable[..., bool]]]] = {
    "a wave ended": ((COMBINE_END,), lambda *_: True),
    "a dense group ended": ((STAGE_END,), lambda *_: True),
    "a sibling found its wave's ticket active": ((STAGE_SCHEDULE,), _second_child),
    "a group waited behind a queued wave": ((STAGE_SCHEDULE,), _waits_behind(EP_WAVE)),
    "a group waited behind a queued dense group": (
        (STAGE_SCHEDULE,),
        _waits_behind(FULL_STAGE_WORLD),
    ),
}


def _hit(where: str) -> Claim:
    def holds(replica: Replica, event: Event, _follow: Sequence[Event]) -> bool:
        batch = event.batch
        if any(batch in s.queue for stage in replica.schedulers for s in stage):
            return where == "queued"
        if any(batch in room.values() for room in replica.rooms.values()):
            return where == "in a room"
        held = any(batch in tickets for tickets in replica.tickets)
        return where == ("active" if held else "in a wave")

    return holds


STALE_CLAIMS: Final[dict[str, tuple[tuple[str, ...], Claim]]] = {
    **_CLAIMS,
    **{
        f"a batch was invalidated {where}": ((INVALIDATE,), _hit(where))
        for where in ("queued", "active", "in a room", "in a wave")
    },
    "a stale batch was dropped": ((BATCH_DROPPED,), lambda *_: True),
}


class ReachedClaims:
    """An observer that notes which claims, of lanes unless others are given, have come true."""

    def __init__(
        self, claims: Mapping[str, tuple[tuple[str, ...], Callable[..., bool]]] = _CLAIMS
    ) -> None:
        self.reached: dict[str, bool] = dict.fromkeys(claims, False)
        self._claims = claims
        self._open: dict[str, list[str]] = {}
        for name, (kinds, _) in claims.items():
            for kind in kinds:
                self._open.setdefault(kind, []).append(name)

    def __call__(self, replica: Any, event: Event, follow: Sequence[Event]) -> None:
        """Look at one handled event."""
        waiting = self._open.get(event.kind)
        if not waiting:
            return
        for name in list(waiting):
            if self.reached[name] or self._claims[name][1](replica, event, follow):
                self.reached[name] = True
                waiting.remove(name)
