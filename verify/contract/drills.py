"""Clauses that need no call sequence: the constructor and the frozen ticket."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from verify.contract.errors import RAISED
from verify.contract.implementation import ARGUMENTS, Implementation
from verify.contract.operations import Operation
from verify.contract.session import Deviation

_BAD_IDS: Final[tuple[object, ...]] = (-1, True, False, 1.0, "0", None)


def drill(implementation: Implementation) -> tuple[dict[str, Deviation], dict[str, int]]:
    """Return the broken clauses, and how often each drilled clause was seen to hold."""
    broken: dict[str, Deviation] = {}
    seen: dict[str, int] = {}
    drills: tuple[tuple[str, Callable[[Implementation], tuple[int, Deviation | None]]], ...] = (
        ("construct", _construct),
        ("bad_id", _bad_ids),
        ("bad_ep_size", lambda implementation: _below_one(implementation, "ep_size")),
        ("bad_capacity", lambda implementation: _below_one(implementation, "full_stage_capacity")),
        ("frozen", _frozen),
    )
    for clause, run in drills:
        count, deviation = run(implementation)
        if deviation is not None:
            broken[clause] = deviation._replace(clause=clause)
        seen[clause] = count
    return broken, seen


def _made(implementation: Implementation, **given: object) -> Any:
    values: dict[str, object] = {
        "replica_id": 0,
        "stage_id": 0,
        "ep_size": 2,
        "full_stage_capacity": 1,
        **given,
    }
    kept = {name: values[name] for name in ARGUMENTS if name in implementation.arguments}
    return implementation.cls(**kept, **implementation.extra)


def _construct(implementation: Implementation) -> tuple[int, Deviation | None]:
    given = {"replica_id": 3, "stage_id": 5, "ep_size": 4, "full_stage_capacity": 2}
    wanted = {name: given[name] for name in ARGUMENTS if name in implementation.arguments}
    context = _made(implementation, **wanted)
    shown = {name: getattr(context, name, None) for name in wanted}
    if shown != wanted:
        return 0, Deviation("construct", f"properties show {wanted}", f"they show {shown}")
    if implementation.takes_capacity:
        rest = {name: value for name, value in wanted.items() if name != "full_stage_capacity"}
        try:
            capacity = implementation.cls(**rest, **implementation.extra).full_stage_capacity
        except RAISED as error:  # whatever is raised, the default is not there
            return 0, Deviation("construct", "a capacity of 1 unless given", f"raises {error!r}")
        if capacity != 1:
            return 0, Deviation("construct", "a capacity of 1 unless given", f"it is {capacity!r}")
    return len(wanted) + 1, None


def _refuses(implementation: Implementation, name: str, value: object) -> Deviation | None:
    call = f"{name}={value!r}"
    try:
        _made(implementation, **{name: value})
    except ValueError:
        return None
    except RAISED as error:  # any other exception is not the one that the page names
        return Deviation("", f"{call} raises ValueError", f"raises {type(error).__name__}: {error}")
    return Deviation("", f"{call} raises ValueError", "it is accepted")


def _bad_ids(implementation: Implementation) -> tuple[int, Deviation | None]:
    count = 0
    for name in ("replica_id", "stage_id"):
        if name in implementation.arguments:
            for value in _BAD_IDS:
                deviation = _refuses(implementation, name, value)
                if deviation is not None:
                    return count, deviation
                count += 1
    return count, None


def _below_one(implementation: Implementation, name: str) -> tuple[int, Deviation | None]:
    if name not in implementation.arguments:
        return 0, None
    for value in (0, -1):
        deviation = _refuses(implementation, name, value)
        if deviation is not None:
            return 0, deviation
    return 2, None


def _frozen(implementation: Implementation) -> tuple[int, Deviation | None]:
    """Try to set each field of a ticket; a copy of the value goes in where nothing stops it."""
    if "enqueue_full_stage" not in implementation.members:
        return 0, None
    try:
        ticket = _made(implementation).enqueue_full_stage(operation_id=Operation(0, 0))
    except RAISED:  # the clause on enqueueing reports it
        return 0, None
    for name in ("replica_id", "stage_id", "admission_seq", "operation_id", "scope"):
        try:
            setattr(ticket, name, copy.copy(getattr(ticket, name, None)))
        except (AttributeError, TypeError):
            continue
        return 0, Deviation("frozen", f"setting {name} of a ticket raises", "it is set")
    return 5, None
