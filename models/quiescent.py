"""The adapter from core to checker: any system of the core as a :class:`verify.model.Model`.

A stored state is *quiescent*: no urgent event is left. A transition picks pending timed events
that fall due at the same instant, handles them in the order of creation, then handles urgent
events in order until none is left (PROTOCOL.md section 5). The events are handled by the very
code that the discrete-event loop drives.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, islice
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

from frontier.des import System
from frontier.events import ENVIRONMENT, CoreError, Event

Action = tuple[int, ...]
"""Positions, in the order of creation, of the pending events that fall due together."""


class CheckableSystem(System, Protocol):
    """A system of the core whose state can be taken out and put back."""

    @property
    def is_complete(self) -> bool:
        """Whether all work has ended."""
        ...

    def snapshot(self) -> Any:
        """Return what the future depends on, as a hashable value without history."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Become the system of a snapshot."""
        ...


@runtime_checkable
class EndlessSystem(Protocol):
    """A system whose names grow for ever, and which can tell its state without them."""

    def relative(self, pending: Sequence[Event]) -> tuple[Any, tuple[Event, ...]]:
        """Return the snapshot and the pending events under names that hold no history."""
        ...


@runtime_checkable
class InterruptedSystem(Protocol):
    """A system that the environment may interfere with."""

    def environment(self) -> list[Event]:
        """Return the events that may come from outside now, or never."""
        ...


class ProtocolState(NamedTuple):
    """A quiescent state: the system, the pending timed events in order of creation.

    While timed events are pending, those that may come from outside stand behind them.

    ``failed`` is the event that the core rejected, in a failing state; nothing follows then.
    """

    system: Hashable
    pending: tuple[Event, ...]
    failed: Event | None = None


class Handled(NamedTuple):
    """One event that was handled, with those that followed from it."""

    event: Event
    follow: tuple[Event, ...]


Observer = Callable[[Any, Event, Sequence[Event]], None]
"""Called with the system, the event just handled and the events that follow."""


class QuiescentRun:
    """A live system stepped from one quiescent state to the next.

    Attributes
    ----------
    system
        The live system, with the sequence numbers of this very run.
    pending
        Timed events still to come, in order of creation.
    failure
        The core's error, once a call was rejected.
    """

    def __init__(self, system: CheckableSystem, observers: Sequence[Observer] = ()) -> None:
        self.system = system
        # Asked once: such questions of a protocol are slow, and states are asked for often.
        self._interrupted = system if isinstance(system, InterruptedSystem) else None
        self._endless = system if isinstance(system, EndlessSystem) else None
        self.pending: list[Event] = []
        self.failure: CoreError | None = None
        self.observers = tuple(observers)

    def begin(self) -> list[Handled]:
        """Start the system and settle; return what was handled."""
        urgent: deque[Event] = deque()
        self._add(self.system.start(), urgent)
        handled: list[Handled] = []
        try:
            self._settle(urgent, handled)
        except CoreError as error:
            self.failure = error
            handled.append(Handled(error.event, ()))
        self._offer()
        return handled

    def fire(self, action: Action) -> list[Handled]:
        """Handle the pending events at these positions as one instant; return what was handled."""
        due = [self.pending[position] for position in action]
        for position in reversed(action):
            del self.pending[position]
        if self._interrupted is not None:
            self.pending = [event for event in self.pending if event.kind not in ENVIRONMENT]
        urgent: deque[Event] = deque()
        handled: list[Handled] = []
        try:
            for event in due:
                self._handle(event, urgent, handled)
            self._settle(urgent, handled)
        except CoreError as error:
            self.failure = error
            handled.append(Handled(error.event, ()))
        self._offer()
        return handled

    def _offer(self) -> None:
        """Let the environment interfere, as long as something is left to happen anyway.

        In a state without timed events it cannot: whether work is left there does not depend on
        an interruption that may never come.
        """
        if self._interrupted is not None and self.pending and self.failure is None:
            self.pending += self._interrupted.environment()

    def _settle(self, urgent: deque[Event], handled: list[Handled]) -> None:
        while urgent:
            self._handle(urgent.popleft(), urgent, handled)

    def _handle(self, event: Event, urgent: deque[Event], handled: list[Handled]) -> None:
        follow = self.system.handle(event)
        handled.append(Handled(event, tuple(follow)))
        for observe in self.observers:
            observe(self.system, event, follow)
        self._add(follow, urgent)

    def _add(self, events: Sequence[Event], urgent: deque[Event]) -> None:
        for event in events:
            if event.is_urgent:
                urgent.append(event)
            else:
                self.pending.append(event)

    def state(self) -> ProtocolState:
        """Return the quiescent state reached, without history."""
        failed = None if self.failure is None else self.failure.event
        if self._endless is not None:
            return ProtocolState(*self._endless.relative(self.pending), failed)
        return ProtocolState(self.system.snapshot(), tuple(self.pending), failed)

    def restore(self, state: ProtocolState) -> None:
        """Go to a state; sequence numbers start again."""
        self.system.restore(state.system)
        self.pending = list(state.pending)
        self.failure = None


LISTED = 12
"""Up to this many pending events all instants are listed at once, beyond as they are asked for."""


def _sets_of_positions(pending: int, ties: bool) -> Iterator[Action]:
    """Non-empty sets of positions: single events first, then pairs, and so on."""
    sizes = range(1, (pending if ties else min(pending, 1)) + 1)
    return (action for size in sizes for action in combinations(range(pending), size))


@lru_cache(maxsize=64)
def _instants(pending: int, ties: bool) -> tuple[Action, ...]:
    return tuple(_sets_of_positions(pending, ties))


class _ManyInstants(Sequence[Action]):
    """The distinct instants of many pending events, produced one by one.

    There are up to ``2 ** len(pending)``: an exploration must be able to give up among them.
    """

    def __init__(self, pending: tuple[Event, ...]) -> None:
        self._pending = pending

    def __iter__(self) -> Iterator[Action]:
        seen: set[tuple[Event, ...]] = set()
        repeats = len(set(self._pending)) < len(self._pending)
        for action in _sets_of_positions(len(self._pending), ties=True):
            if repeats:
                events = tuple(self._pending[position] for position in action)
                if events in seen:
                    continue
                seen.add(events)
            yield action

    def __len__(self) -> int:
        """Count distinct subsequences without producing them."""
        total, ending = 1, dict.fromkeys(self._pending, 0)
        for event in self._pending:
            total, ending[event] = 2 * total - ending[event], total
        return min(total - 1, sys.maxsize)

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        """Return the instants of these numbers, in the order of iteration."""
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        found = next(islice(self, index, index + 1), None) if index >= 0 else None
        if found is None:
            raise IndexError(f"instant {index} of {len(self)}")
        return found


def _interrupted_instants(pending: tuple[Event, ...], ties: bool) -> Sequence[Action]:
    """Instants of the timed events, then each event from outside in an instant of its own.

    One that falls together with others is the same as one just before or just after them.
    """
    outside = [position for position, event in enumerate(pending) if event.kind in ENVIRONMENT]
    timed = ProtocolState((), pending[: outside[0]])
    return (*enabled_actions(timed, ties), *((position,) for position in outside))


def enabled_actions(state: ProtocolState, ties: bool) -> Sequence[Action]:
    """Distinct instants of a state; of two that fire equal event sequences, the first."""
    pending = state.pending
    if state.failed is not None:
        return ()
    if pending and pending[-1].kind in ENVIRONMENT:
        return _interrupted_instants(pending, ties)
    if ties and len(pending) > LISTED:
        return _ManyInstants(pending)
    actions = _instants(len(pending), ties)
    if len(set(pending)) == len(pending):
        return actions
    return tuple({tuple(pending[i] for i in a): a for a in reversed(actions)}.values())[::-1]


class QuiescentModel:
    """The transition system of PROTOCOL.md section 5 over a system of the core.

    Parameters
    ----------
    make_system
        Builds the system before its start.
    ties
        Whether several events may fall due at the same instant.
    observers
        See every handled event, on every transition that is tried.
    """

    def __init__(
        self,
        make_system: Callable[[], CheckableSystem],
        ties: bool,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._make_system = make_system
        self._ties = ties
        self._observers = tuple(observers)
        self._scratch = QuiescentRun(make_system(), observers)
        self._pending: dict[tuple[Event, ...], tuple[Event, ...]] = {}

    def begin(self, observers: Sequence[Observer] = ()) -> QuiescentRun:
        """Return a live run in the initial quiescent state."""
        run = QuiescentRun(self._make_system(), observers)
        run.begin()
        return run

    def initial_states(self) -> Sequence[ProtocolState]:
        """Return the one state after the start."""
        run = QuiescentRun(self._make_system(), self._observers)
        run.begin()
        return (run.state(),)

    def actions(self, state: ProtocolState) -> Sequence[Action]:
        """Instants enabled in a state."""
        return enabled_actions(state, self._ties)

    def step(self, state: ProtocolState, action: Action) -> ProtocolState:
        """State after an instant."""
        run = self._scratch
        run.restore(state)
        run.fire(action)
        system, pending, failed = run.state()
        return ProtocolState(system, self._pending.setdefault(pending, pending), failed)

    def is_complete(self, state: ProtocolState) -> bool:
        """Whether all work has ended in a state."""
        self._scratch.restore(state)
        return self._scratch.system.is_complete
