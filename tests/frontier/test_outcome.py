"""How a run ended: the published signature, and every near miss that is none of it."""

import pytest

from frontier.events import Batch
from frontier.outcome import AdmissionDeadlock, admission_deadlock, outcome_of
from frontier.replica import Replica, ReplicaConfig
from frontier.requests import uniform_requests
from frontier.rooms import RoomKey
from frontier.system import ServingSpec
from frontier.workload import FiniteWorkload
from models.serving import ServingRun

RUNNING, HEAD, BEHIND = Batch(0, 0), Batch(0, 1), Batch(1, 0)
ROOM = RoomKey(1, 0)


def stuck(capacity=2, head=HEAD, wave_runs=False, wave_first=False):
    """Stage 1 of 2: lane 0 runs, waits in the room, and owns the head; lane 1 is behind it."""
    config = ReplicaConfig(2, 2, 2, capacity=capacity)
    replica = Replica(config, FiniteWorkload([[], []]))
    context = replica.contexts[1]
    if wave_runs:
        owner = context.enqueue_ep_wave(operation_id="wave", participant_ep_ids=(0, 1))
    else:
        owner = context.enqueue_full_stage(operation_id=RUNNING)
    assert context.try_acquire(owner)
    if wave_first:
        context.enqueue_ep_wave(operation_id=head, participant_ep_ids=(0, 1))
    else:
        context.enqueue_full_stage(operation_id=head)
    context.enqueue_full_stage(operation_id=BEHIND)
    replica.schedulers[1][0].restore(RUNNING, (HEAD,))
    replica.schedulers[1][1].restore(None, (BEHIND,))
    replica.rooms[ROOM] = {0: RUNNING}
    return replica, owner


def test_the_signature_names_who_waits_for_whom():
    replica, _ = stuck()
    assert admission_deadlock(replica) == AdmissionDeadlock(1, 0, 1, ROOM, HEAD)


def test_capacity_must_be_left():
    assert admission_deadlock(stuck(capacity=1)[0]) is None


def test_no_wave_may_run():
    replica, _ = stuck(wave_runs=True)
    assert not replica.contexts[1].forward_group_sealed
    assert admission_deadlock(replica) is None


def test_the_group_must_be_unsealed():
    replica, owner = stuck()
    context = replica.contexts[1]
    context.bind_forward_group(owner)
    wave = context.replace_full_stage_owners_with_ep_wave(
        [owner], operation_id="wave", participant_ep_ids=(0, 1)
    )
    context.replace_ep_wave_with_full_stage_owners(wave, operation_ids=[RUNNING])
    assert context.forward_group_sealed
    assert admission_deadlock(replica) is None


def test_the_head_must_be_a_full_stage_ticket_of_a_batch():
    assert admission_deadlock(stuck(wave_first=True)[0]) is None
    assert admission_deadlock(stuck(head="no batch")[0]) is None


def test_the_lane_of_the_head_must_run_and_the_other_idle():
    replica, _ = stuck()
    replica.schedulers[1][1].restore(BEHIND, ())
    assert admission_deadlock(replica) is None
    replica.schedulers[1][1].restore(None, (BEHIND,))
    replica.schedulers[1][0].restore(None, (HEAD,))
    assert admission_deadlock(replica) is None


@pytest.mark.parametrize(
    "rooms",
    [
        {},
        {RoomKey(0, 0): {0: RUNNING}},
        {ROOM: {1: BEHIND}},
        {ROOM: {0: None}},
        {ROOM: {0: RUNNING, 1: None}},
    ],
    ids=str,
)
def test_a_room_of_the_stage_must_hold_the_one_and_lack_the_other(rooms):
    replica, _ = stuck()
    replica.rooms = rooms
    assert admission_deadlock(replica) is None


def test_every_room_of_the_stage_is_looked_at():
    replica, _ = stuck()
    replica.rooms = {RoomKey(0, 0): {0: RUNNING}, ROOM: {1: BEHIND}, RoomKey(1, 1): {0: RUNNING}}
    assert admission_deadlock(replica) == AdmissionDeadlock(1, 0, 1, RoomKey(1, 1), HEAD)


def test_success_needs_every_request_and_every_batch_to_end():
    run = ServingRun(ServingSpec("co-location", 2, 1, 1, False, uniform_requests(2, 4, 1)))
    assert outcome_of(run.serving) == "other_failure", "nothing has begun"
    assert run.run() == "success"
    run.serving.workloads["MONOLITHIC"].finished -= 1
    assert run.outcome == "other_failure", "a request is lost"
    run.serving.workloads["MONOLITHIC"].finished += 1
    run.serving.system.in_flight[0] = 1
    assert run.outcome == "other_failure", "a batch has not ended"
