"""The case catalogue: every claim found, every violated case with a twin one change away."""

import dataclasses

import pytest

from models.catalogue import catalogue, find_case, load_case, load_scenario
from models.scenario import ScenarioError
from verify.cli.checking import Question, check_scenario

CASES = catalogue()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case_is_as_claimed(case):
    question = Question.of(case.scenario, case.asked, case.fairness)
    found = check_scenario(case.scenario, question=question).to_json()
    assert case.expect.differences(found) == []


def test_there_are_at_least_forty():
    assert len(CASES) >= 40


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.expect.verdict == "violated"], ids=lambda c: c.name
)
def test_violated_case_has_a_twin_one_change_away_that_holds(case):
    twin = CASES[case.twin]
    assert twin.expect.verdict == "holds"
    changed = [
        f.name
        for f in dataclasses.fields(case.scenario)
        if getattr(case.scenario, f.name) != getattr(twin.scenario, f.name)
    ]
    assert len(changed) == 1, changed


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.expect.verdict == "holds"], ids=lambda c: c.name
)
def test_holding_case_says_what_must_be_reached(case):
    assert {"a batch ended", "a wave ended"} & set(case.expect.reached)


def test_a_wrong_expectation_is_seen():
    case = CASES["published-repair"]
    found = check_scenario(case.scenario).to_json()
    wrong = dataclasses.replace(case.expect, states=277, reached=("a lane joined late",))
    assert wrong.differences(found) == [
        "states: expected 277, found 278",
        "never reached: a lane joined late",
    ]


def test_an_unknown_case_suggests_close_names():
    with pytest.raises(ScenarioError, match="did you mean published-deadlock"):
        find_case("published-deadlok")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lanes = ", "not valid TOML"),
        ("title = 'x'", "lacks 'expect'"),
        ("title = 'x'\nreason = 'y'\n[scenario]\nlanes = 0\n[expect]\nverdict = 'holds'", "lanes"),
    ],
)
def test_broken_case_files_name_the_file(tmp_path, text, said):
    path = tmp_path / "broken.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=rf"broken\.toml.*{said}"):
        load_case(path)


def test_scenario_file_with_and_without_a_table(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("lanes = 3\nbatches = 1\n")
    flat = load_scenario(path)
    path.write_text("[scenario]\nlanes = 3\nbatches = 1\n")
    assert load_scenario(path) == flat


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no field"),
        ("[scenario]\n", "names no field"),
        ("lanes = 3\n[scenario]\nstages = 1\n", "'lanes' stands beside"),
        ("context = 7\n", "context must be FILE.py:Class"),
    ],
)
def test_a_file_that_would_be_read_in_part_only_is_refused(tmp_path, text, said):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=said):
        load_scenario(path)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    path = tmp_path / "own.toml"
    path.write_bytes(b"\xef\xbb\xbflanes = 3\r\nbatches = 1\r\n")
    assert load_scenario(path).lanes == 3
