"""Stale work by hand: whom an invalidation drops, frees and wakes (issue 7)."""

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.closed import FOREVER, ClosedLane, ClosedWorkload
from frontier.events import Batch, CoreError, Event
from frontier.ffn import EXPERT, FfnConfig, ScriptedGroups
from frontier.replica import ReplicaConfig
from frontier.stale import (
    STALE_RULES,
    UNLIMITED,
    InterruptibleFfn,
    InterruptibleReplica,
    Interruptions,
    WithInvalidations,
)
from frontier.workload import FiniteWorkload


def settled(system, events):
    """Handle urgent events until none is left; return what is pending."""
    pending, urgent = [], list(events)
    while urgent:
        event = urgent.pop(0)
        for follow in system.handle(event) if event.is_urgent else ():
            (urgent if follow.is_urgent else pending).append(follow)
        if not event.is_urgent:
            pending.append(event)
    return pending


def dense(lanes=3, batches=1, rule="proper", interruptions=3, **more):
    """A dense replica of one stage whose lanes have been woken."""
    config = ReplicaConfig(lanes, 1, 1, moe=False, **more)
    workload = FiniteWorkload([["prefill"] * batches] * lanes)
    replica = InterruptibleReplica(config, workload, STALE_RULES[rule], interruptions)
    return replica, settled(replica, replica.start())


def invalidate(batch):
    return Event("invalidate", batch.lane, batch)


def test_interruptions_are_counted_down():
    replica, _ = dense()
    offered = [invalidate(Batch(lane, 0)) for lane in range(3)]
    assert replica.environment() == offered
    assert replica.handle(offered[1]) == []
    assert replica.left == 2
    assert replica.stale == {Batch(1, 0)}
    assert replica.environment() == [offered[0], offered[2]]
    replica.handle(offered[0])
    assert replica.snapshot().outside == Interruptions(1, (Batch(0, 0), Batch(1, 0)))
    replica.handle(offered[2])
    assert (replica.left, replica.environment()) == (0, [])


def test_one_interruption_unless_told_and_any_number_without_limit():
    config, workload = ReplicaConfig(1, 1, 1), FiniteWorkload([["prefill"]])
    assert InterruptibleReplica(config, workload, STALE_RULES["proper"]).left == 1
    ffn = InterruptibleFfn(FfnConfig(2), ScriptedGroups([["dense"]]), STALE_RULES["proper"])
    assert ffn.left == 1
    replica, _ = dense(interruptions=UNLIMITED)
    replica.handle(replica.environment()[0])
    assert replica.left is UNLIMITED
    assert len(replica.environment()) == 2


def test_given_contexts_are_used():
    config = ReplicaConfig(1, 1, 1, moe=False)
    contexts = [config.make_context(0)]
    workload = FiniteWorkload([["prefill"]])
    replica = InterruptibleReplica(config, workload, STALE_RULES["proper"], 1, contexts)
    settled(replica, replica.start())
    assert replica.contexts[0] is contexts[0]
    assert not contexts[0].is_idle


@pytest.mark.parametrize(
    ("rule", "freed", "active", "woken"),
    [
        ("proper", 2, 1, [0]),
        ("no_cancel", 2, 2, [0]),
        ("no_wake", 2, 1, []),
        ("wrong_lane", 0, 1, [0]),
    ],
)
def test_the_end_of_a_stale_batch(rule, freed, active, woken):
    """Lanes 1 and 2 run (capacity 2), lane 0 waits, lane 2's batch is stale."""
    replica, pending = dense(rule=rule, capacity=2)
    assert [(e.kind, e.lane) for e in pending] == [("stage_end", 1), ("stage_end", 2)]
    replica.schedulers[0][0].restore(None, (Batch(0, 0),))
    replica.handle(invalidate(Batch(2, 0)))
    follow = replica.handle(pending[1])
    assert follow[-1] == Event("batch_dropped", 2, Batch(2, 0))
    assert [e.lane for e in follow[:-1]] == woken, "lane 1 is busy"
    running = [s.running for s in replica.schedulers[0]]
    assert running[2] == (None if freed == 2 else Batch(2, 0))
    assert len(replica.contexts[0].active_tickets) == active
    assert replica.stale == set()
    assert replica.tickets[0].keys() == {Batch(0, 0), Batch(1, 0)}


def test_wrong_lane_frees_the_next_lane():
    replica, pending = dense(rule="wrong_lane")
    assert [e.lane for e in pending] == [1, 2, 0]
    replica.handle(invalidate(Batch(0, 0)))
    replica.handle(pending[2])
    assert [s.running for s in replica.schedulers[0]] == [Batch(0, 0), None, Batch(2, 0)]


@pytest.mark.parametrize(
    ("rule", "queued", "cancelled"), [("proper", 0, True), ("no_cancel", 1, False)]
)
def test_a_stale_batch_at_the_head_is_dropped_when_it_would_be_presented(rule, queued, cancelled):
    replica, _ = dense(rule=rule, capacity=2)
    context, ticket = replica.contexts[0], replica.tickets[0][Batch(0, 0)]
    replica.handle(invalidate(Batch(0, 0)))
    follow = replica.handle(Event("stage_schedule", 0, None, 0))
    assert follow == [Event("batch_dropped", 0, Batch(0, 0))]
    assert len(context.queued_tickets) == queued
    assert context.is_cancelled(ticket) is cancelled
    assert Batch(0, 0) not in replica.tickets[0]
    assert replica.handle(follow[0]) == [Event("lane_schedule", 0)]


def test_a_batch_without_a_ticket_is_dropped_too():
    """Under late_ticket a batch that was never presented has none."""
    replica, _ = dense(lanes=1, batches=1, capacity=1)
    replica.schedulers[0][0].restore(None, (Batch(0, 7),))
    replica.stale.add(Batch(0, 7))
    follow = replica.handle(Event("stage_schedule", 0, None, 0))
    assert follow == [Event("batch_dropped", 0, Batch(0, 7))]


def test_a_snapshot_holds_what_is_stale():
    replica, _ = dense()
    replica.handle(invalidate(Batch(1, 0)))
    other, _ = dense()
    other.restore(replica.snapshot())
    assert (other.left, other.stale) == (2, {Batch(1, 0)})
    assert other.snapshot() == replica.snapshot()


# ---------------------------------------------------------------- groups


def ffn(script, rule="proper", interruptions=2):
    """EP size 3; every group of one producer has arrived."""
    stage = InterruptibleFfn(
        FfnConfig(3), ScriptedGroups([script]), STALE_RULES[rule], interruptions
    )
    pending = []
    groups = stage.start()
    while groups:
        follow = settled(stage, stage.handle(groups.pop()))
        groups = [e for e in follow if e.kind == "group"]
        pending += [e for e in follow if e.kind != "group"]
    return stage, pending


FIRST, SECOND = Batch(-1, 0, EXPERT), Batch(-1, 1, EXPERT)


def test_groups_are_offered_while_interruptions_are_left():
    stage, _ = ffn([EXPERT, EXPERT, "dense"])
    batches = [event.batch for event in stage.environment()]
    assert batches == [FIRST, SECOND, Batch(3, 2, "dense")]
    assert stage.environment()[2] == Event("invalidate", 3, Batch(3, 2, "dense"))
    stage.handle(stage.environment()[1])
    assert (stage.left, stage.stale) == (1, {SECOND})
    assert [event.batch for event in stage.environment()] == [FIRST, Batch(3, 2, "dense")]
    stage.handle(stage.environment()[0])
    assert (stage.left, stage.environment()) == (0, [])
    assert stage.snapshot().outside == Interruptions(0, (FIRST, SECOND))
    unlimited, _ = ffn([EXPERT], interruptions=UNLIMITED)
    unlimited.handle(unlimited.environment()[0])
    assert unlimited.left is UNLIMITED


@pytest.mark.parametrize(
    ("rule", "queued", "woken"),
    [("proper", 1, [3]), ("no_cancel", 2, [3]), ("no_wake", 1, [])],
)
def test_a_stale_queued_wave_goes_with_all_its_children(rule, queued, woken):
    stage, pending = ffn([EXPERT, EXPERT, "dense"], rule)
    for event in pending:
        stage.handle(event)
    stage.handle(Event("combine_end", -1, FIRST, 0))
    assert not any(s.busy for s in stage.schedulers)
    ticket = stage.tickets[SECOND]
    stage.handle(Event("invalidate", -1, SECOND))
    follow = stage.handle(Event("stage_schedule", 1, None, 0))
    assert [s.queue for s in stage.schedulers[:3]] == [[], [], []]
    assert follow == [Event("stage_schedule", lane, None, 0) for lane in woken]
    assert len(stage.context.queued_tickets) == queued
    assert stage.context.is_cancelled(ticket) is (rule != "no_cancel")
    assert SECOND not in stage.tickets
    assert SECOND not in stage.unfinished
    assert stage.stale == set()


def test_a_stale_group_without_a_ticket_goes_too():
    """Under late_ticket a group that was never presented has none."""
    config = FfnConfig(2, admission=ADMISSION_RULES["late_ticket"])
    stage = InterruptibleFfn(config, ScriptedGroups([["dense", "dense"]]), STALE_RULES["proper"])
    (following,) = [e for e in settled(stage, stage.handle(*stage.start())) if e.kind == "group"]
    settled(stage, stage.handle(following))
    (first,), (second,) = stage.context.active_tickets, stage.schedulers[2].queue
    stage.handle(Event("invalidate", 2, second))
    assert stage.context.queued_tickets == ()
    (retry,) = stage.handle(Event("stage_end", 2, first.operation_id, 0))
    assert stage.handle(retry) == []
    assert stage.is_complete
    assert stage.stale == set()


def test_a_stale_wave_that_a_sibling_runs_goes_on():
    stage, pending = ffn([EXPERT])
    assert [(e.kind, e.lane) for e in pending] == [("child_done", lane) for lane in range(3)]
    stage.handle(Event("invalidate", -1, FIRST))
    stage.schedulers[2].restore(None, (FIRST,))
    assert stage.handle(Event("stage_schedule", 2, None, 0)) == [Event("child_done", 2, FIRST, 0)]
    assert stage.schedulers[2].running == FIRST


@pytest.mark.parametrize(
    ("rule", "running", "idle"),
    [
        ("proper", [None] * 4, True),
        ("no_cancel", [None] * 4, False),
        ("wrong_lane", [FIRST, None, None, None], True),
    ],
)
def test_the_end_of_a_stale_wave(rule, running, idle):
    stage, pending = ffn([EXPERT], rule)
    stage.handle(Event("invalidate", -1, FIRST))
    done = [stage.handle(event) for event in pending]
    assert done[:2] == [[], []]
    assert stage.handle(done[2][0]) == []
    assert [s.running for s in stage.schedulers] == running
    assert stage.context.is_idle is idle
    assert (stage.stale, stage.tickets, stage.unfinished) == (set(), {}, {})


def test_a_stale_dense_group_ends_on_its_own_scheduler():
    stage, (end,) = ffn(["dense"], "wrong_lane")
    stage.handle(Event("invalidate", 3, Batch(3, 0, "dense")))
    stage.handle(end)
    assert stage.schedulers[3].running == Batch(3, 0, "dense"), "scheduler 0 is the next one"
    assert stage.context.is_idle


def test_an_ffn_snapshot_holds_what_is_stale():
    stage, _ = ffn([EXPERT, EXPERT])
    stage.handle(Event("invalidate", -1, SECOND))
    other, _ = ffn([EXPERT, EXPERT])
    other.restore(stage.snapshot())
    assert (other.left, other.stale) == (1, {SECOND})
    assert other.snapshot() == stage.snapshot()


def test_a_rejected_call_is_a_core_error():
    stage, (end,) = ffn(["dense"])
    stage.handle(end)
    stage.tickets[Batch(3, 0, "dense")] = "no ticket"
    with pytest.raises(CoreError, match="no ticket") as caught:
        stage.handle(end)
    assert caught.value.event == end
    assert caught.value.reason == "ticket must be a StageAdmissionTicket, got 'no ticket'"


def test_invalidations_come_after_the_events_of_the_start():
    replica, _ = dense(lanes=2)
    system = WithInvalidations(replica, [invalidate(Batch(0, 0))])
    assert system.start() == [*replica.start(), invalidate(Batch(0, 0))]
    assert system.handle(invalidate(Batch(1, 0))) == []
    assert replica.stale == {Batch(1, 0)}


# ---------------------------------------------------------------- closed workloads


def test_slots_of_a_closed_workload_step_by_step():
    workload = ClosedWorkload(3, 2, 3)
    assert workload.start() == [Event("lane_schedule", lane) for lane in (1, 2, 0)]
    assert workload.snapshot() == (ClosedLane(0, (0, 0), ()),) * 3
    first, second = workload.next_batch(1), workload.next_batch(1)
    assert (first, second) == (Batch(1, 0), Batch(1, 1))
    assert workload.snapshot()[1] == ClosedLane(2, (), ((0, 0), (1, 0)))
    workload.batch_ended(second)
    assert workload.snapshot()[1] == ClosedLane(2, (1,), ((0, 0),))
    third = workload.next_batch(1)
    assert third == Batch(1, 2, "decode")
    workload.batch_ended(third)
    workload.batch_ended(workload.next_batch(1))
    assert workload.snapshot()[1] == ClosedLane(4, (0,), ((0, 0),))
    other = ClosedWorkload(3, 2, 3)
    other.restore(workload.snapshot())
    assert other.snapshot() == workload.snapshot()
    assert other.next_batch(1) == Batch(1, 4)
    assert workload.snapshot()[1].waiting == (0,)
    assert not workload.all_batches_formed


def test_requests_of_one_step_and_for_ever():
    once, forever = ClosedWorkload(1, 1), ClosedWorkload(1, 1, FOREVER)
    for workload, steps in ((once, (0, 0)), (forever, (1, 1))):
        for step in steps:
            workload.batch_ended(workload.next_batch(0))
            assert workload.snapshot()[0].waiting == (step,)


@pytest.mark.parametrize(
    ("values", "named"), [((0, 1, 1), "lanes"), ((1, 0, 1), "slots"), ((1, 1, 0), "steps")]
)
def test_numbers_below_one_are_named(values, named):
    with pytest.raises(ValueError, match=f"^{named} must be at least 1, got 0$"):
        ClosedWorkload(*values)


def test_nothing_arrives_from_outside_of_a_closed_workload():
    with pytest.raises(
        ValueError,
        match=r"^every slot has its first request from the start, got request\(lane 0\)$",
    ):
        ClosedWorkload(1, 1).request(Event("request", 0))
