"""What can be checked: replicas of lanes, and stages fed by groups; one place that knows both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from frontier.events import Event
from frontier.ffn import FfnReplica
from models.claims import GROUP_CLAIMS, STALE_CLAIMS, ReachedClaims
from models.group_invariants import group_invariants
from models.group_liveness import GroupGraph
from models.group_view import describe_group_stage, group_waits
from models.groups import GroupScenario
from models.invariants import lane_invariants
from models.liveness import LaneGraph
from models.marks import GroupMarker, Marker
from models.quiescent import ProtocolState
from models.scenario import NOTHING_STALE, Scenario
from models.view import describe_stages
from models.waits import lane_waits
from verify.fairness import Edges
from verify.properties import Property
from verify.waitfor import WaitFor

AnyScenario = Scenario | GroupScenario


def scenario_of(values: Mapping[str, Any]) -> AnyScenario:
    """Build the scenario that named values describe: of groups if they name groups.

    Raises
    ------
    ScenarioError
        On an unknown field or a wrong value.
    """
    return GroupScenario.of(values) if "groups" in values else Scenario.of(values)


def invariants_of(scenario: AnyScenario) -> tuple[Property[ProtocolState], ...]:
    """Invariants of every reachable state."""
    if isinstance(scenario, GroupScenario):
        return group_invariants(scenario.config)
    return lane_invariants(scenario.config)


def claims_of(scenario: AnyScenario) -> ReachedClaims:
    """Return an observer of the reachability claims."""
    if isinstance(scenario, GroupScenario):
        return ReachedClaims(GROUP_CLAIMS)
    return ReachedClaims() if scenario.stale == NOTHING_STALE else ReachedClaims(STALE_CLAIMS)


def marker_of(scenario: AnyScenario, opportunities: bool) -> Marker:
    """Return an observer that marks transitions."""
    kind = GroupMarker if isinstance(scenario, GroupScenario) else Marker
    return kind(opportunities)


def graph_of(scenario: AnyScenario, edges: Edges, states: Sequence[ProtocolState]) -> LaneGraph:
    """Return the explored graph with what liveness asks of it."""
    if isinstance(scenario, GroupScenario):
        return GroupGraph(edges, states, scenario.config)
    return LaneGraph(edges, states, scenario.lanes, scenario.stages)


def waits_of(system: Any, pending: Sequence[Event]) -> WaitFor:
    """Analyse who waits for whom in a live system with these pending timed events."""
    if isinstance(system, FfnReplica):
        return group_waits(system, pending)
    return lane_waits(system, pending)


def stages_of(system: Any) -> list[dict[str, Any]]:
    """Return the table of a live system's stages, as JSON values."""
    if isinstance(system, FfnReplica):
        return describe_group_stage(system)
    return describe_stages(system)
