"""Stand-ins for what compiled kernels are made of, so that a kernel can run interpreted."""

import ctypes

import numpy as np

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_kept = []


def jit(function):
    """Leave a kernel as it is."""
    return function


jit_views = part = jit


def _view(address, kind, *shape):
    count = int(np.prod(shape))
    if not count:
        return np.zeros(shape, kind)
    array = np.ctypeslib.as_array((kind * count).from_address(int(address)))
    return array.reshape(shape)


def longs_at(address, length):
    return _view(address, ctypes.c_int64, length)


def long_rows_at(address, length, width):
    return _view(address, ctypes.c_int64, length, width)


def ulongs_at(address, length):
    return _view(address, ctypes.c_uint64, length)


def ints_at(address, length):
    return _view(address, ctypes.c_int32, length)


def words_at(address, length):
    return _view(address, ctypes.c_uint32, length)


def rows_at(address, length, width):
    return _view(address, ctypes.c_uint32, length, width)


def halves_at(address, length):
    return _view(address, ctypes.c_int16, length)  # interpreted, uint16 would not take ``~bit``


def bytes_at(address, length):
    return _view(address, ctypes.c_uint8, length)


def address_of(function):
    """Address of a C function that calls a Python one; what it raises ends the search."""

    def guarded(*arguments):
        try:
            return function(*arguments)
        except BaseException:
            return 1

    _kept.append(_CALLBACK(guarded))
    return ctypes.cast(_kept[-1], ctypes.c_void_p).value
