"""The context machine: it passes what is right, finds what is wrong, and gets to deep states."""

import re

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from models.contract import own_implementation
from tests.verify.contract.samples import foreign
from verify.contract.loader import load
from verify.contract.operations import parse_calls
from verify.contract.orders import ORDERS
from verify.machines.context_api import INTERESTING, context_machine
from verify.machines.profiles import PROFILES

CI = PROFILES["ci"]


@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered"])
def test_our_context_under_each_rule_and_interesting_states_are_common(rule):
    machine = context_machine(own_implementation(rule), ORDERS[rule])
    run_state_machine_as_test(machine, settings=CI)
    runs = machine.reached["runs"]
    shares = {mark: machine.reached[mark] / runs for mark in INTERESTING}
    assert all(share >= 0.05 for share in shares.values()), shares


def test_a_correct_foreign_context():
    machine = context_machine(load(foreign("third")), ORDERS["ep_ordered"])
    run_state_machine_as_test(machine, settings=settings(CI, max_examples=60))


def test_a_failure_prints_the_shortest_calls_as_python(tmp_path):
    machine = context_machine(load(foreign("second")), ORDERS["ep_ordered"])
    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(machine, settings=CI)
    text = str(caught.value)
    assert "AC-59" in text
    calls = re.search(r'--replay "(.*)"', text).group(1)
    assert len(parse_calls(calls)) == 3
    assert "print(context.try_acquire(" in text
    compile(text[text.index('"""AC-59') :], "finding", "exec")


@pytest.mark.heavy
@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered"])
def test_our_context_thoroughly(rule):
    machine = context_machine(own_implementation(rule), ORDERS[rule])
    run_state_machine_as_test(machine, settings=PROFILES["thorough"])
