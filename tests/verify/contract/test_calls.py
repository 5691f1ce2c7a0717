"""Calls as text, replays, scripts, and the shrinking of sequences."""

import subprocess
import sys

import pytest

from models.contract import own_implementation
from tests.verify.contract.samples import foreign
from verify.contract.check import check_contract
from verify.contract.clauses import CLAUSE
from verify.contract.client import Bounds, Client, Position
from verify.contract.errors import ContractInputError
from verify.contract.explore import Finding, replay
from verify.contract.loader import load
from verify.contract.operations import format_calls, parse_calls
from verify.contract.orders import ORDERS
from verify.contract.reference import ContextState, Reference
from verify.contract.session import Deviation, Profile
from verify.contract.shortest import shortest
from verify.contract.shrink import shrink
from verify.contract.walk import walk

EP = Reference(ORDERS["ep_ordered"], 2)


def test_every_call_of_a_client_survives_its_text_form():
    state = ContextState()
    for call in parse_calls("full 0.0; full 1.0; wave w0; try 0.0; try 1.0; bind 0.0"):
        state = EP.expect(state, call).after
    client, position = Client(Bounds()), Position(state)
    calls = (*client.effective(position), *client.ineffective(position))
    assert len(calls) > 60
    assert parse_calls(format_calls(calls)) == calls


@pytest.mark.parametrize(
    "text",
    ["", "jump 0.0", "full zero", "full 0.0 0.1", "promote 0.0 > 1.0", "wave w0 participants=odd"],
)
def test_a_text_that_is_no_call_sequence_is_refused(text):
    with pytest.raises(ContractInputError, match="replay"):
        parse_calls(text)


def test_a_walk_tells_each_step_and_ends_with_the_drain():
    calls = parse_calls("full 0.0; full 1.0; try 1.0; bind 1.0; shift 1.0 > w0; restore w0 > 1.1")
    result = walk(own_implementation("ep_ordered"), EP, Profile(2, 2), calls)
    assert result.deviation is None
    assert result.whole
    assert [step.outcome for step in result.steps][2] == "as expected (true)"


def test_a_walk_refuses_a_ticket_that_nobody_minted():
    with pytest.raises(ContractInputError, match="call 1"):
        walk(own_implementation("ep_ordered"), EP, Profile(2, 2), parse_calls("try 0.0"))


def test_shrinking_leaves_exactly_what_is_needed():
    implementation = load(foreign("second"))
    calls = parse_calls("full 1.0; cancel 1.0; full 0.0; full 1.1; wave w0; cancel w0; try 1.1")

    def run(sequence):
        return replay(implementation, EP, Profile(2, 2), sequence)

    long = Finding(Deviation("no_full_stage", "", ""), calls, Profile(2, 2))
    assert format_calls(shrink(long, run).calls) == "full 0.0; full 1.1; try 1.1"


def test_a_wave_that_is_queued_only_to_be_cancelled_goes_whole():
    implementation = load(foreign("second"))
    calls = parse_calls("full 2.0; wave w0; wave w1; cancel w0; cancel w1; full 0.2; try 0.2")
    long = Finding(Deviation("no_full_stage", "", ""), calls, Profile(2, 2))
    short = shrink(long, lambda sequence: replay(implementation, EP, Profile(2, 2), sequence))
    assert format_calls(short.calls) == "full 2.0; full 0.2; try 0.2"


def test_the_script_of_a_finding_runs_and_shows_what_was_observed(tmp_path):
    report = check_contract(load(foreign("second")), ORDERS["ep_ordered"], [Bounds(2, 2, 0, 2, 1)])
    (result,) = [r for r in report.clauses if r.status == "violated"]
    script = tmp_path / "finding.py"
    script.write_text(report.script(result))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "expected: returns True" in script.read_text()


def test_a_sequence_that_needs_all_its_calls_is_still_shortened():
    """A wave keeps the stage while lanes queue; without it five calls break the same clause."""
    calls = parse_calls(
        "full 2.0; try 2.0; promote 2.0 > w0; full 1.0; full 1.1; full 2.0; release w0; "
        "try 1.0; try 2.0"
    )
    implementation, order = own_implementation("strict_fifo"), ORDERS["lane_aware"]
    profile, reference = Profile(3, 2), Reference(order, 3)
    found = replay(implementation, reference, profile, calls)
    only_shrunk = shrink(found, lambda kept: replay(implementation, reference, profile, kept))
    short = shortest(found, implementation, order)
    assert len(only_shrunk.calls) > len(short.calls) == 5
    assert short.deviation.clause == found.deviation.clause == CLAUSE["busy_lane"].key
