"""What an object remembers, as a value: equal only for objects that hold the same.

A context whose public API does not show all of its state is told apart by this instead. It is finer
than need be (a counter that no answer depends on keeps states apart), which costs states and never
a verdict. What a class keeps outside its instances (globals, closures) it does not see.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from verify.contract.cloning import SHARED
from verify.contract.errors import RAISED

_PLAIN: Final = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})
_NAMED: Final = (type, FunctionType, BuiltinFunctionType, ModuleType)


class _Itself:
    """A value that is told apart by identity, kept alive so that its ``id`` stays its own."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


def memory(value: Any, kept: Iterable[Any] = ()) -> Hashable:
    """Return all that a value holds, however deep, as something hashable.

    Parameters
    ----------
    value
        Anything. Objects are read as ``copy`` and ``pickle`` would; what cannot be read so (a
        generator, a socket) counts as equal to nothing but itself.
    kept
        Values that are not looked into: they are told apart by identity.
    """
    return _Reading({id(each): each for each in kept}).of(value)


class _Reading:
    """One reading under way; an object that is met again is named by its place, not read again."""

    def __init__(self, kept: dict[int, Any]) -> None:
        self._kept = kept
        self._places: dict[int, int] = {}
        self._alive: list[Any] = []  # the parts of a reduced object live no longer than this

    def of(self, value: Any) -> Hashable:
        kind = type(value)
        if kind in _PLAIN:
            return kind, value
        if kind is float:
            return kind, value.hex()  # 0.0 and -0.0 are equal, and not the same
        if isinstance(value, SHARED):
            return _Itself(kind)
        if isinstance(value, _NAMED) or id(value) in self._kept:
            return _Itself(value)
        if kind is tuple:
            return kind, tuple(map(self.of, value))
        if id(value) in self._places:
            return "again", self._places[id(value)]
        self._places[id(value)] = len(self._places)
        self._alive.append(value)
        if kind is list:
            return kind, tuple(map(self.of, value))
        if kind is dict:
            return kind, tuple((self.of(key), self.of(held)) for key, held in value.items())
        if kind is set or kind is frozenset:  # in no order, so that no place may be counted
            return kind, frozenset(_Reading(self._kept).of(member) for member in value)
        return self._object(value)

    def _object(self, value: Any) -> Hashable:
        try:
            reduced = value.__reduce_ex__(4)
            if isinstance(reduced, str):
                return _Itself(value)
            make, arguments, *rest = reduced
            state, items, pairs = (*rest, None, None, None)[:3]
            parts = (arguments, state, tuple(items or ()), tuple(pairs or ()))
        except RAISED:  # it cannot be read, so that nothing else may count as equal to it
            return _Itself(value)
        return _Itself(type(value)), self.of(make), tuple(map(self.of, parts))
