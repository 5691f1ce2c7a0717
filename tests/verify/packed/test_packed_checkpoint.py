"""Checkpoints: a search goes on as if nothing had happened, and damage is never overlooked."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from verify.limits import Limits
from verify.packed.checkpoint import MANIFEST, Checkpointer, CheckpointError, resume
from verify.packed.kernels import SHARDS
from verify.packed.model import End
from verify.packed.search import Search

from .counter import Grid

GRID = Grid(120, 100, trap=(60, 40))


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Saving after every round is for the tests only; a disk's flush takes milliseconds."""
    monkeypatch.setattr("verify.packed.checkpoint.os.fsync", lambda _: None)


def interrupted(directory: Path, states: int = 4000, model: Grid = GRID) -> Search:
    search = Search(model)
    keeper = Checkpointer(directory, every_s=0.0)
    keeper.begin(search, resumed=False)
    assert search.run(Limits(max_states=states), [keeper]) is not None
    return search


def assert_same(a: Search, b: Search) -> None:
    assert a.tally.bounds == b.tally.bounds
    assert a.tally.ends == b.tally.ends
    assert (a.tally.transitions, a.tally.expanded) == (b.tally.transitions, b.tally.expanded)
    for x, y in zip(a.shards, b.shards, strict=True):
        assert np.array_equal(x.keys[: x.count], y.keys[: y.count])
        assert np.array_equal(x.parents[: x.count], y.parents[: y.count])


def test_a_resumed_search_ends_like_one_that_was_never_stopped(tmp_path):
    whole = Search(GRID)
    whole.run()
    interrupted(tmp_path)
    later = Search(GRID)
    resume(later, tmp_path)
    assert 0 < later.states < whole.states
    keeper = Checkpointer(tmp_path, every_s=0.0)
    keeper.begin(later, resumed=True)
    assert later.run(hooks=[keeper]) is None
    assert_same(later, whole)
    keeper.save(later)
    last = Search(GRID)
    resume(last, tmp_path)
    assert last.finished
    assert_same(last, whole)


def test_resumed_twice(tmp_path):
    interrupted(tmp_path, states=1000)
    for states in (3000, 6000, None):
        search = Search(GRID)
        resume(search, tmp_path)
        keeper = Checkpointer(tmp_path, every_s=0.0)
        keeper.begin(search, resumed=True)
        search.run(Limits(max_states=states), [keeper])
    assert search.states == 12_000
    assert len(search.tally.ends[End.DRAINED]) == 1


@pytest.mark.parametrize("part", ["keys", "parents"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_file_is_refused(tmp_path, part, damage):
    interrupted(tmp_path)
    for shard in range(SHARDS):
        path = tmp_path / f"shard-{shard}.{part}"
        data = bytearray(path.read_bytes())
        valid = json.loads((tmp_path / MANIFEST).read_text())["content"]["shards"][shard]["count"]
        size = valid * (8 if part == "keys" else 4)
        if damage == "flip":
            data[size // 2] ^= 1
            path.write_bytes(data)
        elif damage == "cut":
            path.write_bytes(data[: size - 1])
        else:
            path.unlink()
        with pytest.raises(CheckpointError, match=f"shard-{shard}.{part}"):
            resume(Search(GRID), tmp_path)
        path.write_bytes(data if damage != "flip" else _flipped(data, size // 2))


def _flipped(data: bytearray, at: int) -> bytes:
    data[at] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"transitions": ', '"transitions": 1'),
        lambda text: text.replace('"expanded": ', '"expanded": 1'),
        lambda _: "[]",
        lambda _: "",
    ],
)
def test_a_damaged_manifest_is_refused(tmp_path, change):
    interrupted(tmp_path)
    path = tmp_path / MANIFEST
    path.write_text(change(path.read_text()))
    with pytest.raises(CheckpointError, match="damaged"):
        resume(Search(GRID), tmp_path)


def test_longer_files_are_what_a_killed_process_leaves_and_do_no_harm(tmp_path):
    interrupted(tmp_path)
    whole = Search(GRID)
    whole.run()
    for path in tmp_path.glob("shard-*"):
        with path.open("ab") as file:
            file.write(b"half a row of a save that was cut sho")
    search = Search(GRID)
    resume(search, tmp_path)
    keeper = Checkpointer(tmp_path, every_s=0.0)
    keeper.begin(search, resumed=True)
    search.run(hooks=[keeper])
    keeper.save(search)
    assert_same(search, whole)
    again = Search(GRID)
    resume(again, tmp_path)
    assert_same(again, whole)


def test_refusals(tmp_path):
    interrupted(tmp_path / "one")
    with pytest.raises(CheckpointError, match="another system"):
        resume(Search(Grid(120, 101, trap=(60, 40))), tmp_path / "one")
    with pytest.raises(CheckpointError, match="already holds a checkpoint"):
        interrupted(tmp_path / "one")
    with pytest.raises(CheckpointError, match="holds no checkpoint"):
        resume(Search(GRID), tmp_path / "none")
    Checkpointer(tmp_path / "begun", every_s=9).begin(Search(GRID), resumed=False)
    with pytest.raises(CheckpointError, match=r"stopped before its first one .* start again with"):
        resume(Search(GRID), tmp_path / "begun")
    with pytest.raises(CheckpointError, match="hash compaction"):
        Checkpointer(tmp_path / "two", every_s=1).begin(Search(GRID, compact=True), resumed=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write"):
        interrupted(tmp_path / "file")


KILLED = """
import sys
from pathlib import Path
from tests.verify.packed.counter import Grid
from verify.packed.checkpoint import Checkpointer
from verify.packed.search import Search
search = Search(Grid(400, 400))
keeper = Checkpointer(Path(sys.argv[1]), every_s=0.05)
keeper.begin(search, resumed=False)
search.run(hooks=[keeper])
"""


def test_kill_9_at_any_time_loses_only_what_came_after_the_last_checkpoint(tmp_path):
    root = Path(__file__).parents[3]
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "saved")], cwd=root, env=os.environ.copy()
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "saved" / MANIFEST).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(0.3)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    search = Search(Grid(400, 400))
    resume(search, tmp_path / "saved")
    assert search.states < 160_000
    assert search.run() is None
    assert search.states == 160_000
    assert search.tally.transitions == 2 * 399 * 400


def test_a_save_that_failed_is_made_good_by_the_next(tmp_path, monkeypatch):
    """A full disk in the midst of a save: the last checkpoint stays, and the next one is whole."""
    search = Search(GRID)
    keeper = Checkpointer(tmp_path, every_s=1e9)
    keeper.begin(search, resumed=False)
    search.run(Limits(max_states=3000))
    keeper.save(search)
    manifest = (tmp_path / MANIFEST).read_bytes()
    search.run(Limits(max_states=6000))
    calls = 0

    def full(_descriptor):
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("verify.packed.checkpoint.os.fsync", full)
        with pytest.raises(CheckpointError, match="No space left"):
            keeper.save(search)
    assert (tmp_path / MANIFEST).read_bytes() == manifest
    keeper.save(search)
    again = Search(GRID)
    resume(again, tmp_path)
    assert again.states == search.states
    search.run()
    again.run()
    assert_same(search, again)


def test_two_searches_do_not_share_a_folder(tmp_path):
    first = Checkpointer(tmp_path, every_s=0.0)
    first.begin(Search(GRID), resumed=False)
    with pytest.raises(CheckpointError, match="another process writes checkpoints"):
        Checkpointer(tmp_path, every_s=0.0).begin(Search(GRID), resumed=False)
    del first
    Checkpointer(tmp_path, every_s=0.0).begin(Search(GRID), resumed=False)
