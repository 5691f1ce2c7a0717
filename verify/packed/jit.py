"""The one way kernels are compiled: ahead of first use, cached on disk, without the GIL."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba as nb
import numpy.typing as npt

Array = npt.NDArray[Any]
_OPTIONS: Any = {
    "cache": True,
    "nogil": True,
    "boundscheck": False,
    "error_model": "numpy",
    "_nrt": False,
}

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile ``function`` with numba: cached, ``nogil`` so that threads run side by side.

    Kernels allocate nothing: numba's reference counting is switched off, which costs a quarter of
    the time otherwise, and an allocation would then be refused at compile time.

    The cache is keyed by the file that holds the function. A kernel therefore keeps the constants
    and helpers it uses in its own file, or a change elsewhere would leave stale machine code.
    """
    return cast(F, nb.njit(**_OPTIONS)(function))
