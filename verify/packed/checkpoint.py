"""Checkpoints: a search on disk, from which it goes on after whatever ended it.

A checkpoint is a folder. Keys and parents are append-only in memory, so their files are too; what
counts is the manifest, which is replaced as a whole and names how much of each file is valid and
its checksum. A process that dies while it writes leaves the last manifest and longer files behind,
of which the prefix that the manifest names is intact.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import weakref
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np

from verify.files import lock_folder, write_text_atomically
from verify.packed.jit import Array
from verify.packed.kernels import SHARDS
from verify.packed.model import End
from verify.packed.search import Search, Tally

FORMAT: Final = 2
MANIFEST: Final = "manifest.json"
CHUNK: Final = 1 << 20


class CheckpointError(Exception):
    """A checkpoint that cannot be used; the message says which, why, and what to do."""


class Checkpointer:
    """Writes a search to a folder every so often; call it between rounds.

    Parameters
    ----------
    directory
        Folder to write to; it is made. It must hold no checkpoint, or that of ``search`` itself
        (which :func:`resume` then reads).
    every_s
        Least seconds between two checkpoints.
    """

    def __init__(self, directory: Path, *, every_s: float) -> None:
        self.directory = directory
        self.every_s = every_s
        self._last = time.monotonic()
        self._sums = [{"keys": 0, "parents": 0} for _ in range(SHARDS)]
        self._counts = [0] * SHARDS

    def begin(self, search: Search, *, resumed: bool) -> None:
        """Claim the folder: go on where a resumed search was, or start an empty one.

        Raises
        ------
        CheckpointError
            If the folder cannot be used, another process uses it, or it holds another checkpoint.
        """
        if search.compact:
            raise CheckpointError(
                "hash compaction keeps no rows of past levels, so it cannot be checkpointed; "
                "leave out one of the two"
            )
        if resumed:
            _read_manifest(self.directory)  # a folder that holds none is not made
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            lock = lock_folder(self.directory)
        except OSError as error:
            raise CheckpointError(f"cannot write to {self.directory}: {error.strerror}") from None
        if lock is None:
            raise CheckpointError(
                f"another process writes checkpoints to {self.directory}; wait for it or give "
                "another folder"
            )
        weakref.finalize(self, os.close, lock)
        if resumed:
            shards = _read_manifest(self.directory)["shards"]
            self._counts = [entry["count"] for entry in shards]
            self._sums = [{"keys": e["keys"], "parents": e["parents"]} for e in shards]
            return
        if (self.directory / MANIFEST).exists():
            raise CheckpointError(
                f"{self.directory} already holds a checkpoint: go on with --resume "
                f"{self.directory}, or give another folder"
            )
        try:
            for shard in range(SHARDS):
                for part in ("keys", "parents"):
                    _file(self.directory, shard, part).write_bytes(b"")
        except OSError as error:
            raise CheckpointError(f"cannot write to {self.directory}: {error.strerror}") from None

    def __call__(self, search: Search) -> None:
        """Save if it is time to."""
        if time.monotonic() - self._last >= self.every_s:
            self.save(search)

    def save(self, search: Search) -> None:
        """Append what is new, then replace the manifest.

        Raises
        ------
        CheckpointError
            If the folder cannot be written; the last checkpoint stays valid.
        """
        if not search.intact:
            raise CheckpointError(
                f"the search was broken off within a round; {self.directory} keeps the last "
                "checkpoint before it: go on with --resume"
            )
        self._last = time.monotonic()
        counts = [shard.count for shard in search.shards]
        try:
            sums = [
                {
                    part: self._append(number, part, array, shard.count)
                    for part, array in (("keys", shard.keys), ("parents", shard.parents))
                }
                for number, shard in enumerate(search.shards)
            ]
            write_text_atomically(self.directory / MANIFEST, _manifest(search, counts, sums))
        except OSError as error:
            raise CheckpointError(
                f"cannot write a checkpoint to {self.directory}: {error.strerror}"
            ) from None
        self._counts, self._sums = counts, sums  # not before: a failed save is made good later

    def _append(self, shard: int, part: str, array: Array, last: int) -> int:
        """Write what the last checkpoint does not have; return the checksum of the whole file."""
        first, total = self._counts[shard], self._sums[shard][part]
        row_bytes = array[:1].nbytes
        with _file(self.directory, shard, part).open("r+b") as file:
            file.truncate(first * row_bytes)
            file.seek(0, os.SEEK_END)
            for at in range(first, last, CHUNK):
                data = np.ascontiguousarray(array[at : min(at + CHUNK, last)]).tobytes()
                total = zlib.crc32(data, total)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return total


def _manifest(search: Search, counts: list[int], checksums: list[dict[str, int]]) -> str:
    tally = search.tally
    content = {
        "format": FORMAT,
        "model": search.model.name,
        "width": search.model.width,
        "shards": [{"count": count, **sums} for count, sums in zip(counts, checksums, strict=True)],
        "tally": {
            "transitions": tally.transitions,
            "expanded": tally.expanded,
            "complete": tally.complete,
            "reached": tally.reached,
            "seconds": tally.seconds,
            "ends": {end.name: found for end, found in tally.ends.items()},
            "levels": tally.levels,
            "bounds": tally.bounds,
            "at_hand": tally.at_hand,
            "cursor": tally.cursor,
        },
    }
    text = json.dumps(content, sort_keys=True)
    return json.dumps({"content": content, "sha256": _digest(text)}, sort_keys=True)


def resume(search: Search, directory: Path) -> None:
    """Put a new search where a checkpoint left off.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, it is of another system, or any byte of it is not what was
        written.
    """
    content = _read_manifest(directory)
    if content["model"] != search.model.name:
        raise CheckpointError(
            f"the checkpoint in {directory} is of another system: it has {content['model']}, "
            f"but asked for is {search.model.name}"
        )
    for number, (shard, entry) in enumerate(zip(search.shards, content["shards"], strict=True)):
        count = entry["count"]
        if count:
            shard.reserve(count)
            for part, array in (("keys", shard.keys), ("parents", shard.parents)):
                _read_into(array[:count], directory, number, part, entry[part])
            shard.count = count
            shard.rebuild()
    kept = content["tally"]
    search.tally = Tally(
        transitions=kept["transitions"],
        expanded=kept["expanded"],
        complete=kept["complete"],
        reached=kept["reached"],
        seconds=kept["seconds"],
        ends={End[name]: found for name, found in kept["ends"].items()},
        levels=kept["levels"],
        bounds=kept["bounds"],
        at_hand=[(shard, first, last) for shard, first, last in kept["at_hand"]],
        cursor=(kept["cursor"][0], kept["cursor"][1]),
    )


def _file(directory: Path, shard: int, part: str) -> Path:
    return directory / f"shard-{shard}.{part}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read_manifest(directory: Path) -> Any:
    path = directory / MANIFEST
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        content = whole["content"]
        intact = _digest(json.dumps(content, sort_keys=True)) == whole["sha256"]
    except FileNotFoundError:
        begun = _file(directory, 0, "keys").exists()
        raise CheckpointError(
            f"{directory} holds no checkpoint: "
            + (
                "the search stopped before its first one (--checkpoint-every, 120 s by default); "
                f"start again with --checkpoint {directory}"
                if begun
                else f"{MANIFEST} is missing"
            )
        ) from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise CheckpointError(f"{path} is damaged: start again without --resume")
    if content["format"] != FORMAT or len(content["shards"]) != SHARDS:
        raise CheckpointError(f"{path} was written by another version: start again")
    return content


def _read_into(array: Array, directory: Path, shard: int, part: str, checksum: int) -> None:
    path = _file(directory, shard, part)
    total, read = 0, 0
    try:
        with path.open("rb") as file:
            for at in range(0, len(array), CHUNK):
                piece = array[at : at + CHUNK]
                data = file.read(piece.nbytes)
                read += len(data)
                total = zlib.crc32(data, total)
                if len(data) == piece.nbytes:
                    piece[...] = np.frombuffer(data, array.dtype).reshape(piece.shape)
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    if read != array.nbytes or total != checksum:
        raise CheckpointError(
            f"{path} is damaged: {read} of {array.nbytes} bytes, checksum "
            f"{'equal' if total == checksum else 'different'}; start again without --resume"
        )
