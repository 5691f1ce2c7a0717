"""Which reductions a scenario allows, and why others are refused (docs/packed_engine.md).

``ties``
    Let events fall due one at a time, where an instant of several ends where some order of its
    events ends. All other reductions then apply as without ties.
``canonical``
    Forget the creation order of pending events, where it cannot matter.
``symmetry``
    One representative for states that differ by a permutation of interchangeable lanes.
``por``
    Follow only a persistent set of events: one that commutes with whatever may happen before it, or
    those of a run of stages that nothing outside can influence first.
``rendezvous``
    A stage's group meets, rides its waves and reaches its tails in one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from models.scenario import Scenario, ScenarioError

REDUCTIONS: Final = ("ties", "canonical", "symmetry", "por", "rendezvous")

SAME_PATHS: Final = frozenset({"canonical", "symmetry"})
"""Reductions that keep every path: shortest schedules, and what happens on the way.

The others keep how runs end, and may leave out paths that end the same.
"""

KEY_BITS: Final = 63
"""Bits of the key by which lanes are sorted: all that a state says of one lane."""


@dataclass(frozen=True)
class Plan:
    """Reductions in force, and the reason for each that was asked for but cannot be."""

    applied: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()

    def __contains__(self, name: str) -> bool:
        """Whether a reduction is in force."""
        return name in self.applied


def parse_reductions(text: str) -> tuple[str, ...]:
    """Read ``none``, ``all`` or names separated by commas.

    Raises
    ------
    ScenarioError
        On an unknown name.
    """
    names = [name.strip() for name in text.split(",")]
    if names == ["none"]:
        return ()
    if names == ["all"]:
        return REDUCTIONS
    for name in names:
        if name not in REDUCTIONS:
            raise ScenarioError(
                f"unknown reduction {name!r}; expected none, all, or some of: "
                f"{', '.join(REDUCTIONS)}, separated by commas"
            )
    return tuple(name for name in REDUCTIONS if name in names)


def plan(scenario: Scenario, wanted: tuple[str, ...]) -> Plan:
    """Decide which of the wanted reductions are sound for a scenario.

    ``ties`` comes first: what it takes away is no obstacle to the others. A scenario without ties
    has no use for it.
    """
    if not scenario.ties:
        wanted = tuple(name for name in wanted if name != "ties")
    refused = []
    for name in wanted:
        why = _OBSTACLES[name](scenario)
        if why is None and name in _ON_CANONICAL and "canonical" not in wanted:
            why = _ON_CANONICAL[name]
        if why is not None:
            refused.append((name, why))
        elif name == "ties":
            scenario = replace(scenario, ties=False)
    out = {name for name, _ in refused}
    meets = "rendezvous" in wanted and "rendezvous" not in out
    if "symmetry" in wanted and "symmetry" not in out and not _key_fits(scenario, meets):
        refused.append(("symmetry", f"a lane's part of the state is wider than {KEY_BITS} bits"))
        out.add("symmetry")
    return Plan(tuple(name for name in wanted if name not in out), tuple(refused))


def _ties(scenario: Scenario) -> str | None:
    if scenario.admission != "ep_ordered":
        return (
            f"under {scenario.admission} the order of tickets and wake-ups matters, and events "
            "that fall due together give orders that events one after the other do not"
        )
    split = scenario.model == "moe" and scenario.rooms == "by_phase"
    if split and scenario.stand_in != "withdraw_joined":
        return (
            "with rooms by phase, a room may hold the placeholder of a lane that has joined while "
            "the other phase's wave seals the stage; the argument does not cover that"
        )
    return None


def _canonical(scenario: Scenario) -> str | None:
    if scenario.ties:
        return "with ties, events that fall due together are handled in the order of creation"
    return None


def _symmetry(scenario: Scenario) -> str | None:
    if scenario.ties:
        return "with ties, pending events keep their creation order, which follows lane numbers"
    if scenario.admission != "ep_ordered":
        return (
            f"{scenario.admission} reads the FIFO order, and lanes are woken in the order of their "
            "numbers, so a permutation of lanes is no automorphism"
        )
    if scenario.stand_in == "blocked_is_idle":
        return "blocked_is_idle reads whose ticket is the FIFO head: arrival order matters"
    return None


def key_widths(scenario: Scenario, meets: bool) -> tuple[int, int, int, int]:
    """Bits that a lane's sorting key gives to a status, a heap, a count of batches, and rooms.

    ``meets`` says that groups meet in one step: statuses are then few, and rooms empty.
    """
    moe = scenario.model == "moe"
    most = max(scenario.batches)
    status = 1 if not moe else 2 if meets else 1 + 3 * scenario.layers
    rooms = 0
    if moe and not meets:
        rooms = scenario.stages * scenario.layers * (2 if scenario.rooms == "by_phase" else 1)
    heap = min(most, scenario.stages)
    return status.bit_length(), heap.bit_length(), most.bit_length(), rooms


def _key_fits(scenario: Scenario, meets: bool) -> bool:
    status, heap, batches, rooms = key_widths(scenario, meets)
    return 2 * batches + scenario.stages * (status + heap) + rooms <= KEY_BITS


def _por(scenario: Scenario) -> str | None:
    if scenario.ties:
        return "with ties, an instant may join any pending events, so none commutes with the rest"
    return None


def _rendezvous(scenario: Scenario) -> str | None:
    if scenario.ties:
        return "with ties, a batch may join at the very instant the room fills"
    if scenario.model == "dense":
        return "a dense stage has no rooms"
    if scenario.admission != "ep_ordered":
        return (
            f"under {scenario.admission} a lane with queued work may be kept out of an open group"
        )
    if scenario.stand_in != "withdraw_joined" or scenario.rooms != "shared":
        return (
            "only with withdraw_joined and shared rooms does a room fill exactly when its last "
            "owner enters"
        )
    return None


_OBSTACLES: Final[dict[str, Callable[[Scenario], str | None]]] = {
    "ties": _ties,
    "canonical": _canonical,
    "symmetry": _symmetry,
    "por": _por,
    "rendezvous": _rendezvous,
}

_ON_CANONICAL: Final = {
    "ties": "it needs canonical: only the creation order of what follows tells the ways apart",
    "symmetry": "it needs canonical: the creation order of pending events follows lane numbers",
    "rendezvous": "it needs canonical: skipped events have no creation order",
}
"""Reductions that are sound only together with ``canonical``, and why."""
