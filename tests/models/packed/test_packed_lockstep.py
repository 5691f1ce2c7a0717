"""The lockstep certificate: the packed engine and the core agree on every small scenario."""

import random
from dataclasses import replace

import numpy as np
import pytest
from packed_lockstep import packed, random_scenario, reference

from frontier.events import ATTENTION_DONE
from frontier.rooms import RoomKey
from models.catalogue import catalogue
from models.claims import ReachedClaims
from models.packed import kernel as k
from models.packed import lanes
from models.packed.bridge import Bridge
from models.packed.lanes import CLAIMS, PackedLanes, outside_domain
from models.quiescent import ProtocolState, QuiescentModel
from models.scenario import Scenario
from verify.packed.model import Block
from verify.packed.search import Search

MOST = 600
SCENARIOS = 300


@pytest.mark.parametrize("part", range(6))
def test_random_scenarios_agree_in_states_transitions_ends_depth_and_claims(part):
    rng = random.Random(f"lockstep {part}")
    compared = 0
    while compared < SCENARIOS // 6:
        scenario = random_scenario(rng)
        expected = reference(scenario, MOST)
        if expected is not None:
            compared += 1
            assert packed(scenario) == expected, scenario


CASES = [
    case
    for case in catalogue().values()
    if isinstance(case.scenario, Scenario) and outside_domain(case.scenario) is None
]
"""Cases of the catalogue inside the packed domain."""


def test_every_catalogue_case_has_the_counts_that_the_reference_engine_found():
    for case in CASES:
        seen, expected = packed(case.scenario), case.expect
        found = (
            len(seen.rows),
            seen.transitions,
            seen.depth,
            len(seen.drained | seen.failed),
        )
        assert found == (
            expected.states,
            expected.transitions,
            expected.depth,
            expected.violating_states,
        ), case.name
    assert len(CASES) > 40


def test_small_catalogue_cases_agree_state_by_state():
    for case in CASES:
        if case.expect.states < MOST:
            assert packed(case.scenario) == reference(case.scenario, MOST), case.name


@pytest.mark.heavy
def test_every_catalogue_case_agrees_state_by_state():
    for case in CASES:
        assert packed(case.scenario) == reference(case.scenario, 1_000_000), case.name


# PROTOCOL.md section 5: lanes, stages, batches, layers, admission -> ties off, ties on
PUBLISHED = {
    (2, 1, 2, 1, "strict_fifo"): ((16, 20, 0, None), (16, 25, 0, None)),
    (2, 2, 2, 1, "strict_fifo"): ((2, 1, 1, 1), (2, 1, 1, 1)),
    (2, 2, 2, 1, "lane_aware"): ((218, 419, 5, 11), (228, 810, 5, 7)),
    (2, 2, 2, 1, "ep_ordered"): ((268, 565, 0, None), (278, 1125, 0, None)),
    (2, 2, 2, 1, "late_ticket"): ((63, 101, 2, 11), (171, 578, 4, 7)),
    (3, 1, 2, 1, "strict_fifo"): ((45, 68, 3, 8), (47, 121, 3, 6)),
    (3, 1, 2, 1, "ep_ordered"): ((39, 65, 0, None), (41, 118, 0, None)),
    (2, 2, 2, 2, "ep_ordered"): ((684, 1484, 0, None), (694, 2851, 0, None)),
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("shape", PUBLISHED)
def test_published_counts(shape, ties):
    lanes, stages, batches, layers, admission = shape
    seen = packed(
        Scenario(
            lanes=lanes,
            stages=stages,
            layers=layers,
            batches=(batches,) * lanes,
            admission=admission,
            ties=ties,
        )
    )
    found = (len(seen.rows), seen.transitions, len(seen.drained), seen.depth)
    assert found == PUBLISHED[shape][ties]


@pytest.mark.parametrize(
    ("stand_in", "ties", "expected"),
    [
        ("standard", False, (187, 313, 9, 9)),
        ("standard", True, (187, 507, 9, 5)),
        ("withdraw_joined", False, (145, 262, 0, None)),
        ("withdraw_joined", True, (145, 432, 0, None)),
    ],
)
def test_published_counts_of_open_arrivals(stand_in, ties, expected):
    seen = packed(
        Scenario(
            lanes=3, stages=1, batches=(1, 1, 1), stand_in=stand_in, arrivals="open", ties=ties
        )
    )
    assert (len(seen.rows), seen.transitions, len(seen.drained), seen.depth) == expected


def test_every_transition_moves_on_and_claims_are_the_cores():
    assert list(CLAIMS) == list(ReachedClaims().reached)
    assert len(set(CLAIMS.values())) == len(CLAIMS)


def stale_placeholders(state: ProtocolState, rng: random.Random) -> ProtocolState | None:
    """A state no run reaches: a room holds a placeholder of a lane that is busy elsewhere.

    It is how the protocol's error paths are entered, which reachable states never are.
    """
    snapshot = state.system
    rooms = {key: dict(entries) for key, entries in snapshot.rooms}
    for event in state.pending:
        if event.kind == ATTENTION_DONE and rng.random() < 0.7:
            rooms.setdefault(shared_key(event), {})
    changed = False
    for key, held in rooms.items():
        for lane, (running, _) in enumerate(snapshot.stages[key.stage].lanes):
            if lane not in held and running is not None and rng.random() < 0.7:
                held[lane] = None
                changed = True
    frozen = tuple(sorted((key, tuple(sorted(held.items()))) for key, held in rooms.items()))
    return state._replace(system=snapshot._replace(rooms=frozen)) if changed else None


def shared_key(event):
    return RoomKey(event.stage, event.layer)


def test_failing_transitions_agree_from_unreachable_states():
    rng = random.Random("stale")
    failing = 0
    for number in range(60):
        scenario = random_scenario(rng)
        scenario = replace(scenario, model="moe", rooms="shared")
        if scenario.lanes == 1 or scenario.lanes * scenario.stages > 6:
            continue
        core = QuiescentModel(scenario.make_replica, scenario.ties)
        model = PackedLanes(scenario)
        bridge, expander = Bridge(model), model.expander()
        block = Block.of(model.width, max(1, model.most_choices), 1)
        (state,) = core.initial_states()
        for _ in range(12):
            actions = core.actions(state)
            if not actions:
                break
            odd = stale_placeholders(state, rng)
            if odd is not None and sum(e.kind == ATTENTION_DONE for e in odd.pending):
                expander(bridge.row_of(odd)[np.newaxis], block)
                found = {block.rows[i].tobytes() for i in range(block.count)}
                following = [core.step(odd, action) for action in core.actions(odd)]
                assert found == {bridge.row_of(s).tobytes() for s in following}, (number, odd)
                failing += sum(s.failed is not None for s in following)
            state = core.step(state, rng.choice(actions))
    assert failing > 20, "the error paths were hardly entered"


def test_outside_the_certified_domain(tmp_path):
    assert outside_domain(Scenario(lanes=17, batches=(1,) * 17)) is not None
    many = Scenario(lanes=8, stages=3, batches=(3,) * 8, ties=True)
    assert "ties" in str(outside_domain(many))
    (tmp_path / "mine.py").write_text(
        'from frontier.admission import EpOrdered\n\n\nclass Mine(EpOrdered):\n    """Own."""\n'
    )
    own = Scenario(admission=f"{tmp_path / 'mine.py'}:Mine")
    assert "no admission rule" in str(outside_domain(own))
    with pytest.raises(ValueError, match="ties"):
        PackedLanes(many)


def test_parts_and_whole_states_give_the_same_search():
    """Successors put together from stages' moves are those that are worked out whole, in order."""
    rng, compared = random.Random("parts"), 0
    while compared < 40:
        scenario = replace(random_scenario(rng), ties=False, rooms="shared")
        if scenario.lanes * scenario.stages > 6 or sum(scenario.batches) > 8:
            continue
        compared += 1
        for reductions in ((), ("canonical",)):
            searches = []
            for parts in (True, False):
                model = PackedLanes(scenario, reductions)
                assert model.layout.geometry[k.PARTS]
                model.layout.geometry[k.PARTS] = parts
                searches.append(Search(model, threads=1))
                searches[-1].run()
            assert_same(*searches)


def test_forgotten_moves_are_worked_out_again(monkeypatch):
    scenario = Scenario(lanes=3, stages=2, batches=(2, 2, 2), ties=False)
    whole = packed(scenario)
    monkeypatch.setattr(lanes, "MEMO_BYTES", 3000)
    assert packed(scenario) == whole


def assert_same(one, two):
    assert one.tally.ends == two.tally.ends
    assert one.tally.bounds == two.tally.bounds
    assert one.tally.transitions == two.tally.transitions
    assert one.tally.reached == two.tally.reached
    for a, b in zip(one.shards, two.shards, strict=True):
        assert np.array_equal(a.keys[: a.count], b.keys[: b.count])
        assert np.array_equal(a.parents[: a.count], b.parents[: b.count])


def test_numbering_does_not_depend_on_threads():
    scenario = Scenario(lanes=3, stages=3, batches=(2, 2, 2), ties=False)
    searches = []
    for threads in (1, 2):
        search = Search(PackedLanes(scenario), threads=threads)
        search.run()
        searches.append(search)
    assert_same(*searches)
