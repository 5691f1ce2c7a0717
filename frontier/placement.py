"""Placement: which lane a request goes to (issue 3)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Placement(Protocol):
    """A named rule without state: equal questions get equal answers."""

    @property
    def name(self) -> str:
        """Name used on the command line and in reports."""
        ...

    def lane(self, request: int, outstanding: Sequence[int]) -> int:
        """Lane of a request, given the number of unfinished requests of each lane."""
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Request ``i`` goes to lane ``i mod lanes``, as in the published runs."""

    name: str = "round_robin"

    def lane(self, request: int, outstanding: Sequence[int]) -> int:
        """Lane by arrival index."""
        return request % len(outstanding)


@dataclass(frozen=True, slots=True)
class LeastOutstanding:
    """The lane with the fewest unfinished requests, the lowest of several."""

    name: str = "least_outstanding"

    def lane(self, request: int, outstanding: Sequence[int]) -> int:  # noqa: ARG002
        """Least loaded lane."""
        return min(range(len(outstanding)), key=outstanding.__getitem__)


@dataclass(frozen=True, slots=True)
class RandomLane:
    """A lane drawn from a seed and the request's arrival index."""

    seed: int = 0
    name: str = "random"

    def lane(self, request: int, outstanding: Sequence[int]) -> int:
        """Lane drawn for the arrival index."""
        return random.Random(f"{self.seed}/{request}").randrange(len(outstanding))


@dataclass(frozen=True, slots=True)
class FixedLanes:
    """A given list of lanes, repeated: request ``i`` goes to ``lanes[i mod len(lanes)]``."""

    lanes: tuple[int, ...]
    name: str = "fixed"

    def lane(self, request: int, outstanding: Sequence[int]) -> int:  # noqa: ARG002
        """Lane by the list."""
        return self.lanes[request % len(self.lanes)]


def parse_placement(text: str, lanes: int, seed: int = 0) -> Placement:
    """Rule of a name: ``round_robin``, ``least_outstanding``, ``random`` or ``fixed:0,1,1``.

    Raises
    ------
    ValueError
        On another name, a list that is none, or a lane that does not exist.
    """
    name, _, rest = text.partition(":")
    name = name.strip().replace("-", "_").replace(" ", "_")
    if name == "fixed":
        words = rest.split(",")
        if not all(word.strip().isdecimal() for word in words):
            raise ValueError(f"fixed placement must be 'fixed:0,1,...', got {text!r}")
        fixed = FixedLanes(tuple(int(word) for word in words))
        if max(fixed.lanes) >= lanes:
            raise ValueError(
                f"fixed placement names lane {max(fixed.lanes)}, "
                f"but there are lanes 0 ... {lanes - 1}"
            )
        return fixed
    rules: dict[str, Placement] = {
        rule.name: rule for rule in (RoundRobin(), LeastOutstanding(), RandomLane(seed))
    }
    if name not in rules or rest:
        known = ", ".join([*rules, "fixed:0,1,..."])
        raise ValueError(f"unknown placement {text!r}; expected one of: {known}")
    return rules[name]
