"""Anyone's stage execution context in the place of the core's, through its public API only.

A replica asks its contexts for ``snapshot`` and ``restore``, which the public API lacks. A state
therefore is matched by what the API shows, and carries a live copy of the context it stands for;
a context that is put back is copied on the first call that may change it (issue 4).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from frontier.admission import AdmissionRule
from frontier.context import ContextSnapshot
from frontier.replica import ReplicaConfig
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD, Refusal
from verify.contract.cloning import clone
from verify.contract.errors import RAISED, ContractInputError
from verify.contract.implementation import Implementation
from verify.contract.loader import load
from verify.contract.memory import memory

_NEEDED: Final = ("enqueue_full_stage", "try_acquire", "release")
_SEALED: Final = "forward_group_sealed"
_JOINABLE: Final = "joinable_forward_group_id"


@runtime_checkable
class ExplainingContext(Protocol):
    """A context that also says what holds the stage and why it refuses."""

    @property
    def active_tickets(self) -> Sequence[Any]:
        """Everything that holds the stage, by ``admission_seq``."""
        ...

    def refusals(self, ticket: Any) -> tuple[Refusal, ...]:
        """Every obstacle that keeps a queued ticket out now; empty means it would be admitted."""
        ...


class _Shown(NamedTuple):
    """What the public API shows of a context after a call: its tickets, and as a snapshot."""

    active: tuple[Any, ...]
    queued: tuple[Any, ...]
    state: ContextSnapshot


class LiveSnapshot(ContextSnapshot):
    """A snapshot that carries the context it was taken of, and its live tickets by operation."""

    context: Any
    shown: _Shown
    tickets: Mapping[Hashable, Any]
    group: Any


class RememberingSnapshot(LiveSnapshot):
    """A snapshot of a context that does not show all of its state: equal if all it holds is."""

    memory: Hashable

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RememberingSnapshot)
            and tuple.__eq__(self, other)
            and self.memory == other.memory
        )

    def __hash__(self) -> int:
        return hash((tuple.__hash__(self), self.memory))


@cache
def _loaded(name: str) -> Implementation:
    """Load a class once, and see that what a new context shows can be read."""
    implementation = load(name)
    ForeignContext(implementation, stage=0, ep_size=1, capacity=1)
    return implementation


def implementation_of(name: str, rule: AdmissionRule) -> Implementation:
    """Load a context class for a replica; one that takes a ``rule``, as the core's does, gets it.

    Raises
    ------
    ContractInputError
        If it cannot be loaded, or lacks what no protocol can do without.
    """
    implementation = _loaded(name)
    missing = implementation.lacks(_NEEDED)
    if missing:
        raise ContractInputError(
            f"{name} lacks {', '.join(missing)}; without it no batch can pass a stage"
        )
    if not implementation.copyable:
        raise ContractInputError(
            f"{name} cannot be copied ({implementation.uncopied}), and the lanes exploration needs "
            f"copies: give the class a __deepcopy__"
        )
    if implementation.takes_rule:
        return dataclasses.replace(implementation, extra={"rule": rule})
    return implementation


def make_contexts(name: str, config: ReplicaConfig) -> list[ForeignContext]:
    """Make one context per stage of a replica.

    Raises
    ------
    ContractInputError
        As :func:`implementation_of`.
    """
    implementation = implementation_of(name, config.admission)
    capacity = config.lanes if config.capacity is None else config.capacity
    return [
        ForeignContext(
            implementation,
            stage=stage,
            ep_size=config.ep_size,
            capacity=capacity,
            replica_id=config.replica_id,
        )
        for stage in range(config.stages)
    ]


def hidden(implementation: Implementation) -> tuple[str, ...]:
    """Members whose lack keeps a part of the state from being seen.

    States of such a context are told apart by all that an instance holds (:func:`memory`).
    """
    shows = ("queued_tickets", "is_active")
    binds = "bind_forward_group" in implementation.members
    return implementation.lacks((*shows, _SEALED) if binds else shows)


def shortcomings(implementation: Implementation) -> tuple[str, ...]:
    """Say how a replica runs over a context that lacks the newest members."""
    members, notes = implementation.members, list(implementation.notes)
    if not implementation.takes_capacity:
        notes.append("takes no full_stage_capacity: every stage has the capacity 1")
    if "bind_forward_group" not in members:
        notes.append("has no bind_forward_group: no forward group is bound")
    if _SEALED not in members:
        seals = "bind_forward_group" in members and _JOINABLE in members
        notes.append(
            f"has no {_SEALED}: "
            + (
                f"a bound group counts as sealed once {_JOINABLE} shows another"
                if seals
                else "no group counts as sealed"
            )
        )
    if "replace_full_stage_owners_with_ep_wave" not in members:
        notes.append("has no replace_full_stage_owners_with_ep_wave: a wave of several fails")
    if "replace_ep_wave_with_full_stage_owners" not in members:
        notes.append(
            "has no replace_ep_wave_with_full_stage_owners: a wave of one returns by "
            "transition_active_scope"
        )
    unseen = hidden(implementation)
    if unseen:
        notes.append(
            f"does not show all of its state without {', '.join(unseen)}: states are told apart by "
            f"all that its instances hold, which makes them more"
        )
    return tuple(notes)


class ForeignContext:
    """One stage's context of another implementation, as a replica and its explanations need it.

    Parameters
    ----------
    implementation
        The class, with what it lacks.
    stage, ep_size, capacity, replica_id
        Shape, as the core's own context gets it.
    """

    def __init__(
        self,
        implementation: Implementation,
        *,
        stage: int,
        ep_size: int,
        capacity: int,
        replica_id: int = 0,
    ) -> None:
        self._implementation = implementation
        self._members = implementation.members
        self._capacity = capacity if implementation.takes_capacity else 1
        self._context: Any = implementation.build(
            capacity=capacity, ep_size=ep_size, replica_id=replica_id, stage_id=stage
        )
        self._tickets: dict[Hashable, Any] = {}
        self._active: set[Hashable] = set()
        self._bound = False
        self._group: Any = None
        self._hidden = bool(hidden(implementation))
        self._snapshot: LiveSnapshot | None = None
        self._seen: dict[tuple[ContextSnapshot, Hashable], LiveSnapshot] = {}
        try:
            self._shown = self._look()
        except ValueError as error:
            raise ContractInputError(f"{implementation.name}, newly made: {error}") from error

    # ---------------------------------------------------------------- the public API

    @property
    def queued_tickets(self) -> tuple[Any, ...]:
        """The ready FIFO, head first; without the property, in the order of enqueueing."""
        return self._shown.queued

    @property
    def forward_group_sealed(self) -> bool:
        """Whether the bound forward group takes no more owners."""
        return self._shown.state.sealed

    def enqueue_full_stage(self, *, operation_id: Hashable) -> Any:
        """Queue one lane's operation and return its ticket."""
        ticket = self._change(lambda c: c.enqueue_full_stage(operation_id=operation_id))
        self._tickets[operation_id] = _minted(ticket, operation_id)
        self._shown = self._look()
        return ticket

    def try_acquire(self, ticket: Any) -> bool:
        """Admit the ticket now, or return False."""
        admitted = bool(self._change(lambda context: _plain(context.try_acquire(ticket))))
        if admitted:
            self._active.add(ticket.operation_id)
        self._shown = self._look()
        return admitted

    def bind_forward_group(self, ticket: Any) -> int:
        """Join the stage's forward group; without groups, nothing."""
        if "bind_forward_group" not in self._members:
            return 0
        group: int = self._change(lambda context: _plain(context.bind_forward_group(ticket)))
        self._bound, self._group = True, group
        self._shown = self._look()
        return group

    def transition_active_scope(
        self,
        ticket: Any,
        *,
        operation_id: Hashable,
        scope: str,
        participant_ep_ids: Sequence[int] = (),
    ) -> Any:
        """Replace one active owner's operation."""
        self._require("transition_active_scope")
        named = (
            self._implementation.ep_wave
            if scope == EP_WAVE
            else self._implementation.full_stage_world
        )
        given = {"participant_ep_ids": participant_ep_ids} if scope == EP_WAVE else {}
        new = self._change(
            lambda context: context.transition_active_scope(
                ticket, operation_id=operation_id, scope=named, **given
            )
        )
        return self._replace((ticket,), {operation_id: new})[0]

    def replace_full_stage_owners_with_ep_wave(
        self,
        owner_tickets: Sequence[Any],
        *,
        operation_id: Hashable,
        participant_ep_ids: Sequence[int],
    ) -> Any:
        """Turn active lane owners into one active EP wave."""
        self._require("replace_full_stage_owners_with_ep_wave")
        wave = self._change(
            lambda context: context.replace_full_stage_owners_with_ep_wave(
                owner_tickets, operation_id=operation_id, participant_ep_ids=participant_ep_ids
            )
        )
        return self._replace(owner_tickets, {operation_id: wave})[0]

    def replace_ep_wave_with_full_stage_owners(
        self, wave_ticket: Any, *, operation_ids: Sequence[Hashable]
    ) -> Sequence[Any]:
        """Turn the active EP wave into one full-stage owner per operation id."""
        if "replace_ep_wave_with_full_stage_owners" not in self._members and (
            len(operation_ids) == 1
        ):
            return (
                self.transition_active_scope(
                    wave_ticket, operation_id=operation_ids[0], scope=FULL_STAGE_WORLD
                ),
            )
        self._require("replace_ep_wave_with_full_stage_owners")
        owners = self._change(
            lambda context: _by_operation(
                context.replace_ep_wave_with_full_stage_owners(
                    wave_ticket, operation_ids=operation_ids
                )
            )
        )
        return self._replace((wave_ticket,), {op: owners.get(op) for op in operation_ids})

    def release(self, ticket: Any) -> None:
        """End an active operation."""
        self._change(lambda context: context.release(ticket))
        self._tickets.pop(ticket.operation_id, None)
        self._active.discard(ticket.operation_id)
        self._shown = self._look()

    # ---------------------------------------------------------------- changing a copy

    def _require(self, member: str) -> None:
        if member not in self._members:
            raise ValueError(f"{self._implementation.name} has no {member}")

    def _change(self, call: Callable[[Any], Any]) -> Any:
        """Call the context, on a copy of its own; whatever it raises is the protocol's failure."""
        try:
            if self._snapshot is not None:
                self._context = self._copy()
                self._snapshot = None
            return call(self._context)
        except ValueError:
            raise
        except RAISED as error:
            raise ValueError(f"{type(error).__name__}: {error}") from error

    def _look(self) -> _Shown:
        """Read what the public API shows after a call.

        Raises
        ------
        ValueError
            If reading raises, or shows something else than tickets: the protocol's failure.
        """
        try:
            active, queued = self._read_active(), self._read_queued()
            self._bound = self._bound and bool(active)
            sealed = self._read_sealed()
            entries = tuple(sorted(map(self._entry, active))), tuple(map(self._entry, queued))
            hash(entries)
        except RAISED as error:
            raise ValueError(
                f"what the context shows cannot be read ({type(error).__name__}: {error})"
            ) from error
        return _Shown(active, queued, ContextSnapshot(*entries, self._bound, sealed))

    def _read_sealed(self) -> bool:
        """Whether the bound group takes no more owners: what may be joined then is the next."""
        if _SEALED in self._members:
            return bool(self._context.forward_group_sealed)
        if not self._bound or _JOINABLE not in self._members:
            return False
        return bool(self._context.joinable_forward_group_id != self._group)

    def _read_queued(self) -> tuple[Any, ...]:
        if "queued_tickets" in self._members:
            return tuple(self._context.queued_tickets)
        return tuple(t for op, t in self._tickets.items() if op not in self._active)

    def _read_active(self) -> tuple[Any, ...]:
        told = "is_active" in self._members
        active = [
            ticket
            for operation, ticket in self._tickets.items()
            if (self._context.is_active(ticket) if told else operation in self._active)
        ]
        return tuple(sorted(active, key=lambda ticket: ticket.admission_seq))

    def _copy(self) -> Any:
        shared = {id(ticket): ticket for ticket in self._tickets.values()}
        shared.update((id(value), value) for value in self._implementation.extra.values())
        frozen = frozenset(type(ticket) for ticket in self._tickets.values())
        operations = frozenset(type(operation) for operation in self._tickets)
        return clone(self._context, shared, frozen | operations)

    def _replace(self, old: Iterable[Any], new: Mapping[Hashable, Any]) -> tuple[Any, ...]:
        for operation, ticket in new.items():
            _minted(ticket, operation)
        for ticket in old:
            self._tickets.pop(ticket.operation_id, None)
            self._active.discard(ticket.operation_id)
        self._tickets.update(new)
        self._active.update(new)
        self._shown = self._look()
        return tuple(new.values())

    # ---------------------------------------------------------------- states

    def snapshot(self) -> LiveSnapshot:
        """Return what the public API shows, with the live context behind it."""
        if self._snapshot is not None:
            return self._snapshot
        state, held = self._shown.state, self._held()
        known = self._seen.get((state, held))
        if known is None:
            if self._hidden:
                known = RememberingSnapshot(*state)
                known.memory = held
            else:
                known = LiveSnapshot(*state)
            known.context, known.tickets = self._copy(), dict(self._tickets)
            known.shown, known.group = self._shown, self._group
            self._seen[state, held] = known
        return known

    def _held(self) -> Hashable:
        """All that the context and its live tickets hold, if what is shown does not say it all."""
        if not self._hidden:
            return None
        held = (self._context, self._tickets, self._group if self._bound else None)
        return memory(held, self._implementation.extra.values())

    def _entry(self, ticket: Any) -> tuple[str, Any]:
        wave = ticket.scope == self._implementation.ep_wave
        return (EP_WAVE if wave else FULL_STAGE_WORLD, ticket.operation_id)

    def restore(self, snapshot: ContextSnapshot) -> dict[Hashable, Any]:
        """Become the context of a snapshot; return its live tickets by operation id."""
        if not isinstance(snapshot, LiveSnapshot):
            raise TypeError(f"expected a snapshot of this context, got {snapshot!r}")
        self._snapshot, self._context, self._shown = snapshot, snapshot.context, snapshot.shown
        self._tickets = dict(snapshot.tickets)
        self._active = {operation for _, operation in snapshot.active}
        self._bound, self._group = snapshot.bound, snapshot.group
        return dict(snapshot.tickets)

    # ---------------------------------------------------------------- explanations

    @property
    def active_tickets(self) -> tuple[Any, ...]:
        """Everything that holds the stage, by ``admission_seq``."""
        return self._shown.active

    def refusals(self, ticket: Any) -> tuple[Refusal, ...]:
        """Find out by trial, on copies, what keeps a queued ticket out now.

        The context tells no reasons. What the public API shows (wave, owners, capacity, seal) is
        read; a ticket ahead counts as passed over in vain if its presence alone keeps this one out.
        """
        if self._admits(ticket, ()):
            return ()
        found = list(self._shown_obstacles(ticket))
        queue = self.queued_tickets
        queued = [other.operation_id for other in queue]
        shown = ticket.operation_id in queued  # a context may keep a ticket out of its own queue
        ahead = queue[: queued.index(ticket.operation_id)] if shown else ()
        blockers = tuple(
            other
            for other in ahead
            if not self._admits(ticket, [t for t in ahead if t is not other])
        )
        if self._admits(ticket, ahead):
            found.append(Refusal("behind", blockers or tuple(ahead)))
        elif not found:
            found.append(Refusal("behind", tuple(ahead)))
        return tuple(found)

    def _shown_obstacles(self, ticket: Any) -> Iterable[Refusal]:
        active = self.active_tickets
        waves = tuple(t for t in active if t.scope == self._implementation.ep_wave)
        if waves:
            yield Refusal("ep_wave_active", waves)
        elif active and ticket.scope == self._implementation.ep_wave:
            yield Refusal("owners_active", active)
        if ticket.scope != self._implementation.ep_wave and active:
            if len(active) - len(waves) >= self._capacity:
                yield Refusal("capacity", active)
            if self.forward_group_sealed:
                yield Refusal("sealed", active)

    def _admits(self, ticket: Any, cancelled: Sequence[Any]) -> bool:
        """Whether a copy admits the ticket once these others are cancelled."""
        trial = self._copy()
        try:
            for other in cancelled:
                trial.cancel(other)
            return bool(_plain(trial.try_acquire(ticket)))
        except RAISED:  # a context that cannot be tried admits nothing as far as one can tell
            return False


def _plain(result: Any) -> Any:
    """Return a result that is there at once; TypeError for one that would have to be run."""
    if inspect.isawaitable(result) or inspect.isgenerator(result):
        if hasattr(result, "close"):
            result.close()
        raise TypeError(f"returns a {type(result).__name__}; expected the result itself")
    return result


def _minted(ticket: Any, operation: Hashable) -> Any:
    """Return what is a ticket for an operation; ValueError for what is none."""
    shown = getattr(ticket, "operation_id", None)
    if shown != operation or not isinstance(getattr(ticket, "admission_seq", None), int):
        raise ValueError(
            f"expected a ticket for operation {operation!r} with an integer admission_seq, "
            f"got {ticket!r}"
        )
    return ticket


def _by_operation(made: Any) -> dict[Hashable, Any]:
    """Tickets that a restore returned, as a mapping or a sequence, by operation."""
    tickets = made.values() if isinstance(made, Mapping) else made
    return {ticket.operation_id: ticket for ticket in tickets}
