"""Rules by name: those of the core, and a person's own from a file (``FILE.py:Name``)."""

from __future__ import annotations

import builtins
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeVar

from frontier.admission import ADMISSION_RULES, AdmissionRule
from frontier.lanes import LaneStageScheduler
from frontier.rooms import ROOM_RULES, RoomRule
from frontier.standin import STAND_IN_RULES, StageView, StandInRule
from frontier.tickets import StageAdmissionTicket
from verify.contract.errors import RAISED
from verify.contract.loader import print_aside

T = TypeVar("T")


class RuleError(Exception):
    """A rule that cannot be found, loaded or run; the message says which and why.

    No ``ValueError``: raised while an event is handled, it must not pass for a core error.
    """


def is_own_rule(name: str) -> bool:
    """Whether a rule's name refers to a file."""
    return ":" in name


class OwnAdmissionRule:
    """A person's admission rule; whatever it raises becomes a :class:`RuleError`."""

    def __init__(self, rule: Any, reference: str) -> None:
        if not callable(_member(rule, reference, "blockers")):
            raise RuleError(
                f"{reference} has no method blockers(ticket, queue, active); see "
                f"frontier/admission.py for the protocol and four examples"
            )
        self._rule = rule
        self.name = reference
        ticket_at: Any = _member(rule, reference, "ticket_at", "arrival")
        if not isinstance(ticket_at, str) or ticket_at not in ("arrival", "attempt"):
            raise RuleError(
                f"{reference}: ticket_at must be arrival or attempt, got {_shown(ticket_at)}"
            )
        self.ticket_at: Literal["arrival", "attempt"] = ticket_at  # type: ignore[assignment]

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],
    ) -> tuple[StageAdmissionTicket, ...]:
        """Ask the rule; it gets copies, so that it cannot change the context."""
        given = (ticket, tuple(queue), tuple(active))

        def answer() -> tuple[StageAdmissionTicket, ...]:
            found, again = self._rule.blockers(*given), self._rule.blockers(*given)
            if not isinstance(found, list | tuple) or any(b not in given[1] for b in found):
                raise RuleError(
                    f"{self.name}: blockers must return a list or tuple of tickets of the queue, "
                    f"got {_shown(found)}"
                )
            if found != again:
                raise RuleError(
                    f"{self.name}: blockers answered {_shown(found)}, then {_shown(again)} to the "
                    f"same question; a rule must depend on nothing but its arguments"
                )
            return tuple(found)

        return _answer_of(self.name, answer)


class OwnStandInRule:
    """A person's stand-in rule; whatever it raises becomes a :class:`RuleError`."""

    def __init__(self, rule: Any, reference: str) -> None:
        if not callable(_member(rule, reference, "allows")):
            raise RuleError(
                f"{reference} has no method allows(lane, scheduler, context); see "
                f"frontier/standin.py for the protocol and three examples"
            )
        withdraws = _member(rule, reference, "withdraws_joined", False)
        if not isinstance(withdraws, bool):
            raise RuleError(
                f"{reference}: withdraws_joined must be True or False, got {_shown(withdraws)}; "
                f"write it as an attribute or a property"
            )
        self._rule = rule
        self.name = reference
        self.withdraws_joined = withdraws

    def allows(self, lane: int, scheduler: LaneStageScheduler, context: StageView) -> bool:
        """Ask the rule; any answer but None counts as Python counts it.

        It gets a copy of the scheduler and a context that can only be read, so that it can neither
        change nor mark what it is asked about.
        """

        def answer() -> bool:
            found = self._rule.allows(lane, _copy_of(scheduler), _OnlyRead(context))
            if found is None:
                raise RuleError(f"{self.name}: allows returned None; it must return True or False")
            return bool(found)

        first, again = _answer_of(self.name, answer), _answer_of(self.name, answer)
        if first != again:
            raise RuleError(
                f"{self.name}: allows answered {first}, then {again} to the same question; "
                f"a rule must depend on nothing but its arguments"
            )
        return first


def _copy_of(scheduler: LaneStageScheduler) -> LaneStageScheduler:
    copy = type(scheduler)()
    copy.restore(scheduler.running, scheduler.in_order)
    return copy


_QUESTIONS: Final = ("is_active", "is_queued", "is_cancelled", "owns", "refusals")
"""Methods of a context that change nothing."""


class _OnlyRead:
    """A stage execution context whose public state can be read, and no more."""

    __slots__ = ("_context",)

    def __init__(self, context: StageView) -> None:
        object.__setattr__(self, "_context", context)

    def __getattr__(self, name: str) -> Any:
        value = getattr(object.__getattribute__(self, "_context"), name)
        if name.startswith("_") or (callable(value) and name not in _QUESTIONS):
            raise TypeError(f"a stand-in rule may only read the context; {name} is out of bounds")
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise TypeError(f"a stand-in rule may only read the context; {name} cannot be set")


def _answer_of(reference: str, question: Callable[[], T]) -> T:
    """Ask a person's code; whatever it raises, ending the program too, is a RuleError."""
    try:
        return question()
    except RuleError:
        raise
    except RAISED as error:
        raise RuleError(_raised(reference, error)) from error


def _member(rule: object, reference: str, name: str, default: object = None) -> object:
    return _answer_of(reference, lambda: getattr(rule, name, default))


def _shown(value: object) -> str:
    """Show what a person's code returned; its own ``repr`` may raise."""
    try:
        return repr(value)
    except RAISED as error:
        return f"a {type(value).__name__} (that cannot be shown: {type(error).__name__})"


def _raised(reference: str, error: BaseException) -> str:
    """Say what was raised, and by which line of the rule's own file, if any of it ran."""
    file = Path(reference.rpartition(":")[0]).resolve()
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == file]
    where = f" ({file.name}, line {lines[-1]})" if lines else ""
    try:
        message = str(error)
    except RAISED:
        message = "no message that can be shown"
    return f"{reference} raised {type(error).__name__}: {message}{where}"


def _made(reference: str, found: Any) -> Any:
    """Return an object as it is; of a class, an instance made without arguments."""
    if not isinstance(found, type):
        return found
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise RuleError(
            f"{reference} must be constructible without arguments, but its constructor has "
            f"{error}; give it a default, or name an instance instead of the class"
        ) from None
    except ValueError:  # a class without a signature to read, so that calling it will show
        pass
    return found()


@cache
def _load(reference: str) -> Any:
    """Load the object ``FILE.py:Name`` refers to; a class is called without arguments."""
    file, _, attribute = reference.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise RuleError(f"cannot load the rule {reference}: there is no file {file}")
    module = _module_of(path, reference)

    def made() -> Any:
        if not hasattr(module, attribute):
            names = ", ".join(name for name in vars(module) if not name.startswith("_"))
            raise RuleError(f"{file} has no {attribute!r}; it defines: {names or 'nothing'}")
        return _made(reference, getattr(module, attribute))

    return _answer_of(reference, made)


def _module_of(path: Path, reference: str) -> ModuleType:
    """Import a person's file under a name of its own.

    It can import modules that lie beside it, unless their names are taken; what it prints goes to
    standard error, so that standard output holds results only.
    """
    whole = path.resolve()
    name = f"own_rule_{sha256(os.fsencode(whole)).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuleError(f"cannot load the rule {reference}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "print": print_aside}
    sys.modules[name] = module  # where dataclasses look their annotations up
    if str(whole.parent) not in sys.path:
        sys.path.append(str(whole.parent))
    try:
        _answer_of(reference, lambda: spec.loader.exec_module(module))  # type: ignore[union-attr]
    except RuleError:
        del sys.modules[name]
        raise
    return module


def _named(kind: str, name: object, known: Mapping[str, T]) -> T:
    if not isinstance(name, str) or name not in known:
        own = "" if kind == "rooms" else "; or FILE.py:Name for your own"
        raise RuleError(f"unknown {kind} {name!r}; expected one of: {', '.join(known)}{own}")
    return known[name]


def admission_rule(name: object) -> AdmissionRule:
    """Return an admission rule by name or from a file.

    Raises
    ------
    RuleError
        If there is none of that name, or the file or the rule in it cannot be used.
    """
    if isinstance(name, str) and is_own_rule(name):
        return OwnAdmissionRule(_load(name), name)
    return _named("admission", name, ADMISSION_RULES)


def stand_in_rule(name: object) -> StandInRule:
    """Return a stand-in rule by name or from a file; RuleError as :func:`admission_rule`."""
    if isinstance(name, str) and is_own_rule(name):
        return OwnStandInRule(_load(name), name)
    return _named("stand_in", name, STAND_IN_RULES)


def room_rule(name: object) -> RoomRule:
    """Return a room rule by name; RuleError if there is none."""
    return _named("rooms", name, ROOM_RULES)
