"""When a wake-up was lost, and which lanes are missing: in words."""

import re

import pytest

from frontier.events import WAVE_END
from models.catalogue import catalogue, find_case
from models.counterexample import Counterexample
from models.groups import GroupScenario
from models.regression import decides
from models.scenario import Scenario
from models.stranding import left_behind
from models.waits import LOST_WAKEUP, STRANDED_RENDEZVOUS
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
    lost = [line for line in witness.lines if "was lost here" in line]
    # Two were lost, one apart from the other: each sentence names its own.
    assert len(lost) == len(set(lost)) == 2
    assert all(line.startswith("The wake-up of EP lane ") for line in lost)


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
    assert "needs lane 0, which has nothing left to bring" in lines[-3]
    assert lines[-3].endswith("the same goes for lane 1.")
    assert lines[-2].startswith("It was left behind here: ")
    assert lines[-1] == "So this never changes."


STRANDED = [
    name for name, case in catalogue().items() if case.expect.classification == STRANDED_RENDEZVOUS
]


@pytest.mark.parametrize("case", STRANDED)
def test_every_stranded_lane_of_the_catalogue_was_counted_before_it_entered(case):
    """The sentence is true of the run: the lane is admitted, and the wave leaves without it."""
    example = violated(find_case(case).scenario)
    (line,) = left_behind(example.scenario, example.schedule)
    entered, stage, counted, left = map(
        int,
        re.match(
            r"It was left behind here: at instant (\d+) lane 2 entered stage (\d+) after its "
            r"placeholder was counted(?: at instant \d+)? in the room \(stage (\d+), layer 0\), "
            r"and the wave of lanes 0 and 1 left without it at instant (\d+)\.",
            line,
        ).groups(),
    )
    assert stage == counted
    assert entered < left
    # The wave that left without it is on its way then, and ends in a later instant.
    ends = [e.members for instant in example.schedule[left:] for e in instant if e.kind == WAVE_END]
    assert [0, 1] in [[batch.lane for batch in members] for members in ends]
    arrival = [str(event) for event in example.schedule[entered - 1]]
    assert any("lane 2" in event or f"stage {stage - 1}" in event for event in arrival)


def test_check_tells_who_was_left_behind():
    witness = check_scenario(find_case("late-join-published").scenario).witnesses[0]
    assert (
        "It was left behind here: at instant 2 lane 2 entered stage 0 after its placeholder was "
        "counted in the room (stage 0, layer 0), and the wave of lanes 0 and 1 left without it at "
        "instant 3. So this never changes." in witness.text
    )


def test_a_lane_that_was_never_counted_is_said_to_be_so(tmp_path):
    """Without stand-ins nobody is counted, and that is the cause."""
    rule = tmp_path / "never.py"
    rule.write_text(
        "class Never:\n    withdraws_joined = False\n"
        "    def allows(self, lane, scheduler, context):\n        return False\n"
    )
    scenario = Scenario(lanes=2, stages=1, batches=(1, 0), stand_in=f"{rule}:Never")
    example = violated(scenario)
    assert example.classification == STRANDED_RENDEZVOUS
    (line,) = left_behind(example.scenario, example.schedule)
    assert line == (
        "It was left behind here: when lane 0 entered the room (stage 0, layer 0) at instant 1, "
        "lane 1 was idle, so no placeholder was counted for it."
    )
