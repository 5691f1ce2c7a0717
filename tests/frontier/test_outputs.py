"""What a run writes, byte by byte: ledger, metrics, result and trace of four small runs.

The files in ``golden/`` are what these runs wrote before; after a change that is meant to change
them, delete them, run this module, which writes missing ones and fails, and read the difference.
"""

import json
from pathlib import Path

import pytest

from frontier.admission import ADMISSION_RULES
from frontier.batching import BatchingConfig
from frontier.chrome import ChromeTrace
from frontier.clusters import FfnShape
from frontier.durations import RandomDurations
from frontier.requests import Request, uniform_requests
from frontier.rooms import ROOM_RULES
from frontier.system import ServingSpec
from models.serving import ServingRun

GOLDEN = Path(__file__).parent / "golden"
THREE = (Request(0, 3, 2, 0), Request(1, 2, 3, 1_500_000), Request(2, 1, 1, 2_000_000))
TWO = THREE[:2]

RUNS = {
    "co-location": ServingSpec("co-location", 2, 2, 2, True, THREE, rooms=ROOM_RULES["shared"]),
    "pdd": ServingSpec("pdd", 2, 1, 1, False, TWO),
    "pd-af": ServingSpec(
        "pd-af", 1, 1, 2, True, TWO, ffn=FfnShape(ep_size=2, dense_layers=1), micro_batches=2
    ),
    "deadlock": ServingSpec(
        "co-location",
        2,
        2,
        1,
        True,
        uniform_requests(4, 3, 2),
        admission=ADMISSION_RULES["strict_fifo"],
        batching=BatchingConfig(max_sequences=1),
    ),
}


def written(spec):
    """Every text that a run of 1 ms to 5 ms a piece gives."""
    rows, traces = [], []

    def make(serving):
        traces.append(ChromeTrace(serving))
        return traces[0]

    run = ServingRun(
        spec,
        RandomDurations(1_000_000, 5_000_000, seed=3),
        (rows.append, lambda row: traces[0].row(row)),
        (make,),
    )
    run.run()
    result = {name: value for name, value in run.to_json().items() if name != "explanation"}
    texts = {
        **run.metrics_files(),
        "ledger": run.ledger_text(rows),
        "result": json.dumps(result, indent=1),
        "trace": traces[0].text(run.simulation.now),
    }
    return "".join(f"==== {name}\n{text}\n" for name, text in texts.items())


@pytest.mark.parametrize("name", RUNS)
def test_a_run_writes_the_same_bytes_as_ever(name):
    path, text = GOLDEN / f"{name}.txt", written(RUNS[name])
    if not path.exists():
        path.write_text(text)
        pytest.fail(f"{path} was missing; it is written now: read it")
    assert text == path.read_text()
