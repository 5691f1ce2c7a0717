"""What a real run and a simulated run have in common: forwards of lanes at stages."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

Requests = tuple[int, ...]
"""Arrival indices of the requests one batch carries."""


@dataclass(frozen=True, order=True)
class Forward:
    """One batch of one lane at one pipeline stage, over ``[start, end)``.

    Parameters
    ----------
    start, end : float
        Seconds on the run's own clock.
    lane, stage : int
        The attention-DP lane (rank) and the pipeline stage.
    requests : tuple of int
        Arrival indices of the requests in the batch.
    """

    start: float
    end: float
    lane: int
    stage: int
    requests: Requests

    @property
    def duration(self) -> float:
        """Seconds from start to end."""
        return self.end - self.start


@dataclass(frozen=True)
class LaneRun:
    """One run of one burst, real or simulated.

    Parameters
    ----------
    lanes, stages : int
        Shape of the run.
    requests : int
        Size of the burst; requests are ``0 … requests - 1`` in order of arrival.
    completed : int
        Requests that finished.
    forwards : tuple of Forward
        All forwards, ordered by start.
    placement : mapping of int to int
        The lane each request was placed on, as recorded; a request may lack a record.
    """

    lanes: int
    stages: int
    requests: int
    completed: int
    forwards: tuple[Forward, ...]
    placement: Mapping[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "forwards", tuple(sorted(self.forwards)))
        object.__setattr__(self, "placement", MappingProxyType(dict(self.placement)))

    def of(self, stage: int, lane: int) -> tuple[Forward, ...]:
        """Return one lane's forwards at one stage, ordered by start."""
        return tuple(f for f in self.forwards if f.stage == stage and f.lane == lane)

    def lanes_seen(self) -> dict[int, set[int]]:
        """Return for each request the lanes that ran a forward of it; unseen ones are absent."""
        seen: dict[int, set[int]] = {}
        for forward in self.forwards:
            for request in forward.requests:
                seen.setdefault(request, set()).add(forward.lane)
        return seen
