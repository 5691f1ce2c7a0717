"""What a person sees of a lane replica's state: one table of stages, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frontier.events import Batch, Event, WaveOperation
from frontier.replica import Replica
from models.contexts import ExplainingContext


def describe_operation(operation: object) -> str:
    """Short form of a batch or a wave."""
    if isinstance(operation, Batch):
        return f"lane {operation.lane} batch {operation.number}"
    if isinstance(operation, WaveOperation):
        members = ", ".join(f"lane {b.lane} batch {b.number}" for b in operation.batches)
        return f"EP wave, layer {operation.layer} ({members})"
    return str(operation)


def _tickets(replica: Replica, stage: int, queued: bool) -> list[dict[str, Any]]:
    context = replica.contexts[stage]
    tickets: Sequence[Any] = context.queued_tickets
    if not queued:
        tickets = (
            context.active_tickets
            if isinstance(context, ExplainingContext)
            else [t for t in replica.tickets[stage].values() if t not in tickets]
        )
    return [
        {
            "seq": ticket.admission_seq,
            "scope": ticket.scope,
            "operation": describe_operation(ticket.operation_id),
            "lane": getattr(ticket.operation_id, "lane", None),
        }
        for ticket in tickets
    ]


def describe_stages(replica: Replica) -> list[dict[str, Any]]:
    """Return per stage its active tickets, FIFO, seal, rooms and lanes, as JSON values."""
    stages = []
    for number, schedulers in enumerate(replica.schedulers):
        stages.append(
            {
                "stage": number,
                "active": _tickets(replica, number, queued=False),
                "fifo": _tickets(replica, number, queued=True),
                "sealed": replica.contexts[number].forward_group_sealed,
                "rooms": [
                    {
                        "layer": key.layer,
                        "phase": key.phase or None,
                        "holds": [lane for lane in sorted(room) if room[lane] is not None],
                        "placeholders": [lane for lane in sorted(room) if room[lane] is None],
                        "waits_for": [
                            lane for lane in range(replica.config.lanes) if lane not in room
                        ],
                    }
                    for key, room in sorted(replica.rooms.items())
                    if key.stage == number
                ],
                "lanes": [
                    {
                        "lane": lane,
                        "running": None if s.running is None else s.running.number,
                        "queued": [batch.number for batch in sorted(s.queue)],
                    }
                    for lane, s in enumerate(schedulers)
                ],
            }
        )
    return stages


def describe_event(event: Event) -> dict[str, Any]:
    """Return an event as JSON values; what its kind has not is None."""
    return {
        "kind": event.kind,
        "lane": event.lane if event.lane >= 0 else None,
        "batch": None if event.batch is None else event.batch.number,
        "stage": event.stage if event.stage >= 0 else None,
        "layer": event.layer if event.layer >= 0 else None,
        "batches": [{"lane": b.lane, "batch": b.number} for b in event.members] or None,
    }
