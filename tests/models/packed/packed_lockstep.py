"""Comparing the packed engine with the core itself, state by state."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from models.claims import ReachedClaims
from models.packed.bridge import Bridge
from models.packed.lanes import PackedLanes
from models.quiescent import QuiescentModel
from models.scenario import Scenario
from verify.explorer import explore
from verify.limits import Limits
from verify.packed.jit import Array
from verify.packed.model import End
from verify.packed.search import Search

SHARED_OR_NOT = ("prefill", "decode")


@dataclass(frozen=True)
class Seen:
    """All that one engine says of a graph."""

    rows: frozenset[bytes]
    transitions: int
    drained: frozenset[bytes]
    failed: frozenset[bytes]
    depth: int | None
    levels: int
    reached: tuple[tuple[str, bool], ...]


def reference(scenario: Scenario, most: int) -> Seen | None:
    """What the core says, as packed rows; None if there are more than ``most`` states."""
    claims = ReachedClaims()
    model = QuiescentModel(scenario.make_replica, scenario.ties, (claims,))
    result = explore(model, (), limits=Limits(max_states=most))
    if not result.verdict.stats.complete:
        return None
    bridge = Bridge(PackedLanes(scenario))
    rows = [bridge.row_of(state).tobytes() for state in result.states]
    assert len(set(rows)) == len(rows), "two states of the core have one row"
    failed = {i for i, state in enumerate(result.states) if state.failed is not None}
    drained = {
        i
        for i, state in enumerate(result.states)
        if i not in failed and not model.actions(state) and not model.is_complete(state)
    }
    depths = [result.graph.depth[i] for i in failed | drained]
    return Seen(
        rows=frozenset(rows),
        transitions=result.graph.transitions,
        drained=frozenset(rows[i] for i in drained),
        failed=frozenset(rows[i] for i in failed),
        depth=min(depths, default=None),
        levels=max(result.graph.depth) + 1,
        reached=tuple(sorted(claims.reached.items())),
    )


def packed(scenario: Scenario, reductions: tuple[str, ...] = (), threads: int = 1) -> Seen:
    """What the packed engine says."""
    model = PackedLanes(scenario, reductions)
    search = Search(model, threads=threads)
    assert search.run() is None
    return seen_by(search, model)


def rows_of(search: Search) -> Iterator[Array]:
    """Rows of all states that a search has found."""
    for shard in search.shards:
        yield from shard.keys[: shard.count]


def seen_by(search: Search, model: PackedLanes) -> Seen:
    """What a finished search says."""

    def rows_at(end: End) -> frozenset[bytes]:
        ids = search.tally.ends[end]
        return frozenset(search.shards[i % 8].keys[i // 8].tobytes() for i in ids)

    violating = [i for ids in search.tally.ends.values() for i in ids]
    depths = [
        next(
            depth for depth, bounds in enumerate(search.tally.bounds[1:]) if i // 8 < bounds[i % 8]
        )
        for i in violating
    ]
    reached = search.tally.reached | model.reached_at_start
    return Seen(
        rows=frozenset(row.tobytes() for row in rows_of(search)),
        transitions=search.tally.transitions,
        drained=rows_at(End.DRAINED),
        failed=rows_at(End.FAILED),
        depth=min(depths, default=None),
        levels=len(search.tally.levels),
        reached=tuple(sorted(model.claims(reached).items())),
    )


Ends = tuple[frozenset[bytes], frozenset[bytes]]


def projected_ends(scenario: Scenario, reductions: tuple[str, ...]) -> Ends:
    """Drained and complete states of the unreduced search, as rows of the reduced model."""
    model = PackedLanes(scenario)
    search = Search(model, threads=1)
    search.run()
    project = model.projection(PackedLanes(scenario, reductions))

    def ends(end: End) -> frozenset[bytes]:
        ids = search.tally.ends[end]
        return frozenset(project(search.shards[i % 8].keys[i // 8]).tobytes() for i in ids)

    return ends(End.DRAINED), ends(End.FAILED)


def reduced_ends(scenario: Scenario, reductions: tuple[str, ...]) -> Ends:
    """Drained and failing states of the reduced search."""
    seen = packed(scenario, reductions)
    return seen.drained, seen.failed


def random_scenario(rng: random.Random) -> Scenario:
    """A small scenario with any combination of rules."""
    lanes = rng.choice([1, 2, 2, 2, 3, 3, 4])
    stages = rng.choice([1, 1, 2, 2, 3])
    most = 3 if lanes * stages < 5 else 2
    batches = tuple(rng.randint(0, most) for _ in range(lanes))
    phases = tuple(tuple(rng.choice(SHARED_OR_NOT) for _ in range(n)) for n in batches)
    return Scenario(
        lanes=lanes,
        stages=stages,
        layers=rng.choice([1, 1, 2, 3]),
        batches=batches,
        model=rng.choice(["moe"] * 5 + ["dense"]),
        admission=rng.choice(
            ["strict_fifo", "lane_aware", "ep_ordered", "ep_ordered", "late_ticket"]
        ),
        stand_in=rng.choice(["standard", "withdraw_joined", "blocked_is_idle"]),
        rooms=rng.choice(["shared", "by_phase"]),
        arrivals=rng.choice(["burst", "open"]),
        phases=phases if rng.random() < 0.6 else None,
        ties=rng.random() < 0.5,
    )
