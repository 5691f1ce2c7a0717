"""When a wake-up was lost, and which lanes are missing: in words."""

import pytest

from models.catalogue import find_case
from models.counterexample import Counterexample
from models.groups import GroupScenario
from models.regression import decides
from models.scenario import Scenario
from models.waits import LOST_WAKEUP
from models.wakeups import lost_wakeups, schedule_lines
from verify.cli.checking import Question, check_scenario


def violated(scenario) -> Counterexample:
    found = decides(scenario, 20_000)
    assert isinstance(found, Counterexample)
    return found


def test_a_try_and_what_followed_in_one_instant_are_told():
    """The blocker leaves after the try, in the same instant, and nobody tries again."""
    example = violated(find_case("rival-a-lane-aware").scenario)
    (line,) = lost_wakeups(example.scenario, example.schedule)
    assert line == (
        "It was lost here: lane 0 at stage 0 was tried last in instant 4 (refused: behind ticket "
        "seq 1 (lane 1) of stage 0); what stood in its way was gone in the same instant, and "
        "nothing tried it again after that."
    )


def test_a_try_and_a_later_end_that_wakes_nobody_are_told():
    example = violated(find_case("stale-no-wake").scenario)
    (line,) = lost_wakeups(example.scenario, example.schedule)
    assert "tried last at the start (refused: capacity)" in line
    assert "gone in instant 2 (stage_end(lane 1, batch 0, stage 0))" in line


def test_it_is_told_of_groups_and_by_check_itself():
    scenario = GroupScenario.of({"groups": "d,e;d,d", "full_stages": 2, "stale": "no_wake"})
    result = check_scenario(scenario, question=Question("drained"))
    witness = result.witnesses[0]
    assert witness.classification == LOST_WAKEUP
    assert "It was lost here: EP lane" in witness.text


@pytest.mark.parametrize("case", ["one-stage-three-lanes-strict", "rival-c-late-ticket"])
def test_every_lost_wakeup_has_its_moment(case):
    example = violated(find_case(case).scenario)
    assert example.classification == LOST_WAKEUP
    assert lost_wakeups(example.scenario, example.schedule)


def test_every_missing_lane_is_named_and_the_last_line_is_the_contradiction():
    example = violated(Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open"))
    analysis = check_scenario(example.scenario).witnesses[0].wait_for
    lines = schedule_lines(
        example.scenario, example.schedule, example.classification, analysis, "the message"
    )
    assert "needs lane 0, which has nothing left to bring" in lines[-2]
    assert lines[-2].endswith("the same goes for lane 1.")
    assert lines[-1] == "So this never changes."
