"""The stage execution context: every sentence of PROTOCOL.md section 2."""

import dataclasses

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.context import (
    EP_WAVE,
    FULL_STAGE_WORLD,
    StageAdmissionTicket,
    StageExecutionContext,
)


def make(capacity=2, ep_size=2, rule="ep_ordered"):
    return StageExecutionContext(
        replica_id=0,
        stage_id=1,
        ep_size=ep_size,
        full_stage_capacity=capacity,
        rule=ADMISSION_RULES[rule],
    )


def observable(context):
    """Everything that the public API shows."""
    return (
        context.is_idle,
        context.active_scope,
        context.active_operation_id,
        context.active_participant_ep_ids,
        context.queued_tickets,
        context.active_tickets,
        context.forward_group_sealed,
        context.joinable_forward_group_id,
        context.snapshot(),
    )


def admitted(context, *operations):
    tickets = [context.enqueue_full_stage(operation_id=op) for op in operations]
    assert all(context.try_acquire(ticket) for ticket in tickets)
    return tickets


def test_constructor_properties():
    context = make(capacity=3, ep_size=4)
    assert (context.replica_id, context.stage_id) == (0, 1)
    assert (context.ep_size, context.full_stage_capacity) == (4, 3)
    assert context.is_idle
    assert context.active_scope is None
    assert context.active_operation_id is None
    assert context.active_participant_ep_ids == ()


@pytest.mark.parametrize("name", ["replica_id", "stage_id", "ep_size", "full_stage_capacity"])
@pytest.mark.parametrize("value", [-1, True, 1.0, "1", None])
def test_constructor_rejects_and_names_the_argument(name, value):
    arguments = {"replica_id": 0, "stage_id": 0, "ep_size": 1, "full_stage_capacity": 1}
    with pytest.raises(ValueError, match=f"{name}.*{value!r}"):
        StageExecutionContext(**{**arguments, name: value})


@pytest.mark.parametrize("name", ["ep_size", "full_stage_capacity"])
def test_zero_is_too_small(name):
    arguments = {"replica_id": 0, "stage_id": 0, "ep_size": 1, "full_stage_capacity": 1}
    with pytest.raises(ValueError, match=f"{name}.*0"):
        StageExecutionContext(**{**arguments, name: 0})


def test_tickets_are_frozen_and_numbered_in_order():
    context = make()
    first = context.enqueue_full_stage(operation_id="a")
    second = context.enqueue_ep_wave(operation_id="b", participant_ep_ids=(0, 1))
    assert (first.admission_seq, second.admission_seq) == (0, 1)
    assert (first.scope, second.scope) == (FULL_STAGE_WORLD, EP_WAVE)
    assert second.participant_ep_ids == (0, 1)
    assert context.queued_tickets == (first, second)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.admission_seq = 7


def test_try_acquire_of_an_active_ticket_is_false_and_changes_nothing():
    context = make()
    (ticket,) = admitted(context, "a")
    before = observable(context)
    assert context.try_acquire(ticket) is False
    assert observable(context) == before


def test_capacity_refuses():
    context = make(capacity=2)
    admitted(context, "a", "b")
    third = context.enqueue_full_stage(operation_id="c")
    before = observable(context)
    assert not context.try_acquire(third)
    assert observable(context) == before
    assert [r.reason for r in context.refusals(third)] == ["capacity"]
    assert context.refusals(third)[0].mode == "any"


def test_a_wave_is_refused_while_anything_is_active_and_refuses_everything():
    context = make()
    (owner,) = admitted(context, "a")
    wave = context.enqueue_ep_wave(operation_id="w", participant_ep_ids=(0, 1))
    assert not context.try_acquire(wave)
    context.release(owner)
    assert context.try_acquire(wave)
    other = context.enqueue_full_stage(operation_id="b")
    assert not context.try_acquire(other)
    assert [r.reason for r in context.refusals(other)] == ["ep_wave_active"]
    assert context.active_participant_ep_ids == (0, 1)


def test_group_binds_seals_and_is_forgotten_when_idle():
    context = make(capacity=3)
    first, second = admitted(context, "a", "b")
    assert context.joinable_forward_group_id == 0
    assert context.bind_forward_group(first) == context.bind_forward_group(second) == 0
    assert context.joinable_forward_group_id == 0
    wave = context.replace_full_stage_owners_with_ep_wave(
        (first, second), operation_id="w", participant_ep_ids=(0, 1)
    )
    assert context.forward_group_sealed
    assert context.joinable_forward_group_id == 1
    late = context.enqueue_full_stage(operation_id="c")
    owners = context.replace_ep_wave_with_full_stage_owners(wave, operation_ids=("a", "b"))
    assert [t.operation_id for t in owners] == ["a", "b"]
    assert [r.reason for r in context.refusals(late)] == ["sealed"]
    context.release(owners[0])
    assert not context.try_acquire(late), "sealed until every owner has released"
    context.release(owners[1])
    assert not context.forward_group_sealed
    assert context.try_acquire(late)
    assert context.bind_forward_group(late) == 1


def test_promotion_without_a_bound_group_does_not_seal():
    context = make()
    owners = admitted(context, "a", "b")
    context.replace_full_stage_owners_with_ep_wave(
        owners, operation_id="w", participant_ep_ids=(0, 1)
    )
    assert not context.forward_group_sealed


def test_transition_needs_the_only_owner_and_seals():
    context = make()
    first, second = admitted(context, "a", "b")
    context.bind_forward_group(first)
    before = observable(context)
    with pytest.raises(ValueError, match="other owners"):
        context.transition_active_scope(
            first, operation_id="w", scope=EP_WAVE, participant_ep_ids=(0, 1)
        )
    assert observable(context) == before
    context.release(second)
    wave = context.transition_active_scope(
        first, operation_id="w", scope=EP_WAVE, participant_ep_ids=(0, 1)
    )
    assert context.active_scope == EP_WAVE
    assert context.forward_group_sealed
    back = context.transition_active_scope(wave, operation_id="a", scope=FULL_STAGE_WORLD)
    assert context.owns(back)
    assert not context.is_active(wave)


def test_single_ticket_view_prefers_the_wave_then_the_smallest_sequence():
    context = make(capacity=3)
    first, second, _third = admitted(context, "a", "b", "c")
    assert context.active_operation_id == "a"
    context.release(first)
    assert context.active_operation_id == "b"
    context.replace_full_stage_owners_with_ep_wave(
        [second], operation_id="w", participant_ep_ids=(0, 1)
    )
    assert context.active_operation_id == "w"


def test_lifetime_of_a_ticket():
    context = make()
    ticket = context.enqueue_full_stage(operation_id="a")
    kept = context.enqueue_full_stage(operation_id="b")
    assert context.is_queued(ticket)
    assert not context.owns(ticket)
    context.cancel(ticket)
    assert context.is_cancelled(ticket)
    assert not context.is_queued(ticket)
    assert context.queued_tickets == (kept,)
    again = context.enqueue_full_stage(operation_id="a")
    assert again.admission_seq == 2
    assert not context.is_cancelled(again)


def foreign(**changes):
    ticket = StageAdmissionTicket(0, 1, 0, "a", FULL_STAGE_WORLD, ())
    return dataclasses.replace(ticket, **changes)


MISUSES = {
    "duplicate queued operation": lambda c, a, q: c.enqueue_full_stage(operation_id="queued"),
    "duplicate active operation": lambda c, a, q: c.enqueue_full_stage(operation_id="active"),
    "unhashable operation": lambda c, a, q: c.enqueue_full_stage(operation_id=[]),
    "participants too few": lambda c, a, q: c.enqueue_ep_wave(
        operation_id="w", participant_ep_ids=(0,)
    ),
    "participants out of order": lambda c, a, q: c.enqueue_ep_wave(
        operation_id="w", participant_ep_ids=(1, 0)
    ),
    "participants boolean": lambda c, a, q: c.enqueue_ep_wave(
        operation_id="w", participant_ep_ids=(False, True)
    ),
    "participants no sequence": lambda c, a, q: c.enqueue_ep_wave(
        operation_id="w", participant_ep_ids=2
    ),
    "ticket of another context": lambda c, a, q: c.try_acquire(foreign(stage_id=2)),
    "ticket of unknown scope": lambda c, a, q: c.owns(foreign(scope="lane")),
    "ticket neither queued nor active": lambda c, a, q: c.try_acquire(foreign(admission_seq=9)),
    "no ticket at all": lambda c, a, q: c.release("a"),
    "release of a queued ticket": lambda c, a, q: c.release(q),
    "transition of a queued ticket": lambda c, a, q: c.transition_active_scope(
        q, operation_id="w", scope=EP_WAVE, participant_ep_ids=(0, 1)
    ),
    "transition to an unknown scope": lambda c, a, q: c.transition_active_scope(
        a, operation_id="w", scope="lane"
    ),
    "transition to a duplicate operation": lambda c, a, q: c.transition_active_scope(
        a, operation_id="queued", scope=EP_WAVE, participant_ep_ids=(0, 1)
    ),
    "full-stage transition with participants": lambda c, a, q: c.transition_active_scope(
        a, operation_id="w", scope=FULL_STAGE_WORLD, participant_ep_ids=(0, 1)
    ),
    "cancel of an active ticket": lambda c, a, q: c.cancel(a),
    "cancel of an unknown ticket": lambda c, a, q: c.cancel(foreign(admission_seq=9)),
    "binding a queued ticket": lambda c, a, q: c.bind_forward_group(q),
    "promotion of nobody": lambda c, a, q: c.replace_full_stage_owners_with_ep_wave(
        (), operation_id="w", participant_ep_ids=(0, 1)
    ),
    "promotion of a queued ticket": lambda c, a, q: c.replace_full_stage_owners_with_ep_wave(
        (a, q), operation_id="w", participant_ep_ids=(0, 1)
    ),
    "promotion of an owner twice": lambda c, a, q: c.replace_full_stage_owners_with_ep_wave(
        (a, a), operation_id="w", participant_ep_ids=(0, 1)
    ),
    "restoring from an owner": lambda c, a, q: c.replace_ep_wave_with_full_stage_owners(
        a, operation_ids=("x",)
    ),
}


@pytest.mark.parametrize("misuse", MISUSES.values(), ids=MISUSES)
def test_misuse_raises_value_error_and_changes_nothing(misuse):
    context = make()
    (active,) = admitted(context, "active")
    queued = context.enqueue_full_stage(operation_id="queued")
    before = observable(context)
    with pytest.raises(ValueError, match=r".+"):
        misuse(context, active, queued)
    assert observable(context) == before


@pytest.mark.parametrize(
    ("operations", "said"), [((), "none"), (("x", "x"), "repeat"), (("x", "y", "z"), "capacity")]
)
def test_restoring_rejects_wrong_operation_ids(operations, said):
    context = make(capacity=2)
    owners = admitted(context, "a", "b")
    wave = context.replace_full_stage_owners_with_ep_wave(
        owners, operation_id="w", participant_ep_ids=(0, 1)
    )
    before = observable(context)
    with pytest.raises(ValueError, match=said):
        context.replace_ep_wave_with_full_stage_owners(wave, operation_ids=operations)
    assert observable(context) == before


def test_promotion_while_a_wave_is_active_is_an_error():
    """A lane that was active beside the promoted ones cannot be promoted by itself."""
    context = make(capacity=3)
    first, second = admitted(context, "a", "b")
    context.replace_full_stage_owners_with_ep_wave(
        [first], operation_id="w", participant_ep_ids=(0, 1)
    )
    before = observable(context)
    with pytest.raises(ValueError, match="EP wave is active"):
        context.replace_full_stage_owners_with_ep_wave(
            [second], operation_id="v", participant_ep_ids=(0, 1)
        )
    assert observable(context) == before


def order_of(rule, *queue, capacity=3, active=()):
    """Operations that may be admitted next under a rule."""
    context = make(capacity=capacity, rule=rule)
    admitted(context, *active)
    tickets = [
        context.enqueue_ep_wave(operation_id=op, participant_ep_ids=(0, 1))
        if isinstance(op, str) and op.startswith("wave")
        else context.enqueue_full_stage(operation_id=op)
        for op in queue
    ]
    return [t.operation_id for t in tickets if not context.refusals(t)]


class Lane(tuple):
    """An operation of a lane: ``Lane((lane, number))``."""

    @property
    def lane(self):
        return self[0]


@pytest.mark.parametrize(
    ("rule", "may_pass"),
    [
        ("strict_fifo", [Lane((0, 1))]),
        ("late_ticket", [Lane((0, 1))]),
        ("lane_aware", [Lane((0, 1)), Lane((1, 0))]),
        ("ep_ordered", [Lane((0, 1)), Lane((1, 0)), Lane((2, 0))]),
    ],
)
def test_who_may_pass_whom(rule, may_pass):
    """Lane 0 holds the stage; its next ticket is the head, lanes 1 and 2 stand behind."""
    queue = [Lane((0, 1)), Lane((1, 0)), Lane((2, 0))]
    assert order_of(rule, *queue, active=[Lane((0, 0))]) == may_pass


@pytest.mark.parametrize("rule", ADMISSION_RULES)
def test_a_queued_wave_is_never_overtaken(rule):
    assert order_of(rule, "wave", "a", "b") == ["wave"]
    assert order_of(rule, "a", "wave", "b")[:1] == ["a"]
    assert "wave" not in order_of(rule, "a", "wave", "b")
    assert "b" not in order_of(rule, "a", "wave", "b")


def test_refusals_of_an_active_ticket_are_none_and_of_a_queued_one_name_the_blockers():
    context = make(rule="strict_fifo")
    (active,) = admitted(context, "a")
    head = context.enqueue_full_stage(operation_id="b")
    behind = context.enqueue_full_stage(operation_id="c")
    assert context.refusals(active) == ()
    (refusal,) = context.refusals(behind)
    assert (refusal.reason, refusal.blockers, refusal.mode) == ("behind", (head,), "all")


def test_snapshot_and_restore_lose_nothing_but_history():
    context = make(capacity=3)
    first, second = admitted(context, ("a", 0), ("b", 0))
    context.bind_forward_group(first)
    context.enqueue_full_stage(operation_id=("c", 0))
    context.release(first)
    copy = make(capacity=3)
    tickets = copy.restore(context.snapshot())
    assert copy.snapshot() == context.snapshot()
    assert copy.owns(tickets[second.operation_id])
    assert [t.admission_seq for t in copy.active_tickets + copy.queued_tickets] == [0, 1]
