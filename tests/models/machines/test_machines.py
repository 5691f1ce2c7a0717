"""Machines over the core's own handlers: the repaired rules hold, broken ones are caught."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from models.machines.lanes import LanesMachine, lanes_machine
from models.machines.waves import WavesMachine
from verify.machines.profiles import PROFILES

CI = settings(PROFILES["ci"], max_examples=80)


@pytest.mark.parametrize("machine", [LanesMachine, WavesMachine])
def test_the_repaired_rules_hold_and_interesting_states_are_common(machine):
    machine.reached.clear()
    run_state_machine_as_test(machine, settings=CI)
    runs = machine.reached["runs"]
    shares = {mark: machine.reached[mark] / runs for mark in machine.interesting}
    assert all(share >= 0.05 for share in shares.values()), shares


@pytest.mark.parametrize(
    ("admission", "stand_in", "most_instants"),
    [("strict_fifo", "withdraw_joined", 7), ("ep_ordered", "standard", 12)],
)
def test_a_drained_run_is_found_and_printed_as_python(admission, stand_in, most_instants):
    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(
            lanes_machine(admission, stand_in), settings=settings(CI, max_examples=300)
        )
    text = str(caught.value)
    assert text.startswith("drained")
    code = text.split("\n", 1)[1]
    assert code.count("run.fire(") <= most_instants
    names = {}
    exec(compile(code, "finding", "exec"), names)
    assert not names["run"].pending
    assert not names["run"].system.is_complete


@pytest.mark.heavy
@pytest.mark.parametrize("machine", [LanesMachine, WavesMachine])
def test_the_repaired_rules_thoroughly(machine):
    run_state_machine_as_test(machine, settings=PROFILES["thorough"])
