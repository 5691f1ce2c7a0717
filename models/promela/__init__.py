"""The lanes protocol in Promela, for SPIN: a third implementation, and a yardstick (issue 6).

The text is put together from ``lanes.pml``: shape, initial values and one option per (lane, stage).
SPIN is only used where it is installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from models.scenario import Scenario, ScenarioError

TEMPLATE: Final = Path(__file__).with_name("lanes.pml")

ATTENTION: Final = 2
"""Status of a lane that was just admitted, as in ``lanes.pml``."""


def promela(scenario: Scenario) -> str:
    """Write the model of a scenario.

    Raises
    ------
    ScenarioError
        If the scenario is not what the Promela model is written for.
    """
    _require(scenario)
    lanes, stages, batches = scenario.lanes, scenario.stages, scenario.batches[0]
    in_flight = min(batches, stages)
    order = [*range(1, lanes), 0]
    fifo = [1 + lane for lane in order for _ in range(in_flight)]
    for lane in range(lanes):
        fifo.remove(1 + lane)
    slots = lanes * in_flight
    fifo += [0] * (slots * stages - len(fifo))
    status = ([ATTENTION] + [0] * (stages - 1)) * lanes
    queued = ([in_flight - 1] + [0] * (stages - 1)) * lanes
    state = "\n".join(
        [
            f"#define LANES {lanes}",
            f"#define STAGES {stages}",
            f"#define SLOTS {slots}",
            f"#define URGENT {(lanes + 4) + 2 * stages + 4}",
            _array("status", status),
            _array("queued", queued),
            _array("waiting", [batches - in_flight] * lanes),
            _array("fifo", fifo),
            _array("room", [0] * stages),
            _array("sealed", [0] * stages),
        ]
    )
    options = "\n".join(
        f"    :: d_step {{ {_pending(lane, stage, stages)} -> fire({lane}, {stage}) }}"
        for lane in range(lanes)
        for stage in range(stages)
    )
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.replace("/*STATE*/", state).replace("/*OPTIONS*/", options)


def _array(name: str, values: list[int]) -> str:
    return f"byte {name}[{len(values)}] = {{ {', '.join(map(str, values))} }};"


def _pending(lane: int, stage: int, stages: int) -> str:
    """Whether (lane, stage) has a timed event; a wave's goes by its lowest lane."""
    here = f"status[{lane * stages + stage}]"
    lower = "".join(f" && status[{other * stages + stage}] != IN_WAVE" for other in range(lane))
    return f"({here} == ATTENTION || {here} == TAIL || ({here} == IN_WAVE{lower}))"


def _require(scenario: Scenario) -> None:
    wanted = {
        "admission": "ep_ordered",
        "stand_in": "withdraw_joined",
        "model": "moe",
        "layers": 1,
        "rooms": "shared",
        "arrivals": "burst",
        "ties": False,
    }
    for name, value in wanted.items():
        if getattr(scenario, name) != value:
            raise ScenarioError(
                f"the Promela model is written for {name} {value!r}, "
                f"got {getattr(scenario, name)!r}"
            )
    if len(set(scenario.batches)) != 1 or scenario.batches[0] < 1 or scenario.lanes > 8:
        raise ScenarioError("the Promela model takes up to 8 lanes with equally many batches")
