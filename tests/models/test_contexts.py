"""The lanes exploration over foreign contexts, and over our own as if it were foreign."""

from dataclasses import replace

import pytest

from models.catalogue import find_case
from models.scenario import Scenario, ScenarioError
from tests.verify.contract.samples import foreign, without
from verify.cli.checking import check_scenario
from verify.cli.errors import EngineDisagreementError

OWN = "frontier.context:StageExecutionContext"

SHAPES = [
    Scenario(admission=admission, ties=ties)
    for admission in ("strict_fifo", "lane_aware", "ep_ordered", "late_ticket")
    for ties in (False, True)
] + [
    Scenario(lanes=3, stages=1, batches=(2, 2, 2), admission="strict_fifo"),
    Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open", stand_in="withdraw_joined"),
    Scenario(model="dense"),
    Scenario(stand_in="blocked_is_idle", rooms="by_phase", phases=(("prefill", "decode"),) * 2),
]


def outcome(scenario):
    data = check_scenario(scenario).to_json()
    names = ("verdict", "violation", "classification", "states", "transitions", "depth")
    return {name: data[name] for name in names} | {"reached": data["reached"]}


@pytest.mark.parametrize("scenario", SHAPES, ids=lambda s: str(s.to_compact()))
def test_our_own_context_as_a_foreign_one_gives_the_same_graph(scenario):
    assert outcome(replace(scenario, context=OWN)) == outcome(scenario)


@pytest.mark.parametrize("case", ["published-deadlock", "control-dense", "published-repair"])
def test_the_strict_revision_is_strict_fifo(case):
    scenario = find_case(case).scenario
    found = outcome(replace(scenario, context=foreign("second")))
    assert found == outcome(replace(scenario, admission="strict_fifo"))


@pytest.mark.parametrize("case", ["published-repair", "late-join-open", "three-stages-repair"])
def test_the_third_revision_is_ep_ordered(case):
    scenario = find_case(case).scenario
    assert outcome(replace(scenario, context=foreign("third"))) == outcome(scenario)


def test_the_first_revision_runs_with_the_capacity_it_has():
    scenario = Scenario(context=foreign("first"))
    assert any("capacity 1" in note for note in scenario.context_notes)
    assert outcome(scenario)["verdict"] == "violated"
    alone = Scenario(lanes=1, batches=(3,), context=foreign("first"))
    assert outcome(alone)["verdict"] == "holds"


def test_an_error_that_is_no_value_error_is_a_failing_state(tmp_path):
    path = tmp_path / "ctx.py"
    path.write_text(
        "from types import SimpleNamespace\n"
        "FULL_STAGE_WORLD, EP_WAVE = 'f', 'w'\n"
        "class Context:\n"
        "    def __init__(self, *, replica_id, stage_id, ep_size): pass\n"
        "    def enqueue_full_stage(self, *, operation_id):\n"
        "        return SimpleNamespace(\n"
        "            operation_id=operation_id, scope='f', admission_seq=0, stage_id=0)\n"
        "    def try_acquire(self, ticket): raise KeyError('lost')\n"
        "    def release(self, ticket): pass\n"
    )
    data = check_scenario(Scenario(context=f"{path}:Context")).to_json()
    assert data["violation"] == "core_error"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"context": "nowhere.py:C"}, "no file"),
        ({"context": OWN, "workload": "closed"}, "renames its batches"),
        ({"context": "builtins:object"}, "lacks enqueue_full_stage"),
    ],
)
def test_a_context_that_cannot_be_run_is_said_plainly(values, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario.of(values)


SEAL = ("forward_group_sealed", "joinable_forward_group_id")


@pytest.mark.parametrize("members", [SEAL[:1], SEAL, ("queued_tickets", "is_active", *SEAL)])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("admission", ["ep_ordered", "strict_fifo"])
def test_a_context_that_hides_its_seal_gets_the_verdict_of_one_that_shows_it(
    tmp_path, members, ties, admission
):
    scenario = Scenario(admission=admission, ties=ties)
    hiding = replace(scenario, context=without(tmp_path, *members))
    found, shown = outcome(hiding), outcome(scenario)
    for name in ("verdict", "violation", "classification", "depth"):
        assert found[name] == shown[name], name
    if members == SEAL[:1]:  # what may be joined tells the seal, which refusals are named by
        assert found["reached"] == shown["reached"]
    assert found["states"] >= shown["states"]
    assert any("has no forward_group_sealed" in note for note in hiding.context_notes)


FORGETFUL = """
from frontier.context import EP_WAVE, FULL_STAGE_WORLD, StageExecutionContext
asked = []
class Mine(StageExecutionContext):
    {hidden}
    def try_acquire(self, ticket):
        asked.append(ticket)
        return len(asked) % 4 > 0 and super().try_acquire(ticket)
"""


@pytest.mark.parametrize("hidden", ["forward_group_sealed = property()", "pass"])
def test_what_is_missing_is_named_before_the_code_is_accused(tmp_path, hidden):
    path = tmp_path / "mine.py"
    path.write_text(FORGETFUL.format(hidden=hidden))
    with pytest.raises(EngineDisagreementError, match="does not replay") as raised:
        check_scenario(Scenario(context=f"{path}:Mine"))
    text = str(raised.value)
    assert "note: the context is given the rule" in text
    named = "likely cause is that the context has no forward_group_sealed"
    assert (named in text) == (hidden != "pass")
    assert named not in text or text.index(named) < text.index("answers otherwise")


@pytest.mark.parametrize(
    ("body", "violation"),
    [
        ("queued_tickets = ()", "ticket_in_one_place"),
        ("def try_acquire(self, ticket): super().try_acquire(ticket)", "orphan_ticket"),
    ],
)
def test_a_context_that_keeps_a_ticket_out_of_its_queue_is_judged(tmp_path, body, violation):
    path = tmp_path / "mine.py"
    path.write_text(
        "from frontier.context import EP_WAVE, FULL_STAGE_WORLD, StageExecutionContext\n"
        f"class Mine(StageExecutionContext):\n    {body}\n"
    )
    assert outcome(Scenario(context=f"{path}:Mine"))["violation"] == violation
