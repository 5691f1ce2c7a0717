"""Why: the published state and cycle, and the class of every kind of violation."""

import pytest

from models.scenario import Scenario
from verify.cli.checking import check_scenario


def first(**values):
    result = check_scenario(Scenario.of(values))
    return result.witnesses[0], result.to_json()


def test_the_published_state_and_cycle():
    """PROTOCOL.md section 6, first bullet."""
    witness, data = first(admission="strict_fifo")
    assert data["depth"] == 1
    stage = data["stages"][0]
    assert [(t["seq"], t["lane"]) for t in stage["active"]] == [(0, 1)]
    assert [(t["seq"], t["lane"]) for t in stage["fifo"]] == [(1, 1), (2, 0), (3, 0)]
    assert stage["sealed"] is False
    assert [lane["running"] is not None for lane in stage["lanes"]] == [False, True]
    (room,) = stage["rooms"]
    assert (room["layer"], room["holds"], room["waits_for"]) == (0, [1], [0])
    assert [edge.source for edge in witness.wait_for.cycle] == [
        "lane 1 at stage 0",
        "room (stage 0, layer 0)",
        "lane 0 at stage 0",
        "ticket seq 1 (lane 1) of stage 0",
    ]
    assert witness.wait_for.cycle[-1].target == "lane 1 at stage 0"
    assert data["schedule"] == [
        [
            {
                "kind": "attention_done",
                "lane": 1,
                "batch": 0,
                "stage": 0,
                "layer": 0,
                "batches": None,
            }
        ]
    ]


@pytest.mark.parametrize(
    ("values", "classification", "words"),
    [
        ({"admission": "strict_fifo"}, "circular_wait", "waits for itself"),
        ({"admission": "lane_aware"}, "lost_wakeup", "no event is left that would retry it"),
        ({"lanes": 3}, "stranded_rendezvous", "sealed group keeps out"),
        (
            {"lanes": 3, "stages": 1, "batches": 1, "arrivals": "open"},
            "stranded_rendezvous",
            "nothing left to bring",
        ),
        (
            {"lanes": 3, "stages": 1, "batches": 1, "arrivals": "open", "layers": 2},
            "stranded_rendezvous",
            "has passed it",
        ),
        (
            {"stages": 1, "phases": "p;d", "rooms": "by_phase"},
            "split_rendezvous",
            "decode room",
        ),
    ],
)
def test_classes_and_their_words(values, classification, words):
    witness, data = first(**values)
    assert data["classification"] == classification
    assert words in witness.text


@pytest.mark.parametrize("admission", ["strict_fifo", "lane_aware", "late_ticket"])
def test_everything_unfinished_is_stuck_in_a_drained_state(admission):
    """Nothing is pending, so whoever waits is in the stuck set."""
    result = check_scenario(Scenario.of({"admission": admission}), all_violations=True)
    assert result.witnesses
    for witness in result.witnesses:
        waiting = {wait.source for wait in witness.wait_for.waits}
        assert set(witness.wait_for.stuck) == waiting
        assert witness.wait_for.cycle or witness.wait_for.dead_ends
