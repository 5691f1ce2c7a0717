"""Bad input: one clear message on standard error and exit code 2, never a traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from pathlib import Path
from typing import Final, NoReturn

import typer

from verify.files import write_bytes_atomically, write_text_atomically

BAD_INPUT = 2
UNDETERMINED = 3
READER_GONE = 141
"""128 + SIGPIPE, what a shell reports of a program whose output nobody reads any more; the verdict
was not told, so it is not the code of one."""

DEBUG: Final = "FRONTIER_VERIFY_DEBUG"
"""Environment variable that asks for the traceback of an error that nobody foresaw."""


class UsageError(Exception):
    """Something a person can put right; the message says what, where, and what to do."""


class EngineDisagreementError(RuntimeError):
    """The packed engine and the core differ: nothing that either says may be trusted."""


def write_result(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    try:
        if isinstance(content, bytes):
            write_bytes_atomically(path, content)
        else:
            write_text_atomically(path, content)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def end_without_reader() -> NoReturn:
    """End the program because the reader of its output has gone (``... | head -1``).

    Raises
    ------
    SystemExit
        Always, with :data:`READER_GONE`.
    """
    _silence_output()
    raise SystemExit(READER_GONE)


def end_without_output(error: OSError) -> NoReturn:
    """End the program because a file, or its own output, cannot be read or written.

    Raises
    ------
    SystemExit
        Always, with :data:`BAD_INPUT`.
    """
    where = "the output" if error.filename is None else error.filename
    if error.filename is None:
        _silence_output()
    tell(f"cannot read or write {where}: {error.strerror or error}")
    raise SystemExit(BAD_INPUT)


def end_unforeseen(error: BaseException) -> NoReturn:
    """End the program because of an error that nobody foresaw: nothing was proved or refuted.

    Raises
    ------
    SystemExit
        Always, with :data:`UNDETERMINED`: the code of a crash, 1, would say *violated*.
    """
    frames = traceback.extract_tb(error.__traceback__)
    at = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    try:
        said = str(error)
    except Exception:
        said = "no message that can be shown"
    tell(
        f"an error that nobody foresaw, {type(error).__name__}: {said}{at}; nothing is proved. "
        f"If code of your own takes part, look there first; {DEBUG}=1 shows the traceback"
    )
    raise SystemExit(UNDETERMINED)


def tell(message: str) -> None:
    """Say one thing on standard error, if anybody is there to read it."""
    with contextlib.suppress(OSError):
        print(f"frontier-verify: {message}", file=sys.stderr, flush=True)


def _silence_output() -> None:
    """Let what is still buffered go nowhere, or the interpreter's last flush would complain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require_writable(path: Path | None) -> None:
    """Check, before long work, that a result file can be written; ``-`` is standard output.

    Raises
    ------
    UsageError
        If the folder does not exist or takes no new files, or the path is a folder.
    """
    if path is None or str(path) == "-":
        return
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {path}: the folder {path.parent} does not exist")
    if path.is_dir():
        raise UsageError(f"cannot write {path}: it is a folder; give a file name")
    if path.exists() and not path.is_file():  # a device or a pipe, which is written to as it is
        return
    folder = path.resolve().parent
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot write {path}: the folder {folder} takes no new files")


def emit(path: Path, text: str) -> None:
    """Write a result to a file, or to standard output for ``-``."""
    if str(path) == "-":
        typer.echo(text)
    else:
        write_result(path, text + "\n")
