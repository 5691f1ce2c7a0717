"""Traces of witnesses and of simulator runs obey the trace-event format."""

import copy
import json

import pytest

from tests.verify.cli.program import Program, program
from tests.verify.cli.trace_format import faults

__all__ = ["program"]

RUNS = (
    "--lanes 4 --stages 2 --layers 3 --requests 24 --arrivals poisson:100 --seed 3 --rooms shared",
    "--lanes 2 --stages 2 --layers 3 --model dense --requests 8 --decode 3",
    "--architecture pdd --lanes 2 --stages 2 --layers 2 --requests 8 --decode 2",
    "--architecture pd-af --lanes 1 --stages 1 --layers 2 --requests 6 --decode 2",
)


@pytest.mark.parametrize(
    "case", ["rival-a-lane-aware", "late-join-open", "capacity-one-starvation", "stale-no-wake"]
)
def test_the_trace_of_a_witness_is_valid(program: Program, tmp_path, case):
    trace = tmp_path / "trace.json"
    assert program("explain", case, "--trace", trace).code == 0
    data = json.loads(trace.read_text())
    assert faults(data) == []
    assert any(event["ph"] == "X" for event in data["traceEvents"])


@pytest.mark.parametrize("run", RUNS)
def test_the_trace_of_a_simulator_run_is_valid(program: Program, tmp_path, run):
    trace = tmp_path / "trace.json"
    assert program("simulate", *run.split(" "), "--trace", trace).code in (0, 1)
    assert faults(json.loads(trace.read_text())) == []


def test_what_breaks_the_format_is_found(program: Program, tmp_path):
    trace = tmp_path / "trace.json"
    program("explain", "rival-a-lane-aware", "--trace", trace)
    good = json.loads(trace.read_text())
    flow = next(at for at, e in enumerate(good["traceEvents"]) if e["ph"] == "f")
    piece = next(at for at, e in enumerate(good["traceEvents"]) if e["ph"] == "X")
    for at, change in (
        (flow, {"id": 99}),
        (flow, {"ts": 1e9}),
        (piece, {"dur": -1}),
        (piece, {"tid": 77}),
        (piece, {"ph": "Y"}),
    ):
        broken = copy.deepcopy(good)
        broken["traceEvents"][at] |= change
        assert faults(broken) != []
