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


# ---------------------------------------------------------------- messages, word by word

WORDS = {
    "duplicate queued operation": "operation_id is already queued or active: 'queued'",
    "duplicate active operation": "operation_id is already queued or active: 'active'",
    "unhashable operation": "operation_id must be hashable, got []",
    "participants too few": "participant_ep_ids must be 0 ... 1 in order, got (0,)",
    "participants out of order": "participant_ep_ids must be 0 ... 1 in order, got (1, 0)",
    "participants boolean": "participant_ep_ids must be 0 ... 1 in order, got (False, True)",
    "participants no sequence": "participant_ep_ids must be a sequence, got 2",
    "ticket of another context": "ticket belongs to replica 0 stage 2, this context is replica 0 "
    "stage 1: {stage_2!r}",
    "ticket of unknown scope": "ticket has unknown scope 'lane': {odd!r}",
    "ticket neither queued nor active": "ticket is neither queued nor active: {unknown!r}",
    "no ticket at all": "ticket must be a StageAdmissionTicket, got 'a'",
    "release of a queued ticket": "cannot release a ticket that is not active: {q!r}",
    "transition of a queued ticket": "cannot transition a ticket that is not active: {q!r}",
    "transition to an unknown scope": "scope must be one of ['ep_wave', 'full_stage_world'], "
    "got 'lane'",
    "transition to a duplicate operation": "operation_id is already queued or active: 'queued'",
    "full-stage transition with participants": "participant_ep_ids must be empty for "
    "full_stage_world, got (0, 1)",
    "cancel of an active ticket": "cannot cancel a ticket that is active: {a!r}",
    "cancel of an unknown ticket": "ticket is neither queued nor active: {unknown!r}",
    "binding a queued ticket": "cannot bind a ticket that is not active: {q!r}",
    "promotion of nobody": "owner_tickets must name at least one owner, got none",
    "promotion of a queued ticket": "cannot promote a ticket that is not active: {q!r}",
    "promotion of an owner twice": "owner_tickets must not repeat an owner, got {twice!r}",
    "restoring from an owner": "wave_ticket must be an EP wave, got {a!r}",
}


@pytest.mark.parametrize("name", MISUSES)
def test_the_message_names_the_argument_and_the_value(name):
    context = make()
    (active,) = admitted(context, "active")
    queued = context.enqueue_full_stage(operation_id="queued")
    with pytest.raises(ValueError, match=r".+") as caught:
        MISUSES[name](context, active, queued)
    assert str(caught.value) == WORDS[name].format(
        a=active,
        q=queued,
        twice=(active, active),
        stage_2=foreign(stage_id=2),
        odd=foreign(scope="lane"),
        unknown=foreign(admission_seq=9),
    )


def test_messages_about_waves_and_capacity():
    context = make(capacity=3)
    first, second, third = admitted(context, "a", "b", "c")
    queued = context.enqueue_ep_wave(operation_id="v", participant_ep_ids=(0, 1))
    before = observable(context)
    said = {}

    def says(name, call):
        with pytest.raises(ValueError, match=r".+") as caught:
            call()
        said[name] = str(caught.value)
        assert observable(context) == before

    says(
        "leave",
        lambda: context.transition_active_scope(
            second, operation_id="w", scope=EP_WAVE, participant_ep_ids=(0, 1)
        ),
    )
    says("owners", lambda: context.replace_full_stage_owners_with_ep_wave(
        7, operation_id="w", participant_ep_ids=(0, 1)
    ))  # fmt: skip
    says("queued wave", lambda: context.replace_full_stage_owners_with_ep_wave(
        [queued], operation_id="w", participant_ep_ids=(0, 1)
    ))  # fmt: skip
    says("bad sets", lambda: context.replace_full_stage_owners_with_ep_wave(
        [first], operation_id="w", participant_ep_ids=(1, 0)
    ))  # fmt: skip
    says("bad transition", lambda: make_wave(context, first, participant_ep_ids=None))
    says("a wave's restore", lambda: context.replace_ep_wave_with_full_stage_owners(
        queued, operation_ids=("x",)
    ))  # fmt: skip
    wave = context.replace_full_stage_owners_with_ep_wave(
        [first], operation_id="w", participant_ep_ids=(0, 1)
    )
    before = observable(context)
    says("second wave", lambda: context.replace_full_stage_owners_with_ep_wave(
        [second], operation_id="u", participant_ep_ids=(0, 1)
    ))  # fmt: skip
    says("promoting a wave", lambda: context.replace_full_stage_owners_with_ep_wave(
        [wave], operation_id="u", participant_ep_ids=(0, 1)
    ))  # fmt: skip
    says("binding a wave", lambda: context.bind_forward_group(wave))
    for name, operations in (
        ("none", ()),
        ("no sequence", 5),
        ("twice", ("x", "x")),
        ("beside", ("x", "y")),
        ("live", ("b",)),
        ("unhashable", ([],)),
    ):
        says(name, lambda given=operations: context.replace_ep_wave_with_full_stage_owners(
            wave, operation_ids=given
        ))  # fmt: skip
    assert said == {
        "leave": f"cannot leave full-stage scope while other owners are active: {[first, third]!r}",
        "owners": "owner_tickets must be a sequence, got 7",
        "queued wave": f"cannot promote a ticket that is not active: {queued!r}",
        "bad sets": "participant_ep_ids must be 0 ... 1 in order, got (1, 0)",
        "bad transition": "participant_ep_ids must be a sequence, got None",
        "a wave's restore": f"cannot restore a ticket that is not active: {queued!r}",
        "second wave": f"cannot promote while an EP wave is active: {wave!r}",
        "promoting a wave": f"owner_tickets must be full-stage owners, got {wave!r}",
        "binding a wave": f"only a full-stage owner binds a forward group: {wave!r}",
        "none": "operation_ids must name at least one operation, got none",
        "no sequence": "operation_ids must be a sequence, got 5",
        "twice": "operation_ids must not repeat, got ('x', 'x')",
        "beside": "operation_ids must not exceed full_stage_capacity 3 with 2 other owners active, "
        "got ('x', 'y')",
        "live": "operation_id is already queued or active: 'b'",
        "unhashable": "operation_id must be hashable, got []",
    }


def make_wave(context, ticket, **given):
    return context.transition_active_scope(ticket, operation_id="w", scope=EP_WAVE, **given)


def test_the_constructor_says_what_it_needs():
    leasts = {"replica_id": 0, "stage_id": 0, "ep_size": 1, "full_stage_capacity": 1}
    for name, least in leasts.items():
        arguments = {"replica_id": 0, "stage_id": 0, "ep_size": 1, name: -1}
        with pytest.raises(ValueError, match=r".+") as caught:
            StageExecutionContext(**arguments)
        assert str(caught.value) == f"{name} must be an integer of at least {least}, got -1"


def test_what_is_asked_of_anything_is_answered_without_raising():
    context = make()
    ticket = context.enqueue_full_stage(operation_id="a")
    for thing in (None, "a", 3, [], foreign(admission_seq=5), foreign(operation_id=[])):
        assert not context.is_active(thing)
        assert not context.is_queued(thing)
        assert context.is_cancelled(thing) is False
    context.cancel(ticket)
    assert context.is_cancelled(ticket) is True


def test_a_new_context_has_capacity_one_and_the_adopted_rule():
    context = StageExecutionContext(replica_id=2, stage_id=3, ep_size=2)
    assert context.full_stage_capacity == 1
    assert context.rule == ADMISSION_RULES["ep_ordered"]
    assert not context.forward_group_bound
    assert (context.joinable_forward_group_id, context.forward_group_sealed) == (0, False)
    (ticket,) = admitted(context, "a")
    assert ticket == StageAdmissionTicket(2, 3, 0, "a", FULL_STAGE_WORLD, ())
    assert context.bind_forward_group(ticket) == 0
    assert context.forward_group_bound
    wave = make_wave(context, ticket, participant_ep_ids=[0, 1])
    assert wave == StageAdmissionTicket(2, 3, 1, "w", EP_WAVE, (0, 1))
    assert context.forward_group_sealed


def test_every_obstacle_is_told_at_once():
    context = make(capacity=1, rule="strict_fifo")
    (owner,) = admitted(context, "a")
    context.bind_forward_group(owner)
    wave = make_wave(context, owner, participant_ep_ids=(0, 1))
    head = context.enqueue_full_stage(operation_id="b")
    queued = context.enqueue_ep_wave(operation_id="v", participant_ep_ids=(0, 1))
    assert [(r.reason, r.blockers, r.mode) for r in context.refusals(head)] == [
        ("ep_wave_active", (wave,), "all"),
        ("sealed", (wave,), "all"),
    ]
    assert [(r.reason, r.blockers) for r in context.refusals(queued)] == [
        ("ep_wave_active", (wave,)),
        ("behind", (head,)),
    ]
    (restored,) = context.replace_ep_wave_with_full_stage_owners(wave, operation_ids=["a"])
    assert [(r.reason, r.blockers, r.mode) for r in context.refusals(head)] == [
        ("capacity", (restored,), "any"),
        ("sealed", (restored,), "all"),
    ]
    assert [(r.reason, r.blockers) for r in context.refusals(queued)] == [
        ("owners_active", (restored,)),
        ("behind", (head,)),
    ]


def test_a_wave_beside_an_owner_leaves_its_slot_to_the_capacity():
    """Promotion of some owners: the wave takes no owner's slot."""
    context = make(capacity=2)
    first, _ = admitted(context, "a", "b")
    context.replace_full_stage_owners_with_ep_wave(
        [first], operation_id="w", participant_ep_ids=(0, 1)
    )
    late = context.enqueue_full_stage(operation_id="c")
    assert [r.reason for r in context.refusals(late)] == ["ep_wave_active"]


def test_snapshots_hold_no_history_and_restore_everything_else():
    context = make(capacity=2)
    _, second = admitted(context, ("a", 0), ("b", 0))
    context.bind_forward_group(second)
    context.enqueue_ep_wave(operation_id=("v", 0), participant_ep_ids=(0, 1))
    snapshot = context.snapshot()
    assert snapshot == (
        ((FULL_STAGE_WORLD, ("a", 0)), (FULL_STAGE_WORLD, ("b", 0))),
        ((EP_WAVE, ("v", 0)),),
        True,
        False,
    )
    copy = make(capacity=2)
    gone = copy.enqueue_full_stage(operation_id="gone")
    copy.cancel(gone)
    tickets = copy.restore(snapshot)
    assert set(tickets) == {("a", 0), ("b", 0), ("v", 0)}
    assert copy.active_tickets == (tickets["a", 0], tickets["b", 0])
    assert copy.queued_tickets == (tickets["v", 0],)
    assert tickets["v", 0] == StageAdmissionTicket(0, 1, 2, ("v", 0), EP_WAVE, (0, 1))
    assert tickets["a", 0].participant_ep_ids == ()
    assert not copy.is_cancelled(gone)
    assert copy.joinable_forward_group_id == 0
    assert copy.enqueue_full_stage(operation_id="new").admission_seq == 3
    with pytest.raises(ValueError, match="already queued or active"):
        copy.enqueue_full_stage(operation_id=("a", 0))
    wave = copy.replace_full_stage_owners_with_ep_wave(
        copy.active_tickets, operation_id=("w", 0), participant_ep_ids=(0, 1)
    )
    sealed = copy.snapshot()
    assert (sealed.bound, sealed.sealed, sealed.active) == (True, True, ((EP_WAVE, ("w", 0)),))
    other = make(capacity=2)
    assert other.restore(sealed)["w", 0].participant_ep_ids == wave.participant_ep_ids
    assert (other.active_scope, other.joinable_forward_group_id) == (EP_WAVE, 1)
    assert other.forward_group_sealed
    unbound = make()
    unbound.restore(make().snapshot())
    assert (unbound.joinable_forward_group_id, unbound.forward_group_bound) == (0, False)


def test_an_operation_has_one_ticket_whichever_way_it_is_minted():
    context = make(capacity=3)
    first, _ = admitted(context, "a", "b")
    world = {"participant_ep_ids": (0, 1)}
    for call in (
        lambda: context.enqueue_ep_wave(operation_id="b", **world),
        lambda: context.replace_full_stage_owners_with_ep_wave([first], operation_id="b", **world),
        lambda: make_wave(context, first, participant_ep_ids=(0,)),
    ):
        before = observable(context)
        with pytest.raises(ValueError, match=r"already queued or active: 'b'|0 \.\.\. 1 in order"):
            call()
        assert observable(context) == before


def test_a_wave_stays_active_while_an_owner_beside_it_leaves():
    context = make(capacity=3)
    first, second = admitted(context, "a", "b")
    wave = context.replace_full_stage_owners_with_ep_wave(
        [first], operation_id="w", participant_ep_ids=(0, 1)
    )
    context.release(second)
    assert context.active_scope == EP_WAVE
    late = context.enqueue_full_stage(operation_id="c")
    assert [r.reason for r in context.refusals(late)] == ["ep_wave_active"]
    context.release(dataclasses.replace(wave))  # an equal ticket is the same ticket
    assert context.is_idle
    assert context.try_acquire(late)


def test_groups_are_numbered_on_and_the_seal_is_a_boolean():
    context = make()
    for group in range(3):
        (owner,) = admitted(context, "a")
        assert context.bind_forward_group(owner) == group
        wave = make_wave(context, owner, participant_ep_ids=(0, 1))
        assert context.forward_group_sealed is True
        assert context.joinable_forward_group_id == group + 1
        (owner,) = context.replace_ep_wave_with_full_stage_owners(wave, operation_ids=["a"])
        assert owner.participant_ep_ids == ()
        context.release(owner)
        assert context.forward_group_sealed is False


def test_a_transition_within_full_stage_scope_takes_no_participants():
    context = make()
    (owner,) = admitted(context, "a")
    with pytest.raises(ValueError, match=r"^participant_ep_ids must be a sequence, got 7$"):
        context.transition_active_scope(
            owner, operation_id="b", scope=FULL_STAGE_WORLD, participant_ep_ids=7
        )
    after = context.transition_active_scope(owner, operation_id="b", scope=FULL_STAGE_WORLD)
    assert after == StageAdmissionTicket(0, 1, 1, "b", FULL_STAGE_WORLD, ())
    assert context.active_tickets == (after,)
    assert not context.forward_group_sealed


def test_a_restored_wave_keeps_everybody_out():
    context = make()
    owners = admitted(context, "a", "b")
    context.replace_full_stage_owners_with_ep_wave(
        owners, operation_id="w", participant_ep_ids=(0, 1)
    )
    context.enqueue_full_stage(operation_id="c")
    copy = make()
    tickets = copy.restore(context.snapshot())
    assert [r.reason for r in copy.refusals(tickets["c"])] == ["ep_wave_active"]
    assert not copy.try_acquire(tickets["c"])
    copy.release(tickets["w"])
    assert copy.try_acquire(tickets["c"])
