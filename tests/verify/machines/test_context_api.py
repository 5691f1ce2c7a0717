"""The context machine: it passes what is right, finds what is wrong, and gets to deep states."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from models.contract import own_implementation
from tests.verify.contract.samples import foreign
from verify.contract.loader import load
from verify.contract.operations import parse_calls
from verify.contract.orders import ORDERS
from verify.machines.context_api import context_machine
from verify.machines.profiles import PROFILES

CI = PROFILES["ci"]


PRELUDE = """
import json
from hypothesis.stateful import run_state_machine_as_test
from models.contract import own_implementation
from tests.verify.contract.samples import foreign
from verify.contract.loader import load
from verify.contract.orders import ORDERS
from verify.machines.context_api import INTERESTING, context_machine
from verify.machines.profiles import PROFILES
"""


def alone(program):
    """Run a program in a fresh interpreter and return what it prints.

    Hypothesis draws constants from every module that is loaded, so that what a machine visits
    within other tests depends on which of them ran before.
    """
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered"])
def test_our_context_under_each_rule_and_interesting_states_are_common(rule):
    printed = alone(f"""
machine = context_machine(own_implementation({rule!r}), ORDERS[{rule!r}])
run_state_machine_as_test(machine, settings=PROFILES["ci"])
runs = machine.reached["runs"]
print(json.dumps({{mark: machine.reached[mark] / runs for mark in INTERESTING}}))
""")
    shares = json.loads(printed)
    assert len(shares) == 6
    assert all(share >= 0.1 for share in shares.values()), shares


def test_a_correct_foreign_context():
    machine = context_machine(load(foreign("third")), ORDERS["ep_ordered"])
    run_state_machine_as_test(machine, settings=settings(CI, max_examples=60))


def test_a_failure_prints_the_shortest_calls_as_python():
    text = alone("""
machine = context_machine(load(foreign("second")), ORDERS["ep_ordered"])
try:
    run_state_machine_as_test(machine, settings=PROFILES["ci"])
except AssertionError as error:
    print(error)
""")
    assert "AC-59" in text
    calls = re.search(r'--replay "(.*)"', text).group(1)
    assert len(parse_calls(calls)) == 3
    assert "print(context.try_acquire(" in text
    compile(text[text.index('"""AC-59') :], "finding", "exec")


WRONG_RULE = {
    # rule of the context, rule of the contract -> broken clause, calls of a shortest sequence
    ("strict_fifo", "lane_aware"): ("AC-58", 5),
    ("strict_fifo", "ep_ordered"): ("AC-59", 3),
    ("lane_aware", "strict_fifo"): ("AC-54", 5),
    ("lane_aware", "ep_ordered"): ("AC-59", 3),
    ("ep_ordered", "strict_fifo"): ("AC-54", 3),
    ("ep_ordered", "lane_aware"): ("AC-57", 3),
}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_another_rule_is_told_apart_by_a_shortest_sequence(seed):
    """Whatever is drawn, the clause and the length are those of the exhaustive check."""
    printed = alone(f"""
from hypothesis import core, settings
core.global_force_seed = {seed}
texts = []
for own, rule in {list(WRONG_RULE)!r}:
    machine = context_machine(own_implementation(own), ORDERS[rule])
    try:
        run_state_machine_as_test(machine, settings=settings(PROFILES["ci"], derandomize=False))
    except AssertionError as error:
        texts.append(str(error))
    else:
        texts.append("nothing")
print(json.dumps(texts))
""")
    found = {}
    for pair, text in zip(WRONG_RULE, json.loads(printed), strict=True):
        assert text != "nothing", pair
        calls = parse_calls(re.search(r'--replay "(.*)"', text).group(1))
        found[pair] = (text.partition(":")[0], len(calls))
    assert found == WRONG_RULE


@pytest.mark.heavy
@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered"])
def test_our_context_thoroughly(rule):
    machine = context_machine(own_implementation(rule), ORDERS[rule])
    run_state_machine_as_test(machine, settings=PROFILES["thorough"])
