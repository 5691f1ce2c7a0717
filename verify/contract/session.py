"""One context under test in lockstep with the reference, through the public API only.

A session applies a call to both, compares what it gives and then the whole public view. The first
difference is a :class:`Deviation` that names the broken clause.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from verify.contract.cloning import clone
from verify.contract.errors import RAISED
from verify.contract.implementation import Implementation
from verify.contract.operations import (
    FOREIGN,
    Call,
    Operation,
    Unhashable,
    participant_ids,
)
from verify.contract.reference import ContextState, Expectation, Reference

_EFFECT: Final = {
    "full": "fifo",
    "wave": "fifo",
    "try": "admits",
    "release": "release",
    "cancel": "cancel",
    "bind": "bind",
    "shift": "shift",
    "promote": "promote",
    "restore": "restore",
}
"""Clause that is broken when a call leaves the tickets otherwise than it should."""

_METHOD: Final = {
    "full": "enqueue_full_stage",
    "wave": "enqueue_ep_wave",
    "try": "try_acquire",
    "release": "release",
    "cancel": "cancel",
    "bind": "bind_forward_group",
    "shift": "transition_active_scope",
    "promote": "replace_full_stage_owners_with_ep_wave",
    "restore": "replace_ep_wave_with_full_stage_owners",
    "owns": "owns",
    "ask": "is_active",
}
"""Member that each kind of call needs."""

_FLAGS: Final = {
    "queued": (True, False, False),
    "active": (False, True, False),
    "ended": (False, False, False),
    "cancelled": (False, False, True),
}
"""What is_queued, is_active and is_cancelled say of a ticket."""

_UNSAID: Final = "whatever a full-stage owner shows"
_UNKNOWN_SCOPE: Final = "no such scope"
_CHANGES: Final[dict[str, dict[str, object]]] = {
    "other-stage": {"stage_id": 1},
    "other-replica": {"replica_id": 1},
    "odd-scope": {"scope": _UNKNOWN_SCOPE},
}
_NEXT: Final = Operation(0, 1_000_000)
_ASKS: Final = ("is_queued", "is_active", "is_cancelled")
_REMEMBERED: Final = 3
"""Tickets ended last that the view goes on asking about."""


class Deviation(NamedTuple):
    """A difference between an implementation and the contract.

    Attributes
    ----------
    clause
        Key of the broken clause.
    expected, observed
        What the last call had to give or show, and what it did.
    """

    clause: str
    expected: str
    observed: str


class Profile(NamedTuple):
    """Shape of the contexts that a session makes."""

    capacity: int
    ep_size: int


class Session:
    """An implementation and the reference, side by side.

    Parameters
    ----------
    implementation, reference, profile
        What is compared, and the shape of the context.
    evidence
        Counts, per clause key, of the comparisons that agreed; shared between forks.
    observed
        Choices at the points that the page leaves open, by latitude key; shared between forks.
    """

    def __init__(
        self,
        implementation: Implementation,
        reference: Reference,
        profile: Profile,
        evidence: Counter[str] | None = None,
        observed: dict[str, str] | None = None,
    ) -> None:
        self.implementation = implementation
        self.reference = reference
        self.profile = profile
        self.evidence: Counter[str] = Counter() if evidence is None else evidence
        self.observed: dict[str, str] = {} if observed is None else observed
        self.context: Any = implementation.build(**profile._asdict())
        self.state = ContextState()
        self.tickets: dict[Operation, Any] = {}
        self.past: list[tuple[Any, str]] = []
        self.history: tuple[Any, ...] = ()
        self.effective: tuple[Call, ...] = ()
        self.open_ended = False
        self._trusting = False
        self._frozen: frozenset[type[Any]] = frozenset({Operation})
        self._altered: dict[tuple[Operation, str], tuple[Any, Any]] = {}
        self._properties = [name for name in _VIEW if name in implementation.members]
        self._asks = [name for name in _ASKS if name in implementation.members]
        self._groups: tuple[Any, ...] = ()
        self._last_seq: Any = None
        self._view = self._read()

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call so far."""
        calls: list[Call] = []
        link = self.history
        while link:
            link, call = link
            calls.append(call)
        return tuple(reversed(calls))

    def can(self, call: Call) -> bool:
        """Whether the implementation has the method, and the session the tickets it names."""
        return _METHOD[call.kind] in self.implementation.members and all(
            operation in self.tickets for operation in call.tickets
        )

    def fork(self) -> Session:
        """Return an independent copy; tickets are frozen values and stay shared."""
        if not self.implementation.copyable:
            return self._replayed()
        twin = copy.copy(self)
        shared = {id(ticket): ticket for ticket in self.tickets.values()}
        shared.update((id(ticket), ticket) for ticket, _ in self.past)
        shared.update((id(value), value) for value in self.implementation.extra.values())
        twin.context = clone(self.context, shared, self._frozen)
        twin.tickets = dict(self.tickets)
        twin.past = list(self.past)
        return twin

    def _replayed(self) -> Session:
        """Return an independent copy of a context that cannot be copied: its calls, made again."""
        twin = Session(self.implementation, self.reference, self.profile, None, self.observed)
        for call in self.effective:
            twin.apply(call)
        twin.evidence = self.evidence
        return twin

    # ---------------------------------------------------------------- one call

    def apply(
        self, call: Call, expectation: Expectation | None = None, *, trusting: bool = False
    ) -> Deviation | None:
        """Make one call on both sides and compare; a session that deviated is of no more use.

        With ``trusting`` a call that must change nothing is not followed by a look at the view;
        :meth:`unchanged` then looks once for many calls. ``expectation`` is the reference's, if
        it has been asked already.
        """
        self._trusting = trusting
        if expectation is None:
            expectation = self.reference.expect(self.state, call)
        self.history = (self.history, call)
        try:
            tickets = [self._ticket(operation, call.oddity) for operation in call.tickets]
        except RAISED:  # a ticket class that refuses the alteration leaves nothing to test
            self.evidence[expectation.clause] += 1
            return None
        try:
            result = _at_once(self._invoke(call, tickets))
        except ValueError as error:
            return self._failed(call, expectation, error)
        except RAISED as error:  # any other exception breaks the clause that it stands in for
            return Deviation(
                self._blamed(call, expectation),
                _outcome_text(expectation),
                f"raises {type(error).__name__}: {error}",
            )
        if expectation.outcome == "error":
            return Deviation(expectation.clause, "raises ValueError", _returned(result))
        if expectation.outcome == "open":
            self.observed[expectation.latitude] = "accepted"
            self.open_ended = call.kind not in ("owns", "ask")
            if call.kind == "owns" and result is not False:
                return Deviation("owns", "returns False or raises ValueError", _returned(result))
            return None
        return self._gave(call, expectation, result)

    def _blamed(self, call: Call, expectation: Expectation) -> str:
        """Clause that is broken when a call raises that should not."""
        if call.kind == "cancel" and expectation.outcome == "none":
            return "no_stuck"
        if call.kind in ("full", "wave") and expectation.outcome == "ticket":
            return "id_free" if call.new[0] in self.tickets else expectation.clause
        return expectation.clause

    def _failed(self, call: Call, expectation: Expectation, error: ValueError) -> Deviation | None:
        if expectation.outcome == "open":
            self.observed[expectation.latitude] = "ValueError"
        elif expectation.outcome != "error":
            return Deviation(
                self._blamed(call, expectation), _outcome_text(expectation), f"raises {error!r}"
            )
        else:
            self.evidence[expectation.clause] += 1
        return self._unchanged("error_atomic", "the call that raised")

    def unchanged(self) -> bool:
        """Whether the public view is still the one of the last call that took effect."""
        return self._view == self._read()

    def _unchanged(self, clause: str, what: str) -> Deviation | None:
        if self._trusting:
            self.evidence[clause] += 1
            return None
        before, after = self._view, self._read()
        if before != after:
            shown = _difference(before, after, self._names())
            return Deviation(clause, f"{what} changes nothing", shown)
        self.evidence[clause] += 1
        return None

    def _gave(self, call: Call, expectation: Expectation, result: Any) -> Deviation | None:
        if expectation.outcome in ("true", "false"):
            wanted = expectation.outcome == "true"
            if result is not wanted and (not isinstance(result, bool) or result != wanted):
                return Deviation(expectation.clause, f"returns {wanted}", _returned(result))
            if call.kind in ("owns", "ask") or not wanted:
                self.evidence[expectation.clause] += 1
                clause = "refusal_atomic" if call.kind == "try" else "error_atomic"
                return self._unchanged(clause, "the call")
        wrong = self._take_result(call, expectation, result)
        if wrong is not None:
            return wrong
        self.evidence[expectation.clause] += 1
        return self._compare(call, expectation)

    # ---------------------------------------------------------------- calling

    def _invoke(self, call: Call, tickets: list[Any]) -> Any:
        context = self.context
        new: list[Any] = [Unhashable(op) if call.oddity == "unhashable" else op for op in call.new]
        participants = participant_ids(call.participants, self.profile.ep_size)
        match call.kind:
            case "full":
                return context.enqueue_full_stage(operation_id=new[0])
            case "wave":
                return context.enqueue_ep_wave(operation_id=new[0], participant_ep_ids=participants)
            case "shift":
                return self._shift(call, tickets[0], new[0], participants)
            case "promote":
                return context.replace_full_stage_owners_with_ep_wave(
                    tuple(tickets), operation_id=new[0], participant_ep_ids=participants
                )
            case "restore":
                return context.replace_ep_wave_with_full_stage_owners(
                    tickets[0], operation_ids=tuple(new)
                )
            case "ask":
                return self._ask(tickets[0])
        return getattr(context, _METHOD[call.kind])(tickets[0])

    def _ask(self, ticket: Any) -> bool:
        """Ask all questions about another context's ticket; what they answer is left open."""
        answers = [getattr(self.context, name)(ticket) for name in self._asks]
        self.observed["asked_foreign"] = "True" if any(answers) else "False"
        return False

    def _shift(self, call: Call, ticket: Any, new: Any, participants: tuple[int, ...]) -> Any:
        wave = call.new[0].is_wave
        scope = self.implementation.ep_wave if wave else self.implementation.full_stage_world
        given = wave or call.participants not in ("exact", "none")
        return self.context.transition_active_scope(
            ticket,
            operation_id=new,
            scope=_UNKNOWN_SCOPE if call.oddity == "scope" else scope,
            **({"participant_ep_ids": participants} if given else {}),
        )

    def _ticket(self, operation: Operation, oddity: str) -> Any:
        """Ticket of an operation, altered as the oddity says."""
        ticket = self.tickets[operation]
        if oddity not in FOREIGN:
            return ticket
        known = self._altered.get((operation, oddity))
        if known is None or known[0] is not ticket:
            known = (ticket, alter(ticket, _CHANGES[oddity]))
            self._altered[operation, oddity] = known
        return known[1]

    # ---------------------------------------------------------------- results

    def _take_result(self, call: Call, expectation: Expectation, result: Any) -> Deviation | None:
        """Check what a call returned and keep the tickets it minted and ended."""
        after = expectation.after
        if expectation.outcome in ("ticket", "tickets"):
            minted = _as_tickets(result) if expectation.outcome == "tickets" else [result]
            wrong = self._wrong_tickets(call, expectation, minted)
            if wrong is not None:
                return wrong
            by_operation = {ticket.operation_id: ticket for ticket in minted}
            self._end(call.tickets, "ended")
            self.past = [entry for entry in self.past if entry[0] not in minted]
            if call.new[0] in self.tickets:
                self.evidence["id_free"] += 1
            self.tickets.update((op, by_operation[op]) for op in call.new)
        elif expectation.outcome == "group":
            wrong = self._wrong_group(result)
            if wrong is not None:
                return wrong
        elif call.kind == "release":
            self._end(call.tickets, "ended")
        elif call.kind == "cancel":
            self._end(call.tickets, "cancelled")
            self.evidence["no_stuck"] += 1
        by_seq = sorted(after.active, key=lambda op: self.tickets[op].admission_seq)
        after = after._replace(active=tuple(by_seq))
        if expectation.latitude == "seal":
            after = after._replace(sealed=self._chosen_seal())
        self._before, self.state = self.state, after
        self.effective = (*self.effective, call)
        return None

    def _end(self, operations: Iterable[Operation], status: str) -> None:
        ended = [(self.tickets[op], status) for op in operations]
        self.past = [*self.past, *ended][-_REMEMBERED:]

    def _wrong_tickets(
        self, call: Call, expectation: Expectation, minted: list[Any]
    ) -> Deviation | None:
        wave = call.new[0].is_wave
        scope = self.implementation.ep_wave if wave else self.implementation.full_stage_world
        wanted = {"replica_id": 0, "stage_id": 0, "scope": scope}
        clause = expectation.clause
        operations = [getattr(ticket, "operation_id", None) for ticket in minted]
        if sorted(map(repr, operations)) != sorted(map(repr, call.new)):
            text = ", ".join(map(repr, call.new))
            return Deviation(clause, f"ticket for operation {text}", f"returns {minted!r}")
        for ticket in minted:
            shown = {name: getattr(ticket, name, None) for name in wanted}
            if shown != wanted:
                return Deviation(clause, f"ticket with {wanted!r}", f"returns {ticket!r}")
            given = getattr(ticket, "participant_ep_ids", ())
            if wave and tuple(given) != tuple(range(self.profile.ep_size)):
                expected = f"participant_ep_ids 0 ... {self.profile.ep_size - 1}"
                return Deviation(clause, expected, f"returns {ticket!r}")
            if not isinstance(getattr(ticket, "admission_seq", None), int):
                return Deviation(clause, "ticket with an admission_seq", f"returns {ticket!r}")
        if call.kind in ("full", "wave"):
            seq = minted[0].admission_seq
            if self._last_seq is not None and seq <= self._last_seq:
                expected = f"admission_seq above {self._last_seq}"
                return Deviation("seq", expected, f"returns {minted[0]!r}")
            self._last_seq = seq
            self._frozen |= {type(minted[0])}
            self.evidence["seq"] += 1
        return None

    def _chosen_seal(self) -> bool:
        """Whether a group was sealed where the page leaves that open, as far as it is shown.

        Without ``forward_group_sealed`` it is read off what may be joined (the bound group's id, or
        the next one); without either nothing can be judged from there on.
        """
        try:
            if self._has("forward_group_sealed"):
                sealed = bool(self.context.forward_group_sealed)
            elif self._has("joinable_forward_group_id"):
                sealed = bool(self.context.joinable_forward_group_id != self._groups[-1])
            else:
                self.observed["seal"] = "not shown"
                self.open_ended = True
                return False
        except RAISED:  # the comparison of the view reads it again and names the clause
            return False
        self.observed["seal"] = "sealed" if sealed else "not sealed"
        return sealed

    def _wrong_group(self, result: Any) -> Deviation | None:
        if isinstance(result, bool) or not isinstance(result, int):
            return Deviation("bind", "returns the group's integer id", _returned(result))
        if self.state.bound:
            if result != self._groups[-1]:
                return Deviation("bind", f"returns {self._groups[-1]}", _returned(result))
            return None
        if result in self._groups:
            expected = f"returns an id that no earlier group had ({self._groups!r})"
            return Deviation("group_fresh", expected, _returned(result))
        shown = self._view[_JOINABLE]
        if shown is not None and result != shown:
            expected = f"returns {shown!r}, the joinable_forward_group_id shown before"
            return Deviation("bind", expected, _returned(result))
        self._groups = (*self._groups, result)
        return None

    # ---------------------------------------------------------------- public view

    def _has(self, member: str) -> bool:
        return member in self.implementation.members

    def _read(self) -> list[Any]:
        """Read the public view: properties first, then what the questions say of each ticket."""
        context = self.context
        try:
            shown = [getattr(context, name) for name in self._properties]
        except RAISED:  # shown as values, so that the comparison names the clause
            shown = [_tried(context, name) for name in self._properties]
        if len(shown) == len(_VIEW):
            view = shown
        else:
            by_name = dict(zip(self._properties, shown, strict=True))
            view = [by_name.get(name) for name in _VIEW]
        for at, kind in ((_QUEUED, list), (_PARTICIPANTS, tuple)):
            if view[at] is not None and type(view[at]) not in (kind, str):
                view[at] = _listed(kind, view[at])
        asks = [getattr(context, name) for name in self._asks]
        for ticket in self._known():
            try:
                view += [ask(ticket) for ask in asks]
            except RAISED:  # these questions never raise; the text makes the difference seen
                view += [_asked(ask, ticket) for ask in asks]
        return view

    def _known(self) -> list[Any]:
        live = [self.tickets[op] for op in (*self.state.queue, *self.state.active)]
        return live + [ticket for ticket, _ in self.past]

    def _names(self) -> list[str]:
        return list(_VIEW) + [f"{ask}({t!r})" for t in self._known() for ask in self._asks]

    def _compare(self, call: Call, expectation: Expectation) -> Deviation | None:
        """Compare the public view after a call that took effect."""
        view = self._view = self._read()
        for check in (
            self._compare_tickets,
            self._compare_fifo,
            self._compare_group,
            self._compare_active,
        ):
            wrong = check(call, view)
            if wrong is not None:
                return wrong
        del expectation
        return None

    def _compare_tickets(self, call: Call, view: list[Any]) -> Deviation | None:
        state = self.state
        statuses = ["queued"] * len(state.queue) + ["active"] * len(state.active)
        statuses += [status for _, status in self.past]
        present = [at for at, name in enumerate(_ASKS) if self._has(name)]
        width, flags = len(present), view[len(_VIEW) :]
        for at, (ticket, status) in enumerate(zip(self._known(), statuses, strict=True)):
            shown = flags[at * width : (at + 1) * width]
            wanted = [_FLAGS[status][position] for position in present]
            if shown != wanted:
                several = sum(flag is True for flag in shown) > 1
                clause = "one_of" if several else _EFFECT[call.kind]
                return Deviation(
                    clause,
                    f"{ticket!r} is {'released or replaced' if status == 'ended' else status}",
                    ", ".join(
                        f"{_ASKS[position]} {flag}"
                        for position, flag in zip(present, shown, strict=True)
                    ),
                )
        self.evidence[_EFFECT[call.kind]] += 1
        self.evidence["one_of"] += 1
        return None

    def _compare_fifo(self, call: Call, view: list[Any]) -> Deviation | None:
        if not self._has("queued_tickets"):
            return None
        wanted = [self.tickets[op] for op in self.state.queue]
        if view[_QUEUED] != wanted:
            expected = f"queued_tickets {_fifo_text(wanted)}"
            return Deviation(_EFFECT[call.kind], expected, _fifo_text(view[_QUEUED]))
        return None

    def _compare_group(self, call: Call, view: list[Any]) -> Deviation | None:
        state, before = self.state, self._before
        if self._has("forward_group_sealed"):
            clause = _seal_clause(call, before, state)
            if view[_SEALED] is not state.sealed:
                return Deviation(
                    clause, f"forward_group_sealed {state.sealed}", _shown(view[_SEALED])
                )
            self.evidence[clause] += 1
        if not self._has("joinable_forward_group_id"):
            return None
        shown = view[_JOINABLE]
        if state.bound and not state.sealed:
            if shown != self._groups[-1]:
                expected = f"joinable_forward_group_id {self._groups[-1]}, the bound group's"
                return Deviation("joinable", expected, _shown(shown))
        elif isinstance(shown, bool) or not isinstance(shown, int):
            return Deviation("joinable", "joinable_forward_group_id an integer", _shown(shown))
        elif shown in self._groups:
            clause = "joinable" if state.bound else "unseal" if before.bound else "group_fresh"
            expected = f"joinable_forward_group_id the next id, after {self._groups!r}"
            return Deviation(clause, expected, _shown(shown))
        self.evidence["joinable"] += 1
        if len(self._groups) > 1:
            self.evidence["group_fresh"] += 1
        return None

    def _compare_active(self, call: Call, view: list[Any]) -> Deviation | None:
        del call
        state = self.state
        shown = dict(zip(_VIEW, view, strict=False))
        if self._has("is_idle") and shown["is_idle"] is not (not state.active):
            return Deviation("idle", f"is_idle {not state.active}", _shown(shown["is_idle"]))
        present = [name for name in _ACTIVE if self._has(name)]
        candidates = self._shown_operations()
        clause = "view" if state.active else "idle"
        wanted = [self._active_view(operation) for operation in candidates]
        if not any(
            all(_agrees(shown[name], view_of[name]) for name in present) for view_of in wanted
        ):
            expected = ", ".join(f"{name} {wanted[0][name]!r}" for name in present)
            got = ", ".join(f"{name} {shown[name]!r}" for name in present)
            return Deviation(clause, expected, got)
        self.evidence[clause] += 1
        return None

    def _shown_operations(self) -> list[Operation | None]:
        """Operations that the single-ticket view may show: more than one only at equal numbers."""
        state = self.state
        if not state.active:
            return [None]
        if state.wave is not None:
            return [state.wave]
        least = min(self.tickets[op].admission_seq for op in state.active)
        return [op for op in state.active if self.tickets[op].admission_seq == least]

    def _active_view(self, operation: Operation | None) -> dict[str, Any]:
        if operation is None:
            return dict.fromkeys(_ACTIVE)
        wave = operation.is_wave
        return {
            "active_scope": (
                self.implementation.ep_wave if wave else self.implementation.full_stage_world
            ),
            "active_operation_id": operation,
            "active_participant_ep_ids": (
                tuple(self.tickets[operation].participant_ep_ids) if wave else _UNSAID
            ),
        }

    def newly_made(self) -> Deviation | None:
        """Compare the view of a context without calls: it shows nothing of any earlier one."""
        shown = dict(zip(_VIEW, self._view, strict=False))
        wanted = {"is_idle": True, "forward_group_sealed": False, "queued_tickets": []}
        for name, value in wanted.items():
            if self._has(name) and shown[name] != value:
                expected = f"a new context, whatever was done to others: {name} {value!r}"
                return Deviation("idle", expected, _shown(shown[name]))
        return None

    # ---------------------------------------------------------------- liveness

    def drain(self) -> Deviation | None:
        """Release and admit until nothing is left; the session is used up."""
        if not {"release", "try_acquire"} <= self.implementation.members:
            return None
        context = self.context
        active = [self.tickets[op] for op in self.state.active]
        queue = [self.tickets[op] for op in self.state.queue]
        expected = "everything queued is admitted after finitely many releases"
        try:
            while active or queue:
                for ticket in active:
                    context.release(ticket)
                active = [t for t in queue if _at_once(context.try_acquire(t))]
                queue = [ticket for ticket in queue if ticket not in active]
                if queue and not active:
                    return Deviation("drains", expected, f"never admitted: {_fifo_text(queue)}")
            idle = context.is_idle if self._has("is_idle") else True
        except RAISED as error:  # whatever is raised, the queue is not emptied
            return Deviation("drains", expected, f"raises {type(error).__name__}: {error}")
        if idle is not True:
            return Deviation("drains", "idle once everything is released", f"is_idle {idle!r}")
        self.evidence["drains"] += 1
        return self._next_group()

    def _next_group(self) -> Deviation | None:
        """Open one more group on the drained context: its id must be new."""
        needed = {"enqueue_full_stage", "bind_forward_group"}
        if not self._groups or not needed <= self.implementation.members:
            return None
        expected = f"the next owner to bind opens a group with an id not in {self._groups!r}"
        try:
            ticket = self.context.enqueue_full_stage(operation_id=_NEXT)
            self.context.try_acquire(ticket)
            group = self.context.bind_forward_group(ticket)
        except RAISED as error:  # the drained context must serve a new owner like a new one
            return Deviation("drains", expected, f"raises {type(error).__name__}: {error}")
        if group in self._groups:
            return Deviation("group_fresh", expected, f"after draining, it gets {group!r}")
        self.evidence["group_fresh"] += 1
        return None


_VIEW: Final = (
    "is_idle",
    "queued_tickets",
    "forward_group_sealed",
    "joinable_forward_group_id",
    "active_scope",
    "active_operation_id",
    "active_participant_ep_ids",
)
_QUEUED, _SEALED, _JOINABLE, _PARTICIPANTS = 1, 2, 3, 6
_ACTIVE: Final = _VIEW[4:]


def alter(ticket: Any, change: Mapping[str, Any]) -> Any:
    """Copy a ticket with other field values, however its class stores them."""
    if dataclasses.is_dataclass(ticket) and not isinstance(ticket, type):
        return dataclasses.replace(ticket, **change)
    if hasattr(ticket, "_replace"):
        return ticket._replace(**change)
    twin = copy.copy(ticket)
    for name, value in change.items():
        object.__setattr__(twin, name, value)
    return twin


def _listed(kind: Callable[[Any], Any], value: Any) -> Any:
    try:
        return kind(value)
    except RAISED:  # no sequence: shown as it is, so that the comparison names the clause
        return value


def _tried(context: Any, name: str) -> Any:
    try:
        return getattr(context, name)
    except RAISED as error:  # a property that raises is shown as such
        return f"raises {type(error).__name__}: {error}"


def _asked(ask: Callable[[Any], Any], ticket: Any) -> Any:
    try:
        return ask(ticket)
    except RAISED as error:  # these questions never raise; the text makes the difference seen
        return f"raises {type(error).__name__}: {error}"


def _agrees(shown: Any, wanted: Any) -> bool:
    if wanted is None:
        return not shown
    return wanted is _UNSAID or bool(shown == wanted)


def _seal_clause(call: Call, before: ContextState, after: ContextState) -> str:
    """Clause that the seal's value after the call is judged by."""
    if after.sealed:
        if before.sealed:
            return "seal_stays"
        return "seal_shift" if call.kind == "shift" else "seal_promote"
    return "unseal" if before.bound and not after.active else "no_seal"


def _outcome_text(expectation: Expectation) -> str:
    return {
        "ticket": "returns a ticket",
        "tickets": "returns tickets",
        "true": "returns True",
        "false": "returns False",
        "group": "returns the group's id",
        "none": "returns",
        "error": "raises ValueError",
        "open": "returns or raises ValueError",
    }[expectation.outcome]


def _at_once(result: Any) -> Any:
    """Refuse a result that would have to be awaited or run; nothing of it has happened yet."""
    if inspect.isawaitable(result) or inspect.isgenerator(result):
        if hasattr(result, "close"):
            result.close()
        raise TypeError(f"returned a {type(result).__name__}; expected the result itself")
    return result


def _returned(result: Any) -> str:
    return f"returns {result!r}"


def _shown(value: Any) -> str:
    return f"shows {value!r}"


def _as_tickets(result: Any) -> list[Any]:
    if isinstance(result, Mapping):
        return list(result.values())
    return list(result) if isinstance(result, Iterable) else [result]


def _fifo_text(tickets: Any) -> str:
    if not isinstance(tickets, list):
        return _shown(tickets)
    return "[" + ", ".join(getattr(t.operation_id, "text", repr(t)) for t in tickets) + "]"


def _difference(before: list[Any], after: list[Any], names: list[str]) -> str:
    for name, old, new in zip(names, before, after, strict=True):
        if old != new:
            return f"{name} changes from {old!r} to {new!r}"
    return "the view changes"
