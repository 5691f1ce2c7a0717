"""The bounded client: every call that is worth making in a state, right ones and wrong ones.

Operation ids of one lane are interchangeable, and so are the lanes, so the client uses the
smallest free id, and besides it the id whose operation ended last. What is bounded is how many
tickets live at once; sequences are as long as they like.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Final, NamedTuple

from verify.contract.operations import FOREIGN, WAVE_LANE, Call, Kind, Operation, Participants
from verify.contract.reference import ContextState
from verify.words import counted

_QUEUE_CALLS: Final[tuple[Kind, ...]] = ("owns", "ask", "try", "cancel")
_OWNER_CALLS: Final[tuple[Kind, ...]] = ("owns", "ask", "release", "bind")


class Bounds(NamedTuple):
    """Bounds of a client, part of every verdict.

    Attributes
    ----------
    max_tickets
        Tickets that are queued or active at once.
    lanes, waves
        Lanes that enqueue full-stage operations, and EP waves live at once.
    capacity, ep_size
        Shape of the context.
    """

    max_tickets: int = 5
    lanes: int = 2
    waves: int = 2
    capacity: int = 2
    ep_size: int = 2

    @property
    def text(self) -> str:
        """The bounds in words."""
        return (
            f"{counted(self.max_tickets, 'live ticket')}, {counted(self.lanes, 'lane')}, "
            f"{counted(self.waves, 'wave')}, capacity {self.capacity}, ep_size {self.ep_size}"
        )


class Position(NamedTuple):
    """Where a client is: the state, and the operation that ended last (with how it ended)."""

    state: ContextState
    last_ended: Operation | None = None
    how: str = ""

    def key(self) -> tuple[object, ...]:
        """Return the position up to renaming lanes, and operations within their lanes."""
        state = self.state
        names: dict[int, int] = {WAVE_LANE: WAVE_LANE}

        def lane(operation: Operation) -> int:
            return names.setdefault(operation.lane, len(names))

        active = tuple((lane(op), op in state.members) for op in state.active)
        queue = tuple(lane(op) for op in state.queue)
        ended = None if self.last_ended is None else (lane(self.last_ended), self.how)
        return (active, queue, state.bound, state.sealed, ended)


class Client:
    """Makes the calls of one bounded client."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds

    # ---------------------------------------------------------------- right calls

    def effective(self, position: Position) -> Iterator[Call]:
        """Make the calls that may change the state."""
        state = position.state
        yield from self._enqueues(position)
        for operation in state.queue:
            yield Call("try", (operation,))
            yield Call("cancel", (operation,))
        for operation in state.active:
            yield Call("release", (operation,))
            yield from self._shifts(position, operation)
            if operation.is_wave:
                yield from self._restores(position, operation)
            else:
                yield Call("bind", (operation,))
        if state.wave is None:
            yield from self._promotions(position)

    def _enqueues(self, position: Position) -> Iterator[Call]:
        state = position.state
        if len(state.queue) + len(state.active) >= self.bounds.max_tickets:
            return
        for lane in range(self.bounds.lanes):
            for operation in self._ids(position, lane):
                yield Call("full", new=(operation,))
        if sum(op.is_wave for op in (*state.queue, *state.active)) < self.bounds.waves:
            for operation in self._ids(position, WAVE_LANE):
                yield Call("wave", new=(operation,))

    def _ids(self, position: Position, lane: int) -> list[Operation]:
        """Ids that a new operation of the lane may have: a fresh one, and the one last used."""
        ended = position.last_ended
        ids = [self._fresh(position, lane, 1)[0]]
        return [*ids, ended] if ended is not None and ended.lane == lane else ids

    @staticmethod
    def _fresh(position: Position, lane: int, count: int) -> list[Operation]:
        state, fresh, number = position.state, list[Operation](), 0
        while len(fresh) < count:
            operation = Operation(lane, number)
            if not state.is_live(operation) and operation != position.last_ended:
                fresh.append(operation)
            number += 1
        return fresh

    def _shifts(self, position: Position, operation: Operation) -> Iterator[Call]:
        lane = 0 if operation.is_wave else operation.lane
        yield Call("shift", (operation,), (self._fresh(position, lane, 1)[0],))
        if self.bounds.waves:
            yield Call("shift", (operation,), (self._fresh(position, WAVE_LANE, 1)[0],))

    def _promotions(self, position: Position) -> Iterator[Call]:
        if not self.bounds.waves:
            return
        owners = position.state.owners
        wave = tuple(self._fresh(position, WAVE_LANE, 1))
        for size in range(1, len(owners) + 1):
            for chosen in combinations(owners, size):
                yield Call("promote", chosen, wave)

    def _restores(self, position: Position, wave: Operation) -> Iterator[Call]:
        room = self.bounds.max_tickets - len(position.state.queue) - len(position.state.active) + 1
        for count in range(1, min(self.bounds.capacity, max(room, 1)) + 1):
            yield Call("restore", (wave,), self._spread(position, count))

    def _spread(self, position: Position, count: int) -> tuple[Operation, ...]:
        """Fresh operations over the lanes in turn."""
        lanes = [at % self.bounds.lanes for at in range(count)]
        pools = {lane: iter(self._fresh(position, lane, lanes.count(lane))) for lane in set(lanes)}
        return tuple(next(pools[lane]) for lane in lanes)

    # ---------------------------------------------------------------- wrong calls

    def ineffective(self, position: Position) -> Iterator[Call]:
        """Make calls that must change nothing: questions, refusals and misuse."""
        state = position.state
        live = (*state.queue, *state.active)
        yield from self._bad_enqueues(position, live)
        ended = [] if position.last_ended is None else [position.last_ended]
        yield from self._foreign_tickets(position)
        for operation in live:
            yield Call("owns", (operation,))
        for operation in state.active:
            yield Call("try", (operation,))
            yield Call("cancel", (operation,))
        for operation in ended:
            yield Call("owns", (operation,))
            yield Call("try", (operation,))
            yield Call("cancel", (operation,))
        yield from self._not_active(position, [*state.queue[:1], *state.queue[-1:], *ended])
        for operation in state.active:
            yield from self._bad_scopes(position, operation, live)

    def _bad_enqueues(self, position: Position, live: tuple[Operation, ...]) -> Iterator[Call]:
        for operation in live:
            yield Call("wave" if operation.is_wave else "full", new=(operation,))
        yield Call("full", new=(self._fresh(position, 0, 1)[0],), oddity="unhashable")
        if self.bounds.waves:
            (wave,) = self._fresh(position, WAVE_LANE, 1)
            yield Call("wave", new=(wave,), oddity="unhashable")
            for participants in self._bad_sets():
                yield Call("wave", new=(wave,), participants=participants)

    def _bad_sets(self) -> tuple[Participants, ...]:
        sets: tuple[Participants, ...] = ("none", "long", "shifted")
        return (*sets, "short", "reversed") if self.bounds.ep_size > 1 else sets

    def _foreign_tickets(self, position: Position) -> Iterator[Call]:
        """Every method with a queued, or an active, ticket altered as if of another context."""
        (lane_op,) = self._fresh(position, 0, 1)
        (wave_op,) = self._fresh(position, WAVE_LANE, 1)
        for oddity in FOREIGN:
            for operation in position.state.queue[:1]:
                for kind in _QUEUE_CALLS:
                    yield Call(kind, (operation,), oddity=oddity)
            for operation in position.state.active[:1]:
                for kind in _OWNER_CALLS:
                    yield Call(kind, (operation,), oddity=oddity)
                yield Call("shift", (operation,), (wave_op,), oddity=oddity)
                if operation.is_wave:
                    yield Call("restore", (operation,), (lane_op,), oddity=oddity)
                else:
                    yield Call("promote", (operation,), (wave_op,), oddity=oddity)

    def _not_active(self, position: Position, operations: list[Operation]) -> Iterator[Call]:
        """Make calls that need an active ticket, on one that is queued or has ended."""
        (lane_op,) = self._fresh(position, 0, 1)
        (wave_op,) = self._fresh(position, WAVE_LANE, 1)
        owners = position.state.owners
        yield Call("promote", (), (wave_op,))
        for operation in operations:
            yield Call("release", (operation,))
            yield Call("bind", (operation,))
            yield Call("shift", (operation,), (wave_op,))
            yield Call("promote", (*owners, operation), (wave_op,))
            yield Call("restore", (operation,), (lane_op,))

    def _bad_scopes(
        self, position: Position, operation: Operation, live: tuple[Operation, ...]
    ) -> Iterator[Call]:
        """Misuse of the calls that replace an active owner's operation."""
        (wave_op,) = self._fresh(position, WAVE_LANE, 1)
        yield Call("shift", (operation,), (wave_op,), oddity="scope")
        yield Call("shift", (operation,), (wave_op,), oddity="unhashable")
        yield Call("shift", (operation,), (wave_op,), "none")
        taken = [other for other in live if other != operation][:1]
        for other in taken:
            yield Call("shift", (operation,), (other,))
        if not operation.is_wave:
            yield Call("restore", (operation,), self._spread(position, 1))
            for oddity in ("unhashable", ""):
                sets: tuple[Participants, ...] = ("exact",) if oddity else self._bad_sets()[:1]
                for participants in sets:
                    yield Call("promote", (operation,), (wave_op,), participants, oddity)
            for other in taken:
                if other.is_wave:
                    yield Call("promote", (operation,), (other,))
            if position.state.wave is not None:
                yield Call("promote", (operation,), (wave_op,))
            return
        yield from self._bad_restores(position, operation, taken)

    def _bad_restores(
        self, position: Position, wave: Operation, taken: list[Operation]
    ) -> Iterator[Call]:
        (wave_op,) = self._fresh(position, WAVE_LANE, 1)
        one = self._spread(position, 1)
        yield Call("restore", (wave,), ())
        yield Call("restore", (wave,), one, oddity="unhashable")
        yield Call("restore", (wave,), (*one, *one))
        yield Call("restore", (wave,), self._spread(position, self.bounds.capacity + 1))
        yield Call("promote", (wave,), (wave_op,))
        yield Call("bind", (wave,))
        for other in taken:
            if not other.is_wave:
                yield Call("restore", (wave,), (other,))
