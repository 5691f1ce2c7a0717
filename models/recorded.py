"""What a recorded path shows: a bad state, an admission past an EP wave, or a lasso (issue 5)."""

from __future__ import annotations

from collections.abc import Sequence

from models.counterexample import WAVE_PASSED, Counterexample, Violated, counterexample_of
from models.cycle import finding_of_cycle, is_fair
from models.lasso_story import STOPPED_RUN
from models.liveness import PROGRESS, STARVATION
from models.marks import MarkedModel
from models.schedule import Played, walk_path
from models.subjects import AnyScenario, marker_of
from models.trials import overtakes
from models.waits import WAVE_ORDER
from verify.path import EncodedPath, PathError


def recorded_counterexample(
    scenario: AnyScenario,
    path: EncodedPath,
    max_states: int,
    fairness: str = "weak",
    names: Sequence[str] = (PROGRESS, STARVATION),
) -> Counterexample | None:
    """Replay a path and say what it shows, None if that is no violation.

    Parameters
    ----------
    scenario, path
        The path and the scenario that it is of.
    max_states
        States that may be explored to judge a lasso.
    fairness
        What is assumed of pending events along a lasso.
    names
        Properties of runs that a lasso is judged by.

    Raises
    ------
    PathError
        If the path is of another version of the protocol.
    """
    played = walk_path(scenario, path)
    if path.cycle:
        return _lasso(played, path, names, max_states, fairness)
    found = counterexample_of(played)
    if found is None and _last_overtakes(scenario, path):
        return Counterexample(
            scenario, played.schedule, WAVE_ORDER, (WAVE_ORDER,), WAVE_PASSED, fairness=fairness
        )
    return found


def stopped_run(scenario: AnyScenario, path: EncodedPath, violated: Violated) -> Counterexample:
    """Return a run that stops although events are pending: possible only without fairness."""
    played = walk_path(scenario, path)
    return Counterexample(
        scenario, played.schedule, STOPPED_RUN, (violated.name,), violated, fairness="none"
    )


def _last_overtakes(scenario: AnyScenario, path: EncodedPath) -> bool:
    """Whether the last instant admits a ticket past a queued EP wave."""
    marker = marker_of(scenario, opportunities=False)
    model = MarkedModel(scenario.make_replica, scenario.ties, marker)
    state = model.initial_states()[path.initial]
    for number in path.actions:
        state = model.step(state, model.actions(state)[number])
    return bool(path.actions) and overtakes(marker.label())


def _lasso(
    played: Played, path: EncodedPath, names: Sequence[str], max_states: int, fairness: str
) -> Counterexample | None:
    """Judge the cycle by itself: what it violates, and whether it is a fair one."""
    scenario = played.scenario
    marker = marker_of(scenario, opportunities=fairness == "strong")
    model = MarkedModel(scenario.make_replica, scenario.ties, marker)
    entry = model.initial_states()[path.initial]
    for number in path.actions[: -path.cycle]:
        entry = model.step(entry, model.actions(entry)[number])
    if entry != played.run.state():
        raise PathError("the lasso's cycle does not lead back to the state in which it begins")
    cycle = path.actions[-path.cycle :]
    finding = finding_of_cycle(scenario, model, entry, cycle, names, max_states)
    if finding is None or finding.classification is None:
        return None
    violated = Violated(finding.name, finding.message, finding.lane, finding.stage)
    return Counterexample(
        scenario,
        played.schedule,
        finding.classification,
        (finding.name,),
        violated,
        path.cycle,
        fairness if is_fair(model, entry, cycle) else "none",
    )
