"""How a run ended, read from the live state (issue 3)."""

from __future__ import annotations

from typing import Final, NamedTuple

from frontier.context import StageExecutionContext
from frontier.events import Batch
from frontier.replica import Replica
from frontier.rooms import RoomKey
from frontier.system import ServingSystem
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD

SUCCESS: Final = "success"
ADMISSION_DEADLOCK: Final = "admission_deadlock"
CONFIGURATION_REJECTION: Final = "configuration_rejection"
OTHER_FAILURE: Final = "other_failure"
OUTCOMES: Final = (SUCCESS, ADMISSION_DEADLOCK, CONFIGURATION_REJECTION, OTHER_FAILURE)


class AdmissionDeadlock(NamedTuple):
    """The published defect's signature at one stage (PROTOCOL.md section 6).

    ``busy_lane`` holds the stage, waits in ``room``, and owns the FIFO head, which it cannot
    present; ``idle_lane`` is missing in the room, and its queued work stands behind the head.
    """

    stage: int
    busy_lane: int
    idle_lane: int
    room: RoomKey
    head: Batch


def admission_deadlock(replica: Replica) -> AdmissionDeadlock | None:
    """Return the first stage's signature, or None if no stage shows it.

    All of it is demanded: owners below capacity, no EP wave active, the group unsealed, a
    full-stage ticket of a busy lane at the FIFO head, another lane idle with queued work behind
    it, and a room that holds the busy lane and waits for the idle one.
    """
    for stage in range(replica.config.stages):
        found = _at_stage(replica, stage)
        if found is not None:
            return found
    return None


def _at_stage(replica: Replica, stage: int) -> AdmissionDeadlock | None:
    context, schedulers = replica.contexts[stage], replica.schedulers[stage]
    if not isinstance(context, StageExecutionContext) or not context.queued_tickets:
        return None
    owners = context.active_tickets
    head = context.queued_tickets[0]
    batch = head.operation_id
    if (
        len(owners) >= context.full_stage_capacity
        or any(owner.scope == EP_WAVE for owner in owners)
        or context.forward_group_sealed
        or head.scope != FULL_STAGE_WORLD
        or not isinstance(batch, Batch)
        or schedulers[batch.lane].running is None
    ):
        return None
    queued = [t.operation_id for t in context.queued_tickets[1:]]
    behind = {operation.lane for operation in queued if isinstance(operation, Batch)}
    idle = [lane for lane in sorted(behind - {batch.lane}) if schedulers[lane].running is None]
    for key, room in sorted(replica.rooms.items()):
        if key.stage != stage or room.get(batch.lane) is None:
            continue
        for lane in idle:
            if lane not in room:
                return AdmissionDeadlock(stage, batch.lane, lane, key, batch)
    return None


def outcome_of(serving: ServingSystem) -> str:
    """Class of a run that has no event left: success, admission deadlock or another failure."""
    if serving.system.is_complete and serving.finished == len(serving.spec.requests):
        return SUCCESS
    if any(admission_deadlock(replica) for replica in serving.replicas.values()):
        return ADMISSION_DEADLOCK
    return OTHER_FAILURE
