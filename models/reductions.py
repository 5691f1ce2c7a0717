"""What can be taken from a scenario, one thing at a time, boldest first (issue 5).

A reduction is the smaller scenario, and where the events of the larger one's schedule are in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, Final

from frontier.events import DENSE, EXPERT, REQUEST
from models.groups import GroupScenario
from models.scenario import NOTHING_STALE, STEPS_FOREVER, Scenario
from models.schedule import Key, Ranks
from models.subjects import AnyScenario


@dataclass(frozen=True)
class Reduction:
    """One thing taken away: the smaller scenario, and where the old events are in it."""

    label: str
    scenario: AnyScenario
    moved: Callable[[Key], Key | None]

    def ranks(self, ranks: Ranks) -> dict[Key, int]:
        """Carry ranks over."""
        return {new: rank for key, rank in ranks.items() if (new := self.moved(key)) is not None}


def _same(key: Key) -> Key:
    return key


def _nowhere(key: Key) -> Key | None:  # noqa: ARG001
    """Nothing is carried over: a search finds a schedule of its own."""
    return None


def _with_phases(
    scenario: Scenario, phases: Sequence[Sequence[str]], **changes: object
) -> Scenario:
    """Return a scenario with these batches; phases are left out where none is decode.

    A closed workload keeps its slots, as many in each lane.
    """
    if scenario.endless:
        return replace(scenario, batches=(scenario.slots,) * len(phases), **changes)  # type: ignore[arg-type]
    batches = tuple(len(lane) for lane in phases)
    named = tuple(tuple(lane) for lane in phases)
    plain = all(phase == "prefill" for lane in named for phase in lane)
    fields = {"batches": batches, "phases": None if plain else named, **changes}
    return replace(scenario, **fields)  # type: ignore[arg-type]


def _below(value: int, removed: int) -> int:
    return value - (value > removed)


def without_lane(scenario: Scenario, lane: int) -> Reduction:
    """Take a lane away with its batches."""
    phases = [own for at, own in enumerate(scenario.batch_phases) if at != lane]
    smaller = _with_phases(scenario, phases, lanes=scenario.lanes - 1)

    def moved(key: Key) -> Key | None:
        return None if key.lane == lane else key._replace(lane=_below(key.lane, lane))

    return Reduction(f"lane {lane}", smaller, moved)


def without_stage(scenario: Scenario, stage: int) -> Reduction:
    """Take a stage away; later ones move up."""

    def moved(key: Key) -> Key | None:
        return None if key.stage == stage else key._replace(stage=_below(key.stage, stage))

    return Reduction(f"stage {stage}", replace(scenario, stages=scenario.stages - 1), moved)


def without_layer(scenario: Scenario, layer: int) -> Reduction:
    """Take a layer of every stage away."""

    def moved(key: Key) -> Key | None:
        return None if key.layer == layer else key._replace(layer=_below(key.layer, layer))

    return Reduction(f"layer {layer}", replace(scenario, layers=scenario.layers - 1), moved)


def without_batches(scenario: Scenario, lane: int, first: int, count: int) -> Reduction:
    """Take consecutive batches of a lane away; its later ones move up."""
    phases = [list(own) for own in scenario.batch_phases]
    del phases[lane][first : first + count]

    def moved(key: Key) -> Key | None:
        if key.lane != lane or key.number < first:
            return key
        return None if key.number < first + count else key._replace(number=key.number - count)

    what = f"batch {first}" if count == 1 else f"batches {first} to {first + count - 1}"
    return Reduction(f"{what} of lane {lane}", _with_phases(scenario, phases), moved)


def as_prefill(scenario: Scenario, lane: int, number: int) -> Reduction:
    """Turn a decode batch into a prefill batch."""
    phases = [list(own) for own in scenario.batch_phases]
    phases[lane][number] = "prefill"
    label = f"the decode phase of lane {lane} batch {number}"
    return Reduction(label, _with_phases(scenario, phases), _same)


def as_burst(scenario: Scenario) -> Reduction:
    """Let every batch wait from the start."""

    def moved(key: Key) -> Key | None:
        return None if key.kind == REQUEST else key

    return Reduction("open arrivals", replace(scenario, arrivals="burst"), moved)


def lane_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Every lane, unless it is the last one left."""
    if scenario.lanes > 1:
        yield from (without_lane(scenario, lane) for lane in reversed(range(scenario.lanes)))


def stage_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Every stage, unless it is the last one left."""
    if scenario.stages > 1:
        yield from (without_stage(scenario, stage) for stage in reversed(range(scenario.stages)))


def layer_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Every layer, unless it is the last one left."""
    if scenario.layers > 1:
        yield from (without_layer(scenario, layer) for layer in reversed(range(scenario.layers)))


def batch_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Yield runs of batches of every lane, long ones first, down to single batches."""
    size = max(scenario.batches, default=0)
    while size:
        for lane, count in enumerate(scenario.batches):
            for first in range(0, count - size + 1, size):
                yield without_batches(scenario, lane, first, size)
        size //= 2


def single_batch_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Every single batch."""
    for lane, count in enumerate(scenario.batches):
        yield from (without_batches(scenario, lane, number, 1) for number in range(count))


def phase_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Every decode batch as a prefill batch."""
    for lane, phases in enumerate(scenario.batch_phases):
        for number, phase in enumerate(phases):
            if phase == "decode":
                yield as_prefill(scenario, lane, number)


def arrival_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Open arrivals as a burst."""
    if scenario.arrivals == "open":
        yield as_burst(scenario)


def small_shapes(scenario: AnyScenario) -> Iterator[Reduction]:
    """Much smaller shapes, simplest first, for searches: no schedule is carried over."""
    shapes = _small_lanes(scenario) if isinstance(scenario, Scenario) else _small_groups(scenario)
    seen = set()
    for shape in shapes:
        if shape not in seen:
            seen.add(shape)
            yield Reduction("all but a small shape", shape, _nowhere)


def _small_lanes(scenario: Scenario) -> Iterator[Scenario]:
    """Take some lanes, their first batches (slots), fewer stages, a single layer."""
    shapes = []
    deepest = min(max(scenario.batches, default=0), 2)
    for lanes in range(1, min(scenario.lanes, 4) + 1):
        for stages in range(1, min(scenario.stages, 3) + 1):
            for batches in range(1, deepest + 1):
                for chosen in combinations(range(scenario.lanes), lanes):
                    phases = [scenario.batch_phases[lane][:batches] for lane in chosen]
                    fewer = replace_slots(scenario, batches) if scenario.endless else scenario
                    smaller = _with_phases(fewer, phases, lanes=lanes, stages=stages, layers=1)
                    shapes.append((lanes, stages, sum(smaller.batches), smaller))
    arrivals = ("burst",) if scenario.arrivals == "burst" else ("burst", "open")
    for *_, shape in sorted(shapes, key=lambda shape: shape[:3]):
        yield from (replace(shape, arrivals=kind) for kind in arrivals)


def _small_groups(scenario: GroupScenario) -> Iterator[GroupScenario]:
    """Take at most two producers, each with a run of at most three of its groups."""
    runs = [
        {own[first : first + size] for size in (1, 2, 3) for first in range(len(own) - size + 1)}
        for own in scenario.groups
    ]
    shapes = []
    for count in (1, 2):
        for chosen in combinations(range(len(runs)), count):
            for groups in product(*(sorted(runs[producer]) for producer in chosen)):
                smaller = replace(scenario, groups=groups, ep_size=min(scenario.ep_size, 2))
                shapes.append(smaller)
    yield from sorted(shapes, key=lambda s: (len(s.groups), sum(map(len, s.groups))))


# -------------------------------------------------------------------- work without end


def replace_slots(scenario: Scenario, slots: int) -> Scenario:
    """Return a closed workload with this many slots in each lane."""
    return replace(scenario, slots=slots, batches=(slots,) * scenario.lanes)


def slot_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """One slot of every lane less."""
    if scenario.slots > 1:
        smaller = replace_slots(scenario, scenario.slots - 1)
        yield Reduction("a slot of every lane", smaller, _nowhere)


def step_reductions(scenario: Scenario) -> Iterator[Reduction]:
    """Fewer steps of each request."""
    for steps in _fewer(scenario.steps):
        yield Reduction(
            f"all but {_count(steps, 'step')} of a request",
            replace(scenario, steps=steps),
            _nowhere,
        )


def _fewer(value: int | str) -> tuple[int, ...]:
    """Smaller numbers to try: of what has no end the smallest two, else the one before."""
    if value == STEPS_FOREVER:
        return (1, 2)
    return (int(value) - 1,) if int(value) > 1 else ()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def stale_reductions(scenario: AnyScenario) -> Iterator[Reduction]:
    """Every invalidation, then some of them."""
    if scenario.stale == NOTHING_STALE:
        return
    without = replace(scenario, stale=NOTHING_STALE, interruptions=1)
    yield Reduction("the invalidations", without, _same)
    for most in _fewer(scenario.interruptions):
        label = f"all but {_count(most, 'invalidation')}"
        yield Reduction(label, replace(scenario, interruptions=most), _same)


# -------------------------------------------------------------------- groups


def producer_reductions(scenario: GroupScenario) -> Iterator[Reduction]:
    """Every producer, unless it is the last one left."""
    if len(scenario.groups) > 1:
        for producer in reversed(range(len(scenario.groups))):
            left = scenario.groups[:producer] + scenario.groups[producer + 1 :]
            yield Reduction(f"producer {producer}", replace(scenario, groups=left), _nowhere)


def group_reductions(scenario: GroupScenario) -> Iterator[Reduction]:
    """Every single group of a producer that has others."""
    for producer, script in enumerate(scenario.groups):
        for number in range(len(script) if len(script) > 1 else 0):
            left = script[:number] + script[number + 1 :]
            label = f"group {number} of producer {producer}"
            yield Reduction(label, _with_script(scenario, producer, left), _nowhere)


def expert_reductions(scenario: GroupScenario) -> Iterator[Reduction]:
    """Every expert group as a dense one."""
    for producer, script in enumerate(scenario.groups):
        for number, kind in enumerate(script):
            if kind == EXPERT:
                changed = (*script[:number], DENSE, *script[number + 1 :])
                label = f"the experts of group {number} of producer {producer}"
                yield Reduction(label, _with_script(scenario, producer, changed), _nowhere)


def _with_script(scenario: GroupScenario, producer: int, script: tuple[str, ...]) -> GroupScenario:
    groups = (*scenario.groups[:producer], script, *scenario.groups[producer + 1 :])
    return replace(scenario, groups=groups)


def scheduler_reductions(scenario: GroupScenario) -> Iterator[Reduction]:
    """One EP lane less, one full-stage scheduler less."""
    if scenario.ep_size > 1:
        yield Reduction("an EP lane", replace(scenario, ep_size=scenario.ep_size - 1), _nowhere)
    if scenario.full_stages > 1:
        fewer = replace(scenario, full_stages=scenario.full_stages - 1)
        yield Reduction("a full-stage scheduler", fewer, _nowhere)


# -------------------------------------------------------------------- families


Family = tuple[str, Callable[[Any], Iterator[Reduction]]]
"""A name, and the reductions of a scenario."""

_FINITE: Final[tuple[Family, ...]] = (
    ("lanes", lane_reductions),
    ("stages", stage_reductions),
    ("batches", single_batch_reductions),
    ("layers", layer_reductions),
    ("phases", phase_reductions),
    ("arrivals", arrival_reductions),
    ("invalidations", stale_reductions),
)
_CLOSED: Final[tuple[Family, ...]] = (
    ("lanes", lane_reductions),
    ("stages", stage_reductions),
    ("slots", slot_reductions),
    ("layers", layer_reductions),
    ("steps", step_reductions),
    ("arrivals", arrival_reductions),
    ("invalidations", stale_reductions),
)
_GROUPS: Final[tuple[Family, ...]] = (
    ("producers", producer_reductions),
    ("groups", group_reductions),
    ("schedulers", scheduler_reductions),
    ("experts", expert_reductions),
    ("invalidations", stale_reductions),
)


def single_reductions(scenario: AnyScenario) -> tuple[Family, ...]:
    """Families of single reductions of a kind of scenario, boldest first."""
    if not isinstance(scenario, Scenario):
        return _GROUPS
    return _CLOSED if scenario.endless else _FINITE


def carried_reductions(scenario: AnyScenario) -> tuple[Family, ...]:
    """Families through which a schedule is carried over: of finite work of lanes."""
    if not isinstance(scenario, Scenario) or scenario.endless:
        return ()
    return tuple(
        (name, batch_reductions if name == "batches" else family) for name, family in _FINITE
    )
