"""Instants: listed for few pending events, produced one by one for many; the same either way."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontier.events import ATTENTION_DONE, Event
from models import quiescent
from models.quiescent import ProtocolState, enabled_actions

pending = st.lists(st.integers(0, 3), max_size=8).map(
    lambda lanes: tuple(Event(ATTENTION_DONE, lane) for lane in lanes)
)


@given(pending)
def test_many_instants_are_those_of_the_list(events):
    state = ProtocolState((), events)
    listed = list(enabled_actions(state, ties=True))
    lazily = quiescent._ManyInstants(events)
    produced = list(lazily)
    assert sorted(produced) == sorted(listed)
    assert len(lazily) == len(listed)
    assert [lazily[i] for i in range(len(listed))] == produced
    assert lazily[1:3] == tuple(produced[1:3])


def test_forty_events_are_not_listed():
    events = tuple(Event(ATTENTION_DONE, lane) for lane in range(40))
    actions = enabled_actions(ProtocolState((), events), ties=True)
    assert len(actions) == 2**40 - 1
    assert list(itertools.islice(actions, 2)) == [(0,), (1,)]
    with pytest.raises(IndexError):
        actions[-1]


def test_no_instant_fires_equal_events_twice():
    same = Event("request", 0)
    assert list(enabled_actions(ProtocolState((), (same, same)), ties=True)) == [(0,), (0, 1)]
