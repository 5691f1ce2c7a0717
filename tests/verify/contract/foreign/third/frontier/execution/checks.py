"""Argument checks of the third implementation."""


def require_id(name, value, least=0):
    if type(value) is not int or value < least:
        raise ValueError(f"{name} must be an int >= {least}, not {value!r}")
    return value


def require_hashable(operation_id):
    try:
        hash(operation_id)
    except TypeError as exc:
        raise ValueError(f"operation_id {operation_id!r} is unhashable") from exc
