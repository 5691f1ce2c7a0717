"""The small policies and values of the core, one by one: what they say of hand-made arguments."""

import pytest

from frontier.admission import ADMISSION_RULES, lane_of
from frontier.context import StageExecutionContext
from frontier.events import (
    Batch,
    CoreError,
    Event,
    WaveOperation,
)
from frontier.lanes import FifoStageScheduler, LaneStageScheduler
from frontier.replica import batch_of
from frontier.rooms import ROOM_RULES, RoomKey
from frontier.standin import STAND_IN_RULES
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD, StageAdmissionTicket
from frontier.workload import FiniteWorkload


def full(seq, lane, number=0):
    return StageAdmissionTicket(0, 0, seq, Batch(lane, number), FULL_STAGE_WORLD)


def wave(seq):
    return StageAdmissionTicket(0, 0, seq, WaveOperation(0, (Batch(0, seq),)), EP_WAVE, (0, 1))


# ---------------------------------------------------------------- admission

HELD = full(0, 0)
QUEUE = [full(1, 0, 1), full(2, 1), wave(3), full(4, 2), wave(5), full(6, 0, 2)]
BLOCKERS = {
    # per ticket of QUEUE, places of those it waits for
    "strict_fifo": [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]],
    "late_ticket": [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]],
    "lane_aware": [[], [], [0, 1], [1, 2], [0, 1, 2, 3], [1, 2, 3, 4]],
    "ep_ordered": [[], [], [0, 1], [2], [0, 1, 2, 3], [2, 4]],
}


@pytest.mark.parametrize("rule", BLOCKERS)
def test_whom_each_ticket_waits_for(rule):
    found = [ADMISSION_RULES[rule].blockers(ticket, QUEUE, [HELD]) for ticket in QUEUE]
    assert found == [tuple(QUEUE[at] for at in places) for places in BLOCKERS[rule]]


def test_an_equal_ticket_is_the_same_ticket():
    """Foreign code may hand back a copy: it stands where the original does."""
    for rule in ADMISSION_RULES.values():
        assert rule.blockers(full(1, 0, 1), QUEUE, [HELD]) == ()


def test_when_tickets_are_minted():
    at = {name: rule.ticket_at for name, rule in ADMISSION_RULES.items()}
    assert at == {
        "strict_fifo": "arrival",
        "lane_aware": "arrival",
        "ep_ordered": "arrival",
        "late_ticket": "attempt",
    }


def test_the_lane_of_an_operation_without_one_is_itself():
    assert lane_of(Batch(3, 1)) == 3
    assert lane_of("x") == "x"
    assert lane_of(None) is None


# ---------------------------------------------------------------- stand-ins


def stage(*, head=None, sealed=False):
    """A context whose FIFO head is the batch, sealed or not."""
    context = StageExecutionContext(replica_id=0, stage_id=0, ep_size=2, full_stage_capacity=2)
    if sealed:
        owner = context.enqueue_full_stage(operation_id="owner")
        context.try_acquire(owner)
        context.bind_forward_group(owner)
        context.transition_active_scope(
            owner, operation_id="w", scope=EP_WAVE, participant_ep_ids=(0, 1)
        )
    if head is not None:
        context.enqueue_full_stage(operation_id=head)
    return context


def lane(queued=(), running=None):
    scheduler = LaneStageScheduler()
    scheduler.restore(running, tuple(queued))
    return scheduler


QUEUED = lane([Batch(1, 1)])
CASES = [
    # scheduler of lane 1, context -> rules that count it as idle
    (lane(), stage(), {"standard", "withdraw_joined", "blocked_is_idle"}),
    (lane(running=Batch(1, 0)), stage(), set()),
    (lane(running=Batch(1, 0)), stage(head=Batch(0, 1)), set()),
    (lane(running=Batch(1, 0)), stage(sealed=True), set()),
    (QUEUED, stage(sealed=True), {"standard", "withdraw_joined", "blocked_is_idle"}),
    (QUEUED, stage(), set()),
    (QUEUED, stage(head=Batch(1, 1)), set()),
    (QUEUED, stage(head=Batch(0, 1)), {"blocked_is_idle"}),
]


@pytest.mark.parametrize(("scheduler", "context", "idle"), CASES)
def test_which_absent_lane_counts_as_idle(scheduler, context, idle):
    allowed = {n for n, rule in STAND_IN_RULES.items() if rule.allows(1, scheduler, context)}
    assert allowed == idle
    for rule in STAND_IN_RULES.values():
        assert isinstance(rule.allows(1, scheduler, context), bool)


def test_only_withdraw_joined_withdraws():
    assert {n for n, rule in STAND_IN_RULES.items() if rule.withdraws_joined} == {"withdraw_joined"}


# ---------------------------------------------------------------- rooms


def test_rooms_by_phase_and_shared():
    prefill, decode = Batch(0, 0), Batch(1, 0, "decode")
    assert ROOM_RULES["shared"].key(2, 3, prefill) == RoomKey(2, 3, "")
    assert ROOM_RULES["shared"].key(2, 3, prefill) == ROOM_RULES["shared"].key(2, 3, decode)
    assert ROOM_RULES["by_phase"].key(2, 3, prefill) == RoomKey(2, 3, "prefill")
    assert ROOM_RULES["by_phase"].key(2, 3, decode) == RoomKey(2, 3, "decode")


# ---------------------------------------------------------------- lanes


def test_a_lane_serves_batches_by_number():
    scheduler = LaneStageScheduler()
    for number in (3, 1, 2, 0):
        scheduler.push(Batch(0, number))
    assert not scheduler.busy
    assert [b.number for b in scheduler.in_order] == [0, 1, 2, 3]
    scheduler.remove(Batch(0, 1))
    assert scheduler.run_head() == Batch(0, 0)
    assert scheduler.busy
    assert scheduler.running == Batch(0, 0)
    assert [scheduler.take_head().number for _ in range(2)] == [2, 3]
    assert scheduler.queue == []


def test_a_fifo_scheduler_serves_batches_as_they_came():
    scheduler = FifoStageScheduler()
    for number in (3, 1, 2, 0, 4):
        scheduler.push(Batch(0, number))
    assert [b.number for b in scheduler.in_order] == [3, 1, 2, 0, 4]
    scheduler.remove(Batch(0, 2))
    assert scheduler.take_head() == Batch(0, 3)
    assert scheduler.running is None
    assert scheduler.run_head() == Batch(0, 1)
    assert scheduler.running == Batch(0, 1)
    assert [b.number for b in scheduler.in_order] == [0, 4]


def test_a_restored_scheduler_does_not_share_its_queue():
    queue = (Batch(0, 1), Batch(0, 2))
    scheduler = lane(queue, Batch(0, 0))
    assert (scheduler.running, scheduler.queue) == (Batch(0, 0), list(queue))


# ---------------------------------------------------------------- events


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("lane_schedule", 0), "lane_schedule(lane 0)"),
        (Event("request", 2, request=0, role="PREFILL"), "request(PREFILL, request 0, lane 2)"),
        (
            Event("attention_done", 1, Batch(1, 0), 0, 0),
            "attention_done(lane 1, batch 0, stage 0, layer 0)",
        ),
        (
            Event("stand_in", 0, None, 1, 2, phase="decode"),
            "stand_in(lane 0, stage 1, layer 2, decode room)",
        ),
        (
            Event("wave_end", -1, None, 0, 1, members=(Batch(0, 2), Batch(1, 0))),
            "wave_end(stage 0, layer 1, of lane 0 batch 2 + lane 1 batch 0)",
        ),
        (Event("nothing"), "nothing()"),
    ],
)
def test_an_event_in_words(event, text):
    assert str(event) == text


def test_a_core_error_keeps_event_and_reason():
    error = CoreError(Event("arrive", 1), "too late")
    assert (error.event, error.reason) == (Event("arrive", 1), "too late")
    assert str(error) == "arrive(lane 1): too late"


def test_global_ids_order_batches_across_lanes():
    """PROTOCOL.md section 1: counter * lanes + lane."""
    ids = [Batch(lane, number).global_id(3) for number in range(2) for lane in range(3)]
    assert ids == list(range(6))


def test_an_event_without_a_batch_is_named():
    assert batch_of(Event("arrive", 1, Batch(1, 0), 0)) == Batch(1, 0)
    with pytest.raises(TypeError, match=r"^arrive needs a batch, got Event\(kind='arrive', lane=1"):
        batch_of(Event("arrive", 1))


# ---------------------------------------------------------------- workload


def test_open_arrivals_wait_one_by_one():
    workload = FiniteWorkload([["prefill", "decode"], [], ["prefill"]], "open")
    assert workload.start() == [Event("request", 0), Event("request", 0), Event("request", 2)]
    assert workload.next_batch(0) is None
    assert workload.request(Event("request", 0)) == 0
    assert workload.next_batch(0) == Batch(0, 0)
    assert workload.next_batch(0) is None
    assert workload.request(Event("request", 0)) == 0
    assert workload.request(Event("request", 2)) == 2
    assert not workload.all_batches_formed
    assert (workload.next_batch(0), workload.next_batch(2)) == (Batch(0, 1, "decode"), Batch(2, 0))
    assert workload.all_batches_formed
    assert workload.next_batch(0) is None


def test_a_burst_wakes_lanes_with_work_the_first_one_last():
    workload = FiniteWorkload([["prefill"], ["prefill"], [], ["prefill"]])
    assert workload.start() == [Event("lane_schedule", lane) for lane in (1, 3, 0)]
    assert workload.next_batch(0) == Batch(0, 0)


def test_workload_snapshots():
    workload = FiniteWorkload([["prefill"] * 2, ["prefill"]], "open")
    workload.request(Event("request", 0))
    workload.next_batch(0)
    snapshot = workload.snapshot()
    assert snapshot == ((1, 0), (1, 0))
    other = FiniteWorkload([["prefill"] * 2, ["prefill"]], "open")
    other.restore(snapshot)
    assert other.snapshot() == snapshot
    other.request(Event("request", 0))
    assert other.next_batch(0) == Batch(0, 1)
    assert workload.snapshot() == snapshot


def test_unknown_arrivals_are_named():
    with pytest.raises(ValueError, match=r"^arrivals must be burst or open, got 'late'$"):
        FiniteWorkload([["prefill"]], "late")
