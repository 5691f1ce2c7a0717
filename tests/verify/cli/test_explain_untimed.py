"""Lassos, stale work and stages fed by groups: explained and drawn like any path."""

import json
from xml.etree import ElementTree

import pytest

from models.catalogue import catalogue
from models.instants import film
from models.scenario import Scenario
from models.subjects import scenario_of
from tests.verify.cli.program import program
from verify.cli.checking import Question, check_scenario

__all__ = ["program"]

STARVED = "--workload closed --capacity 1 --model dense"
GROUPS = "--groups d,e;d,d --full-stages 2 --stale no_cancel"
STALE = "stale-no-wake"
OWN_RULE = (
    "class Passing:\n"
    "    def blockers(self, ticket, queue, active):\n"
    "        return queue[:queue.index(ticket)] if ticket.scope == 'ep_wave' else ()\n"
)


@pytest.fixture
def result(program, tmp_path):
    def check(arguments):
        file = tmp_path / "result.json"
        done = program("check", *arguments.split(" "), "--json", file)
        assert done.code == 1, done.err
        return file, json.loads(file.read_text())

    return check


@pytest.mark.parametrize("arguments", [STARVED, GROUPS, STALE], ids=["lasso", "groups", "stale"])
def test_every_output_of_explain_is_written(program, tmp_path, result, arguments):
    file, data = result(arguments)
    names = ("page.html", "waits.svg", "lanes.svg", "waits.mmd", "told.json")
    page, waits, lanes, graph, told = (tmp_path / name for name in names)
    pictures = ("--html", page, "--waits", waits, "--timeline", lanes)
    done = program("explain", file, *pictures, "--mermaid", graph, "--json", told)
    assert done.code == 0, done.err
    assert page.read_text().count("<svg") == 2
    for picture in (waits, lanes):
        assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")
    assert graph.read_text().startswith("graph LR")
    explained = json.loads(told.read_text())
    for field in ("violation", "classification", "path", "explanation", "stages"):
        assert explained[field] == data[field], field
    same = program("explain", data["path"])
    assert same.code == 0, same.err
    assert data["explanation"] in same.out.replace("\n", " ")
    traced = program("explain", file, "--trace", tmp_path / "t.json")
    groups = arguments == GROUPS
    assert (traced.code, "of lanes" in traced.err) == ((2, True) if groups else (0, False))


@pytest.mark.parametrize("arguments", [STARVED, GROUPS, STALE], ids=["lasso", "groups", "stale"])
def test_a_report_of_check_has_the_same_drawings(program, tmp_path, arguments):
    page = tmp_path / "page.html"
    assert program("check", *arguments.split(" "), "--report", page).code == 1
    text = page.read_text()
    assert text.count("<svg") == 2
    assert '"steps":[' in text


@pytest.mark.parametrize("arguments", ["--workload closed", "--groups d,e;e,d", "published-repair"])
def test_a_report_of_what_holds_draws_one_run(program, tmp_path, arguments):
    page = tmp_path / "page.html"
    assert program("check", *arguments.split(" "), "--report", page).code == 0
    text = page.read_text()
    assert text.count("<svg") == 1
    assert ("repeat for ever" in text) == ("closed" in arguments)


def test_the_picture_of_a_lasso_shows_two_rounds_and_what_never_ends():
    scenario = Scenario.of({"workload": "closed", "capacity": 1, "model": "dense"})
    witness = check_scenario(scenario).witnesses[0]
    shown = film(scenario, witness.schedule, witness.repeats)
    assert (shown.entry, shown.period, shown.end) == (1, 2, 5)
    never = {s.doing.track for s in shown.stretches if not s.finished}
    assert never == {"stage 0 lane 0"}
    going_on = {s.doing.track for s in shown.stretches if s.finished}
    assert going_on == {"stage 0 lane 1", "stage 1 lane 1"}


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ("partial-deadlock", "partial_deadlock"),
        ("capacity-one-starvation", "starvation"),
        ("preempted-for-ever", "livelock"),
    ],
)
def test_the_class_of_a_lasso_is_found_again_from_its_path_alone(program, case, kind):
    own = catalogue()[case]
    question = Question.of(own.scenario, own.asked, own.fairness)
    witness = check_scenario(own.scenario, question=question).witnesses[0]
    assert witness.classification == kind
    explained = json.loads(program("explain", witness.path, "--json", "-").out)
    assert explained["classification"] == kind
    assert explained["explanation"] == witness.text


def test_a_run_that_stops_is_explained_from_its_result(program, result):
    file, data = result("--groups d,e --fairness none --property progress")
    assert data["lasso"]["cycle"] == []
    done = program("explain", file)
    assert done.code == 0
    assert "nothing is assumed that would make them fire" in done.out.replace("\n", " ")
    done = program("explain", data["path"])
    assert (done.code, "ends in no violation" in done.err) == (2, True)


def test_an_overtaken_wave_is_explained_from_its_path(program, tmp_path):
    rule = tmp_path / "passing.py"
    rule.write_text(OWN_RULE)
    done = program("check", "--groups", "d,e,d", "--admission", f"{rule}:Passing", "--json", "-")
    data = json.loads(done.out)
    assert data["lasso"] is None
    told = json.loads(program("explain", data["path"], "--json", "-").out)
    assert (told["violation"], told["explanation"]) == ("wave_order", data["explanation"])


def test_the_picture_of_groups_has_producers_schedulers_and_tickets():
    scenario = scenario_of({"groups": "d,e;d,d", "full_stages": 2, "stale": "no_cancel"})
    witness = check_scenario(scenario, question=Question("drained")).witnesses[0]
    shown = film(scenario, witness.schedule, witness.repeats)
    assert shown.tracks == (
        "producer 0",
        "producer 1",
        "EP lane 0",
        "EP lane 1",
        "full-stage scheduler 0",
        "full-stage scheduler 1",
        "ticket seq 0 (dense group 0)",
    )
    never = {(s.doing.track, s.doing.label) for s in shown.stretches if not s.finished}
    assert never == {("ticket seq 0 (dense group 0)", "active")}


def test_scenarios_without_a_violation_are_refused(program):
    done = program("explain", "closed-ep-ordered")
    assert done.code == 2
    assert "no violation" in done.err
