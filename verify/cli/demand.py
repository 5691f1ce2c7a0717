"""Loading a module when something of it is first called, so that nobody waits for it in vain."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def load(place: str) -> Any:
    """Return what ``module:attribute`` names; the module is imported unless it is already."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def on_demand(place: str) -> Callable[..., Any]:
    """Stand in for the function that ``module:attribute`` names; it is loaded when called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return load(place)(*args, **kwargs)

    return call
