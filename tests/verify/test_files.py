"""Files are written whole or not at all."""

import os
import threading
from pathlib import Path

import pytest

from verify.files import write_text_atomically


def test_write_and_overwrite(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    for text in ("één\n", "two\r\n"):
        write_text_atomically(target, text)
        assert target.read_bytes() == text.encode()
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_text_atomically(tmp_path / "taken", "text")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    with pytest.raises(FileNotFoundError):
        write_text_atomically(tmp_path / "none" / "a.txt", "text")


def test_a_link_stays_and_its_file_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    for text in ("new", "and again"):
        write_text_atomically(link, text)
        assert link.is_symlink()
        assert target.read_text() == text


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text_atomically(pipe, "text")
    assert pipe.is_fifo()
    reader.join(10)
    assert read == ["text"]
