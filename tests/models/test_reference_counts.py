"""The reference counts of PROTOCOL.md section 5, exactly."""

import pytest

from models.scenario import Scenario
from verify.cli.checking import check_scenario

# lanes, stages, batches, layers, admission -> per tie setting: states, transitions, drained, depth
TABLE = [
    ((2, 1, 2, 1, "strict_fifo"), (16, 20, 0, None), (16, 25, 0, None)),
    ((2, 2, 2, 1, "strict_fifo"), (2, 1, 1, 1), (2, 1, 1, 1)),
    ((2, 2, 2, 1, "lane_aware"), (218, 419, 5, 11), (228, 810, 5, 7)),
    ((2, 2, 2, 1, "ep_ordered"), (268, 565, 0, None), (278, 1125, 0, None)),
    ((2, 2, 2, 1, "late_ticket"), (63, 101, 2, 11), (171, 578, 4, 7)),
    ((3, 1, 2, 1, "strict_fifo"), (45, 68, 3, 8), (47, 121, 3, 6)),
    ((3, 1, 2, 1, "ep_ordered"), (39, 65, 0, None), (41, 118, 0, None)),
    ((2, 2, 2, 2, "ep_ordered"), (684, 1484, 0, None), (694, 2851, 0, None)),
]
OPEN = [
    ("standard", (187, 313, 9, 9), (187, 507, 9, 5)),
    ("withdraw_joined", (145, 262, 0, None), (145, 432, 0, None)),
]


def counts(**values):
    data = check_scenario(Scenario.of(values)).to_json()
    return data["states"], data["transitions"], data["violating_states"], data["depth"]


@pytest.mark.parametrize(("shape", "without", "with_ties"), TABLE, ids=lambda v: str(v))
@pytest.mark.parametrize("ties", [False, True])
def test_burst(shape, without, with_ties, ties):
    lanes, stages, batches, layers, admission = shape
    found = counts(
        lanes=lanes, stages=stages, batches=batches, layers=layers, admission=admission, ties=ties
    )
    assert found == (with_ties if ties else without)


@pytest.mark.parametrize(("stand_in", "without", "with_ties"), OPEN)
@pytest.mark.parametrize("ties", [False, True])
def test_open_arrivals(stand_in, without, with_ties, ties):
    found = counts(lanes=3, stages=1, batches=1, stand_in=stand_in, arrivals="open", ties=ties)
    assert found == (with_ties if ties else without)
