"""AND-OR wait-for analysis: who is stuck, and the cycle that keeps them so.

A participant may wait for *all* of a set (the lanes missing in a room) or for *any* of a set (a
free capacity slot), and for several such sets at once. Those that can never move again are the
greatest fixpoint of "waits for all of a set with a stuck member, or for any of a set of stuck
ones"; a cycle outside it is no deadlock (DESIGN: a cycle alone proves nothing).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import networkx as nx


@dataclass(frozen=True)
class Wait:
    """``source`` cannot move before all (or any) of ``targets`` have moved.

    ``targets`` empty means that nothing will ever end the wait. ``reason`` is a clause that reads
    after the source's name; ``kind`` names the sort of wait for classification.
    """

    source: str
    targets: tuple[str, ...]
    reason: str
    kind: str
    mode: Literal["all", "any"] = "all"


@dataclass(frozen=True)
class Edge:
    """One step of a cycle or a chain: ``source`` waits for ``target``."""

    source: str
    target: str
    reason: str
    kind: str


@dataclass(frozen=True)
class WaitFor:
    """The analysis of one state.

    ``stuck`` are the participants that can never move again, in the order of the waits;
    ``cycle`` is a shortest cycle among them (empty if there is none); ``dead_ends`` are the waits
    of stuck participants that nothing will ever end.
    """

    waits: tuple[Wait, ...]
    stuck: tuple[str, ...]
    cycle: tuple[Edge, ...]
    dead_ends: tuple[Wait, ...]

    @property
    def stuck_waits(self) -> tuple[Wait, ...]:
        """Waits of stuck participants."""
        members = set(self.stuck)
        return tuple(wait for wait in self.waits if wait.source in members)

    def to_json(self) -> dict[str, Any]:
        """Return the stuck set, the cycle and the waits of the stuck as plain JSON values."""
        return {
            "stuck": list(self.stuck),
            "cycle": [
                {"from": edge.source, "to": edge.target, "reason": edge.reason}
                for edge in self.cycle
            ],
            "waits": [
                {"from": w.source, "to": list(w.targets), "mode": w.mode, "reason": w.reason}
                for w in self.stuck_waits
            ],
        }


def _ends(wait: Wait, stuck: set[str]) -> bool:
    """Whether the wait ends once everything that is not stuck has moved."""
    if wait.mode == "all" and wait.targets:
        return not any(target in stuck for target in wait.targets)
    return any(target not in stuck for target in wait.targets)


def stuck_participants(waits: Sequence[Wait]) -> tuple[str, ...]:
    """Greatest set of sources in which each has a wait that never ends."""
    sources = tuple(dict.fromkeys(wait.source for wait in waits))
    stuck = set(sources)
    while True:
        kept = {wait.source for wait in waits if wait.source in stuck and not _ends(wait, stuck)}
        if kept == stuck:
            return tuple(source for source in sources if source in stuck)
        stuck = kept


def _edges(waits: Sequence[Wait], stuck: set[str]) -> list[Edge]:
    return [
        Edge(wait.source, target, wait.reason, wait.kind)
        for wait in waits
        if wait.source in stuck and not _ends(wait, stuck)
        for target in wait.targets
        if target in stuck
    ]


def _shortest_cycle(edges: Sequence[Edge]) -> tuple[Edge, ...]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for edge in edges:
        if not graph.has_edge(edge.source, edge.target):
            graph.add_edge(edge.source, edge.target, edge=edge)
    best: list[str] = []
    for node in graph:
        for successor in graph.successors(node):
            if not nx.has_path(graph, successor, node):
                continue
            back = nx.shortest_path(graph, successor, node)
            if not best or len(back) < len(best):
                best = [node, *back[:-1]] if back[-1] == node else best
    if not best:
        return ()
    return tuple(graph.edges[a, b]["edge"] for a, b in zip(best, [*best[1:], best[0]], strict=True))


def analyse(waits: Sequence[Wait]) -> WaitFor:
    """Find the stuck participants, a shortest cycle among them, and the waits without an end."""
    stuck = stuck_participants(waits)
    members = set(stuck)
    dead_ends = tuple(w for w in waits if w.source in members and not w.targets)
    return WaitFor(tuple(waits), stuck, _shortest_cycle(_edges(waits, members)), dead_ends)


def chain(analysis: WaitFor, start: str) -> tuple[Edge, ...]:
    """Shortest chain of stuck waits from a participant to a dead end's source, or () if none."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for edge in _edges(analysis.waits, set(analysis.stuck)):
        if not graph.has_edge(edge.source, edge.target):
            graph.add_edge(edge.source, edge.target, edge=edge)
    ends = {wait.source for wait in analysis.dead_ends}
    if start in ends or start not in graph:
        return ()
    lengths = nx.single_source_shortest_path(graph, start)
    reachable = [lengths[end] for end in lengths if end in ends]
    if not reachable:
        return ()
    nodes = min(reachable, key=len)
    return tuple(graph.edges[a, b]["edge"] for a, b in pairwise(nodes))
