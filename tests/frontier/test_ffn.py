"""PROTOCOL.md section 7: counts, order and errors of the DECODE_FFN stage."""

from itertools import combinations

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.events import DENSE, EXPERT, Batch, Event
from frontier.ffn import FfnConfig, FfnReplica, ScriptedGroups

KIND = {"d": DENSE, "e": EXPERT}


def replica_of(groups, ep_size=2, rule="ep_ordered", full_stages=1):
    scripts = [[KIND[word] for word in producer.split()] for producer in groups.split(";")]
    config = FfnConfig(ep_size, full_stages, ADMISSION_RULES[rule])
    return FfnReplica(config, ScriptedGroups(scripts))


def settle(replica, pending, fired):
    """Fire events of one instant, then the urgent ones; return what is pending afterwards."""
    left = [event for at, event in enumerate(pending) if at not in fired]
    urgent = []

    def add(events):
        for event in events:
            (urgent if event.is_urgent else left).append(event)

    for at in fired:
        add(replica.handle(pending[at]))
    while urgent:
        add(replica.handle(urgent.pop(0)))
    return tuple(left)


def explore(replica, ties):
    """States and transitions by the plainest search that section 5 allows."""
    pending = tuple(replica.start())
    first = (replica.snapshot(), pending)
    seen, todo, transitions, ends = {first}, [first], 0, []
    while todo:
        snapshot, pending = todo.pop()
        sizes = range(1, len(pending) + 1) if ties else (1,)
        actions = {}
        for size in sizes:
            for fired in combinations(range(len(pending)), size):
                actions.setdefault(tuple(pending[at] for at in fired), fired)
        if not pending:
            replica.restore(snapshot)
            ends.append(replica.is_complete)
        for fired in actions.values():
            replica.restore(snapshot)
            left = settle(replica, pending, fired)
            state = (replica.snapshot(), left)
            transitions += 1
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return len(seen), transitions, ends


@pytest.mark.parametrize("rule", ["strict_fifo", "ep_ordered", "lane_aware"])
@pytest.mark.parametrize(
    ("groups", "off", "on"),
    [
        ("d e", (9, 10), (9, 12)),
        ("e d", (12, 17), (12, 25)),
        ("d e;e d", (97, 191), (99, 362)),
    ],
)
def test_reference_counts(groups, off, on, rule):
    for ties, expected in ((False, off), (True, on)):
        states, transitions, ends = explore(replica_of(groups, rule=rule), ties)
        assert (states, transitions) == expected
        assert ends
        assert all(ends)


def test_full_full_wave_full_keeps_the_wave_in_its_place():
    """Section 2 and ep_ordered: the second dense group runs before the wave, the last after it."""
    replica = replica_of("d d e d")
    pending = tuple(replica.start())
    order = []
    while pending:
        # groups first, so that the whole FIFO stands before anything ends
        at = next((i for i, e in enumerate(pending) if e.kind == "group"), 0)
        if pending[at].kind in ("stage_end", "combine_end"):
            order.append((pending[at].batch.number, pending[at].batch.phase))
        pending = settle(replica, pending, (at,))
    assert order == [(0, DENSE), (1, DENSE), (2, EXPERT), (3, DENSE)]


def test_a_second_full_stage_producer_shows_the_rule():
    """With two full-stage schedulers on one context the rules differ."""
    counts = {
        rule: explore(replica_of("d d;d d", rule=rule, full_stages=2), ties=True)[:2]
        for rule in ("strict_fifo", "ep_ordered")
    }
    assert counts["strict_fifo"] != counts["ep_ordered"]


def test_late_ticket_completes():
    _, _, ends = explore(replica_of("d e;e d", rule="late_ticket"), ties=True)
    assert all(ends)


def test_unknown_kind_is_named():
    with pytest.raises(ValueError, match="producer 1 must be dense or expert, got 'x'"):
        ScriptedGroups([["dense"], ["x"]])


def test_groups_are_sent_to_the_stage_of_their_script():
    assert ScriptedGroups([[DENSE], [], [EXPERT]]).start() == [
        Event("group", 0, None, 0), Event("group", 2, None, 0),
    ]  # fmt: skip
    assert ScriptedGroups([[DENSE]], stage=3).following(0) == [Event("group", 0, None, 3)]


def test_a_wave_ends_with_a_combine_that_belongs_to_no_scheduler():
    replica = replica_of("e")
    children = settle(replica, tuple(replica.start()), (0,))
    assert [child.lane for child in children] == [0, 1]
    assert replica.handle(children[1]) == []
    assert replica.handle(children[0]) == [Event("combine_end", -1, Batch(-1, 0, EXPERT), 0)]


@pytest.mark.parametrize(("capacity", "run"), [(1, [2]), (2, [2, 3])])
def test_producers_share_the_full_stage_schedulers_up_to_the_capacity(capacity, run):
    config = FfnConfig(2, full_stages=2, capacity=capacity)
    replica = FfnReplica(config, ScriptedGroups([[DENSE], [DENSE]]))
    pending = settle(replica, tuple(replica.start()), (0, 1))
    assert [event.lane for event in pending] == run
    assert [s.busy or bool(s.queue) for s in replica.schedulers] == [False, False, True, True]


def test_a_snapshot_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="zip"):
        replica_of("d e", ep_size=3).restore(replica_of("d e").snapshot())
