"""Every request ends, however small the cache, under the rules that are proved to be live."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape
from frontier.durations import MILLISECOND, RandomDurations
from frontier.requests import Request, uniform_requests
from frontier.rooms import SharedRooms
from frontier.standin import STAND_IN_RULES
from frontier.system import ServingSpec
from models.serving import ServingRun

MOST_EVENTS = 60_000
"""Far more than any run here takes; one that preempts for ever takes more."""


class Limit:
    """Ends a run that does not end by itself."""

    def __init__(self):
        self.events = 0

    def __call__(self, _now, _event, _follow):
        self.events += 1
        assert self.events < MOST_EVENTS, "the run does not end"


@st.composite
def specs(draw):
    architecture = draw(st.sampled_from(["co-location", "pdd", "pd-af"]))
    alone = architecture == "pd-af"
    stages, layers = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    sizes = draw(st.lists(st.tuples(st.integers(1, 16), st.integers(1, 5)), min_size=1, max_size=7))
    gaps = draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    requests = tuple(
        Request(number, *size, arrival_ns=sum(gaps[: number + 1]) * MILLISECOND)
        for number, size in enumerate(sizes)
    )
    most = max(prefill + decode - 1 for prefill, decode in sizes)
    chunked = draw(st.booleans())
    limits = BatchingConfig(
        token_budget=draw(st.integers(1 if chunked else most, 24)),
        max_sequences=draw(st.integers(1, 4)),
        block_size=(block := draw(st.sampled_from([1, 2, 4]))),
        num_blocks=-(-most // block) + draw(st.integers(0, 3)),
        chunked_prefill=chunked,
    )
    return ServingSpec(
        architecture=architecture,
        lanes=1 if alone else draw(st.integers(1, 3)),
        stages=stages,
        layers=layers,
        moe=draw(st.booleans()),
        requests=requests,
        stand_in=STAND_IN_RULES["withdraw_joined"],
        rooms=SharedRooms(),
        batching=limits,
        burst=draw(st.booleans()),
        micro_batches=draw(st.integers(1, 3)) if alone else 1,
        ffn=FfnShape(ep_size=2, dense_layers=draw(st.integers(0, stages * layers)))
        if alone
        else FfnShape(),
    )


GAVE_WAY_TO_EACH_OTHER_FOR_EVER = ServingSpec(
    architecture="co-location",
    lanes=1,
    stages=2,
    layers=1,
    moe=False,
    requests=(Request(0, 1, 3), Request(1, 1, 3, arrival_ns=14 * MILLISECOND)),
    stand_in=STAND_IN_RULES["withdraw_joined"],
    rooms=SharedRooms(),
    batching=BatchingConfig(token_budget=1, max_sequences=1, block_size=1, num_blocks=3),
    burst=False,
)
"""Each preempted itself whenever the other had a chunk in flight."""


@given(spec=specs(), seed=st.integers(0, 99))
@example(spec=GAVE_WAY_TO_EACH_OTHER_FOR_EVER, seed=0)
@settings(max_examples=150, deadline=None)
def test_every_request_ends_however_small_the_cache(spec, seed):
    durations = RandomDurations(1, 9 * MILLISECOND, seed)
    run = ServingRun(spec, durations, observers=[lambda _: Limit()])
    assert run.run() == "success"
    assert run.serving.finished == len(spec.requests)
    assert run.serving.prefill_tokens == sum(r.prefill_tokens for r in spec.requests)
    assert run.serving.decode_tokens == sum(r.decode_tokens for r in spec.requests)


def test_an_odd_request_is_split_from_the_others_only_where_rooms_are_split():
    """Three requests on lane 0 and two on lane 1: one prefills while the other decodes.

    Known of rooms by phase (PROTOCOL.md section 6), whatever the cache and the admission rule.
    """
    spec = ServingSpec(
        architecture="co-location",
        lanes=2,
        stages=2,
        layers=2,
        moe=True,
        requests=uniform_requests(5, 20, 3),
        batching=BatchingConfig(block_size=4, num_blocks=12),
    )
    split = ServingRun(spec)
    assert split.run() == "other_failure"
    explanation = split.explain()
    assert explanation is not None
    assert explanation.classification == "split_rendezvous"
    assert ServingRun(replace(spec, rooms=SharedRooms())).run() == "success"
