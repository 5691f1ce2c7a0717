"""Limits of an exploration, and the progress it reports."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STATM = Path("/proc/self/statm")
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def memory_bytes() -> int:
    """Resident memory of this process, in bytes; its peak where the system tells no more."""
    try:
        return int(_STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT


def private_bytes() -> int:
    """Resident memory without pages of mapped files; all of it where the system tells no more."""
    try:
        resident, shared = _STATM.read_text().split()[1:3]
    except OSError:
        return memory_bytes()
    return (int(resident) - int(shared)) * resource.getpagesize()


@dataclass(frozen=True)
class Limits:
    """When to give up, None for never.

    ``max_states`` counts stored states, ``max_seconds`` wall-clock seconds, ``max_memory_gb``
    resident memory of the process in units of 10**9 bytes. ``first_violation``: whether the search
    ends at the first violating state, so that counts are of the part seen.
    """

    max_states: int | None = None
    max_seconds: float | None = None
    max_memory_gb: float | None = None
    first_violation: bool = False

    def exceeded(self, states: int, seconds: float, memory: int) -> str | None:
        """Say which limit is reached, or None."""
        if self.max_states is not None and states > self.max_states:
            return f"the limit of {self.max_states} states was reached"
        if self.max_seconds is not None and seconds >= self.max_seconds:
            return f"the limit of {self.max_seconds:g} seconds was reached"
        if self.max_memory_gb is not None and memory >= self.max_memory_gb * 1e9:
            return f"the limit of {self.max_memory_gb:g} GB of memory was reached"
        return None


INTERRUPTED: Final = "interrupted"
"""What ends a search by Ctrl-C, or by a request to end."""

AT_VIOLATION: Final = "the first violating state was found"
"""What ends a search under :attr:`Limits.first_violation`."""


class LimitReachedError(Exception):
    """A limit was reached in the midst of work; the message says which."""


Watch = Callable[[], None]
"""Called between two parts of long work; raises :class:`LimitReachedError`."""


def watch_nothing() -> None:
    """Heed no limit."""


def watch(limits: Limits, states: int, seconds_before: float) -> Watch:
    """Return a watch over these limits, for work on a graph that took ``seconds_before``."""
    start = time.monotonic() - seconds_before

    def look() -> None:
        limit = limits.exceeded(states, time.monotonic() - start, memory_bytes())
        if limit is not None:
            raise LimitReachedError(limit)

    return look


@dataclass(frozen=True)
class Progress:
    """How far an exploration is; ``memory`` in bytes, ``seconds`` of wall clock.

    ``recent_rate`` is the number of new states a second lately, ``remaining_s`` an estimate of the
    seconds still to go; None where an engine cannot tell.
    """

    states: int
    transitions: int
    depth: int
    queue: int
    violations: int
    seconds: float
    memory: int
    recent_rate: float | None = None
    remaining_s: float | None = None

    @property
    def rate(self) -> float:
        """States a second since the start."""
        return self.states / self.seconds if self.seconds > 0 else 0.0


ProgressCallback = Callable[[Progress], None]
