"""What a recorded path shows: a bad state, an admission past an EP wave, or a lasso (issue 5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from models.counterexample import WAVE_PASSED, Counterexample, counterexample_of
from models.liveness import LaneGraph, LaneProperty, class_of_lasso
from models.marks import MarkedModel
from models.quiescent import QuiescentModel
from models.schedule import Played, walk_path
from models.subjects import AnyScenario, graph_of, marker_of
from models.trials import LASSO_CLASSES, overtakes, violated_by_lasso
from models.waits import WAVE_ORDER
from verify.explorer import explore
from verify.fairness import Edges
from verify.fate import states_along
from verify.limits import Limits
from verify.path import EncodedPath, PathError


def recorded_counterexample(
    scenario: AnyScenario, path: EncodedPath, max_states: int, fairness: str = "weak"
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

    Raises
    ------
    PathError
        If the path is of another version of the protocol, or its scenario is too large to judge
        what repeats for ever.
    """
    played = walk_path(scenario, path)
    if path.cycle:
        return _lasso(played, path, max_states, fairness)
    found = counterexample_of(played)
    if found is None and _last_overtakes(scenario, path):
        return Counterexample(
            scenario, played.schedule, WAVE_ORDER, (WAVE_ORDER,), WAVE_PASSED, fairness=fairness
        )
    return found


def _last_overtakes(scenario: AnyScenario, path: EncodedPath) -> bool:
    """Whether the last instant admits a ticket past a queued EP wave."""
    marker = marker_of(scenario, opportunities=False)
    model = MarkedModel(scenario.make_replica, scenario.ties, marker)
    state = model.initial_states()[path.initial]
    for number in path.actions:
        state = model.step(state, model.actions(state)[number])
    return bool(path.actions) and overtakes(marker.label())


def _lasso(
    played: Played, path: EncodedPath, max_states: int, fairness: str
) -> Counterexample | None:
    scenario = played.scenario
    _require_return(scenario, path)
    marker = marker_of(scenario, opportunities=fairness == "strong")
    model = MarkedModel(scenario.make_replica, scenario.ties, marker)
    result = explore(model, (), limits=Limits(max_states), must_terminate=False, label=marker.label)
    if not result.verdict.stats.complete:
        raise PathError(
            f"the path is a lasso, and its scenario has more than {max_states:,} states: what it "
            f"violates is judged on the whole graph; raise --max-states"
        )
    graph = graph_of(scenario, Edges(result.graph), result.states)
    found = list(_violated(graph, path))
    if not found:
        return None
    prop, classification = min(found, key=lambda f: LASSO_CLASSES.index(f[1]))
    return Counterexample(
        scenario,
        played.schedule,
        classification,
        (prop.leads_to.name,),
        violated_by_lasso(graph, prop, classification),
        path.cycle,
        fairness,
    )


def _require_return(scenario: AnyScenario, path: EncodedPath) -> None:
    model = QuiescentModel(scenario.make_replica, scenario.ties)
    run = model.begin()
    stem = len(path.actions) - path.cycle
    for number in path.actions[:stem]:
        run.fire(model.actions(run.state())[number])
    entry = run.state()
    for number in path.actions[stem:]:
        run.fire(model.actions(run.state())[number])
    if run.state() != entry:
        raise PathError("the lasso's cycle does not lead back to the state in which it begins")


def _violated(graph: LaneGraph, path: EncodedPath) -> Iterator[tuple[LaneProperty, str]]:
    """Properties that this very lasso violates, with the class of each violation."""
    edges = graph.edges
    states = states_along(edges.graph, path.initial, path.actions)
    taken = np.array(edges.walk(states[0], path.actions), dtype=np.int64)
    cycle = taken[len(taken) - path.cycle :].tolist()
    for prop in graph.properties(("progress", "starvation")):
        goals = np.flatnonzero(prop.leads_to.goal[taken])
        since = int(goals[-1]) + 1 if len(goals) else 0
        if since <= len(taken) - path.cycle and prop.leads_to.trigger[list(states[since:])].any():
            yield prop, class_of_lasso(graph, prop.lane, cycle)
