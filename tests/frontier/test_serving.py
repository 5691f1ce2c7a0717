"""Serving systems: snapshots, batch formation at its limits, placement, traces, refusals."""

from dataclasses import replace

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.attention import AttentionReplica
from frontier.batching import BatchingConfig, Chunk, LaneBatcher, LaneSequence, SequenceSnapshot
from frontier.clusters import FfnShape, M2nLink, PdAfCluster, Shipment
from frontier.des import Simulation
from frontier.durations import MILLISECOND, SECOND, ConstantDurations
from frontier.events import DENSE, GROUP, Batch, Event
from frontier.ffn import FfnReplica
from frontier.placement import FixedLanes, LeastOutstanding, RandomLane, RoundRobin, parse_placement
from frontier.requests import Request, poisson_times, read_requests_csv, uniform_requests
from frontier.serving import ConservationError, RequestWorkload, ServingConfig
from frontier.system import ConfigurationError, ServingSpec, ServingSystem


def spec(architecture="co-location", **more):
    shape = {
        "lanes": 1 if architecture == "pd-af" else 2,
        "stages": 2,
        "layers": 2,
        "moe": True,
        "requests": uniform_requests(4, 20, 3),
        "batching": BatchingConfig(block_size=4, num_blocks=12),
    }
    return ServingSpec(architecture, **{**shape, **more})


# ---------------------------------------------------------------- snapshots


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
@pytest.mark.parametrize("burst", [True, False])
def test_a_restored_system_goes_on_as_the_one_it_was_taken_from(architecture, burst):
    described = spec(architecture, burst=burst, ffn=FfnShape(2, 1), micro_batches=1)
    built, follows = ServingSystem(described), []
    run = Simulation(
        built.system, ConstantDurations(moe=True, layers=2), [lambda *seen: follows.append(seen[2])]
    )
    while run.pending:
        event, copy = run.pending[0][1], ServingSystem(described)
        before = built.system.snapshot()
        hash(before)
        copy.system.restore(before)
        assert copy.system.snapshot() == before
        run.step()
        assert copy.system.handle(event) == follows[-1]
        assert copy.system.snapshot() == built.system.snapshot()
        assert copy.system.is_complete == built.system.is_complete
        for role, workload in copy.workloads.items():
            assert workload.population == built.workloads[role].population
            assert workload.all_batches_formed == built.workloads[role].all_batches_formed
            for lane in range(described.lanes):
                workload.check_conserved(lane)
    assert built.system.is_complete
    assert built.finished == 4


def test_a_snapshot_of_another_shape_is_refused():
    cluster = ServingSystem(spec("pdd")).system
    with pytest.raises(ValueError, match="zip"):
        cluster.restore(cluster.snapshot()[:1])


def test_a_link_names_its_one_producer_and_is_restored_whole():
    link, other = M2nLink(1), M2nLink(1)
    first, second = Shipment(Batch(0, 0, "decode"), 0, DENSE), Shipment(Batch(0, 1, "x"), 1, DENSE)
    assert link.send(first) == [Event(GROUP, 0, None, 1, role="DECODE_FFN")]
    assert link.send(second) == []
    link.deliver(0)
    assert link.snapshot() == ((second,), ((0, first),), 1)
    other.restore(link.snapshot())
    other.deliver(0)
    assert (other.take(0), other.take(1), other.exhausted) == (first, second, True)


# ---------------------------------------------------------------- batches


def sequence(number=0, prefill=4, decode=4, **counts):
    value = {"computed": 4, "generated": 1, "scheduled": 0, "prefilled": 4, "blocks": 2, **counts}
    request = Request(number, prefill, decode)
    return LaneSequence.of(request, SequenceSnapshot(number, **value))


def batcher(running, waiting=(), **limits):
    made = LaneBatcher(BatchingConfig(**{"block_size": 2, "num_blocks": 8, **limits}))
    made.restore(list(waiting), list(running))
    return made


def test_a_sequence_is_rebuilt_from_its_value():
    value = SequenceSnapshot(3, 5, 2, 1, 4, 7)
    assert LaneSequence.of(Request(3, 4, 9), value).snapshot() == value
    assert LaneSequence(Request(3, 4, 9)).snapshot() == (3, 0, 0, 0, 0, 0)
    assert batcher([sequence(), sequence(1)]).free_blocks == 4


@pytest.mark.parametrize(
    ("counts", "token", "yields"),
    [
        ({"scheduled": 1}, 2, True),
        ({"scheduled": 1}, 1, False),
        ({"scheduled": 1}, 3, False),
        ({"scheduled": 1}, 0, False),
        ({"scheduled": 0}, 2, False),
        ({"scheduled": 0, "computed": 5}, 2, False),
        ({"scheduled": 2, "computed": 2}, 2, False),
        ({"scheduled": 2, "computed": 3}, 2, True),
        ({"scheduled": 2, "computed": 7}, 2, False),
    ],
)
def test_the_chunk_in_flight_that_yields_a_token(counts, token, yields):
    assert sequence(**counts).will_end_with(token) is yields


def test_all_batches_are_formed_up_to_the_first_token_or_the_last():
    first = sequence(computed=0, generated=0, scheduled=4)
    last = sequence(1, decode=2, scheduled=1)
    assert batcher([first]).all_formed(only_first_token=True)
    assert not batcher([first]).all_formed(only_first_token=False)
    assert batcher([last]).all_formed(only_first_token=False)
    assert not batcher([last]).all_formed(only_first_token=True)
    assert not batcher([last], [first]).all_formed(only_first_token=False)
    assert not batcher([last, first]).all_formed(only_first_token=False)
    assert batcher([]).all_formed(only_first_token=True)


@pytest.mark.parametrize(("budget", "formed"), [(1, 1), (2, 2), (3, 2)])
def test_the_last_token_of_the_budget_is_used_and_no_more(budget, formed):
    lane = batcher([sequence(), sequence(1)], token_budget=budget)
    assert lane.form() == tuple(Chunk(number, 0, 1) for number in range(formed))


def test_a_waiting_prompt_may_take_the_last_token_or_the_whole_budget():
    whole = {"computed": 0, "generated": 0, "prefilled": 0, "blocks": 0}
    assert batcher([], [sequence(**whole)], token_budget=1).form() == (Chunk(0, 1, 0),)
    lane = batcher([], [sequence(**whole)], token_budget=4, chunked_prefill=False)
    assert lane.form() == (Chunk(0, 4, 0),)


def test_nothing_that_waits_is_admitted_in_a_batch_that_preempted():
    lane = batcher([sequence(), sequence(1)], num_blocks=4, token_budget=3)
    assert lane.form() == (Chunk(0, 0, 1),)
    assert [waiting.request.number for waiting in lane.waiting] == [1]
    assert lane.free_blocks == 1, "room for the two tokens that the budget leaves"


def test_a_completed_chunk_is_no_longer_in_flight():
    done = sequence(scheduled=1)
    batcher([done]).complete(done)
    assert done.snapshot() == (0, 5, 2, 0, 4, 2)


def test_a_request_that_fills_the_cache_fits():
    BatchingConfig(block_size=4, num_blocks=2).require_fits(Request(0, 6, 3))
    with pytest.raises(ValueError, match="needs 3 KV blocks for 9 tokens"):
        BatchingConfig(block_size=4, num_blocks=2).require_fits(Request(0, 6, 4))


# ---------------------------------------------------------------- the workload of a replica


def test_running_requests_count_as_outstanding():
    config = ServingConfig(2, placement=LeastOutstanding(), burst=False)
    workload = RequestWorkload(config, uniform_requests(3, 8, 2))
    assert workload.last_ended == ()
    lanes = []
    for number in range(3):
        lanes.append(workload.request(Event("request", request=number)))
        workload.next_batch(lanes[-1])
    assert lanes == [0, 1, 0]


def test_lost_requests_are_named():
    workload = RequestWorkload(ServingConfig(1), uniform_requests(1, 8, 2))
    workload.start()
    batch = workload.next_batch(0)
    running = workload.lanes[0].running[0]
    running.scheduled = 3
    with pytest.raises(ConservationError, match=r"lane 0 has \{0: 8\} tokens .* \{0: 3\}"):
        workload.check_conserved(0)
    running.scheduled = 8
    workload._contents[0][Batch(0, 1, "decode")] = (Chunk(0, 0, 1),)
    with pytest.raises(ConservationError, match=r"request 0 is in two batches: .*decode"):
        workload.check_conserved(0)
    workload.lanes[0].running.clear()
    with pytest.raises(ConservationError, match="ended, but in flight is None"):
        workload.batch_ended(batch)


# ---------------------------------------------------------------- the loop


def test_a_run_until_an_instant_handles_the_events_of_that_instant():
    run = Simulation(ServingSystem(spec()).system, ConstantDurations(moe=True, layers=2))
    while run.next_time == 0:
        run.step()
    due = run.next_time
    run.run(until=due)
    assert run.now == due
    assert run.next_time is None or run.next_time > due


# ---------------------------------------------------------------- placement and requests


def test_placements_by_name():
    assert parse_placement("random", 2) == RandomLane(0)
    assert parse_placement("random", 2, 7) == RandomLane(7)
    assert parse_placement(" round robin", 2) == parse_placement("round-robin", 2) == RoundRobin()
    assert parse_placement("fixed:0,1", 2) == FixedLanes((0, 1))
    with pytest.raises(ValueError, match=r"names lane 2, but there are lanes 0 \.\.\. 1$"):
        parse_placement("fixed:2", 2)
    known = r"one of: round_robin, least_outstanding, random, fixed:0,1,\.\.\.$"
    with pytest.raises(ValueError, match=known):
        parse_placement("nearest", 2)


def test_poisson_times_start_at_zero_and_their_rate_is_bounded():
    assert poisson_times(3, 1e9, seed=1)[-1] < 100
    with pytest.raises(ValueError, match="from 1e-6 to 1e9 a second"):
        poisson_times(1, 1e9 + 1, seed=1)


def test_uniform_requests_keep_their_times():
    assert [r.arrival_ns for r in uniform_requests(3, 1, 1, (0, 5, 9))] == [0, 5, 9]


def test_rows_of_one_instant_keep_their_order():
    trace = "arrival_ms,prefill_tokens,decode_tokens\n2,9,1\n2,3,7\n1,5,5\n"
    assert read_requests_csv(trace, None, None) == (
        Request(0, 5, 5, MILLISECOND),
        Request(1, 9, 1, 2 * MILLISECOND),
        Request(2, 3, 7, 2 * MILLISECOND),
    )
    assert read_requests_csv("1.5\n", 4, 2) == (Request(0, 4, 2, 3 * SECOND // 2),)


def test_a_row_without_its_time_is_named():
    with pytest.raises(ValueError, match=r"row 2 of the trace: expected a time .* got ''$"):
        read_requests_csv("prefill_tokens,arrival_s\n16\n", None, 2)


# ---------------------------------------------------------------- descriptions


@pytest.mark.parametrize("name", ["lanes", "stages", "layers", "micro_batches"])
def test_a_shape_below_one_is_named(name):
    with pytest.raises(ConfigurationError, match=f"^{name} must be at least 1, got 0$"):
        spec(**{name: 0}).require_valid()


@pytest.mark.parametrize("name", ["token_budget", "max_sequences", "block_size", "num_blocks"])
def test_a_limit_below_one_is_named(name):
    with pytest.raises(ConfigurationError, match=f"^{name} must be at least 1, got 0$"):
        spec(batching=replace(BatchingConfig(), **{name: 0})).require_valid()


def test_refusals_say_what_to_do():
    with pytest.raises(ConfigurationError, match=r"expected one of: co-location, pdd, pd-af$"):
        spec("ring").require_valid()
    with pytest.raises(ConfigurationError, match=r"got lanes = 2; use lanes = 1$"):
        spec("pd-af", lanes=2).require_valid()
    two = spec("pd-af", lanes=2).replica
    serving = (ServingConfig(1), ServingConfig(1))
    with pytest.raises(ValueError, match="takes one lane per role, got 2 for PREFILL"):
        PdAfCluster(two, two, FfnShape(), serving, ())


def test_a_decode_attention_replica_has_one_lane():
    with pytest.raises(ValueError, match=r"^DECODE_ATTN takes one lane, got 2 lanes$"):
        AttentionReplica(
            spec("pd-af", lanes=2).replica, RequestWorkload(ServingConfig(2), ()), list
        )


def test_every_layer_may_be_dense_and_the_rules_reach_all_parts():
    rule = ADMISSION_RULES["strict_fifo"]
    described = spec("pd-af", ffn=FfnShape(2, 4), admission=rule, placement=FixedLanes((0,)))
    built = ServingSystem(described)
    stages = [part for part in built.system.parts.values() if isinstance(part, FfnReplica)]
    assert [stage.config.admission for stage in stages] == [rule, rule]
    assert {w.config.placement for w in built.workloads.values()} == {FixedLanes((0,))}
