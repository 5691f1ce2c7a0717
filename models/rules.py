"""Rules by name: those of the core, and a person's own from a file (``FILE.py:Name``)."""

from __future__ import annotations

import importlib.util
import inspect
import traceback
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from frontier.admission import ADMISSION_RULES, AdmissionRule
from frontier.lanes import LaneStageScheduler
from frontier.rooms import ROOM_RULES, RoomRule
from frontier.standin import STAND_IN_RULES, StageView, StandInRule
from frontier.tickets import StageAdmissionTicket

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
        if not callable(getattr(rule, "blockers", None)):
            raise RuleError(
                f"{reference} has no method blockers(ticket, queue, active); see "
                f"frontier/admission.py for the protocol and four examples"
            )
        self._rule = rule
        self.name = reference
        ticket_at: Any = getattr(rule, "ticket_at", "arrival")
        if ticket_at not in ("arrival", "attempt"):
            raise RuleError(f"{reference}: ticket_at must be arrival or attempt, got {ticket_at!r}")
        self.ticket_at: Literal["arrival", "attempt"] = ticket_at

    def blockers(
        self,
        ticket: StageAdmissionTicket,
        queue: Sequence[StageAdmissionTicket],
        active: Collection[StageAdmissionTicket],
    ) -> tuple[StageAdmissionTicket, ...]:
        """Ask the rule; it gets copies, so that it cannot change the context."""
        given = (ticket, tuple(queue), tuple(active))
        try:
            found, again = self._rule.blockers(*given), self._rule.blockers(*given)
        except Exception as error:
            raise RuleError(_raised(self.name, error)) from error
        if not isinstance(found, list | tuple) or any(b not in given[1] for b in found):
            raise RuleError(
                f"{self.name}: blockers must return a list or tuple of tickets of the queue, "
                f"got {found!r}"
            )
        if found != again:
            raise RuleError(
                f"{self.name}: blockers answered {found!r}, then {again!r} to the same question; "
                f"a rule must depend on nothing but its arguments"
            )
        return tuple(found)


class OwnStandInRule:
    """A person's stand-in rule; whatever it raises becomes a :class:`RuleError`."""

    def __init__(self, rule: Any, reference: str) -> None:
        if not callable(getattr(rule, "allows", None)):
            raise RuleError(
                f"{reference} has no method allows(lane, scheduler, context); see "
                f"frontier/standin.py for the protocol and three examples"
            )
        self._rule = rule
        self.name = reference
        self.withdraws_joined = bool(getattr(rule, "withdraws_joined", False))

    def allows(self, lane: int, scheduler: LaneStageScheduler, context: StageView) -> bool:
        """Ask the rule."""
        try:
            return bool(self._rule.allows(lane, scheduler, context))
        except Exception as error:
            raise RuleError(_raised(self.name, error)) from error


def _raised(reference: str, error: Exception) -> str:
    """Say what was raised, and by which line of the rule's own file, if any of it ran."""
    file = Path(reference.rpartition(":")[0])
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
    where = f" ({file.name}, line {lines[-1]})" if lines else ""
    return f"{reference} raised {type(error).__name__}: {error}{where}"


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
    spec = importlib.util.spec_from_file_location(f"own_rule_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise RuleError(f"cannot load the rule {reference}: {file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        if hasattr(module, attribute):
            return _made(reference, getattr(module, attribute))
    except RuleError:
        raise
    except Exception as error:
        raise RuleError(_raised(reference, error)) from error
    names = ", ".join(name for name in vars(module) if not name.startswith("_"))
    raise RuleError(f"{file} has no {attribute!r}; it defines: {names or 'nothing'}")


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
