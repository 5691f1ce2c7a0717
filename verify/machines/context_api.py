"""Level one: the public API of a context, beside the reference, beyond the exhaustive bound.

Rules choose calls by number among those that the state offers, so that every drawn step is a call
that can be made. Each failure names the clause, and prints the calls as runnable Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from shlex import quote
from typing import Any, ClassVar

from hypothesis import event, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from verify.contract.clauses import CLAUSE
from verify.contract.client import Bounds, Client, Position
from verify.contract.explore import Finding, moved
from verify.contract.implementation import Implementation
from verify.contract.operations import WAVE_LANE, Call, Operation, format_calls
from verify.contract.orders import Order
from verify.contract.reference import ContextState, Reference
from verify.contract.script import as_python
from verify.contract.session import Deviation, Profile, Session
from verify.contract.shortest import shortest
from verify.contract.shrink import charged

BEYOND = Bounds(max_tickets=9, lanes=3, waves=3, capacity=3, ep_size=2)
"""Bounds of the machine's client, beyond those of the exhaustive check."""

PICK = st.integers(min_value=0, max_value=63)

LATE_JOIN = "late join"
SEALED_SIBLING = "seal with a queued sibling"
WAVE_BEHIND_TWO = "wave behind two full-stage tickets"
DEEP_QUEUE = "queue of five or more"
SECOND_GROUP = "second forward group"
ORDER_DECIDES = "only the order among full-stage tickets decides"
INTERESTING = (
    LATE_JOIN,
    SEALED_SIBLING,
    WAVE_BEHIND_TWO,
    DEEP_QUEUE,
    SECOND_GROUP,
    ORDER_DECIDES,
)
"""States that a run is steered to, and that its statistics count."""


class ContextMachine(RuleBasedStateMachine):
    """A context and the reference under calls that Hypothesis chooses.

    Subclass it with :func:`context_machine`.
    """

    implementation: ClassVar[Implementation]
    order: ClassVar[Order]
    bounds: ClassVar[Bounds]
    reached: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        bounds = self.bounds
        capacity = bounds.capacity if self.implementation.takes_capacity else 1
        self.profile = Profile(capacity, bounds.ep_size)
        self.client = Client(bounds._replace(capacity=capacity))
        self.session = Session(self.implementation, Reference(self.order, capacity), self.profile)
        self.position = Position(self.session.state)
        self.marks: Counter[str] = Counter()
        self.failed = False
        self.deepest = 0
        self.groups = 0

    @property
    def state(self) -> ContextState:
        """The reference's state."""
        return self.position.state

    # ---------------------------------------------------------------- rules

    def _room(self) -> bool:
        return len(self.state.queue) + len(self.state.active) < self.bounds.max_tickets

    @precondition(_room)
    @rule(lanes=st.lists(PICK, min_size=1, max_size=3))
    def enqueue(self, lanes: list[int]) -> None:
        """Queue operations of some lanes."""
        for lane in lanes:
            if self._room():
                self._call(Call("full", new=(self._fresh(lane % self.bounds.lanes),)))

    @precondition(lambda self: self._room() and self.bounds.waves)
    @rule()
    def enqueue_wave(self) -> None:
        """Queue an EP wave, unless enough are live."""
        live = (*self.state.queue, *self.state.active)
        if sum(op.is_wave for op in live) < self.bounds.waves:
            self._call(Call("wave", new=(self._fresh(WAVE_LANE),)))

    @precondition(lambda self: self.state.queue)
    @rule(pick=PICK)
    def present(self, pick: int) -> None:
        """Present one queued ticket."""
        self._call(Call("try", (_chosen(self.state.queue, pick),)))

    @precondition(lambda self: self.state.queue)
    @rule(binds=st.booleans())
    def present_all(self, binds: bool) -> None:
        """Present every queued ticket, from the head on, and bind the owners among them or not."""
        for operation in self.state.queue:
            self._present(operation, binds)

    def _present(self, operation: Operation, binds: bool) -> None:
        self._call(Call("try", (operation,)))
        if binds and operation in self.state.owners and not self.state.sealed:
            self._call(Call("bind", (operation,)))

    @precondition(lambda self: self.state.owners and not self.state.sealed)
    @rule(pick=PICK)
    def bind(self, pick: int) -> None:
        """Bind an owner to the forward group."""
        self._call(Call("bind", (_chosen(self.state.owners, pick),)))

    @precondition(_room)
    @rule(pick=PICK)
    def join(self, pick: int) -> None:
        """Queue an operation, present it and, once admitted, bind it: what a lane does."""
        operation = self._fresh(pick % self.bounds.lanes)
        self._call(Call("full", new=(operation,)))
        self._present(operation, binds=True)

    @precondition(lambda self: self.state.owners and self._room())
    @rule(pick=PICK)
    def pass_busy_lane(self, pick: int) -> None:
        """Let a lane that holds the stage queue its next operation, and another try to pass it."""
        busy = _chosen(self.state.owners, pick).lane
        for lane in (busy, (busy + 1 + pick % 2) % self.bounds.lanes):
            if self._room():
                self._call(Call("full", new=(self._fresh(lane),)))
        self._call(Call("try", self.state.queue[-1:]))

    @precondition(lambda self: self.state.owners and self.state.wave is None)
    @rule(pick=PICK)
    def promote(self, pick: int) -> None:
        """Turn some owners into a wave: all of them, or those of a bit pattern."""
        owners = self.state.owners
        some = tuple(op for at, op in enumerate(owners) if pick >> at & 1)
        self._call(Call("promote", some or owners, (self._fresh(WAVE_LANE),)))

    @precondition(lambda self: self.state.wave is not None)
    @rule(pick=PICK)
    def restore(self, pick: int) -> None:
        """Turn the wave into owners of the lanes in turn."""
        wave = self.state.wave
        count = 1 + pick % self.profile.capacity
        lanes = [lane % self.bounds.lanes for lane in range(pick, pick + count)]
        new = tuple(self._fresh(lane, lanes[:at].count(lane)) for at, lane in enumerate(lanes))
        self._call(Call("restore", () if wave is None else (wave,), new))

    @precondition(lambda self: self.state.active)
    @rule(pick=PICK, to_wave=st.booleans())
    def shift(self, pick: int, to_wave: bool) -> None:
        """Transition one active owner's scope."""
        old = _chosen(self.state.active, pick)
        lane = WAVE_LANE if to_wave else pick % self.bounds.lanes
        self._call(Call("shift", (old,), (self._fresh(lane),)))

    @precondition(lambda self: self.state.active)
    @rule(pick=PICK)
    def release(self, pick: int) -> None:
        """Release one active ticket."""
        self._call(Call("release", (_chosen(self.state.active, pick),)))

    @precondition(lambda self: self.state.active)
    @rule()
    def turn_over(self) -> None:
        """Release everything that is active, so that a group ends, and begin with the head."""
        for operation in self.state.active:
            self._call(Call("release", (operation,)))
        for operation in self.state.queue[:1]:
            self._present(operation, binds=True)

    @precondition(lambda self: self.state.queue)
    @rule(pick=PICK)
    def cancel(self, pick: int) -> None:
        """Cancel one queued ticket."""
        self._call(Call("cancel", (_chosen(self.state.queue, pick),)))

    @precondition(lambda self: any(op.is_wave for op in self.state.queue))
    @rule()
    def clear_the_way(self) -> None:
        """Cancel every queued wave: behind one nothing but the head moves."""
        for operation in self.state.queue:
            if operation.is_wave:
                self._call(Call("cancel", (operation,)))

    @rule(pick=st.integers(min_value=0, max_value=255))
    def misuse(self, pick: int) -> None:
        """Make a call that must change nothing."""
        calls = [call for call in self.client.ineffective(self.position) if self.session.can(call)]
        self._call(_chosen(calls, pick))

    def _fresh(self, lane: int, skip: int = 0) -> Operation:
        number = 0
        while self.state.is_live(Operation(lane, number)) or skip:
            skip -= not self.state.is_live(Operation(lane, number))
            number += 1
        return Operation(lane, number)

    # ---------------------------------------------------------------- one call

    def _call(self, call: Call) -> None:
        session, before = self.session, self.state
        expectation = session.reference.expect(before, call)
        if not session.can(call) or expectation.outcome == "open":
            return
        deviation = session.apply(call, expectation)
        if deviation is not None:
            self.failed = True
            raise AssertionError(self._report(deviation))
        event(f"{call.kind}: {expectation.outcome}")
        self.position = (
            moved(self.position, session, call) if session.state != before else self.position
        )
        self._mark(call, before)

    def _mark(self, call: Call, before: ContextState) -> None:
        state = self.state
        self.deepest = max(self.deepest, len(state.queue))
        if call.kind == "try" and state != before and before.bound and not before.sealed:
            self.marks[LATE_JOIN] += 1
        if call.kind == "try" and self._order_decides(call.tickets[0], before):
            self.marks[ORDER_DECIDES] += 1
        if state.sealed and any(not op.is_wave for op in state.queue):
            self.marks[SEALED_SIBLING] += 1
        if call.kind == "wave" and sum(not op.is_wave for op in before.queue) >= 2:
            self.marks[WAVE_BEHIND_TWO] += 1
        if len(state.queue) >= 5:
            self.marks[DEEP_QUEUE] += 1
        if state.bound and not before.bound:
            self.groups += 1
            if self.groups > 1:
                self.marks[SECOND_GROUP] += 1

    def _order_decides(self, operation: Operation, before: ContextState) -> bool:
        """Whether nothing but full-stage tickets ahead can have kept the operation out."""
        if operation not in before.queue or operation.is_wave or before.wave or before.sealed:
            return False
        ahead = before.queue[: before.queue.index(operation)]
        free = len(before.owners) < self.profile.capacity
        return free and bool(ahead) and not any(op.is_wave for op in ahead)

    def _report(self, deviation: Deviation) -> str:
        """Shorten the calls and print them; quicker and shorter than shrinking the draws."""
        implementation = self.implementation
        drawn = Finding(deviation, self.session.calls, self.profile)
        finding = charged(shortest(drawn, implementation, self.order), self.session.reference)
        clause = CLAUSE[finding.deviation.clause]
        title = f"{clause.id}: {clause.text}"
        script = as_python(finding, implementation.name, title)
        again = (
            f"frontier-verify contract --impl {quote(implementation.name)} "
            f"--rule {self.order.rule} "
            f"--capacity {self.profile.capacity} --ep-size {self.profile.ep_size} "
            f'--replay "{format_calls(finding.calls)}"'
        )
        return f"{title}\nreplay: {again}\n{script}"

    def teardown(self) -> None:
        """Tell Hypothesis how far the run got, and drain a context that did nothing wrong."""
        target(float(self.deepest), label="deepest queue")
        for mark in INTERESTING:
            target(float(self.marks[mark]), label=mark)
        self.reached.update(self.marks.keys())
        self.reached["runs"] += 1
        for mark in sorted(self.marks):
            event(f"reached: {mark}")
        deviation = None if self.failed else self.session.drain()
        if deviation is not None:
            raise AssertionError(self._report(deviation))


def _chosen(items: Sequence[Any], pick: int) -> Any:
    return items[pick % len(items)]


def context_machine(
    implementation: Implementation, order: Order, bounds: Bounds = BEYOND
) -> type[ContextMachine]:
    """Return a machine for one implementation and one rule's contract.

    Its ``reached`` counts runs, and in how many of them each interesting state was met.
    """
    return type(
        "ContextApi",
        (ContextMachine,),
        {
            "implementation": implementation,
            "order": order,
            "bounds": bounds,
            "reached": Counter(),
        },
    )
