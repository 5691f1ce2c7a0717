"""The one way kernels are compiled: ahead of first use, cached on disk, without the GIL."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb
import numpy.typing as npt

Array = npt.NDArray[Any]
_VIEWS: Any = {"cache": True, "boundscheck": False, "error_model": "numpy"}
_PARTS: Any = {
    "nogil": True,
    "_nrt": False,
    "boundscheck": False,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_OPTIONS: Any = {"nogil": True, "_nrt": False, **_VIEWS}

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile ``function`` with numba: cached, ``nogil`` so that threads run side by side.

    Kernels allocate nothing: numba's reference counting is switched off, which costs a quarter of
    the time otherwise, and an allocation would then be refused at compile time.

    The cache is keyed by the file that holds the function. A kernel therefore keeps the constants
    and helpers it uses in its own file, or a change elsewhere would leave stale machine code.
    """
    return cast(F, nb.njit(**_OPTIONS)(function))


def part(function: F) -> F:
    """Compile a function that only kernels call: without the ways in from Python, and uncached.

    What calls it is cached with all its parts inside; that is a third of the compile time less.
    """
    return cast(F, nb.njit(**_PARTS)(function))


def jit_views(function: F) -> F:
    """Compile a function that makes arrays out of addresses: these are counted, and own nothing."""
    return cast(F, nb.njit(nogil=True, **_VIEWS)(function))


def address_of(function: Callable[[int, int, int, int], int]) -> int:
    """Compile an expander's C function (:class:`verify.packed.native.Expander`); its address.

    The compiled code lives as long as the process.
    """
    compiled: Any = _COMPILED.get(function)
    if compiled is None:
        compiled = nb.cfunc("int64(int64, int64, int64, int64)", **_VIEWS)(function)
        _COMPILED[function] = compiled
    address: int = compiled.address
    return address


_COMPILED: dict[Any, Any] = {}
