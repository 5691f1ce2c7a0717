"""Shrinking a counterexample of a scenario: configuration and schedule together (issue 5).

Passes come in two kinds. *Replays* carry the schedule over to a smaller scenario and are cheap
whatever its size; they are for finite work of lanes, of which long runs are recorded. *Searches*
explore every timing of a smaller scenario for a shortest schedule to the same kind of violation;
they decide, so that at the end each single reduction that was not taken is known to be
impossible, unless its scenario is beyond the limit of states. What is simpler than what says
:func:`models.counterexample.sort_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from models.counterexample import Counterexample, sort_key
from models.liveness import PROGRESS, STARVATION
from models.reductions import (
    Reduction,
    carried_reductions,
    single_reductions,
    small_shapes,
)
from models.scenario import Scenario
from models.subjects import AnyScenario
from models.trials import RUN_CLASSES, Trials, Wanted
from verify.shrink import Obstacle, Pass, Proposal, Rejection, Shrinker, Step

KEEP: Final = ("any", "class", "cycle")
"""What a smaller counterexample must share: nothing but being one, the class, or also the kinds
of waits around the cycle (of a run: the property that it violates)."""

SMALL: Final = 3000
"""States that a search may see while it looks for a much smaller shape."""

Reductions = Callable[[Any], Iterator[Reduction]]
Proposals = Callable[[Counterexample], Iterator[Proposal[Counterexample]]]


def liveness_of(scenario: AnyScenario) -> tuple[str, ...]:
    """Properties of runs that a check asks of a scenario by itself."""
    asked = scenario.endless or not isinstance(scenario, Scenario)
    return (PROGRESS, STARVATION) if asked else ()


def wanted_like(origin: Counterexample, keep: str) -> Wanted:
    """Return what a smaller counterexample must be like, given what is kept."""
    liveness = liveness_of(origin.scenario)
    if keep == "any":
        return Wanted(None, None, liveness, origin.fairness)
    signature = origin.signature if keep == "cycle" else None
    return Wanted(origin.classification, signature, liveness, origin.fairness)


# -------------------------------------------------------------------- passes


def _replaying(trials: Trials, reductions: Reductions) -> Proposals:
    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        ranks = best.ranks
        for reduction in reductions(best.scenario):

            def attempt(r: Reduction = reduction) -> Counterexample | Rejection:
                return trials.replay(r.scenario, r.ranks(ranks))

            yield Proposal(reduction.label, attempt)

    return proposals


def _searching(trials: Trials, reductions: Reductions, max_states: int | None = None) -> Proposals:
    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        for reduction in reductions(best.scenario):

            def attempt(r: Reduction = reduction) -> Counterexample | Rejection:
                return trials.search(r.scenario, max_states)

            yield Proposal(reduction.label, attempt)

    return proposals


def _merging(trials: Trials) -> Proposals:
    """Two instants as one, for scenarios too large to search for a shortest schedule."""

    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        if not best.scenario.ties:
            return
        ranks = best.ranks
        for number in range(1, len(best.schedule)):
            merged = {k: rank - 1 if rank == number else rank for k, rank in ranks.items()}

            def attempt(ranks: dict[Any, int] = merged) -> Counterexample | Rejection:
                return trials.replay(best.scenario, ranks)

            yield Proposal(f"instant {number + 1}", attempt)

    return proposals


def _shortest(trials: Trials) -> Proposals:
    """Any instant or tie: a search for a shortest schedule with the fewest ties."""

    def proposals(best: Counterexample) -> Iterator[Proposal[Counterexample]]:
        def attempt() -> Counterexample | Rejection:
            found = trials.search(best.scenario)
            if isinstance(found, Rejection):
                return found
            if (len(found.schedule), found.ties) < (len(best.schedule), best.ties):
                return found
            if not trials.is_exact(best.scenario):
                return Rejection("not decided: too many lassos to try them all", proved=False)
            return Rejection("proved impossible: every shorter schedule was explored", proved=True)

        yield Proposal("any instant, any tie", attempt)

    return proposals


# -------------------------------------------------------------------- all together


@dataclass(frozen=True)
class Shrunk:
    """What shrinking came to.

    ``steps`` are the reductions taken, ``obstacles`` why no single further one works.
    ``interrupted`` says that it was ended before it was done, and that ``best`` is the simplest
    counterexample until then.
    """

    origin: Counterexample
    best: Counterexample
    steps: tuple[Step, ...]
    obstacles: tuple[Obstacle, ...]
    tried: int
    interrupted: bool = False

    @property
    def is_minimal(self) -> bool:
        """Whether every single reduction is proved impossible."""
        return not self.interrupted and all(o.rejection.proved for o in self.obstacles)


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

    Returns
    -------
    Shrunk
        An interrupt from the keyboard ends it early, with what is known by then.
    """
    trials = Trials(wanted_like(origin, keep), max_states)
    singles = [
        Pass(name, _searching(trials, family))
        for name, family in single_reductions(origin.scenario)
    ]
    singles.append(Pass("schedule", _shortest(trials)))
    shrinker = Shrinker(origin, sort_key)
    obstacles: tuple[Obstacle, ...] = ()
    interrupted = False
    try:
        shrinker.shrink([*_quick(trials, origin), *singles])
        shrinker.best = _canonical(trials, shrinker.best)
        tried = shrinker.tried
        trials.forget()
        obstacles = shrinker.obstacles(singles)
    except KeyboardInterrupt:
        interrupted, tried = True, shrinker.tried
    return Shrunk(origin, shrinker.best, tuple(shrinker.steps), obstacles, tried, interrupted)


def _quick(trials: Trials, origin: Counterexample) -> list[Pass[Counterexample]]:
    """Return passes that take much away at little cost: replays, much smaller shapes."""
    carried = () if origin.classification in RUN_CLASSES else carried_reductions(origin.scenario)
    replays = [Pass(name, _replaying(trials, family)) for name, family in carried]
    if replays:
        replays.append(Pass("instants", _merging(trials)))
    return [*replays, Pass("small shapes", _searching(trials, small_shapes, SMALL))]


def _canonical(trials: Trials, best: Counterexample) -> Counterexample:
    """Of equally simple schedules the one that the search finds, whatever the source was."""
    found = trials.search(best.scenario)
    if isinstance(found, Counterexample) and sort_key(found) == sort_key(best):
        return found
    return best
