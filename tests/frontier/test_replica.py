"""The replica event by event (PROTOCOL.md section 4): what each handler stores and emits."""

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.events import Batch, CoreError, Event, WaveOperation
from frontier.replica import Replica, ReplicaConfig
from frontier.rooms import ROOM_RULES, RoomKey
from frontier.standin import STAND_IN_RULES, Standard
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD
from frontier.workload import FiniteWorkload


def replica_of(phases=("p", "p", "p"), stages=2, layers=2, **rules):
    """A replica of lanes whose batches have these phases, ``p`` or ``d``."""
    words = {"p": "prefill", "d": "decode"}
    config = ReplicaConfig(len(phases), stages, layers, **rules)
    return Replica(config, FiniteWorkload([[words[x] for x in lane] for lane in phases]))


def arrived(replica, *lanes):
    """Lanes whose first batch has arrived at stage 0, in this order, and was admitted."""
    started = []
    for lane in lanes:
        (arrive, *_) = replica.handle(Event("lane_schedule", lane))
        (schedule,) = replica.handle(arrive)
        started += replica.handle(schedule)
    return started


def batch(lane, number=0, phase="prefill"):
    return Batch(lane, number, phase)


def test_a_configuration_says_what_it_leaves_out():
    config = ReplicaConfig(3, 2, 1)
    assert (config.max_in_flight, config.ep_size, config.replica_id) == (2, 3, 0)
    context = config.make_context(1)
    assert (context.replica_id, context.stage_id, context.ep_size) == (0, 1, 3)
    assert context.full_stage_capacity == 3
    assert context.rule is config.admission
    other = ReplicaConfig(3, 2, 1, moe=False, capacity=1, replica_id=4, in_flight=5)
    assert (other.max_in_flight, other.ep_size) == (5, 1)
    context = other.make_context(0)
    assert (context.replica_id, context.full_stage_capacity) == (4, 1)


def test_a_lane_forms_batches_up_to_its_limit():
    replica = replica_of(("ppp", "p"))
    assert replica.start() == [Event("lane_schedule", 1), Event("lane_schedule", 0)]
    assert replica.handle(Event("lane_schedule", 0)) == [
        Event("arrive", 0, batch(0, 0), 0),
        Event("arrive", 0, batch(0, 1), 0),
    ]
    assert replica.handle(Event("lane_schedule", 0)) == []
    assert replica.in_flight == [2, 0]
    assert replica.handle(Event("batch_end", 0, batch(0, 0))) == [Event("lane_schedule", 0)]
    assert replica.in_flight == [1, 0]
    assert replica.handle(Event("lane_schedule", 0)) == [Event("arrive", 0, batch(0, 2), 0)]
    assert not replica.is_complete
    replica.handle(Event("lane_schedule", 1))
    for lane, number in ((0, 1), (0, 2), (1, 0)):
        assert not replica.is_complete
        replica.handle(Event("batch_end", lane, batch(lane, number)))
    assert replica.is_complete


def test_a_request_and_a_transfer_wake_their_lane():
    config = ReplicaConfig(2, 1, 1)
    replica = Replica(config, FiniteWorkload([["prefill"], ["prefill"]], "open"))
    assert replica.handle(Event("request", 1)) == [Event("lane_schedule", 1)]
    assert replica.handle(Event("kv_transfer", 0)) == [Event("lane_schedule", 0)]


@pytest.mark.parametrize(("rule", "tickets"), [("ep_ordered", 1), ("late_ticket", 0)])
def test_when_a_batch_gets_its_ticket(rule, tickets):
    replica = replica_of(admission=ADMISSION_RULES[rule])
    (arrive,) = replica.handle(Event("lane_schedule", 0))
    assert replica.handle(arrive) == [Event("stage_schedule", 0, None, 0)]
    assert len(replica.contexts[0].queued_tickets) == tickets
    assert replica.handle(Event("stage_schedule", 0, None, 0)) == [
        Event("attention_done", 0, batch(0), 0, 0)
    ]
    assert replica.tickets[0][batch(0)].operation_id == batch(0)
    assert replica.contexts[0].forward_group_bound


def test_a_busy_lane_is_not_scheduled_when_a_batch_arrives():
    replica = replica_of(("pp", "p"))
    first, second = replica.handle(Event("lane_schedule", 0))
    (schedule,) = replica.handle(first)
    replica.handle(schedule)
    assert replica.handle(second) == []
    assert replica.handle(schedule) == [], "busy: nothing"
    assert replica.handle(Event("stage_schedule", 1, None, 0)) == [], "nothing queued: nothing"


def test_a_refused_batch_leaves_no_retry():
    replica = replica_of(capacity=1)
    arrived(replica, 0)
    (arrive,) = replica.handle(Event("lane_schedule", 1))
    (schedule,) = replica.handle(arrive)
    assert replica.handle(schedule) == []
    assert replica.schedulers[0][1].queue == [batch(1)]
    assert replica.schedulers[0][1].running is None
    assert [t.operation_id for t in replica.contexts[0].queued_tickets] == [batch(1)]


def test_a_dense_batch_runs_its_stage_and_wakes_the_others_in_order():
    replica = replica_of(("pp", "p", "p", "p"), moe=False, capacity=1)
    (end,) = arrived(replica, 0)
    assert end == Event("stage_end", 0, batch(0), 0)
    assert not replica.contexts[0].forward_group_bound
    replica.schedulers[0][0].push(batch(0, 1))
    for lane in (3, 1):
        (arrive,) = replica.handle(Event("lane_schedule", lane))
        replica.handle(arrive)
    assert replica.handle(end) == [
        Event("stage_schedule", 0, None, 0),
        Event("stage_schedule", 1, None, 0),
        Event("stage_schedule", 3, None, 0),
        Event("arrive", 0, batch(0), 1),
    ]
    assert replica.schedulers[0][0].running is None
    assert replica.contexts[0].is_idle
    assert batch(0) not in replica.tickets[0]


def test_after_the_last_stage_a_batch_ends():
    replica = replica_of(("p", "p"), stages=1, moe=False)
    one, two = arrived(replica, 0, 1)
    replica.schedulers[0][1].push(batch(1, 1))
    assert replica.handle(one) == [Event("batch_end", 0, batch(0))], "lane 1 is busy"
    assert replica.handle(two) == [
        Event("stage_schedule", 1, None, 0),
        Event("batch_end", 1, batch(1)),
    ]


# ---------------------------------------------------------------- rooms and waves

KEY = RoomKey(0, 0)


def test_real_batches_meet_and_become_one_wave():
    replica = replica_of()
    attention = arrived(replica, 0, 1, 2)
    assert replica.handle(attention[2]) == []
    assert replica.handle(attention[0]) == []
    assert replica.rooms == {KEY: {2: batch(2), 0: batch(0)}}
    members = (batch(0), batch(1), batch(2))
    end = Event("wave_end", -1, None, 0, 0, members=members)
    assert replica.handle(attention[1]) == [end]
    assert replica.rooms == {}
    operation = WaveOperation(0, members)
    assert replica.tickets[0].keys() == {operation}
    context = replica.contexts[0]
    assert (context.active_operation_id, context.active_scope) == (operation, EP_WAVE)
    assert context.active_participant_ep_ids == (0, 1, 2)
    assert context.forward_group_sealed
    assert replica.handle(end) == [
        Event("attention_done", lane, batch(lane), 0, 1) for lane in range(3)
    ]
    assert replica.tickets[0].keys() == set(members)
    assert [t.scope for t in context.active_tickets] == [FULL_STAGE_WORLD] * 3
    for lane in range(3):
        follow = replica.handle(Event("attention_done", lane, batch(lane), 0, 1))
    assert follow == [Event("wave_end", -1, None, 0, 1, members=members)]
    assert replica.handle(follow[0]) == [
        Event("stage_end", lane, batch(lane), 0) for lane in range(3)
    ]


def test_placeholders_stand_in_for_idle_lanes_and_stop_the_handler():
    replica = replica_of()
    (attention,) = arrived(replica, 1)
    follow = replica.handle(attention)
    assert follow == [
        Event("stand_in", 0, None, 0, 0, phase=""),
        Event("stand_in", 2, None, 0, 0, phase=""),
    ]
    assert replica.rooms == {KEY: {1: batch(1), 0: None, 2: None}}
    end = Event("wave_end", -1, None, 0, 0, members=(batch(1),))
    assert replica.handle(follow[0]) == [end], "the room is full already"
    assert replica.handle(follow[1]) == [], "the room is closed"
    assert replica.contexts[0].active_operation_id == WaveOperation(0, (batch(1),))
    assert replica.contexts[0].active_participant_ep_ids == (0, 1, 2)
    assert replica.handle(end) == [Event("attention_done", 1, batch(1), 0, 1)]


def test_a_real_batch_takes_a_placeholder_s_place_and_keeps_it():
    replica = replica_of(("p", "p", "p"))
    first, second = arrived(replica, 0, 1)
    (stand_in,) = replica.handle(first)
    assert stand_in == Event("stand_in", 2, None, 0, 0)
    replica.rooms[KEY] = {0: batch(0), 2: batch(2)}
    assert replica.handle(stand_in) == [], "a real batch took the place"
    assert replica.rooms[KEY] == {0: batch(0), 2: batch(2)}
    replica.rooms[KEY] = {0: batch(0)}
    assert replica.handle(stand_in) == [], "stored, but lane 1 is missing"
    assert replica.rooms[KEY] == {0: batch(0), 2: None}
    assert replica.handle(second)[0].members == (batch(0), batch(1))


def test_rooms_by_phase_fill_apart():
    replica = replica_of(("p", "d"), rooms=ROOM_RULES["by_phase"])
    prefill, decode = arrived(replica, 0, 1)
    assert replica.handle(prefill) == [], "lane 1 is busy: no placeholder"
    assert replica.handle(decode) == []
    assert replica.rooms == {
        RoomKey(0, 0, "prefill"): {0: batch(0)},
        RoomKey(0, 0, "decode"): {1: batch(1, 0, "decode")},
    }
    alone = replica_of(("p", "d"), rooms=ROOM_RULES["by_phase"])
    (attention,) = arrived(alone, 1)
    (stand_in,) = alone.handle(attention)
    assert stand_in == Event("stand_in", 0, None, 0, 0, phase="decode")
    assert alone.handle(stand_in)[0].members == (batch(1, 0, "decode"),)


def test_withdraw_joined_takes_placeholders_of_busy_lanes_back():
    replica = replica_of(stand_in=STAND_IN_RULES["withdraw_joined"])
    (attention,) = arrived(replica, 0)
    replica.handle(attention)
    assert replica.rooms[KEY] == {0: batch(0), 1: None, 2: None}
    (joined,) = arrived(replica, 1)
    assert replica.handle(Event("stand_in", 2, None, 0, 0)) == []
    assert replica.rooms[KEY] == {0: batch(0), 2: None}
    assert replica.handle(joined)[0].members == (batch(0), batch(1))
    standard = replica_of()
    (attention,) = arrived(standard, 0)
    standard.handle(attention)
    arrived(standard, 1)
    with pytest.raises(CoreError, match="other owners are active"):
        standard.handle(Event("stand_in", 2, None, 0, 0))


def test_a_rejected_call_is_a_core_error_that_keeps_the_event():
    replica = replica_of()
    arrived(replica, 0)
    event = Event("arrive", 0, batch(0), 0)
    with pytest.raises(CoreError) as caught:
        replica.handle(event)
    assert caught.value.event == event
    assert caught.value.reason == f"operation_id is already queued or active: {batch(0)!r}"


# ---------------------------------------------------------------- snapshots


def test_a_restored_replica_goes_on_like_the_original():
    replica = replica_of(("pp", "p", "p"))
    attention = arrived(replica, 0, 1, 2)
    replica.schedulers[0][0].push(batch(0, 1))
    replica.handle(attention[1])
    snapshot = replica.snapshot()
    assert snapshot.rooms == ((KEY, ((1, batch(1)),)),)
    assert snapshot.in_flight == (2, 1, 1)
    assert snapshot.stages[0].lanes[0] == (batch(0), (batch(0, 1),))
    assert snapshot.outside == ()
    other = replica_of(("pp", "p", "p"))
    other.restore(snapshot)
    assert other.snapshot() == snapshot
    assert other.snapshot() is not snapshot
    for event in (attention[0], attention[2]):
        assert other.handle(event) == replica.handle(event)
    assert other.snapshot() == replica.snapshot()
    assert other.tickets[0].keys() == replica.tickets[0].keys()


def test_equal_parts_of_snapshots_are_one_object():
    replica = replica_of()
    one, two = replica.snapshot(), replica.snapshot()
    for part in ("stages", "rooms", "in_flight", "workload"):
        assert getattr(one, part) is getattr(two, part)
    assert one.stages[0] is two.stages[0]


def test_a_stand_in_rule_is_asked_about_each_absent_lane():
    asked = []

    class Remembering(Standard):
        def allows(self, lane, scheduler, context):
            asked.append(lane)
            return super().allows(lane, scheduler, context)

    replica = replica_of(stand_in=Remembering())
    (done,) = arrived(replica, 1)
    assert [event.lane for event in replica.handle(done)] == [0, 2]
    assert asked == [0, 2]


def test_a_context_that_loses_an_owner_is_a_core_error():
    replica = replica_of(("p", "p"), layers=1)
    pending = arrived(replica, 0, 1)
    (wave,) = [event for done in pending for event in replica.handle(done)]
    give_back = replica.contexts[0].replace_ep_wave_with_full_stage_owners
    replica.contexts[0].replace_ep_wave_with_full_stage_owners = lambda *args, **named: give_back(
        *args, **named
    )[:1]
    with pytest.raises(CoreError, match="zip"):
        replica.handle(wave)


def test_a_snapshot_needs_the_shape_of_its_replica():
    with pytest.raises(ValueError, match="zip"):
        replica_of().restore(replica_of(("p", "p")).snapshot())
    config = ReplicaConfig(1, 2, 1)
    one_context = Replica(config, FiniteWorkload([[]]), [config.make_context(0)])
    with pytest.raises(ValueError, match="zip"):
        one_context.snapshot()
