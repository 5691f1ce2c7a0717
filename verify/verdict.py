"""Verdicts: a sum type, never a boolean; *undetermined* never passes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stats:
    """What an exploration saw.

    ``complete`` says that every reachable state was expanded, ``acyclic`` (None unless complete)
    that no state can be reached from itself; ``max_depth`` is the number of transitions to the
    farthest state; ``memory_bytes`` what the process grew by.
    """

    states: int
    transitions: int
    max_depth: int
    elapsed_s: float
    memory_bytes: int
    complete: bool
    acyclic: bool | None

    @property
    def states_per_s(self) -> float:
        """States a second."""
        return self.states / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Violation:
    """One violating state, with a shortest path to it (initial state's index, action numbers).

    ``cycle`` is None for a violation of a single state. A violation of liveness is a lasso:
    ``actions`` lead to the state, and ``cycle`` from there back to it, for ever; it is empty if
    the run ends in the state.
    """

    property_name: str
    message: str
    state_index: int
    initial: int
    actions: tuple[int, ...]
    cycle: tuple[int, ...] | None = None

    @property
    def depth(self) -> int:
        """Transitions on the path to the state."""
        return len(self.actions)


@dataclass(frozen=True)
class Holds:
    """Every reachable state satisfies every property, every run ends, and every end is complete."""

    stats: Stats


@dataclass(frozen=True)
class Violated:
    """Some state or run violates a property.

    Violating states are in order of depth, the first is nearest; of lassos the one that says most
    comes first.
    """

    stats: Stats
    violations: tuple[Violation, ...]

    @property
    def first(self) -> Violation:
        """The violation to tell first."""
        return self.violations[0]


@dataclass(frozen=True)
class Undetermined:
    """Neither proved nor refuted: a limit was reached, or the run was interrupted."""

    stats: Stats
    limit: str


Verdict = Holds | Violated | Undetermined


def word(verdict: Verdict) -> str:
    """Return ``holds``, ``violated`` or ``undetermined``."""
    return type(verdict).__name__.lower()
