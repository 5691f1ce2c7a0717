"""Stories and timelines: what changed, what was possible, where it was lost."""

from itertools import pairwise

import pytest

from models.regression import decides
from models.scenario import Scenario
from models.schedule import play, play_exactly
from models.story import MOST_STEPS, explore_fates, tell
from models.timeline import ATTENTION, FORWARD, IN_ROOM, QUEUED, TAIL, WAVE, timeline_of
from models.witness import find_witness, solve_times

from .schedules import burst_run, poisson_run

LANE_AWARE = Scenario(admission="lane_aware")
LATE_JOIN = Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open")


def test_the_point_of_no_return_is_the_last_state_from_which_a_run_completes():
    example = decides(LANE_AWARE, 20_000)
    story = tell(LANE_AWARE, example.schedule)
    outlook = [step.can_complete for step in story.steps]
    lost = story.no_return.step
    assert outlook == [True] * lost + [False] * (len(outlook) - lost)
    assert lost >= 1


def test_the_healthy_run_is_a_run_and_completes():
    example = decides(LANE_AWARE, 20_000)
    story = tell(LANE_AWARE, example.schedule)
    words = [tuple(map(str, instant)) for instant in example.schedule[: story.no_return.step - 1]]
    words += story.no_return.healthy
    run = play_exactly(LANE_AWARE, ()).run
    for names in words:
        by_name = {str(event): at for at, event in enumerate(run.pending)}
        run.fire(tuple(sorted(by_name[name] for name in names)))
    assert run.system.is_complete
    assert not run.pending


def test_choices_say_what_completes_and_what_was_taken():
    example = decides(LANE_AWARE, 20_000)
    story = tell(LANE_AWARE, example.schedule)
    for step, after in zip(story.steps, story.steps[1:], strict=False):
        taken = [choice for choice in step.choices if choice.taken]
        assert [choice.events for choice in taken] == [after.fired]
        assert taken[0].completes == after.can_complete
    assert story.steps[-1].choices == ()


def test_only_what_changed_is_told():
    scenario, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    story = tell(scenario, schedule)
    assert story.steps[0].changes == ()
    named = [[str(change) for change in step.changes] for step in story.steps]
    assert "stage 0, forward group: open -> sealed" in named[1]
    assert all("lane 0: runs batch 0 -> runs batch 0" not in line for own in named for line in own)
    assert story.no_return is None
    assert story.fate == "a run can still complete after the last step"


def test_a_doomed_start_says_so():
    scenario = Scenario(admission="strict_fifo")
    story = tell(scenario, decides(scenario, 100).schedule)
    assert story.no_return.step == 0
    assert "lost before the first instant" in story.fate


def test_fates_that_are_not_known_are_not_guessed():
    scenario, schedule = poisson_run(3, stages=2, layers=3)
    story = tell(scenario, schedule)
    assert story.no_return is None
    assert story.fate.startswith("not computed")
    assert {step.can_complete for step in story.steps} == {None}
    assert story.steps[0].unlisted == 2**24 - 1 - len(story.steps[0].choices)
    assert explore_fates(LATE_JOIN, max_states=10) is None


def test_refusals_have_their_reason():
    scenario = Scenario(admission="strict_fifo")
    story = tell(scenario, decides(scenario, 100).schedule)
    refused = [handled for handled in story.steps[0].handled if handled.tone == "refused"]
    assert refused[0].note == "refused: behind ticket seq 1 (lane 1) of stage 0"
    assert any("stands behind ticket seq 1" in wait for wait in story.steps[0].waits)


@pytest.mark.parametrize(
    "fields",
    [
        {"lanes": 3, "stages": 2, "batches": (2, 1, 2), "layers": 2},
        {"lanes": 2, "stages": 2, "batches": (2, 2), "model": "dense"},
    ],
)
def test_spans_of_a_lane_at_a_stage_never_overlap_but_for_queues(fields):
    scenario, schedule = burst_run(**fields)
    witness = solve_times(scenario, schedule, "per_event")
    timeline = timeline_of(witness.timed)
    assert all(span.finished for span in timeline.spans)
    for stage in range(scenario.stages):
        for lane in range(scenario.lanes):
            spans = [s for s in timeline.spans if (s.stage, s.batch.lane) == (stage, lane)]
            work = [s for s in spans if s.kind != QUEUED]
            assert all(a.end <= b.start for a, b in pairwise(work))
            kinds = {s.kind for s in work}
            assert kinds <= (
                {FORWARD} if scenario.model == "dense" else {ATTENTION, IN_ROOM, WAVE, TAIL}
            )


def test_what_never_ends_reaches_the_end_of_the_picture():
    example = decides(LATE_JOIN, 20_000)
    witness, _ = find_witness(LATE_JOIN, example.schedule)
    timeline = timeline_of(witness.timed)
    stuck = [span for span in timeline.spans if not span.finished]
    lanes = {e.source for e in play(LATE_JOIN, example.ranks).analysis().stuck_waits}
    assert {f"lane {span.batch.lane} at stage {span.stage}" for span in stuck} <= lanes
    assert all(span.end == timeline.end > witness.instants[-1] * 1_000_000 for span in stuck)
    assert [span.kind for span in stuck] == [IN_ROOM]


def test_of_a_long_schedule_the_last_instants_are_told():
    scenario, schedule = poisson_run(4, requests=80, stages=2, stand_in="withdraw_joined")
    assert len(schedule) > MOST_STEPS
    story = tell(scenario, schedule)
    assert len(story.steps) == MOST_STEPS + 1
    assert story.steps[0].number == len(schedule) - MOST_STEPS
    assert story.steps[-1].number == len(schedule)
