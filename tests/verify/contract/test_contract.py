"""The contract: our context under each rule, foreign implementations, and every clause reached."""

import dataclasses
import shlex
import shutil

import pytest

from models.contract import own_implementation
from tests.verify.contract.samples import FOREIGN, foreign
from verify.contract.check import check_contract
from verify.contract.clauses import CLAUSES, RULES, clauses_of
from verify.contract.client import Bounds
from verify.contract.errors import ContractInputError
from verify.contract.loader import load
from verify.contract.operations import format_calls
from verify.contract.orders import ORDERS
from verify.contract.report import to_junit

SMALL = [Bounds(3, 2, 1, 2, 2)]

WRONG_RULE = {
    # (rule of the implementation, rule of the contract): broken ordering clauses -> shortest calls
    ("strict_fifo", "lane_aware"): {"AC-58": 5},
    ("strict_fifo", "ep_ordered"): {"AC-59": 3},
    ("lane_aware", "strict_fifo"): {"AC-54": 5},
    ("lane_aware", "ep_ordered"): {"AC-59": 3},
    ("ep_ordered", "strict_fifo"): {"AC-54": 3},
    ("ep_ordered", "lane_aware"): {"AC-57": 3},
}


def broken(report):
    return {r.clause.id: r for r in report.clauses if r.status != "holds"}


@pytest.mark.parametrize("rule", ["strict_fifo", "lane_aware", "ep_ordered"])
def test_our_context_keeps_every_clause_of_its_rule(rule):
    report = check_contract(own_implementation(rule), ORDERS[rule], SMALL)
    assert not broken(report)
    assert report.verdict == "holds"
    assert report.explorations[0].complete


@pytest.mark.parametrize(("own", "contract"), WRONG_RULE)
def test_under_the_wrong_rule_exactly_the_ordering_clauses_fail(own, contract):
    report = check_contract(own_implementation(own), ORDERS[contract], [Bounds(3, 2, 1, 2, 1)])
    found = broken(report)
    lengths = {name: len(result.finding.calls) for name, result in found.items()}
    assert lengths == WRONG_RULE[own, contract]
    assert {result.clause.group for result in found.values()} == {"order"}
    assert report.verdict == "violated"


def test_late_ticket_is_strict_fifo_as_far_as_the_context_goes():
    bounds = [Bounds(2, 2, 1, 2, 1)]
    report = check_contract(own_implementation("late_ticket"), ORDERS["strict_fifo"], bounds)
    assert not [r for r in report.clauses if r.status == "violated"]


def test_a_correct_foreign_context_passes_clause_by_clause():
    report = check_contract(load(foreign("third")), ORDERS["ep_ordered"], SMALL)
    assert not broken(report)
    assert report.verdict == "holds"


def test_the_strict_revision_fails_where_strict_fifo_fails():
    implementation = load(foreign("second"))
    bounds = [Bounds(3, 2, 1, 2, 1)]
    found = broken(check_contract(implementation, ORDERS["ep_ordered"], bounds))
    assert list(found) == ["AC-59"]
    assert format_calls(found["AC-59"].finding.calls) == "full 0.0; full 0.1; try 0.1"
    strict = check_contract(implementation, ORDERS["strict_fifo"], [Bounds(2, 2, 1)])
    assert not [r for r in strict.clauses if r.status == "violated"]


def test_what_the_first_revision_lacks_is_reported_clause_by_clause():
    report = check_contract(load(foreign("first")), ORDERS["strict_fifo"], SMALL)
    statuses = {r.clause.id: r.status for r in report.clauses}
    assert set(statuses.values()) == {"holds", "missing"}
    by_id = {r.clause.id: r for r in report.clauses}
    assert by_id["AC-04"].missing == ("full_stage_capacity",)
    assert by_id["AC-26"].missing == ("bind_forward_group", "joinable_forward_group_id")
    assert statuses["AC-23"] == statuses["AC-34"] == "holds"
    assert report.exit_code == 1


def test_a_bound_that_reaches_too_little_never_counts_as_kept():
    report = check_contract(own_implementation("ep_ordered"), ORDERS["ep_ordered"], [Bounds(1)])
    unreached = {r.clause.id for r in report.clauses if r.status == "unreached"}
    assert {"AC-18", "AC-59"} <= unreached
    assert report.verdict == "undetermined"
    assert report.exit_code == 3


def test_a_state_limit_leaves_the_verdict_undetermined():
    report = check_contract(
        own_implementation("ep_ordered"), ORDERS["ep_ordered"], [Bounds(5)], max_states=800
    )
    assert not report.explorations[0].complete
    assert report.verdict == "undetermined"


def test_clauses_are_numbered_without_gaps_and_each_rule_has_its_order():
    assert [clause.number for clause in CLAUSES] == list(range(1, len(CLAUSES) + 1))
    for rule in RULES:
        assert any(clause.group == "order" for clause in clauses_of(rule))
    assert all(dataclasses.is_dataclass(clause) and clause.text for clause in CLAUSES)


def test_junit_has_a_case_per_clause():
    report = check_contract(own_implementation("ep_ordered"), ORDERS["strict_fifo"], [Bounds(2)])
    text = to_junit([report])
    assert text.count("<testcase ") == len(report.clauses)
    assert 'name="AC-54"' in text
    assert "frontier-verify contract --own-rule" not in text  # the rule was not said to be its own
    assert "--replay" in text


def test_a_replay_command_can_be_pasted_whatever_the_file_is_called():
    report = check_contract(own_implementation("ep_ordered"), ORDERS["strict_fifo"], [Bounds(2)])
    report = dataclasses.replace(report, implementation="my rules/it's.py:C", own_rule=None)
    (broken,) = [r for r in report.clauses if r.finding is not None and r.clause.group == "order"]
    words = shlex.split(report.replay_command(broken))
    assert words[words.index("--impl") + 1] == "my rules/it's.py:C"
    assert words[words.index("--replay") + 1].startswith("full ")


def _variant(tmp_path, attribute):
    """The third revision in one folder, with one more attribute."""
    package = tmp_path / "frontier"
    shutil.copytree(FOREIGN / "third" / "frontier", package)
    path = package / "execution" / "stage_context.py"
    source = path.read_text()
    line = "        self._fifo = deque()\n"
    assert source.count(line) == 1
    path.write_text("import threading\n" + source.replace(line, line + attribute))
    return load(f"{path}:StageExecutionContext")


def test_a_context_with_a_lock_is_copied(tmp_path):
    implementation = _variant(tmp_path, "        self._lock = threading.RLock()\n")
    assert implementation.copyable
    report = check_contract(implementation, ORDERS["ep_ordered"], [Bounds(2, 2, 1)])
    assert not [r for r in report.clauses if r.status == "violated"]


def test_a_context_that_cannot_be_copied_is_replayed_with_the_same_counts(tmp_path):
    implementation = _variant(tmp_path, "        self._numbers = (n for n in range(9))\n")
    assert not implementation.copyable
    assert "replayed" in implementation.notes[0]
    bounds = [Bounds(2, 2, 1)]
    replayed = check_contract(implementation, ORDERS["ep_ordered"], bounds).explorations[0]
    copied = check_contract(load(foreign("third")), ORDERS["ep_ordered"], bounds).explorations[0]
    assert (replayed.states, replayed.transitions) == (copied.states, copied.transitions)
    assert not replayed.findings


def test_without_the_questions_the_rest_is_still_judged():
    whole = load(foreign("second"))
    asked = {"is_active", "is_queued", "is_cancelled"}
    implementation = dataclasses.replace(whole, members=whole.members - asked)
    found = broken(check_contract(implementation, ORDERS["ep_ordered"], [Bounds(3, 2, 1, 2, 2)]))
    assert {name for name, r in found.items() if r.status == "missing"} == {
        "AC-10",
        "AC-13",
        "AC-24",
    }
    assert {name for name, r in found.items() if r.status == "violated"} == {"AC-59"}


def test_an_implementation_that_is_no_name_is_bad_input():
    with pytest.raises(ContractInputError, match=r"is named FILE\.py:Class, not by 7"):
        load(7)
