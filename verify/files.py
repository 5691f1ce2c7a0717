"""Writing files whole or not at all, and folders by one process at a time."""

import fcntl
import os
import tempfile
from pathlib import Path


def write_text_atomically(path: Path, text: str) -> None:
    """Write `text` as UTF-8 into a temporary file beside `path`, then rename it into place.

    Raises
    ------
    OSError
        The directory is absent or not writable; nothing is left behind.
    """
    write_bytes_atomically(path, text.encode("utf-8", errors="backslashreplace"))


def write_bytes_atomically(path: Path, content: bytes) -> None:
    """Write `content` into a temporary file beside `path`, then rename it into place.

    A link stays, and the file that it names is written. What is no regular file (a device, a pipe)
    is written to as it is: renamed over, ``/dev/null`` would be a file from then on.

    Raises
    ------
    OSError
        The directory is absent or not writable; nothing is left behind.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        with path.open("wb") as stream:
            stream.write(content)
        return
    path = path.resolve()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def lock_folder(folder: Path) -> int | None:
    """Lock a folder for this process; None if another one has it.

    The lock lasts until the returned descriptor is closed, or the process ends.

    Raises
    ------
    OSError
        The folder is absent or not writable.
    """
    lock = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
