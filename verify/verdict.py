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
    """One violating state, with a shortest path to it (initial state's index, action numbers)."""

    property_name: str
    message: str
    state_index: int
    initial: int
    actions: tuple[int, ...]

    @property
    def depth(self) -> int:
        """Transitions on the path."""
        return len(self.actions)


@dataclass(frozen=True)
class Holds:
    """Every reachable state satisfies every property, every run ends, and every end is complete."""

    stats: Stats


@dataclass(frozen=True)
class Violated:
    """Some state violates a property; violations are in order of depth, the first is shortest."""

    stats: Stats
    violations: tuple[Violation, ...]

    @property
    def first(self) -> Violation:
        """A violation of least depth."""
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
