"""Exhaustive check of a contract: every call sequence of a bounded client, breadth first.

Positions are matched by what the public API shows of them, which the lockstep session keeps equal
to the reference. Calls that must change nothing are made on the explored context itself, so that
a hidden change shows in what follows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from verify.contract.client import Bounds, Client, Position
from verify.contract.implementation import Implementation
from verify.contract.operations import Call
from verify.contract.orders import Order
from verify.contract.reference import Expectation, Reference
from verify.contract.session import Deviation, Profile, Session


class Finding(NamedTuple):
    """A broken clause and the call sequence that shows it; the last call deviates."""

    deviation: Deviation
    calls: tuple[Call, ...]
    profile: Profile


@dataclass
class Exploration:
    """What an exhaustive check covered and found.

    Attributes
    ----------
    bounds
        Bounds of the client.
    states, transitions, calls
        Distinct positions, calls that led from one to another, and calls in all.
    depth
        Effective calls on the longest of the shortest sequences to a position.
    findings
        Per clause key the shortest finding.
    evidence
        Per clause key how often a comparison agreed.
    observed
        Choices at the points that the page leaves open.
    complete
        Whether every position within the bounds was reached, but for those behind a deviation.
    unrepeated
        Whether something was found that the same calls on a new context do not show again.
    """

    bounds: Bounds
    states: int = 0
    transitions: int = 0
    calls: int = 0
    depth: int = 0
    findings: dict[str, Finding] = field(default_factory=dict)
    evidence: Counter[str] = field(default_factory=Counter)
    observed: dict[str, str] = field(default_factory=dict)
    complete: bool = True
    unrepeated: bool = False


class _Node(NamedTuple):
    session: Session
    position: Position
    path: tuple[Call, ...]


class Explorer:
    """One exhaustive check.

    Parameters
    ----------
    implementation, order, bounds
        What is checked, against which order, how far.
    max_states
        Positions after which to stop; the check is then not complete.
    until
        Asked before each position is expanded whether to stop; the check is then not complete.
    progress
        Called with the number of positions now and then.
    """

    def __init__(
        self,
        implementation: Implementation,
        order: Order,
        bounds: Bounds,
        *,
        max_states: int | None = None,
        until: Callable[[Exploration], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._implementation = implementation
        self._reference = Reference(order, bounds.capacity)
        self._profile = Profile(bounds.capacity, bounds.ep_size)
        self._client = Client(bounds)
        self._max_states = max_states
        self._until = until
        self._progress = progress
        self.result = Exploration(bounds)

    def session(self) -> Session:
        """Start a session of this check's shape that shares its counters."""
        result = self.result
        return Session(
            self._implementation,
            self._reference,
            self._profile,
            result.evidence,
            result.observed,
        )

    def run(self) -> Exploration:
        """Explore to the end, or to the limit."""
        result = self.result
        start = Position(self.session().state)
        seen: set[tuple[object, ...]] = {start.key()}
        frontier = deque([_Node(self.session(), start, ())])
        while frontier:
            node = frontier.popleft()
            result.depth = max(result.depth, len(node.path))
            if self._until is not None and self._until(result):
                result.complete = False
                break
            for successor in self._expand(node):
                result.transitions += 1
                key = successor.position.key()
                if key in seen:
                    continue
                seen.add(key)
                if self._max_states is not None and len(seen) > self._max_states:
                    result.complete = False
                    result.states = len(seen)
                    return result
                frontier.append(successor)
            if self._progress is not None and len(seen) % 512 == 0:
                self._progress(len(seen))
        result.states = len(seen)
        return result

    def _expand(self, node: _Node) -> Iterator[_Node]:
        session = self._misuse(node)
        wrong = session.fork().drain()
        if wrong is not None:
            self._found(wrong, node.path, node.path)
        for call in self._client.effective(node.position):
            if not session.can(call):
                continue
            self.result.calls += 1
            branch = session.fork()
            wrong = branch.apply(call)
            path = (*node.path, call)
            if wrong is not None:
                self._found(wrong, path, branch.calls)
            elif branch.state != node.position.state and not branch.open_ended:
                yield _Node(branch, moved(node.position, branch, call), path)

    def _misuse(self, node: _Node) -> Session:
        """Make the calls that must change nothing, in place, and look once at what they left.

        After a deviation they are made again on a new context, with a look after each.
        """
        session = node.session
        for call, expectation in self._ineffective(node):
            if session.apply(call, expectation, trusting=True) is not None:
                return self._misuse_warily(node)
        return session if session.unchanged() else self._misuse_warily(node)

    def _ineffective(self, node: _Node) -> Iterator[tuple[Call, Expectation]]:
        """Make the calls of the position that must change nothing and that can be made."""
        for call in self._client.ineffective(node.position):
            expectation = self._reference.expect(node.position.state, call)
            harmless = expectation.outcome != "open" or call.kind == "owns"
            if harmless and node.session.can(call):
                self.result.calls += 1
                yield call, expectation

    def _misuse_warily(self, node: _Node) -> Session:
        session = self._again(node.path) or node.session
        for call, expectation in self._ineffective(node):
            wrong = session.apply(call, expectation)
            if wrong is not None:
                self._found(wrong, (*node.path, call), session.calls)
                session = self._again(node.path) or session
        return session

    def _again(self, path: tuple[Call, ...]) -> Session | None:
        session = self.session()
        for call in path:
            if session.apply(call) is not None:
                return None
        return session

    def _found(self, deviation: Deviation, path: tuple[Call, ...], made: tuple[Call, ...]) -> None:
        """Keep the shortest sequence per clause: the clean path if it shows it, else all calls."""
        known = self.result.findings.get(deviation.clause)
        if known is not None and len(known.calls) <= len(path):
            return
        for calls in (path, made) if known is None else (path,):
            again = self.replay(calls)
            if again is not None and again.deviation.clause == deviation.clause:
                self._keep(again)
                return
        if known is None:
            self.result.unrepeated = True
            self._keep(Finding(deviation, made, self._profile))

    def _keep(self, finding: Finding) -> None:
        self.result.findings[finding.deviation.clause] = finding

    def replay(self, calls: tuple[Call, ...]) -> Finding | None:
        """Run a sequence on a new context: the first deviation, or what draining shows at last."""
        return replay(self._implementation, self._reference, self._profile, calls)


def replay(
    implementation: Implementation,
    reference: Reference,
    profile: Profile,
    calls: tuple[Call, ...],
) -> Finding | None:
    """Run a call sequence; return its first deviation, counting an undrainable end as one."""
    session = Session(implementation, reference, profile)
    for at, call in enumerate(calls, start=1):
        if not session.can(call):
            return None
        wrong = session.apply(call)
        if wrong is not None:
            return Finding(wrong, calls[:at], profile)
        if session.open_ended:
            return None
    wrong = session.drain()
    return None if wrong is None else Finding(wrong, calls, profile)


def moved(position: Position, session: Session, call: Call) -> Position:
    """Return the position after a call, with the operation that it ended, if any."""
    if call.kind in ("release", "cancel"):
        return Position(session.state, call.tickets[0], call.kind)
    if call.kind in ("shift", "promote", "restore"):
        return Position(session.state, call.tickets[0], "replace")
    reused = position.last_ended in call.new
    return Position(session.state) if reused else position._replace(state=session.state)
