"""The reference: what PROTOCOL.md section 2 says that each call does to a stage context.

A state holds operations, not tickets, and no history: no sequence numbers, no group counter.
The page leaves a few outcomes open; those are marked, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from verify.contract.operations import FOREIGN, Call, Operation
from verify.contract.orders import Order

Outcome = Literal["ticket", "tickets", "true", "false", "group", "none", "error", "open"]
"""What a call gives: tickets, a boolean, a group id, nothing, ValueError, or unsaid by the page."""


class ContextState(NamedTuple):
    """A stage context as far as the contract goes.

    Attributes
    ----------
    queue
        The ready FIFO, head first.
    active
        Operations that hold the stage, in order of their tickets' ``admission_seq``.
    members
        Active operations that have bound the forward group, or descend from such.
    bound, sealed
        Whether a forward group is bound, and whether it is sealed.
    """

    queue: tuple[Operation, ...] = ()
    active: tuple[Operation, ...] = ()
    members: frozenset[Operation] = frozenset()
    bound: bool = False
    sealed: bool = False

    @property
    def wave(self) -> Operation | None:
        """The active EP wave, if any."""
        return next((op for op in self.active if op.is_wave), None)

    @property
    def owners(self) -> tuple[Operation, ...]:
        """Active full-stage owners."""
        return tuple(op for op in self.active if not op.is_wave)

    def is_live(self, operation: Operation) -> bool:
        """Whether the operation is queued or active."""
        return operation in self.queue or operation in self.active


class Expectation(NamedTuple):
    """What a call must do.

    Attributes
    ----------
    outcome
        What it gives.
    clause
        Key of the clause that is broken when it gives something else.
    after
        State afterwards.
    latitude
        Key of the point that the page leaves open, empty for none; ``seal`` leaves only
        ``forward_group_sealed`` open.
    """

    outcome: Outcome
    clause: str
    after: ContextState
    latitude: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """The contract of one context as a state machine.

    Parameters
    ----------
    order
        Reference order of the admission rule.
    capacity
        Full-stage owners that may be active at once.
    """

    order: Order
    capacity: int

    def expect(self, state: ContextState, call: Call) -> Expectation:
        """Say what the call must do in the state."""
        if call.kind in ("owns", "ask"):
            return self._question(state, call)
        if call.oddity in FOREIGN:
            return Expectation("error", "bad_ticket", state)
        return _RULES[call.kind](self, state, call)

    @staticmethod
    def _question(state: ContextState, call: Call) -> Expectation:
        (operation,) = call.tickets
        if call.kind == "ask":
            return Expectation("false", "never_raise", state)
        if call.oddity in FOREIGN:
            return Expectation("error", "owns_validates", state)
        if not state.is_live(operation):
            return Expectation("open", "owns", state, "owns_dead")
        return Expectation("true" if operation in state.active else "false", "owns", state)

    # ---------------------------------------------------------------- queue

    def _enqueue(self, state: ContextState, call: Call) -> Expectation:
        operation = call.new[0]
        if call.oddity == "unhashable" or state.is_live(operation):
            return Expectation("error", "bad_operation", state)
        if call.kind == "wave" and call.participants != "exact":
            return Expectation("error", "bad_participants", state)
        minted = "mint_wave" if operation.is_wave else "mint_full"
        return Expectation("ticket", minted, state._replace(queue=(*state.queue, operation)))

    def _cancel(self, state: ContextState, call: Call) -> Expectation:
        (operation,) = call.tickets
        if operation not in state.queue:
            return Expectation("error", "bad_cancel", state)
        queue = tuple(op for op in state.queue if op != operation)
        return Expectation("none", "cancel", state._replace(queue=queue))

    # ---------------------------------------------------------------- admission

    def _try(self, state: ContextState, call: Call) -> Expectation:
        (operation,) = call.tickets
        if operation in state.active:
            return Expectation("false", "try_active", state)
        if operation not in state.queue:
            return Expectation("error", "bad_try", state)
        refused = self.refusal(state, operation)
        if refused is not None:
            return Expectation("false", refused, state)
        queue = tuple(op for op in state.queue if op != operation)
        after = state._replace(queue=queue, active=(*state.active, operation))
        return Expectation("true", self._admitting(state, operation), after)

    def refusal(self, state: ContextState, operation: Operation) -> str | None:
        """Clause that keeps a queued operation out, the most general first; None for none."""
        if operation.is_wave and state.active:
            return "wave_alone"
        if not operation.is_wave:
            if state.wave is not None:
                return "wave_excludes"
            if state.active and len(state.owners) >= self.capacity:
                return "capacity_full"
            if state.sealed:
                return "sealed_refuses"
        ahead = state.queue[: state.queue.index(operation)]
        behind = self.order.kept_out_by(operation, ahead, state.active)
        return None if behind is None else behind.key

    def _admitting(self, state: ContextState, operation: Operation) -> str:
        """Clause by which a queued operation must be admitted."""
        if operation != state.queue[0]:
            return "head_admitted" if self.order.passing is None else self.order.passing.key
        return "capacity_free" if state.active else "head_admitted"

    def _release(self, state: ContextState, call: Call) -> Expectation:
        (operation,) = call.tickets
        if operation not in state.active:
            return Expectation("error", "bad_release", state)
        active = tuple(op for op in state.active if op != operation)
        if not active:
            return Expectation("none", "release", ContextState(state.queue))
        after = state._replace(active=active, members=state.members - {operation})
        return Expectation("none", "release", after)

    # ---------------------------------------------------------------- group and scope

    def _bind(self, state: ContextState, call: Call) -> Expectation:
        (operation,) = call.tickets
        if operation not in state.active or operation.is_wave:
            return Expectation("error", "bad_bind", state)
        if state.sealed:
            return Expectation("open", "bind", state, "bind_sealed")
        after = state._replace(bound=True, members=state.members | {operation})
        return Expectation("group", "bind", after)

    def _shift(self, state: ContextState, call: Call) -> Expectation:
        (old,), (new,) = call.tickets, call.new
        if old not in state.active or call.oddity == "scope":
            return Expectation("error", "bad_shift", state)
        clash = _clash(state, call, (old,))
        if clash is not None:
            return clash
        if new.is_wave and call.participants != "exact":
            return Expectation("error", "bad_participants", state)
        if not new.is_wave and call.participants not in ("exact", "none"):
            return Expectation("open", "shift", state, "participants_full")
        if new.is_wave and not old.is_wave and len(state.owners) > 1:
            return Expectation("error", "shift_alone", state)
        if new.is_wave and not old.is_wave and state.wave is not None:
            return Expectation("open", "shift", state, "second_wave")
        return _replaced(state, (old,), (new,), "shift", "ticket")

    def _promote(self, state: ContextState, call: Call) -> Expectation:
        owners, (wave,) = call.tickets, call.new
        inactive = any(op not in state.active or op.is_wave for op in owners)
        if not owners or inactive or state.wave is not None:
            return Expectation("error", "bad_promote", state)
        if len(set(owners)) != len(owners):
            return Expectation("open", "promote", state, "repeated_owner")
        clash = _clash(state, call, owners)
        if clash is not None:
            return clash
        if call.participants != "exact":
            return Expectation("error", "bad_participants", state)
        return _replaced(state, owners, (wave,), "promote", "ticket")

    def _restore(self, state: ContextState, call: Call) -> Expectation:
        (wave,), new = call.tickets, call.new
        if wave not in state.active or not wave.is_wave:
            return Expectation("error", "bad_restore", state)
        if not new or len(set(new)) != len(new):
            return Expectation("error", "bad_restore", state)
        if len(new) > self.capacity:
            return Expectation("error", "restore_capacity", state)
        clash = _clash(state, call, (wave,))
        if clash is not None:
            return clash
        if len(new) + len(state.owners) > self.capacity:
            return Expectation("open", "restore", state, "restore_beside")
        return _replaced(state, (wave,), new, "restore", "tickets")


_RULES: Final[dict[str, Callable[[Reference, ContextState, Call], Expectation]]] = {
    "full": Reference._enqueue,
    "wave": Reference._enqueue,
    "try": Reference._try,
    "release": Reference._release,
    "cancel": Reference._cancel,
    "bind": Reference._bind,
    "shift": Reference._shift,
    "promote": Reference._promote,
    "restore": Reference._restore,
}


def _clash(state: ContextState, call: Call, replaced: tuple[Operation, ...]) -> Expectation | None:
    """Find what a replacement's operation ids run into, if anything."""
    if call.oddity == "unhashable":
        return Expectation("error", "bad_operation", state)
    if any(state.is_live(op) and op not in replaced for op in call.new):
        return Expectation("error", "bad_operation", state)
    if any(op in replaced for op in call.new):
        return Expectation("open", call.kind, state, "own_id")
    return None


def _replaced(
    state: ContextState,
    old: tuple[Operation, ...],
    new: tuple[Operation, ...],
    clause: str,
    outcome: Outcome,
) -> Expectation:
    """Swap active operations; a bound group seals when its own members change scope."""
    joined = any(op in state.members for op in old)
    changes_scope = old[0].is_wave != new[0].is_wave
    seals = state.bound and joined and changes_scope and not old[0].is_wave
    kept = tuple(op for op in state.active if op not in old)
    after = state._replace(
        active=(*kept, *new),
        members=(state.members - set(old)) | (set(new) if joined else set()),
        sealed=state.sealed or seals,
    )
    unsaid = state.bound and not state.sealed and not seals
    return Expectation(outcome, clause, after, "seal" if unsaid else "")
