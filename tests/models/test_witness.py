"""Timed witnesses: smallest whole milliseconds, confirmed by the simulator."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontier.admission import ADMISSION_RULES
from frontier.durations import ConstantDurations, RandomDurations, WithArrivals
from models.regression import decides
from models.scenario import Scenario
from models.schedule import play_exactly
from models.witness import (
    ASSUMPTIONS,
    NoWitness,
    Witness,
    WitnessError,
    confirm,
    find_witness,
    rerun,
    run_timed,
    solve_times,
    times_of_run,
    witness_of_json,
    witness_to_json,
)

from .schedules import burst_run, poisson_run

LATE_JOIN = Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open")
SCENARIOS = [
    Scenario(admission="strict_fifo"),
    Scenario(admission="lane_aware"),
    Scenario(admission="late_ticket", ties=False),
    LATE_JOIN,
    Scenario(lanes=3, stages=2, batches=(2, 2, 2)),
    Scenario(rooms="by_phase", phases=(("prefill", "decode"), ("decode", "prefill"))),
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_simulator_does_the_schedule_and_ends_in_the_same_state(scenario):
    example = decides(scenario, 20_000)
    witness, refused = find_witness(scenario, example.schedule)
    done = run_timed(scenario, witness.timed.model())
    assert done.schedule == example.schedule
    assert done.times == tuple(1_000_000 * ms for ms in witness.instants)
    assert done.state.system == play_exactly(scenario, example.schedule).run.state().system
    assert [none.assumption for none in refused] == [
        a for a in ASSUMPTIONS if ASSUMPTIONS.index(a) < ASSUMPTIONS.index(witness.assumption)
    ]


def test_a_run_under_the_published_constants_is_found_again():
    scenario, schedule = burst_run(lanes=2, stages=2, batches=(2, 2))
    witness = solve_times(scenario, schedule, "published")
    assert isinstance(witness, Witness)
    assert witness.instants[:4] == (8, 14, 22, 30)


def test_published_arrivals_of_the_late_join():
    """PROTOCOL.md section 6: requests at 0, 2 and 8 ms on three of four lanes, 6 layers."""
    scenario, schedule = late_join_run()
    witness = solve_times(scenario, schedule, "published")
    assert witness.arrivals == ((0,), (2,), (8,), ())


def late_join_run():
    from_file = Scenario(lanes=4, stages=1, layers=6, batches=(1, 1, 1, 0), arrivals="open")
    times = [[0], [2_000_000], [8_000_000], []]
    durations = WithArrivals(ConstantDurations(True, 6), times)
    return from_file, run_timed(from_file, durations).schedule


def test_each_event_its_own_time_needs_one_millisecond_an_instant():
    example = decides(LATE_JOIN, 20_000)
    witness = solve_times(LATE_JOIN, example.schedule, "per_event")
    assert witness.instants == (0, 1, 2, 3, 4)
    assert all(timed.milliseconds >= 1 for timed in witness.durations)


def test_by_kind_times_are_equal_and_least():
    scenario, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    witness = solve_times(scenario, schedule, "by_kind")
    assert witness.instants == (1, 2, 3)
    assert {timed.milliseconds for timed in witness.durations} == {1}


def test_no_solution_is_a_smallest_contradiction_about_the_times():
    example = decides(Scenario(admission="lane_aware"), 20_000)
    none = solve_times(Scenario(admission="lane_aware"), example.schedule, "published")
    assert isinstance(none, NoWitness)
    assert all("takes" in reason or "comes after" in reason for reason in none.contradiction)
    assert 2 <= len(none.contradiction) <= 4


def test_a_large_run_is_solved_too():
    scenario, schedule = poisson_run(3, stages=2, layers=3)
    witness = solve_times(scenario, schedule, "per_event")
    assert confirm(witness.timed).schedule == schedule


def test_files_are_read_back_and_foreign_ones_refused():
    example = decides(LATE_JOIN, 20_000)
    witness, _ = find_witness(LATE_JOIN, example.schedule)
    values = witness_to_json(witness)
    assert witness_of_json(values) == witness
    for broken, message in (
        ({**values, "version": 9}, "version"),
        ({**values, "arrivals_ms": [[0], [0]]}, "arrivals_ms must have"),
        ({**values, "arrivals_ms": [[0], [0], ["x"]]}, "whole number"),
        ({name: v for name, v in values.items() if name != "schedule"}, "lacks 'schedule'"),
        ({**values, "scenario": {"lanes": 0}}, "lanes must be"),
    ):
        with pytest.raises(WitnessError, match=message):
            witness_of_json(broken)


def test_times_that_do_something_else_are_not_confirmed():
    example = decides(LATE_JOIN, 20_000)
    witness, _ = find_witness(LATE_JOIN, example.schedule)
    other = dataclasses.replace(witness, arrivals=((0,), (5,), (9,)))
    with pytest.raises(WitnessError, match="no time for wave_end"):
        confirm(other.timed)


def test_a_swapped_order_is_not_confirmed():
    scenario, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    witness = solve_times(scenario, schedule, "per_event")
    late = [
        dataclasses.replace(t, milliseconds=t.milliseconds + at)
        for at, t in enumerate(witness.durations)
    ]
    with pytest.raises(WitnessError, match="instant 1: the witness says"):
        confirm(dataclasses.replace(witness, durations=tuple(late)).timed)


@given(
    admission=st.sampled_from(sorted(ADMISSION_RULES)),
    stages=st.integers(1, 2),
    batches=st.lists(st.integers(0, 2), min_size=2, max_size=3).filter(any),
    arrivals=st.sampled_from(["burst", "open"]),
    seed=st.integers(0, 999),
)
def test_a_run_is_done_again_with_the_times_read_off_its_instants(
    admission, stages, batches, arrivals, seed
):
    shape = {"admission": admission, "stages": stages, "batches": tuple(batches)}
    scenario = Scenario(lanes=len(batches), arrivals=arrivals, **shape)
    run = run_timed(scenario, RandomDurations(1, 20_000_000, seed))
    timed = times_of_run(scenario, run.schedule, run.times)
    again = rerun(timed)
    assert (again.schedule, again.times) == (run.schedule, run.times)
    assert again.state == run.state


def test_an_instant_whose_events_are_told_in_another_order_is_no_run():
    scenario, schedule = burst_run(lanes=2, stages=1, batches=(1, 1))
    assert len(schedule[0]) == 2
    swapped = (schedule[0][::-1], *schedule[1:])
    with pytest.raises(WitnessError, match="instant 1: the witness says"):
        times_of_run(scenario, swapped, range(5, 5 + len(schedule)))
