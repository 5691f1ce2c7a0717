"""Files are written whole or not at all."""

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
