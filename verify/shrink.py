"""Shrinking: from a counterexample to a simplest one, by small passes through one gate.

The engine knows nothing of what it shrinks. A *proposal* is a reduction that may or may not work;
trying it gives either a realised value or a :class:`Rejection` that says why not. A value
replaces the best one only if its sort key is strictly smaller, so shrinking always ends. Passes
are run in the given order, cheap ones first, and again from the first as long as one of them
succeeds; at the end, no proposal of any pass works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

C = TypeVar("C")


@dataclass(frozen=True)
class Rejection:
    """Why a reduction was not taken.

    ``proved`` says that it cannot be taken, whatever the schedule; otherwise it was only tried.
    """

    reason: str
    proved: bool


@dataclass(frozen=True)
class Proposal(Generic[C]):
    """One reduction: ``label`` says what is taken away, ``attempt`` tries it."""

    label: str
    attempt: Callable[[], C | Rejection]


@dataclass(frozen=True)
class Pass(Generic[C]):
    """A named family of reductions of a value, boldest first."""

    name: str
    proposals: Callable[[C], Iterable[Proposal[C]]]


@dataclass(frozen=True)
class Step:
    """A reduction that was taken: the pass, what was taken away, and the new sort key."""

    pass_name: str
    label: str
    key: Any


@dataclass(frozen=True)
class Obstacle:
    """A reduction of the final value that does not work, and why."""

    pass_name: str
    label: str
    rejection: Rejection


class Shrinker(Generic[C]):
    """Shrinks one value.

    Parameters
    ----------
    start
        The value to begin with.
    sort_key
        Order of simplicity; smaller is simpler.

    Attributes
    ----------
    best
        The simplest value so far.
    steps
        The reductions taken, in order.
    tried
        Number of proposals that went through the gate.
    """

    def __init__(self, start: C, sort_key: Callable[[C], Any]) -> None:
        self.best = start
        self.steps: list[Step] = []
        self.tried = 0
        self._sort_key = sort_key

    def consider(self, pass_name: str, proposal: Proposal[C]) -> Rejection | None:
        """Try one proposal: the only place where ``best`` changes. None means it was taken."""
        self.tried += 1
        outcome = proposal.attempt()
        if isinstance(outcome, Rejection):
            return outcome
        key = self._sort_key(outcome)
        if not key < self._sort_key(self.best):
            return Rejection("is possible, but the result is not simpler", proved=False)
        self.best = outcome
        self.steps.append(Step(pass_name, proposal.label, key))
        return None

    def _exhaust(self, one: Pass[C]) -> bool:
        """Repeat a pass until none of its proposals works; say whether any did."""
        succeeded = False
        while any(self.consider(one.name, p) is None for p in one.proposals(self.best)):
            succeeded = True
        return succeeded

    def shrink(self, passes: Sequence[Pass[C]]) -> C:
        """Run the passes to their common fixpoint and return the best value."""
        at = 0
        while at < len(passes):
            at = 0 if self._exhaust(passes[at]) else at + 1
        return self.best

    def obstacles(self, passes: Sequence[Pass[C]]) -> tuple[Obstacle, ...]:
        """Try every proposal of these passes once more: why none of them works.

        Raises
        ------
        AssertionError
            If one works: the value was not minimal.
        """
        found = []
        for one in passes:
            for proposal in list(one.proposals(self.best)):
                rejection = self.consider(one.name, proposal)
                if rejection is None:
                    raise AssertionError(f"{one.name}: {proposal.label} still works")
                found.append(Obstacle(one.name, proposal.label, rejection))
        return tuple(found)
