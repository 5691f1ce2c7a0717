"""Implementations that a hostile maintainer writes: no traceback, no wrong verdict, plain words."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.verify.contract.samples import FOREIGN
from verify.cli import app
from verify.contract.check import SHARED, UNREPEATED, check_contract
from verify.contract.client import Bounds
from verify.contract.errors import ContractInputError
from verify.contract.loader import load
from verify.contract.orders import ORDERS

STRANGE = FOREIGN / "third" / "strange.py"
SMALL = [Bounds(2, 1, 1, 1, 2)]


def checked(name, bounds=SMALL):
    report = check_contract(load(f"{STRANGE}:{name}"), ORDERS["ep_ordered"], bounds)
    return report, {r.clause.id for r in report.clauses if r.status == "violated"}


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("EndsTheProgramOnRelease", {"AC-23", "AC-43", "AC-45", "AC-52"}),
        ("Truthy", {"AC-17", "AC-55"}),
        ("NoTickets", {"AC-05"}),
        ("MethodsForProperties", {"AC-09", "AC-52"}),
    ],
)
def test_what_is_broken_is_named(name, broken):
    report, found = checked(name)
    assert broken <= found
    assert report.verdict == "violated"


@pytest.mark.parametrize("name", ["Generates", "Awaits", "PropertyForMethod"])
def test_an_answer_that_is_none_breaks_admission(name):
    """Also no warning that something was never awaited: warnings are errors in these tests."""
    report, found = checked(name)
    assert {"AC-17", "AC-44"} <= found
    (head,) = [r for r in report.clauses if r.clause.id == "AC-17"]
    assert head.finding.deviation.observed.startswith("raises TypeError")


@pytest.mark.parametrize(
    "name", ["CopiesAreTheSame", "CopiesAreNew", "CallsTheOriginal", "Slots", "Talks"]
)
def test_what_is_right_but_copied_wrongly_is_not_accused(name, capsys):
    report, found = checked(name)
    assert not found
    copied = load(f"{FOREIGN / 'third' / 'frontier' / 'execution' / 'stage_context.py'}:"
                  "StageExecutionContext")  # fmt: skip
    plain = check_contract(copied, ORDERS["ep_ordered"], SMALL)
    assert report.explorations[0].states == plain.explorations[0].states
    assert ("replayed" in "".join(report.notes)) == (name != "Talks")
    assert capsys.readouterr().out == ""


def test_tickets_that_are_not_values_are_the_only_thing_wrong():
    _, found = checked("TicketsThatRemember")
    assert found == {"AC-07"}


def test_state_shared_between_instances_is_found_and_named():
    report, found = checked("SharesState")
    assert found == {"AC-39"}
    assert SHARED in report.notes


def test_a_memory_that_no_view_shows_is_found_by_long_runs():
    report, found = checked("Forgets")
    assert found == {"AC-09"}
    (result,) = [r for r in report.clauses if r.status == "violated"]
    assert sum(call.kind in ("full", "wave") for call in result.finding.calls) > 25
    assert report.explorations[0].complete


def test_reading_that_changes_what_is_read_is_found():
    _, found = checked("ChangesOnRead", [Bounds(2, 2, 1, 2, 2)])
    assert {"AC-17", "AC-51"} <= found


def test_chance_is_said_to_be_chance():
    """Three checks of four notice it; what one finds may by chance be found again."""
    for _ in range(12):
        report, found = checked("Guesses")
        assert found
        if UNREPEATED in report.notes:
            return
    pytest.fail("twelve checks took guesses for answers")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EndsTheProgramWhenMade", "the constructor refuses .* SystemExit: 0"),
        ("factory", "no class 'factory' .but a function of this name.; its classes: "),
        ("Nobody", "no class 'Nobody'; its classes: .* and \\d+ more$"),
    ],
)
def test_what_is_no_context_is_bad_input(name, message):
    with pytest.raises(ContractInputError, match=message):
        load(f"{STRANGE}:{name}")


def run(*args):
    return CliRunner().invoke(app, args)


@pytest.mark.parametrize("name", ["Anything", "OnlyData", "TicketsWithoutEquality"])
def test_the_command_reports_what_it_can_of_anything(name):
    result = run("contract", "--impl", f"{STRANGE}:{name}", "--max-tickets", "2", "--waves", "1")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("violated: 56 clauses: ")


def test_what_an_implementation_prints_is_not_in_the_result(tmp_path):
    words = ("contract", "--impl", f"{STRANGE}:Talks", "--max-tickets", "2", "--waves", "1")
    assert json.loads(run(*words, "--capacity", "1", "--json", "-").stdout)["states"] > 0


TINY = ("--lanes", "2", "--stages", "1", "--batches", "1")


@pytest.mark.parametrize(
    "name",
    [
        "EndsTheProgramOnRelease",
        "Generates",
        "Awaits",
        "PropertyForMethod",
        "NoTickets",
        "TicketsWithoutEquality",
    ],
)
def test_lanes_over_a_broken_context_end_in_a_failing_state(name):
    result = run("check", "--context", f"{STRANGE}:{name}", *TINY)
    assert result.exit_code == 1
    assert "violated: core_error" in result.output


@pytest.mark.parametrize("name", ["Truthy", "Talks", "TicketsThatRemember"])
def test_lanes_over_a_usable_context_complete(name):
    result = run("check", "--context", f"{STRANGE}:{name}", *TINY)
    assert result.exit_code == 0
    assert "holds: every timing completes" in result.output


@pytest.mark.parametrize("name", ["SharesState", "CopiesAreNew", "CallsTheOriginal", "Guesses"])
def test_lanes_over_a_context_that_cannot_be_trusted_prove_nothing(name):
    result = run("check", "--context", f"{STRANGE}:{name}", "--lanes", "2", "--stages", "1")
    assert result.exit_code in (1, 3)
    assert "holds: " not in result.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("EndsTheProgramWhenMade", "the constructor refuses"),
        ("MethodsForProperties", "newly made: what the context shows cannot be read"),
        ("Anything", "newly made: what the context shows cannot be read"),
        ("OnlyData", "lacks enqueue_full_stage, try_acquire, release"),
        ("Slots", "the lanes exploration needs copies"),
        ("CopiesAreTheSame", "its copy is the context itself"),
        ("factory", "but a function of this name"),
    ],
)
def test_lanes_over_no_context_are_bad_input(name, message):
    result = run("check", "--context", f"{STRANGE}:{name}", *TINY)
    assert message in str(result.exception)


def test_the_file_of_strange_contexts_is_complete():
    """Every class of the file is in a test of this module."""
    names = {line.split()[1].split("(")[0].rstrip(":") for line in STRANGE.read_text().splitlines()
             if line.startswith("class ")}  # fmt: skip
    text = Path(__file__).read_text()
    untested = {name for name in names if f'"{name}"' not in text and f":{name}" not in text}
    assert not untested
