"""The lockstep reference: ranks pair one to one and never wait for ever."""

import pytest

from frontier.des import Simulation
from frontier.durations import MILLISECOND, ConstantDurations
from frontier.events import WAVE_END, Batch, Event
from models.lockstep import Lockstep
from models.pairings import PairingModel, Unfinished, Wave, WholeRun, shapes
from models.quiescent import ProtocolState, QuiescentModel
from models.scenario import Scenario
from verify.explorer import explore
from verify.labels import shown_labels
from verify.properties import never_drained
from verify.verdict import Holds

SMALL = [s for s in shapes(Scenario()) if (s.lanes, s.stages, s.arrivals) != (3, 2, "open")]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda s: f"{s.lanes}x{s.stages}-{s.arrivals}")
def test_every_run_ends_complete(scenario: Scenario) -> None:
    model = QuiescentModel(lambda: Lockstep.of(scenario), ties=True)
    drained = never_drained(model.is_complete)
    assert isinstance(explore(model, [drained]).verdict, Holds)


@pytest.mark.parametrize("scenario", SMALL, ids=lambda s: f"{s.lanes}x{s.stages}-{s.arrivals}")
def test_a_batch_meets_the_same_partners_at_every_stage_and_layer(scenario: Scenario) -> None:
    model = PairingModel.reference(scenario)
    runs = [
        label
        for label in shown_labels(model.recorded, model.labels).witnesses
        if isinstance(label, WholeRun)
    ]
    assert runs
    for run in runs:
        steps = {members for _, _, members in run.waves}
        places = scenario.stages * scenario.layers
        assert len(run.waves) == len(steps) * places
        ran = sorted(batch for members in steps for batch in members)
        assert ran == sorted({b for members in steps for b in members})
        assert len(ran) == sum(scenario.batches)
        assert all(len({b.lane for b in members}) == len(members) for members in steps)


def test_a_burst_has_one_pairing_whatever_the_times() -> None:
    model = PairingModel.reference(Scenario(batches=(3, 2)))
    labels = shown_labels(model.recorded, model.labels).witnesses
    pairs = [(Batch(0, n), Batch(1, n)) for n in (0, 1)]
    waves = {Wave(s, 0, members) for s in (0, 1) for members in [*pairs, (Batch(0, 2),)]}
    assert {x for x in labels if isinstance(x, WholeRun)} == {WholeRun(frozenset(waves))}
    assert {x for x in labels if isinstance(x, Wave)} == waves


def test_a_request_that_comes_during_a_dummy_waits_for_the_next_step() -> None:
    scenario = Scenario(stages=1, batches=(1, 1), arrivals="open", ties=False)
    model = PairingModel.reference(scenario)
    waves = {x for x in shown_labels(model.recorded, model.labels).witnesses if isinstance(x, Wave)}
    assert waves == {Wave(0, 0, (Batch(lane, 0),)) for lane in (0, 1)}


def test_the_discrete_event_loop_drives_it() -> None:
    seen: list[tuple[int, Event]] = []
    simulation = Simulation(
        Lockstep.of(Scenario(batches=(2, 1))),
        ConstantDurations(True, 1, 8 * MILLISECOND, 6 * MILLISECOND, 8 * MILLISECOND),
        [lambda now, event, _: seen.append((now // MILLISECOND, event))],
    )
    simulation.run()
    waves = [(now, e.stage, len(e.members)) for now, e in seen if e.kind == WAVE_END]
    assert waves == [(14, 0, 2), (36, 0, 1), (36, 1, 2), (58, 1, 1)]


def test_restore_is_the_inverse_of_snapshot() -> None:
    scenario = Scenario(batches=(2, 1), arrivals="open")
    model = QuiescentModel(lambda: Lockstep.of(scenario), ties=True)
    states: list[ProtocolState] = list(explore(model, []).states)
    system = Lockstep.of(scenario)
    for state in states:
        system.restore(state.system)  # type: ignore[arg-type]
        assert system.snapshot() == state.system


def test_shapes_are_ordered_and_follow_the_rules() -> None:
    found = list(shapes(Scenario(stand_in="blocked_is_idle", ties=False)))
    sizes = [(s.lanes, s.stages, s.layers) for s in found]
    assert sizes == sorted(sizes)
    assert len(set(found)) == len(found) == 28
    assert {(s.stand_in, s.ties) for s in found} == {("blocked_is_idle", False)}


def test_words() -> None:
    wave = Wave(1, 0, (Batch(0, 1), Batch(1, 1)))
    assert str(wave) == "stage 1, layer 0: lane 0 batch 1 with lane 1 batch 1"
    alone = Wave(0, 0, (Batch(0, 0),))
    assert str(WholeRun(frozenset({wave, alone}))) == f"{alone}; {wave}"
    assert str(alone) == "stage 0, layer 0: lane 0 batch 0 alone"
    assert str(Unfinished("why")) == "why"


def test_where_partners_change() -> None:
    a, b = Batch(0, 0), Batch(1, 0)
    together, alone = [(a, b)], [(a,), (b,)]

    def run(*groups: tuple[int, int, list[tuple[Batch, ...]]]) -> str:
        waves = {Wave(stage, layer, g) for stage, layer, some in groups for g in some}
        return WholeRun(frozenset(waves)).partners_change

    assert run((0, 0, together), (0, 1, together), (1, 0, together)) == ""
    assert run((0, 0, together), (1, 0, alone)) == "stages"
    assert run((0, 0, together), (0, 1, alone), (1, 0, alone)) == "layers"
