"""What an object remembers, as a value."""

import copy
import itertools
import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field

import pytest

from verify.contract.memory import memory


@dataclass(frozen=True, slots=True)
class Ticket:
    number: int


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


@dataclass
class Context:
    queue: list = field(default_factory=list)
    extra: object = None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, True),
        (0.0, -0.0),
        ((1,), [1]),
        ([1], deque([1])),
        ({1: 2, 3: 4}, {3: 4, 1: 2}),
        ({1, 2}, {1, 3}),
        (Ticket(1), Ticket(2)),
        (Slotted(1), Slotted(2)),
        (deque([1], 2), deque([1], 3)),
        (OrderedDict(a=1), OrderedDict(a=2)),
        (Context([Ticket(1)]).queue.append, Context([Ticket(2)]).queue.append),
        (len, max),
    ],
)
def test_values_that_differ_are_told_apart_and_copies_are_not(one, other):
    assert memory(Context(extra=one)) != memory(Context(extra=other))
    for value in (one, other):
        again = memory(copy.deepcopy(Context(extra=value)))
        assert again == memory(Context(extra=value))
        assert hash(again) == hash(memory(Context(extra=value)))


def test_a_shared_list_is_not_two_equal_ones():
    shared = [1]
    assert memory((shared, shared)) != memory(([1], [1]))
    ring = Context()
    ring.extra = ring
    assert memory(ring) == memory(copy.deepcopy(ring))


def test_sets_have_no_order():
    forth, back = set(), set()
    for number in range(50):
        forth.add(str(number))
        back.add(str(49 - number))
    assert memory(forth) == memory(back)


def test_locks_say_nothing_and_what_cannot_be_read_equals_only_itself():
    assert memory(threading.Lock()) == memory(threading.Lock())
    one, other = (n for n in (1,)), (n for n in (1,))
    assert memory(one) == memory(one)
    assert memory(one) != memory(other)


def test_what_is_kept_is_not_looked_into():
    rule = Context()
    before = memory((rule,), [rule])
    rule.queue.append(1)
    assert memory((rule,), [rule]) == before
    assert memory((rule,)) != before


def test_a_hidden_counter_is_seen():
    one, other = itertools.count(), itertools.count()
    next(other)
    assert memory(one) != memory(other)
