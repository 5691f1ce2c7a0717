"""An implementation under contract: its class, its constants and what it lacks."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from verify.contract.clauses import CLAUSES
from verify.contract.cloning import clone
from verify.contract.errors import RAISED, ContractInputError

ARGUMENTS: Final = ("replica_id", "stage_id", "ep_size", "full_stage_capacity")
"""Constructor arguments of PROTOCOL.md section 2."""

_OPTIONAL: Final = frozenset({"full_stage_capacity"})
MEMBERS: Final = frozenset(name for clause in CLAUSES for name in clause.needs)
"""Members that clauses need: the API of PROTOCOL.md section 2."""

_ABSENT: Final = object()
_REPLAYED: Final = "cannot be copied ({}): states are replayed, call by call"


@dataclass(frozen=True)
class Implementation:
    """A class under contract.

    Attributes
    ----------
    name
        How the user named it, ``FILE.py:Class`` or ``package.module:Class``.
    cls
        The class itself.
    arguments
        Which of :data:`ARGUMENTS` its constructor takes.
    extra
        Further constructor arguments, for example an admission rule of its own.
    members
        Which members that clauses need its instances have.
    full_stage_world, ep_wave
        Its constants of these names.
    notes
        What had to be done to load it.
    others
        Constructor arguments beyond :data:`ARGUMENTS` that may be given.
    uncopied
        Why its instances cannot be copied, so that their calls are made again on new ones; empty
        if they can.
    """

    name: str
    cls: type[Any]
    arguments: frozenset[str]
    members: frozenset[str]
    full_stage_world: Any
    ep_wave: Any
    extra: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    others: frozenset[str] = frozenset()
    uncopied: str = ""

    @property
    def copyable(self) -> bool:
        """Whether its instances can be copied."""
        return not self.uncopied

    def without_copies(self, why: str) -> Implementation:
        """Return the same implementation, its calls to be made again instead of copying it."""
        note = _REPLAYED.format(why)
        return dataclasses.replace(self, uncopied=why, notes=(*self.notes, note))

    @property
    def takes_rule(self) -> bool:
        """Whether an admission rule can be given, as to the core's own context."""
        return "rule" in self.others

    @property
    def takes_capacity(self) -> bool:
        """Whether the capacity can be chosen."""
        return "full_stage_capacity" in self.arguments

    def lacks(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the needed members that are missing."""
        return tuple(dict.fromkeys(name for name in needs if name not in self.members))

    def build(
        self, *, capacity: int, ep_size: int, replica_id: object = 0, stage_id: object = 0
    ) -> Any:
        """Make a context; the capacity is left out where the constructor takes none."""
        wanted = (replica_id, stage_id, ep_size, capacity)
        given = {
            name: value
            for name, value in zip(ARGUMENTS, wanted, strict=True)
            if name in self.arguments
        }
        return self.cls(**given, **self.extra)


def describe(
    name: str,
    cls: type[Any],
    module: ModuleType,
    extra: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
) -> Implementation:
    """Find out what a class offers by looking at it and at one instance.

    Raises
    ------
    ContractInputError
        If no context can be made from the arguments of PROTOCOL.md section 2.
    """
    extra = dict(extra or {})
    arguments = _arguments(name, cls, extra)
    draft = Implementation(name, cls, arguments, frozenset(), None, None, extra, notes)
    try:
        context = draft.build(capacity=1, ep_size=1)
    except RAISED as error:
        raise ContractInputError(
            f"{name}: the constructor refuses replica_id=0, stage_id=0, ep_size=1 with capacity 1: "
            f"{type(error).__name__}: {error}; expected a context (PROTOCOL.md section 2)"
        ) from error
    uncopied = _why_not_copied(context, extra)
    if uncopied:
        notes = (*notes, _REPLAYED.format(uncopied))
    members = {member for member in MEMBERS if _has(context, member)}
    if "full_stage_capacity" not in arguments:
        members.discard("full_stage_capacity")
    return dataclasses.replace(
        draft,
        members=frozenset(members),
        full_stage_world=_constant(module, draft, "FULL_STAGE_WORLD"),
        ep_wave=_constant(module, draft, "EP_WAVE"),
        uncopied=uncopied,
        notes=notes,
        others=frozenset(inspect.signature(cls).parameters) - set(ARGUMENTS),
    )


def _why_not_copied(context: Any, extra: Mapping[str, Any]) -> str:
    try:
        twin = clone(context, {id(value): value for value in extra.values()})
    except RAISED as error:
        return str(error) or type(error).__name__
    if twin is context:
        return "its copy is the context itself"
    return "" if type(twin) is type(context) else f"its copy is a {type(twin).__name__}"


def _arguments(name: str, cls: type[Any], extra: Mapping[str, Any]) -> frozenset[str]:
    try:
        parameters = inspect.signature(cls).parameters
    except (TypeError, ValueError) as error:
        raise ContractInputError(f"{name}: no constructor signature to read: {error}") from error
    kinds = [p.kind for p in parameters.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return frozenset(ARGUMENTS)
    unknown = [
        p.name
        for p in parameters.values()
        if p.default is p.empty
        and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        and p.name not in (*ARGUMENTS, *extra)
    ]
    if unknown:
        raise ContractInputError(
            f"{name}: the constructor also requires {', '.join(unknown)}; expected "
            f"StageExecutionContext(*, {', '.join(ARGUMENTS)}) (PROTOCOL.md section 2)"
        )
    return frozenset(ARGUMENTS) & frozenset(parameters)


def _has(context: object, member: str) -> bool:
    try:
        return getattr(context, member, _ABSENT) is not _ABSENT
    except RAISED:  # a property that raises is there, and its clauses will say how it fails
        return True


def _constant(module: ModuleType, draft: Implementation, name: str) -> Any:
    """Read the constant of the class's module, else of a ticket minted for it; None without."""
    value = getattr(module, name, getattr(draft.cls, name, _ABSENT))
    if value is not _ABSENT:
        return value
    try:
        probe = draft.build(capacity=1, ep_size=1)
        if name == "EP_WAVE":
            return probe.enqueue_ep_wave(operation_id="probe", participant_ep_ids=(0,)).scope
        return probe.enqueue_full_stage(operation_id="probe").scope
    except RAISED:  # then no ticket will have the scope, and the clauses on minting say so
        return None
