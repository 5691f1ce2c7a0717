"""Memory and calls that compiled code and Python share: addresses, atomics, expanders.

Nothing here knows of a search; what is here never changes its meaning, so kernels of other files
may use it although numba's cache is keyed by the file of a kernel.
"""

# ruff: noqa: ARG001 -- numba reads the parameters of an intrinsic by name

import ctypes
from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from verify.packed.jit import Array, jit, jit_views

(
    ROWS,  # addresses: rows,
    SOURCES,  # sources,
    CHOICES,  # choices,
    ENDS,  # and ends
    CAPACITY,
    SPAN,
    WIDTH,
    FIRST,
    COUNT,
    REACHED,
    COMPLETED,  # for the search: rows that are complete,
    VIOLATING,  # rows that violate
    HEADER_SIZE,
) = range(13)
"""What is where in a block's header, an array of int64 that C functions are given."""


_INT64 = ir.IntType(64)
_WORD = 8
"""Bytes of an int64."""


def _intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let kernels call what ``function`` generates; its own parameters are their types."""
    generated: Callable[..., Any] = intrinsic(function)
    return generated


_sched_yield: Any = types.ExternalFunction("sched_yield", types.int32())
_usleep: Any = types.ExternalFunction("usleep", types.int32(types.uint32))

carray: Any = nb.carray  # type: ignore[attr-defined]

SPINS, YIELDS, NAP_US = 2_000, 2_200, 50
"""How long a wait spins, then lets others run, then sleeps between looks."""


@_intrinsic
def pointer(_context: Any, address: Any) -> Any:
    """Turn an address into a pointer, for ``carray``."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@_intrinsic
def prefetch(_context: Any, address: Any) -> Any:
    """Ask for the cache line at an address."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        hints = [number(0), number(3), number(1)]  # to read, to keep, data
        builder.call(ask, [builder.inttoptr(args[0], byte), *hints])
        return _INT64(0)

    return types.int64(types.int64), generate


@_intrinsic
def load(_context: Any, address: Any) -> Any:
    """Read an int64 that another thread may write; nothing after it is read before it."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], _INT64.as_pointer()), "seq_cst", _WORD)

    return types.int64(types.int64), generate


@_intrinsic
def store(_context: Any, address: Any, value: Any) -> Any:
    """Write an int64 that another thread may read; everything before it is written before it."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _INT64.as_pointer())
        builder.store_atomic(args[1], at, "seq_cst", _WORD)
        return args[1]

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def add(_context: Any, address: Any, value: Any) -> Any:
    """Add to an int64 in one step; return what it was before."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        at = builder.inttoptr(args[0], _INT64.as_pointer())
        return builder.atomic_rmw("add", at, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@_intrinsic
def call(_ctx: Any, address: Any, context: Any, rows: Any, count: Any, block: Any) -> Any:
    """Call an expander at an address: see :class:`Expander`."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        kind = ir.FunctionType(_INT64, [_INT64] * 4)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    return types.int64(*[types.int64] * 5), generate


@jit
def wait_for_change(address: int, seen: int) -> int:
    """Wait until the number at ``address`` is not ``seen`` any more; return it."""
    tries = 0
    now = load(address)
    while now == seen:
        tries += 1
        if tries > YIELDS:
            _usleep(NAP_US)
        elif tries > SPINS:
            _sched_yield()
        now = load(address)
    result: int = now
    return result


@jit_views
def longs_at(address: int, length: int) -> Any:
    """``(length,)`` int64 at an address."""
    return carray(pointer(address), (length,), np.int64)


@jit_views
def long_rows_at(address: int, length: int, width: int) -> Any:
    """``(length, width)`` int64 at an address."""
    return carray(pointer(address), (length, width), np.int64)


@jit_views
def ulongs_at(address: int, length: int) -> Any:
    """``(length,)`` uint64 at an address."""
    return carray(pointer(address), (length,), np.uint64)


@jit_views
def ints_at(address: int, length: int) -> Any:
    """``(length,)`` int32 at an address."""
    return carray(pointer(address), (length,), np.int32)


@jit_views
def words_at(address: int, length: int) -> Any:
    """``(length,)`` uint32 at an address."""
    return carray(pointer(address), (length,), np.uint32)


@jit_views
def rows_at(address: int, length: int, width: int) -> Any:
    """``(length, width)`` uint32 at an address."""
    return carray(pointer(address), (length, width), np.uint32)


@jit_views
def halves_at(address: int, length: int) -> Any:
    """``(length,)`` uint16 at an address."""
    return carray(pointer(address), (length,), np.uint16)


@jit_views
def bytes_at(address: int, length: int) -> Any:
    """``(length,)`` uint8 at an address."""
    return carray(pointer(address), (length,), np.uint8)


_EXPAND = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)


class Expander:
    """Successor generation for one thread: a C function and the address of its own memory.

    ``int64 expand(int64 context, int64 rows, int64 count, int64 header)`` fills the block whose
    header (:class:`verify.packed.model.Block`) is at ``header`` with all successors of the
    ``count`` rows at ``rows``, row by row, while they fit, and returns 0. Anything else ends the
    search.
    """

    def __init__(self, address: int, context: int = 0) -> None:
        self.address = address
        self.context = context
        self._call = _EXPAND(address)

    def __call__(self, rows: Array, block: Any) -> None:
        """Fill ``block`` with the successors of ``rows``: ``(n, width)`` uint32."""
        rows = np.ascontiguousarray(rows, np.uint32)
        if self._call(self.context, rows.ctypes.data, len(rows), block.header.ctypes.data):
            self.fail()

    def fail(self) -> None:
        """Raise the reason for which the function did not return 0.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("successor generation failed")


class PythonExpander(Expander):
    """An expander written in Python, for models that are not worth compiling.

    Parameters
    ----------
    function
        Called with the rows and the header's address.
    width
        Words of a row.
    """

    def __init__(self, function: Callable[[Array, int], None], width: int) -> None:
        self._error: BaseException | None = None

        def guarded(_context: int, rows: int, count: int, header: int) -> int:
            try:
                words = (ctypes.c_uint32 * (count * width)).from_address(rows)
                function(np.ctypeslib.as_array(words).reshape(count, width), header)
            except BaseException as error:
                self._error = error
                return 1
            return 0

        self._callback = _EXPAND(guarded)
        super().__init__(ctypes.cast(self._callback, ctypes.c_void_p).value or 0)

    def fail(self) -> None:
        """Raise what the function raised."""
        if self._error is not None:
            raise self._error
        super().fail()
