"""A person's own rule from a file."""

import pytest

from models.rules import RuleError
from models.scenario import Scenario, ScenarioError
from verify.cli.checking import check_scenario

LIKE_EP_ORDERED = """
from frontier.tickets import EP_WAVE

class Mine:
    def blockers(self, ticket, queue, active):
        ahead = queue[:queue.index(ticket)]
        return [t for t in ahead if EP_WAVE in (t.scope, ticket.scope)]
"""
ANYBODY = """
class Mine:
    def blockers(self, ticket, queue, active):
        return []
"""
LATE_STRICT = """
class Mine:
    ticket_at = "attempt"
    def blockers(self, ticket, queue, active):
        return queue[:queue.index(ticket)]
"""
STAND_IN = """
class Mine:
    withdraws_joined = True
    def allows(self, lane, scheduler, context):
        return not scheduler.busy and (not scheduler.queue or context.forward_group_sealed)
"""


def reference(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return f"{path}:Mine"


def counts(**values):
    data = check_scenario(Scenario.of(values)).to_json()
    return data["verdict"], data["states"], data["transitions"], data["depth"]


@pytest.mark.parametrize(
    ("text", "twin"), [(LIKE_EP_ORDERED, "ep_ordered"), (LATE_STRICT, "late_ticket")]
)
def test_own_admission_rule_equals_the_built_in_one(tmp_path, text, twin):
    assert counts(admission=reference(tmp_path, text)) == counts(admission=twin)


def test_own_stand_in_rule_equals_the_built_in_one(tmp_path):
    own = counts(lanes=3, stages=1, stand_in=reference(tmp_path, STAND_IN))
    assert own == counts(lanes=3, stages=1, stand_in="withdraw_joined")


def test_a_rule_without_order_is_still_held_to_capacity_and_seal(tmp_path):
    assert counts(admission=reference(tmp_path, ANYBODY)) == counts(admission="ep_ordered")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no 'Mine'; it defines: x"),
        ("class Mine: pass", "no method blockers"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("def Mine(", "raised SyntaxError"),
        ("class Mine:\n  ticket_at = 'never'\n  def blockers(self, *a): ...", "ticket_at must be"),
    ],
)
def test_a_file_that_holds_no_rule_is_a_scenario_error(tmp_path, text, said):
    with pytest.raises(ScenarioError, match=said):
        Scenario.of({"admission": reference(tmp_path, text)})


def test_a_missing_file_is_a_scenario_error():
    with pytest.raises(ScenarioError, match=r"there is no file nowhere\.py"):
        Scenario.of({"admission": "nowhere.py:Mine"})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no')", r"raised ValueError: no \(mine.py, line 4\)"),
        ("return [1]", "blockers must return a list or tuple of tickets"),
    ],
)
def test_a_rule_that_fails_is_never_taken_for_a_core_error(tmp_path, body, said):
    text = f"\nclass Mine:\n    def blockers(self, *arguments):\n        {body}\n"
    with pytest.raises(RuleError, match=said):
        counts(admission=reference(tmp_path, text))


def test_a_rule_that_answers_otherwise_when_asked_again_is_refused(tmp_path):
    text = """
class Mine:
    asked = 0
    def blockers(self, ticket, queue, active):
        self.asked += 1
        return queue[:queue.index(ticket)] if self.asked % 2 else []
"""
    with pytest.raises(RuleError, match="to the same question"):
        counts(admission=reference(tmp_path, text))


def test_a_rule_with_a_memory_proves_nothing(tmp_path):
    """It admits anybody for the questions of the exploration, and only the head afterwards."""
    text = """
class Mine:
    asked = 0
    def blockers(self, ticket, queue, active):
        self.asked += 1
        return [] if self.asked < 1000 else list(queue[:queue.index(ticket)])
"""
    verdict, *_ = counts(admission=reference(tmp_path, text))
    assert verdict == "undetermined"


NEEDS = "class Mine:\n    def __init__(self, k): pass\n    def blockers(self, t, q, a): return []\n"
LIBRARY = "import json\nclass Mine:\n    def __init__(self):\n        json.loads('no')\n"


def test_a_rule_whose_class_needs_arguments_is_told_so_without_a_line_of_ours(tmp_path):
    with pytest.raises(ScenarioError, match=r"constructible without arguments.*'k'") as raised:
        Scenario.of({"admission": reference(tmp_path, NEEDS)})
    assert "line" not in str(raised.value).replace("mine.py", "")


@pytest.mark.parametrize(
    ("text", "where"),
    [(LIBRARY, r"\(mine.py, line 4\)"), ("class Mine:\n  def\n", r"\(mine.py, line 2\)$")],
)
def test_the_line_is_one_of_the_rules_own_file(tmp_path, text, where):
    with pytest.raises(ScenarioError, match=where):
        Scenario.of({"admission": reference(tmp_path, text)})


def test_an_attribute_error_of_the_rules_own_is_no_missing_name(tmp_path):
    text = "class Mine:\n    def __init__(self): self.nowhere.at\n"
    with pytest.raises(ScenarioError, match=r"no attribute 'nowhere' \(mine.py, line 2\)"):
        Scenario.of({"admission": reference(tmp_path, text)})


ENDS = "import sys\nclass Mine:\n    def blockers(self, *a): sys.exit(0)\n"
UNSHOWN = """
class Odd:
    def __repr__(self): raise ValueError
class Mine:
    def blockers(self, *a): return Odd()
"""
UNEQUAL = """
class Odd:
    def __eq__(self, other): raise ValueError("no")
class Mine:
    def blockers(self, *a): return [Odd()]
"""
SAYS_NOTHING = """
class Odd(Exception):
    def __str__(self): raise ValueError
class Mine:
    def blockers(self, *a): raise Odd
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENDS, r"raised SystemExit: 0 \(mine.py, line 3\)"),
        (UNSHOWN, "got a Odd .that cannot be shown"),
        (UNEQUAL, "raised ValueError: no"),
        (SAYS_NOTHING, "raised Odd: no message that can be shown"),
    ],
)
def test_no_answer_of_a_rule_ends_the_check_otherwise(tmp_path, text, said):
    with pytest.raises(RuleError, match=said):
        counts(admission=reference(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "import sys\nsys.exit(0)\n",
        "import sys\nclass Mine:\n    def __init__(self): sys.exit(0)\n",
        "class Mine:\n    blockers = property(lambda self: 1 / 0)\n",
        "class Mine:\n    ticket_at = property(lambda self: 1 / 0)\n    blockers = print\n",
    ],
)
def test_a_rule_that_fails_while_it_is_loaded_is_a_scenario_error(tmp_path, text):
    with pytest.raises(ScenarioError, match=r"raised (SystemExit|ZeroDivisionError)"):
        Scenario.of({"admission": reference(tmp_path, text)})


def test_a_rules_file_may_hold_dataclasses_and_import_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("def ahead(t, q): return q[:q.index(t)]\n")
    text = """
from __future__ import annotations
from dataclasses import dataclass
from neighbour_of_mine import ahead

@dataclass(frozen=True)
class Mine:
    width: int = 1
    def blockers(self, ticket, queue, active):
        return ahead(ticket, queue)
"""
    assert counts(admission=reference(tmp_path, text)) == counts(admission="strict_fifo")


def test_what_a_rule_prints_is_kept_out_of_the_results(tmp_path, capsys):
    assert counts(admission=reference(tmp_path, "print('here')\n" + ANYBODY))[0] == "holds"
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "here\n")


def test_withdraws_joined_as_a_method_is_refused_and_not_taken_for_true(tmp_path):
    text = STAND_IN.replace(
        "    withdraws_joined = True\n", "    def withdraws_joined(self): return False\n"
    )
    with pytest.raises(ScenarioError, match="withdraws_joined must be True or False"):
        Scenario.of({"stand_in": reference(tmp_path, text)})


def test_a_stand_in_rule_that_forgets_to_answer_is_refused(tmp_path):
    text = "class Mine:\n    def allows(self, lane, scheduler, context): pass\n"
    with pytest.raises(RuleError, match="allows returned None"):
        counts(stand_in=reference(tmp_path, text))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[context.cancel(t) for t in context.queued_tickets]", "cancel is out of bounds"),
        ("[context.try_acquire(t) for t in context.queued_tickets]", "try_acquire is out of"),
        ("context.asked = 1", "asked cannot be set"),
        ("context._queue", "_queue is out of bounds"),
    ],
)
def test_a_stand_in_rule_only_reads_the_context(tmp_path, body, said):
    text = STAND_IN.replace("        return", f"        {body}\n        return")
    with pytest.raises(RuleError, match=said):
        counts(stand_in=reference(tmp_path, text))


def test_a_stand_in_rule_that_clears_its_copy_changes_nothing(tmp_path):
    text = """
class Mine:
    withdraws_joined = True
    def allows(self, lane, scheduler, context):
        idle = not scheduler.busy and (not scheduler.queue or context.forward_group_sealed)
        scheduler.queue.clear()
        scheduler.running = None
        return idle
"""
    own = counts(lanes=3, stages=1, stand_in=reference(tmp_path, text))
    assert own == counts(lanes=3, stages=1, stand_in="withdraw_joined")


def test_a_stand_in_rule_that_answers_otherwise_when_asked_again_is_refused(tmp_path):
    text = """
class Mine:
    asked = 0
    def allows(self, lane, scheduler, context):
        self.asked += 1
        return self.asked % 2
"""
    with pytest.raises(RuleError, match="allows answered True, then False"):
        counts(stand_in=reference(tmp_path, text))
