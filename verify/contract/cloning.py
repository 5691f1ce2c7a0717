"""Fast copies of contexts: plain attributes and containers by hand, all else by ``deepcopy``."""

from __future__ import annotations

import copy
import logging
import threading
from collections import deque
from typing import Any, Final

_ATOMS: Final[frozenset[type[Any]]] = frozenset(
    {int, float, bool, str, bytes, type(None), type(Ellipsis)}
)
SHARED: Final = (
    type(threading.Lock()),
    type(threading.RLock()),
    threading.Condition,
    logging.Logger,
    logging.LoggerAdapter,
)
"""Types without a state of the context's own, which a copy may have in common with the original."""

_CONTAINERS: Final = frozenset({dict, list, set, deque})


def _copies_itself(cls: type[Any]) -> bool:
    """Whether a class has its own way to be copied, or keeps state outside ``__dict__``."""
    own = ("__deepcopy__", "__slots__", "__reduce__", "__reduce_ex__", "__getstate__")
    return any(name in vars(base) for base in cls.__mro__ if base is not object for name in own)


def clone(context: Any, shared: dict[int, Any], frozen: frozenset[type[Any]] = frozenset()) -> Any:
    """Return an independent copy of a context.

    Parameters
    ----------
    context
        An object; one that says itself how it is copied, or that has slots, goes to ``deepcopy``.
    shared
        By ``id``, the values that copy and original have in common; grows as objects are copied,
        so that one that is met twice is copied once.
    frozen
        Types of values that are never copied.

    Raises
    ------
    Exception
        Whatever ``deepcopy`` raises on a part that cannot be copied.
    """
    if _copies_itself(type(context)):
        return copy.deepcopy(context, shared)
    return _Cloning(shared, frozen | _ATOMS).instance(context)


class _Cloning:
    """One copy under way."""

    def __init__(self, shared: dict[int, Any], kept: frozenset[type[Any]]) -> None:
        self._shared = shared
        self._kept = kept

    def instance(self, context: Any) -> Any:
        twin = object.__new__(type(context))
        self._shared[id(context)] = twin
        value = self._value
        twin.__dict__.update({name: value(held) for name, held in vars(context).items()})
        return twin

    def _value(self, value: Any) -> Any:
        kind = type(value)
        if kind in self._kept:
            return value
        known = self._shared.get(id(value))
        if known is not None:
            return known
        if isinstance(value, SHARED):
            return value
        if kind not in _CONTAINERS:
            return copy.deepcopy(value, self._shared)
        inner = self._value
        copied: Any
        if kind is dict:
            copied = {inner(key): inner(held) for key, held in value.items()}
        elif kind is deque:
            copied = deque([inner(item) for item in value], value.maxlen)
        else:
            copied = kind([inner(item) for item in value])
        self._shared[id(value)] = copied
        return copied
