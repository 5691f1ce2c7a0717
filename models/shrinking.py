"""Shrinking a counterexample of a scenario: configuration and schedule together (issue 5).

Order of simplicity (:func:`sort_key`), most significant first: lanes, then stages, because each
multiplies what a reader must hold in mind; batches, then layers, because each lengthens the
story; decode phases and open arrivals, because each is one more thing that varies; then the
schedule: instants, and ties among their events, because a tie is a coincidence.

Passes come in two kinds. *Replays* carry the schedule over to a smaller scenario and are cheap
whatever its size. *Searches* explore every timing of a smaller scenario for a shortest schedule
to the same kind of violation; they decide, so that at the end each single reduction that was not
taken is known to be impossible, unless its scenario is beyond the limit of states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from frontier.events import REQUEST
from models.quiescent import Action, ProtocolState, QuiescentModel, QuiescentRun
from models.scenario import Scenario
from models.schedule import Key, Played, Ranks, Schedule, play, play_exactly, ranks_of, replica_of
from models.subjects import AnyScenario
from models.waits import CORE_ERROR, classify, lane_waits
from verify.shortest import Found, GaveUp, TooWideError, shortest_path
from verify.shrink import Obstacle, Pass, Proposal, Rejection, Shrinker, Step
from verify.waitfor import WaitFor

KEEP: Final = ("any", "class", "cycle")
"""What a smaller counterexample must share: nothing but being one, the class, or also the kinds
of waits around the cycle."""

SMALL: Final = 3000
"""States that a search may see while it looks for a much smaller shape."""

STEPS_PER_STATE: Final = 8
"""Steps that a search may take for each state that it may see."""


@dataclass(frozen=True)
class Counterexample:
    """A schedule of a scenario that ends in a violation.

    ``signature`` are the kinds of waits around the cycle, smallest rotation first; without a
    cycle, the kinds of the waits that nothing ends.
    """

    scenario: Scenario
    schedule: Schedule
    classification: str
    signature: tuple[str, ...]

    @property
    def ties(self) -> int:
        """Number of coincidences: events beyond the first of each instant."""
        return sum(len(instant) - 1 for instant in self.schedule)

    @property
    def ranks(self) -> dict[Key, int]:
        """Instant of each event."""
        return ranks_of(self.schedule, self.scenario.lanes)


def signature_of(analysis: WaitFor) -> tuple[str, ...]:
    """Kinds of the waits that hold a violating state, whatever the names of its participants."""
    kinds = tuple(edge.kind for edge in analysis.cycle)
    if kinds:
        return min(kinds[i:] + kinds[:i] for i in range(len(kinds)))
    return tuple(sorted({wait.kind for wait in analysis.dead_ends}))


def counterexample_of(played: Played) -> Counterexample | None:
    """Return the counterexample that a run is, or None if it ends in no violation."""
    found = played.classification
    if found is None:
        return None
    return Counterexample(played.scenario, played.schedule, found, signature_of(played.analysis()))


def sort_key(example: Counterexample) -> tuple[int | tuple[int, ...], ...]:
    """Order of simplicity; smaller is simpler. See the module's docstring for why."""
    scenario = example.scenario
    return (
        scenario.lanes,
        scenario.stages,
        sum(scenario.batches),
        scenario.layers,
        _decodes(scenario),
        int(scenario.arrivals == "open"),
        len(example.schedule),
        example.ties,
        scenario.batches,
    )


def _decodes(scenario: Scenario) -> int:
    return sum(phase == "decode" for lane in scenario.batch_phases for phase in lane)


# -------------------------------------------------------------------- reductions


@dataclass(frozen=True)
class Reduction:
    """One thing taken away: the smaller scenario, and where the old events are in it."""

    label: str
    scenario: Scenario
    moved: Callable[[Key], Key | None]

    def ranks(self, ranks: Ranks) -> dict[Key, int]:
        """Carry ranks over."""
        return {new: rank for key, rank in ranks.items() if (new := self.moved(key)) is not None}


def _same(key: Key) -> Key:
    return key


def _with_phases(
    scenario: Scenario, phases: Sequence[Sequence[str]], **changes: object
) -> Scenario:
    """Return a scenario with these batches; phases are left out where none is decode."""
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


def small_shapes(scenario: Scenario) -> Iterator[Reduction]:
    """Much smaller shapes, simplest first: some lanes, their first batches, fewer stages.

    They are for searches: no schedule is carried over.
    """
    shapes = []
    deepest = min(max(scenario.batches, default=0), 2)
    for lanes in range(1, min(scenario.lanes, 4) + 1):
        for stages in range(1, min(scenario.stages, 3) + 1):
            for batches in range(1, deepest + 1):
                for chosen in combinations(range(scenario.lanes), lanes):
                    phases = [scenario.batch_phases[lane][:batches] for lane in chosen]
                    smaller = _with_phases(scenario, phases, lanes=lanes, stages=stages, layers=1)
                    shapes.append((lanes, stages, sum(smaller.batches), smaller))
    arrivals = ("burst",) if scenario.arrivals == "burst" else ("burst", "open")
    seen = set()
    for *_, shape in sorted(shapes, key=lambda shape: shape[:3]):
        for kind in arrivals:
            smaller = replace(shape, arrivals=kind)
            if smaller not in seen:
                seen.add(smaller)
                yield Reduction("all but a small shape", smaller, lambda _key: None)


SINGLE_REDUCTIONS: Final = (
    ("lanes", lane_reductions),
    ("stages", stage_reductions),
    ("batches", single_batch_reductions),
    ("layers", layer_reductions),
    ("phases", phase_reductions),
    ("arrivals", arrival_reductions),
)


# -------------------------------------------------------------------- trying


class BoundedModel(QuiescentModel):
    """The scenario's transition system for bounded work.

    Raises :class:`~verify.shortest.TooWideError` on a state with more instants than states are
    allowed, and after :data:`STEPS_PER_STATE` times as many steps.
    """

    def __init__(self, scenario: AnyScenario, max_states: int) -> None:
        super().__init__(scenario.make_replica, scenario.ties)
        self._widest = max_states.bit_length() if scenario.ties else max_states
        self._steps_left = STEPS_PER_STATE * max_states

    def actions(self, state: ProtocolState) -> Sequence[Action]:
        """Instants enabled in a state."""
        if len(state.pending) > self._widest:
            raise TooWideError
        return super().actions(state)

    def step(self, state: ProtocolState, action: Action) -> ProtocolState:
        """State after an instant."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise TooWideError
        return super().step(state, action)


class Trials:
    """Tries reductions: keeps what must be kept, remembers what was explored.

    Parameters
    ----------
    origin
        The counterexample whose kind of violation is kept.
    keep
        One of :data:`KEEP`.
    max_states
        States that a search may see before it gives up.
    """

    def __init__(self, origin: Counterexample, keep: str, max_states: int) -> None:
        self._origin = origin
        self._keep = keep
        self._max_states = max_states
        self._searched: dict[Scenario, Counterexample | Rejection] = {}

    def accepts(self, classification: str, signature: Callable[[], tuple[str, ...]]) -> bool:
        """Whether a violation is of the kind to keep."""
        if self._keep == "any":
            return True
        if classification != self._origin.classification:
            return False
        return self._keep == "class" or signature() == self._origin.signature

    def replay(self, scenario: Scenario, ranks: Ranks) -> Counterexample | Rejection:
        """Carry a schedule over."""
        found = counterexample_of(play(scenario, ranks))
        if found is None:
            return Rejection("the schedule carried over completes", proved=False)
        if not self.accepts(found.classification, lambda: found.signature):
            return Rejection(f"ends in another violation: {found.classification}", proved=False)
        return found

    def search(
        self, scenario: Scenario, max_states: int | None = None
    ) -> Counterexample | Rejection:
        """Explore every timing for a shortest schedule with the fewest ties."""
        known = self._searched.get(scenario)
        if known is None or (max_states is None and not _decided(known)):
            limit = max_states or self._max_states
            known = self._searched[scenario] = self._explore(scenario, limit)
        return known

    def forget(self) -> None:
        """Forget what was explored, so that it is explored again."""
        self._searched.clear()

    def _explore(self, scenario: Scenario, max_states: int) -> Counterexample | Rejection:
        model = BoundedModel(scenario, max_states)
        live = QuiescentRun(scenario.make_replica())

        def is_goal(state: ProtocolState) -> bool:
            if state.failed is None and state.pending:
                return False
            live.restore(state)
            if state.failed is None and live.system.is_complete:
                return False
            analysis = lane_waits(replica_of(live), state.pending)
            found = CORE_ERROR if state.failed is not None else classify(analysis)
            return self.accepts(found, lambda: signature_of(analysis))

        result = shortest_path(model, is_goal, len, max_states)
        if isinstance(result, Found):
            return self._realise(scenario, model, result)
        if isinstance(result, GaveUp):
            return Rejection(f"not decided within {max_states} states", proved=False)
        return Rejection(f"proved impossible: all {result.states} states", proved=True)

    def _realise(
        self, scenario: Scenario, model: QuiescentModel, path: Found
    ) -> Counterexample | Rejection:
        run = model.begin()
        schedule = []
        for number in path.actions:
            action = model.actions(run.state())[number]
            schedule.append(tuple(run.pending[position] for position in action))
            run.fire(action)
        found = counterexample_of(play_exactly(scenario, tuple(schedule)))
        if found is None:
            raise AssertionError(f"the path {path} found for {scenario} replays to no violation")
        return found


def _decided(result: Counterexample | Rejection) -> bool:
    return isinstance(result, Counterexample) or result.proved


def _replaying(
    trials: Trials, reductions: Callable[[Scenario], Iterator[Reduction]]
) -> Callable[[Counterexample], Iterator[Proposal[Counterexample]]]:
    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        ranks = best.ranks
        for reduction in reductions(best.scenario):

            def attempt(r: Reduction = reduction) -> Counterexample | Rejection:
                return trials.replay(r.scenario, r.ranks(ranks))

            yield Proposal(reduction.label, attempt)

    return proposals


def _searching(
    trials: Trials,
    reductions: Callable[[Scenario], Iterator[Reduction]],
    max_states: int | None = None,
) -> Callable[[Counterexample], Iterator[Proposal[Counterexample]]]:
    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        for reduction in reductions(best.scenario):

            def attempt(r: Reduction = reduction) -> Counterexample | Rejection:
                return trials.search(r.scenario, max_states)

            yield Proposal(reduction.label, attempt)

    return proposals


def _merging(trials: Trials) -> Callable[[Counterexample], Iterator[Proposal[Counterexample]]]:
    """Two instants as one, for scenarios too large to search for a shortest schedule."""

    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        if not best.scenario.ties:
            return
        ranks = best.ranks
        for number in range(1, len(best.schedule)):
            merged = {k: rank - 1 if rank == number else rank for k, rank in ranks.items()}

            def attempt(ranks: Ranks = merged) -> Counterexample | Rejection:
                return trials.replay(best.scenario, ranks)

            yield Proposal(f"instant {number + 1}", attempt)

    return proposals


def _shortest(trials: Trials) -> Callable[[Counterexample], Iterator[Proposal[Counterexample]]]:
    """Any instant or tie: a search for a shortest schedule with the fewest ties."""

    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        def attempt() -> Counterexample | Rejection:
            found = trials.search(best.scenario)
            if isinstance(found, Rejection):
                return found
            if (len(found.schedule), found.ties) < (len(best.schedule), best.ties):
                return found
            return Rejection("proved impossible: every shorter schedule was explored", proved=True)

        yield Proposal("any instant, any tie", attempt)

    return proposals


# -------------------------------------------------------------------- all together


@dataclass(frozen=True)
class Shrunk:
    """What shrinking came to.

    ``steps`` are the reductions taken, ``obstacles`` why no single further one works.
    """

    origin: Counterexample
    best: Counterexample
    steps: tuple[Step, ...]
    obstacles: tuple[Obstacle, ...]
    tried: int

    @property
    def is_minimal(self) -> bool:
        """Whether every single reduction is proved impossible."""
        return all(obstacle.rejection.proved for obstacle in self.obstacles)


def shrink(origin: Counterexample, keep: str = "class", max_states: int = 20_000) -> Shrunk:
    """Shrink a counterexample to one from which no single thing can be taken away.

    Parameters
    ----------
    origin
        The counterexample, of any size.
    keep
        What the smaller one must share, one of :data:`KEEP`.
    max_states
        States that the search of one smaller scenario may see.
    """
    trials = Trials(origin, keep, max_states)
    families = (*SINGLE_REDUCTIONS[:2], ("batches", batch_reductions), *SINGLE_REDUCTIONS[3:])
    replays = [Pass(name, _replaying(trials, family)) for name, family in families]
    replays.append(Pass("instants", _merging(trials)))
    singles = [Pass(name, _searching(trials, family)) for name, family in SINGLE_REDUCTIONS]
    singles.append(Pass("schedule", _shortest(trials)))
    leap = Pass("small shapes", _searching(trials, small_shapes, SMALL))
    shrinker = Shrinker(origin, sort_key)
    shrinker.shrink([*replays, leap, *singles])
    shrinker.best = _canonical(trials, shrinker.best)
    tried, steps = shrinker.tried, tuple(shrinker.steps)
    trials.forget()
    obstacles = shrinker.obstacles(singles)
    return Shrunk(origin, shrinker.best, steps, obstacles, tried)


def _canonical(trials: Trials, best: Counterexample) -> Counterexample:
    """Of equally simple schedules the one that the search finds, whatever the source was."""
    found = trials.search(best.scenario)
    if isinstance(found, Counterexample) and sort_key(found) == sort_key(best):
        return found
    return best
