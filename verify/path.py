"""Paths: a schedule as a short string that carries its own scenario.

A path is the initial state's index and action numbers. Encoded, it also holds the scenario it
belongs to and a fingerprint of the state it ends in, so that ``replay`` needs nothing else and
refuses a string that was cut, edited, or made by a version that numbers actions otherwise.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

PREFIX: Final = "fv1-"
"""Marks an encoded path and its format version."""


class PathError(ValueError):
    """A string that is no path of this version; the message says what is wrong with it."""


@dataclass(frozen=True)
class EncodedPath:
    """A decoded path string.

    ``scenario`` holds plain JSON values; ``fingerprint`` is that of the last state. The last
    ``cycle`` actions of a lasso lead back to the state before them, and repeat for ever.
    """

    scenario: Mapping[str, Any]
    initial: int
    actions: tuple[int, ...]
    fingerprint: str
    cycle: int = 0


def fingerprint(state: Hashable) -> str:
    """Twelve hexadecimal digits that identify a state's printed form."""
    return hashlib.sha256(repr(state).encode()).hexdigest()[:12]


def encode(path: EncodedPath) -> str:
    """Write a path as one word of letters, digits, ``-`` and ``_``."""
    content: list[Any] = [dict(path.scenario), path.initial, list(path.actions), path.fingerprint]
    if path.cycle:
        content.append(path.cycle)
    text = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
    packed = zlib.compress(text, 9)
    check = zlib.crc32(packed).to_bytes(4, "big")
    return PREFIX + base64.urlsafe_b64encode(check + packed).decode().rstrip("=")


def decode(word: str) -> EncodedPath:
    """Read what :func:`encode` wrote.

    Raises
    ------
    PathError
        If the string is no path, is of another version, or was cut or changed.
    """
    word = word.strip()
    if not word.startswith(PREFIX):
        known = word.startswith("fv") and "-" in word[:6]
        what = "is a path of another format version" if known else "is no encoded path"
        raise PathError(f"{word[:40]!r} {what}; expected a string that starts with {PREFIX!r}")
    body = word[len(PREFIX) :]
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        raise PathError("the path has characters that no path contains; copy it whole") from None
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != body:  # decoding skips what is foreign
        raise PathError("the path was changed (characters were added to it); copy it whole")
    check, packed = raw[:4], raw[4:]
    if len(raw) < 5 or zlib.crc32(packed).to_bytes(4, "big") != check:
        raise PathError("the path was cut or changed (its checksum differs); copy it whole")
    try:
        scenario, initial, actions, mark, *cycle = json.loads(zlib.decompress(packed))
        numbers = tuple(map(int, actions))
        return EncodedPath(dict(scenario), int(initial), numbers, str(mark), *map(int, cycle))
    except (ValueError, TypeError, zlib.error) as error:
        raise PathError(f"the path's content cannot be read: {error}") from None
