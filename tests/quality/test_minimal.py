"""Shrunk counterexamples are exactly minimal (issue 5)."""

import pytest

from models.catalogue import catalogue
from models.counterexample import Counterexample, counterexample_of, sort_key
from models.recorded import recorded_counterexample
from models.regression import decides, find_repair
from models.scenario import Scenario
from models.schedule import encode_schedule, play, ranks_of
from models.shrinking import shrink, wanted_like
from models.trials import Trials, Wanted
from models.witness import confirm, find_witness
from verify.cli.checking import Question
from verify.path import decode
from verify.shrink import Rejection

from ..models.schedules import burst_run, poisson_run

VIOLATED = [case for case in catalogue().values() if case.expect.verdict == "violated"]
SMALLEST = {
    "published-deadlock": (2, 2, (1, 2), 1, "burst", 1, 0),
    "rival-a-lane-aware": (2, 2, (1, 2), 1, "burst", 9, 3),
    "rival-c-late-ticket": (2, 2, (1, 2), 1, "burst", 9, 3),
    "late-join-open": (3, 1, (1, 1, 1), 1, "open", 5, 4),
    "late-join-open-no-ties": (3, 1, (1, 1, 1), 1, "open", 9, 0),
    "late-join-burst": (3, 2, (1, 1, 1), 1, "burst", 7, 6),
    "late-join-published": (3, 1, (1, 1, 1), 1, "open", 5, 4),
    "split-rooms": (2, 1, (1, 1), 1, "burst", 1, 1),
    "closed-strict-fifo": (2, 2, (2, 2), 1, "burst", 1, 0),
    "closed-split-phases": (2, 2, (1, 1), 1, "burst", 10, 3),
    "closed-three-lanes-standard": (3, 2, (1, 1, 1), 1, "burst", 18, 0),
    "stale-no-wake": (2, 1, (1, 1), 1, "burst", 2, 0),
    "stale-orphan-ticket": (1, 1, (1,), 1, "burst", 4, 0),
    "stale-wrong-lane": (2, 1, (1, 0), 1, "burst", 4, 0),
    "capacity-one-starvation": (2, 2, (2, 2), 1, "burst", 3, 0),
    "partial-deadlock": (2, 1, (1, 1), 1, "burst", 3, 1),
    "preempted-for-ever": (1, 1, (1,), 1, "burst", 4, 0),
}
CYCLES = {"capacity-one-starvation": 2, "partial-deadlock": 1, "preempted-for-ever": 4}
NO_RULE_REPAIRS = {"preempted-for-ever"}


def shape(example: Counterexample):
    s = example.scenario
    instants = len(example.schedule)
    return (s.lanes, s.stages, s.batches, s.layers, s.arrivals, instants, example.ties)


def example_of(scenario: Scenario, schedule) -> Counterexample:
    example = counterexample_of(play(scenario, ranks_of(schedule, scenario.lanes)))
    assert example is not None
    assert example.schedule == schedule
    return example


def violation_of(case) -> Counterexample:
    question = Question.of(case.scenario, case.asked, case.fairness)
    wanted = Wanted(case.expect.classification, None, question.liveness, question.fairness)
    found = Trials(wanted, 200_000).search(case.scenario)
    assert isinstance(found, Counterexample)
    return found


@pytest.mark.parametrize("case", VIOLATED, ids=lambda case: case.name)
def test_every_violated_case_shrinks_to_a_proved_minimum_of_its_class(case):
    """Shrunk, proved minimal, timed, and replayed: a bad state as well as a lasso."""
    shrunk = shrink(violation_of(case))
    best = shrunk.best
    assert best.classification == case.expect.classification
    assert shrunk.is_minimal, [o for o in shrunk.obstacles if not o.rejection.proved]
    assert sort_key(best) <= sort_key(shrunk.origin)
    assert (find_repair(best.scenario) is None) == (case.name in NO_RULE_REPAIRS)
    if case.name in SMALLEST:
        assert shape(best) == SMALLEST[case.name]
    assert best.repeats == CYCLES.get(case.name, 0)
    witness, _ = find_witness(best.scenario, best.schedule, repeats=best.repeats)
    confirm(witness.timed)
    path = decode(encode_schedule(best.scenario, best.schedule, best.repeats))
    assert recorded_counterexample(best.scenario, path, 20_000) == best


def test_the_smallest_cases_are_in_the_catalogue():
    assert set(SMALLEST) <= {case.name for case in VIOLATED}


@pytest.mark.parametrize(("stages", "layers"), [(1, 1), (2, 3)])
def test_a_drained_poisson_run_of_24_requests_shrinks_to_the_late_join(stages, layers):
    """Must show of issue 5: 3 lanes, 1 stage, 1 layer, one batch a lane."""
    drained = 0
    for seed in range(8):
        scenario, schedule = poisson_run(seed, stages=stages, layers=layers)
        example = counterexample_of(play(scenario, ranks_of(schedule, 4)))
        if example is None:
            continue
        drained += 1
        assert shape(shrink(example).best) == (3, 1, (1, 1, 1), 1, "open", 5, 4)
        assert find_repair(shrink(example).best.scenario) == {"stand_in": "withdraw_joined"}
    assert drained >= 2


def test_a_strict_fifo_run_of_12_requests_shrinks_to_the_published_shape():
    """Must show of issue 5; the fourth request of the published run is not needed."""
    fields = {"lanes": 4, "stages": 3, "layers": 2, "batches": (3, 3, 3, 3)}
    example = example_of(*burst_run(**fields, admission="strict_fifo"))
    shrunk = shrink(example)
    assert shape(shrunk.best) == (2, 2, (1, 2), 1, "burst", 1, 0)
    assert shrunk.is_minimal
    labels = {(o.pass_name, o.label) for o in shrunk.obstacles}
    assert ("lanes", "lane 0") in labels
    assert ("stages", "stage 1") in labels
    assert ("batches", "batch 1 of lane 1") in labels


def test_what_is_kept_is_kept():
    scenario = Scenario(lanes=3, stages=1, batches=(2, 2, 2), admission="strict_fifo")
    origin = decides(scenario, 20_000)
    for keep in ("any", "class", "cycle"):
        best = shrink(origin, keep).best
        assert keep == "any" or best.classification == origin.classification
        assert keep != "cycle" or best.signature == origin.signature


def test_a_search_that_gives_up_is_never_a_proof():
    origin = decides(Scenario(lanes=3, stages=2, batches=(2, 2, 2)), 20_000)
    trials = Trials(wanted_like(origin, "class"), max_states=5)
    result = trials.search(Scenario(lanes=2, stages=2, batches=(2, 2)))
    assert isinstance(result, Rejection)
    assert not result.proved


def test_a_run_too_large_to_search_still_shrinks_and_does_not_claim_minimality():
    scenario, schedule = poisson_run(3, stages=2, layers=3)
    example = example_of(scenario, schedule)
    shrunk = shrink(example, max_states=2)
    assert sort_key(shrunk.best) < sort_key(example)
    assert not shrunk.is_minimal


def test_an_interrupt_leaves_what_is_known_by_then(monkeypatch):
    scenario, schedule = poisson_run(3, stages=2, layers=3)
    example = example_of(scenario, schedule)
    searched = []

    def interrupted(self, scenario, max_states=None):
        searched.append(scenario)
        raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "search", interrupted)
    shrunk = shrink(example)
    assert shrunk.interrupted
    assert not shrunk.is_minimal
    assert len(searched) == 1
    assert sort_key(shrunk.best) < sort_key(example)
    assert shrunk.best.classification == example.classification
