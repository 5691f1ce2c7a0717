"""What a played cycle violates, judged from the cycle alone and from what lies ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from frontier.replica import ReplicaSnapshot
from models.liveness import Finding, judge_liveness
from models.marks import ENDED, OLDEST_FIRED, Mark, MarkedModel
from models.quiescent import ProtocolState
from models.subjects import AnyScenario, graph_of
from verify.fairness import Edges
from verify.graph import Graph


def finding_of_cycle(
    scenario: AnyScenario,
    model: MarkedModel,
    entry: ProtocolState,
    cycle: Sequence[int],
    names: Sequence[str],
    max_states: int,
) -> Finding | None:
    """Return what a cycle violates first of the named properties, or None if nothing.

    The cycle is judged as a graph of its own, by the code that judges whole graphs. Whether its
    victim could still be rescued needs the states ahead of it, of which ``max_states`` are looked
    at; if they do not decide, the victim counts as starved.
    """
    graph, states, fair = Graph(), [entry], False
    for number, action in enumerate(cycle):
        graph.add_state(number - 1, 0)
        states.append(model.step(states[-1], model.actions(states[-1])[action]))
        graph.targets.append((number + 1) % len(cycle))
        fair |= Mark(OLDEST_FIRED) in model.marker.marks
        graph.add_label(model.marker.label())
        graph.offsets.append(len(graph.targets))
    own = graph_of(scenario, Edges(graph), states[:-1])
    rescued: dict[int, bool] = {}

    def beyond(lane: int) -> bool:
        if lane not in rescued:
            rescued[lane] = is_lost(model, entry, lane, max_states) is not True
        return rescued[lane]

    own.beyond = beyond
    judged = judge_liveness(own, names, "weak" if fair else "none")
    return next((f for f in judged.violated if f.lasso is not None and f.lasso.cycle), None)


def is_fair(model: MarkedModel, entry: ProtocolState, cycle: Sequence[int]) -> bool:
    """Whether every pending event fires, if a cycle goes round for ever."""
    state, fair = entry, False
    for action in cycle:
        state = model.step(state, model.actions(state)[action])
        fair |= Mark(OLDEST_FIRED) in model.marker.marks
    return fair


def is_lost(model: MarkedModel, entry: ProtocolState, lane: int, max_states: int) -> bool | None:
    """Whether a lane with work can end a batch on no continuation; None if that is not decided."""
    seen, queue = {entry}, deque([entry])
    while queue:
        state = queue.popleft()
        for action in model.actions(state):
            following = model.step(state, action)
            if Mark(ENDED, lane) in model.marker.marks:
                return False
            system = following.system
            if isinstance(system, ReplicaSnapshot) and not system.in_flight[lane]:
                return False
            if following not in seen:
                if len(seen) >= max_states:
                    return None
                seen.add(following)
                queue.append(following)
    return True
