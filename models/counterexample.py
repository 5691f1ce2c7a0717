"""Counterexamples: a schedule of a scenario and the violation that it shows (issue 5).

A violation is a bad *state* (drained, failing, a broken invariant), or a *run*: a lasso that
repeats for ever without what should happen again and again, or an admission past an EP wave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from models.groups import GroupScenario
from models.quiescent import ProtocolState, QuiescentRun
from models.scenario import NOTHING_STALE, STEPS_FOREVER, Scenario
from models.schedule import Key, Played, Schedule, ranks_of
from models.subjects import AnyScenario, invariants_of, waits_of
from models.waits import CORE_ERROR, INVARIANT_VIOLATION, ORPHAN_TICKET, WAVE_ORDER, classify
from verify.properties import Property
from verify.waitfor import WaitFor

DRAINED: Final = "drained"
UNFINISHED: Final = "no event is left, but work is unfinished"
INVARIANT_CLASSES: Final = (ORPHAN_TICKET, INVARIANT_VIOLATION)
_ENDLESS: Final = 1 << 30

SortKey = tuple[int | tuple[int, ...], ...]


@dataclass(frozen=True)
class Violated:
    """What a counterexample violates: the property, of which lane and stage, and in words."""

    name: str
    message: str
    lane: int = -1
    stage: int = -1


WAVE_PASSED: Final = Violated(WAVE_ORDER, "a queued EP wave is overtaken")


@dataclass(frozen=True)
class Counterexample:
    """A schedule of a scenario that shows a violation.

    ``signature`` are the kinds of waits around the cycle, smallest rotation first; without a
    cycle, the kinds of the waits that nothing ends; else the name of what is violated. The last
    ``repeats`` instants of a lasso lead back to the state before them and repeat for ever, with
    ``fairness`` being what is assumed of pending events.
    """

    scenario: AnyScenario
    schedule: Schedule
    classification: str
    signature: tuple[str, ...]
    violated: Violated = Violated(DRAINED, UNFINISHED)
    repeats: int = 0
    fairness: str = "weak"

    @property
    def ties(self) -> int:
        """Number of coincidences: events beyond the first of each instant."""
        return sum(len(instant) - 1 for instant in self.schedule)

    @property
    def ranks(self) -> dict[Key, int]:
        """Instant of each event of a scenario of lanes."""
        lanes = self.scenario.lanes if isinstance(self.scenario, Scenario) else 0
        return ranks_of(self.schedule, lanes)


def signature_of(analysis: WaitFor) -> tuple[str, ...]:
    """Kinds of the waits that hold a violating state, whatever the names of its participants."""
    kinds = tuple(edge.kind for edge in analysis.cycle)
    if kinds:
        return min(kinds[i:] + kinds[:i] for i in range(len(kinds)))
    return tuple(sorted({wait.kind for wait in analysis.dead_ends}))


# -------------------------------------------------------------------- bad states


def bad_states(
    run: QuiescentRun,
    state: ProtocolState,
    invariants: tuple[Property[ProtocolState], ...],
) -> Iterator[tuple[str, tuple[str, ...], Violated]]:
    """Say what is wrong with a live run's state: class, signature and what is violated.

    Parameters
    ----------
    run, state
        The live run, and the state that it is in.
    invariants
        Invariants to judge; drained and failing states are always judged.
    """
    if state.failed is not None:
        message = str(run.failure or f"the core rejected {state.failed}")
        signature = signature_of(waits_of(run.system, run.pending))
        yield CORE_ERROR, signature, Violated(CORE_ERROR, message)
        return
    for prop in invariants:
        broken = prop.violation(state, not state.pending)
        if broken is not None:
            known = ORPHAN_TICKET if prop.name == ORPHAN_TICKET else INVARIANT_VIOLATION
            yield known, (prop.name,), Violated(prop.name, broken)
    if not state.pending and not run.system.is_complete:
        analysis = waits_of(run.system, run.pending)
        yield classify(analysis), signature_of(analysis), Violated(DRAINED, UNFINISHED)


def counterexample_of(played: Played) -> Counterexample | None:
    """Return the counterexample that a run's last state is, or None if nothing is wrong with it."""
    run, state = played.run, played.run.state()
    found = next(bad_states(run, state, invariants_of(played.scenario)), None)
    if found is None:
        return None
    classification, signature, violated = found
    return Counterexample(played.scenario, played.schedule, classification, signature, violated)


# -------------------------------------------------------------------- order of simplicity


def sort_key(example: Counterexample) -> SortKey:
    """Order of simplicity of counterexamples of one kind of scenario; smaller is simpler.

    Most significant first. Lanes, then stages, because each multiplies what a reader must hold in
    mind; batches (slots), then layers, because each lengthens the story; decode phases, steps of
    a request, open arrivals and invalidations, because each is one more thing that varies; then
    the schedule: instants, and ties among their events, because a tie is a coincidence. Of groups
    the producers come first, then the groups, schedulers, and expert groups, which are several
    child batches where a dense one is a single batch.
    """
    scenario = example.scenario
    shape = _lanes_key(scenario) if isinstance(scenario, Scenario) else _groups_key(scenario)
    last = scenario.batches if isinstance(scenario, Scenario) else ()
    return (*shape, len(example.schedule), example.ties, last)


def _lanes_key(scenario: Scenario) -> tuple[int, ...]:
    return (
        scenario.lanes,
        scenario.stages,
        sum(scenario.batches),
        scenario.layers,
        sum(phase == "decode" for lane in scenario.batch_phases for phase in lane),
        _number(scenario.steps),
        int(scenario.arrivals == "open"),
        _invalidations(scenario),
    )


def _groups_key(scenario: GroupScenario) -> tuple[int, ...]:
    kinds = [kind for script in scenario.groups for kind in script]
    return (
        len(scenario.groups),
        len(kinds),
        scenario.ep_size + scenario.full_stages,
        sum(kind == "expert" for kind in kinds),
        _invalidations(scenario),
    )


def _number(value: int | str) -> int:
    return _ENDLESS if value == STEPS_FOREVER else int(value)


def _invalidations(scenario: AnyScenario) -> int:
    return 0 if scenario.stale == NOTHING_STALE else _number(scenario.interruptions)
