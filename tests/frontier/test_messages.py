"""What a person is told of a system that cannot be, word by word."""

import re
from dataclasses import replace

import pytest

from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape
from frontier.placement import parse_placement
from frontier.requests import Request
from frontier.system import ConfigurationError, ServingSpec

SPEC = ServingSpec("co-location", 2, 1, 1, True, (Request(0, 3, 2, 0),))
PD_AF = replace(SPEC, architecture="pd-af", lanes=1, stages=2, layers=3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lanes": 0}, "lanes must be at least 1, got 0"),
        ({"stages": 0}, "stages must be at least 1, got 0"),
        ({"layers": -1}, "layers must be at least 1, got -1"),
        ({"micro_batches": 0}, "micro_batches must be at least 1, got 0"),
        ({"ffn": FfnShape(ep_size=0)}, "ep_size must be at least 1, got 0"),
        (
            {"architecture": "ring"},
            "unknown architecture 'ring'; expected one of: co-location, pdd, pd-af",
        ),
        ({"micro_batches": 2}, "micro_batches is for pd-af only, got 2 with co-location"),
        *[
            ({"batching": BatchingConfig(**{name: 0})}, f"{name} must be at least 1, got 0")
            for name in ("token_budget", "max_sequences", "block_size", "num_blocks")
        ],
    ],
    ids=str,
)
def test_a_shape_that_cannot_be(change, said):
    with pytest.raises(ConfigurationError) as caught:
        replace(SPEC, **change).require_valid()
    assert str(caught.value) == said


@pytest.mark.parametrize("name", ["lanes", "stages", "layers", "micro_batches"])
def test_one_is_enough(name):
    replace(SPEC, **{name: 1}).require_valid()


def test_pd_af_takes_one_lane():
    with pytest.raises(ConfigurationError) as caught:
        replace(PD_AF, lanes=2).require_valid()
    assert str(caught.value) == (
        "pd-af takes one lane per role (PREFILL, DECODE_ATTN), got lanes = 2; use lanes = 1"
    )


@pytest.mark.parametrize("dense", [-1, 7])
def test_dense_layers_are_layers_of_the_model(dense):
    with pytest.raises(ConfigurationError) as caught:
        replace(PD_AF, ffn=FfnShape(ep_size=2, dense_layers=dense)).require_valid()
    assert str(caught.value) == f"dense_layers must be 0 ... 6 for a model of 6 layers, got {dense}"
    for fine in (0, 6):
        replace(PD_AF, ffn=FfnShape(ep_size=2, dense_layers=fine)).require_valid()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fixed:0,2", "fixed placement names lane 2, but there are lanes 0 ... 1"),
        ("fixed:a", "fixed placement must be 'fixed:0,1,...', got 'fixed:a'"),
        (
            "nearest",
            "unknown placement 'nearest'; expected one of: round_robin, least_outstanding, "
            "random, fixed:0,1,...",
        ),
    ],
)
def test_a_placement_that_cannot_be(text, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        parse_placement(text, 2)


def test_placements_by_name():
    assert parse_placement("fixed:0, 1", 2).lanes == (0, 1)
    assert parse_placement("least-outstanding", 2).name == "least_outstanding"
    assert parse_placement(" round robin", 2).name == "round_robin"
    assert parse_placement("random", 5) == parse_placement("random", 5, 0)
    assert parse_placement("random", 5, 3).seed == 3
