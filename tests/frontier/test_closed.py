"""Closed workloads: slots recirculate, and a state holds no growing number."""

import random

import pytest

from frontier.closed import FOREVER, ClosedLane, ClosedWorkload, renumbered
from frontier.events import REQUEST, Batch, Event
from frontier.replica import ReplicaSnapshot
from models.quiescent import QuiescentModel
from models.scenario import Scenario


def phases(workload, lane, count):
    """Phases of the next batches of a lane that has one in flight at a time."""
    out = []
    for _ in range(count):
        batch = workload.next_batch(lane)
        out.append(batch.phase[0])
        workload.batch_ended(batch)
    return "".join(out)


@pytest.mark.parametrize(
    ("slots", "steps", "expected"),
    [(1, 1, "ppppp"), (1, 3, "pddpdd"), (1, FOREVER, "pddddd"), (2, 2, "ppddpp")],
)
def test_a_slot_is_one_request_after_another(slots, steps, expected):
    assert phases(ClosedWorkload(2, slots, steps), 1, len(expected)) == expected


def test_no_more_batches_than_slots():
    workload = ClosedWorkload(1, 2)
    first = workload.next_batch(0)
    assert workload.next_batch(0).number == 1
    assert workload.next_batch(0) is None
    workload.batch_ended(first)
    assert workload.next_batch(0).number == 2


def test_first_requests_arrive_one_by_one_if_open_and_never_in_a_burst():
    with pytest.raises(ValueError, match="from the start"):
        ClosedWorkload(1, 1).request(Event(REQUEST, 0))
    with pytest.raises(ValueError, match="arrivals must be burst or open"):
        ClosedWorkload(1, 1, 1, "late")
    workload = ClosedWorkload(2, 2, 1, "open")
    assert workload.start() == [Event(REQUEST, lane) for lane in (0, 0, 1, 1)]
    assert workload.next_batch(1) is None
    assert workload.request(Event(REQUEST, 1)) == 1
    first = workload.next_batch(1)
    assert first.phase == "prefill"
    assert workload.next_batch(1) is None
    workload.batch_ended(first)
    assert workload.next_batch(1).number == 1


def snapshot(*lanes):
    return ReplicaSnapshot((), (), (0,) * len(lanes), lanes)


def test_a_state_whose_live_batches_count_from_0_is_returned_as_it_is():
    told, pending = snapshot(ClosedLane(2, (), ((0, 5), (1, 5))), ClosedLane(0, (0,), ())), ()
    again, events, name = renumbered(told, pending)
    assert again is told
    assert events is pending
    assert name is None


def test_live_batches_are_numbered_from_0_and_gone_ones_down_from_minus_1():
    told = snapshot(ClosedLane(0, (0,), ()), ClosedLane(8, (1,), ((3, 1), (7, 0))))
    numbers = (5, 7, 4, 3, 5)
    pending = tuple([Event("batch_end", 1, Batch(1, number)) for number in numbers])
    again, events, name = renumbered(told, pending)
    assert again.workload == (ClosedLane(0, (0,), ()), ClosedLane(2, (1,), ((0, 1), (1, 0))))
    assert [event.batch for event in events] == [Batch(1, n) for n in (-1, 1, -2, 0, -1)]
    assert name[Batch(1, 7)] == Batch(1, 1)


@pytest.mark.parametrize("values", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_bad_numbers(values):
    with pytest.raises(ValueError, match="must be at least 1"):
        ClosedWorkload(*values)


@pytest.mark.parametrize("fields", [
    {"model": "moe", "lanes": 2},
    {"model": "moe", "lanes": 3, "stand_in": "withdraw_joined", "slots": 3, "steps": 2},
    {"model": "dense", "capacity": 1, "steps": "forever", "admission": "strict_fifo"},
    {"model": "moe", "layers": 2, "slots": 1, "admission": "late_ticket"},
    {"model": "moe", "arrivals": "open"},
])  # fmt: skip
def test_growing_numbers_and_relative_numbers_walk_together(fields):
    """A live run counts batches without end; told relatively, it is a walk of the finite model."""
    scenario = Scenario.of({"workload": "closed", **fields})
    model = QuiescentModel(scenario.make_replica, ties=True)
    chance = random.Random(5)
    for _ in range(5):
        run = model.begin()
        state = run.state()
        for _ in range(120):
            actions = model.actions(state)
            if not actions:
                break
            action = chance.choice(actions)
            assert len(run.pending) == len(state.pending)
            run.fire(action)
            state = model.step(state, action)
            assert run.state() == state
        batches = [event.batch for event in run.pending if event.batch is not None]
        assert max((b.number for b in batches), default=99) > scenario.stages + 2
        named = [event.batch for event in state.pending if event.batch is not None]
        assert all(0 <= batch.number < scenario.stages for batch in named)
