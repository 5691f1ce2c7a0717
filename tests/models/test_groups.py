"""Queued EP waves: counts of section 7, order, and what a change of rule can show (issue 7)."""

import json
from itertools import product

import pytest
from typer.testing import CliRunner

from models.groups import GroupScenario
from models.quiescent import QuiescentModel
from models.scenario import ScenarioError
from models.subjects import scenario_of
from verify.cli import app
from verify.cli.checking import check_scenario
from verify.cli.same_as import check_same_as
from verify.equality import Differ, Undecided, compare
from verify.limits import Limits

RULES = ("strict_fifo", "lane_aware", "ep_ordered", "late_ticket")


def scripts(most):
    """Every order of up to ``most`` groups from one or two producers."""
    for count in range(1, most + 1):
        for kinds in product("de", repeat=count):
            yield ",".join(kinds)
            for cut in range(1, count):
                yield ",".join(kinds[:cut]) + ";" + ",".join(kinds[cut:])


def scenario(groups, **fields):
    return GroupScenario.of({"groups": groups, **fields})


def assert_in_order(groups, **fields):
    data = check_scenario(scenario(groups, **fields)).to_json()
    assert data["verdict"] == "holds", (groups, fields, data["explanation"])
    names = {row["property"] for row in data["liveness"]}
    assert names == {"progress", "starvation", "wave_order"}
    return data


@pytest.mark.parametrize(("groups", "ties", "states", "transitions"), [
    ("d e", False, 9, 10), ("d e", True, 9, 12),
    ("e d", False, 12, 17), ("e d", True, 12, 25),
    ("d e ; e d", False, 97, 191), ("d e ; e d", True, 99, 362),
])  # fmt: skip
def test_counts_of_section_7(groups, ties, states, transitions):
    for rule in ("strict_fifo", "ep_ordered"):
        data = assert_in_order(groups, ties=ties, admission=rule)
        assert (data["states"], data["transitions"]) == (states, transitions)


@pytest.mark.parametrize("rule", RULES)
def test_every_order_of_few_groups(rule):
    reached = set()
    for groups in scripts(3):
        data = assert_in_order(groups, admission=rule)
        reached |= {claim for claim, true in data["reached"].items() if true}
    assert len(reached) == 5


@pytest.mark.heavy
@pytest.mark.parametrize("ep_size", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_every_order_of_four_groups(rule, ep_size):
    for groups in scripts(4):
        data = assert_in_order(groups, admission=rule, ep_size=ep_size)
        assert data["overtaken"]["bound"] == 0


@pytest.mark.parametrize("ep_size", [1, 2, 3])
def test_no_rule_change_shows_with_one_full_stage_producer(ep_size):
    for groups in scripts(3):
        found = check_same_as(scenario(groups, ep_size=ep_size), "strict_fifo", Limits())
        assert found.verdict == "holds", groups


def test_a_second_full_stage_producer_shows_it():
    own = scenario("d,d;d", full_stages=2)
    found = check_same_as(own, "strict_fifo", Limits())
    assert found.verdict == "violated"
    assert isinstance(found.found, Differ)
    one, other = found.sides
    assert one.stages != other.stages
    assert any("runs dense group 2" in note for note in one.notes)
    assert any("runs dense group 1" in note for note in other.notes)
    data = check_scenario(own).to_json()
    assert data["verdict"] == "holds"
    assert data["overtaken"]["bound"] == 1


def test_a_limit_is_no_equality():
    models = [QuiescentModel(scenario("d,e;e,d").make_replica, True) for _ in range(2)]
    assert isinstance(compare(*models, Limits(max_states=20)), Undecided)


def test_an_overtaken_wave_is_found(tmp_path):
    """A rule of one's own that lets dense groups pass waves: the order is refuted, and told."""
    rule = tmp_path / "passing.py"
    rule.write_text(
        "class Passing:\n"
        "    def blockers(self, ticket, queue, active):\n"
        "        return queue[:queue.index(ticket)] if ticket.scope == 'ep_wave' else ()\n"
    )
    arguments = ["check", "--groups", "d,e,d", "--admission", f"{rule}:Passing", "--json", "-"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert (data["violation"], data["classification"]) == ("wave_order", "wave_order")
    assert data["schedule"]
    replayed = CliRunner().invoke(app, ["replay", data["path"]])
    assert replayed.exit_code == 0


@pytest.mark.parametrize(("values", "message"), [
    ({"groups": ""}, "groups of producer 0 must not be empty"),
    ({"groups": "d,x"}, "unknown group kind of producer 0 'x'"),
    ({"groups": "d", "ep_size": 0}, "ep_size must be a whole number"),
    ({"groups": "d", "admission": "fifo"}, "fifo"),
    ({"groups": "d", "lanes": 2}, "'lanes' is no field of a scenario of groups"),
    ({"groups": [], "ep_size": 2}, "at least one producer"),
    ({"groups": 3}, "one sequence per producer"),
])  # fmt: skip
def test_bad_scenarios(values, message):
    with pytest.raises(ScenarioError, match=message):
        scenario_of(values)


def test_a_path_carries_its_groups():
    own = scenario("d,e;e,d", admission="strict_fifo", ties=False)
    assert scenario_of(own.to_compact()) == own
    assert scenario_of(own.to_json()) == own
