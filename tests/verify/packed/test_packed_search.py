"""The packed search on a model whose graph is known in closed form."""

import numpy as np
import pytest

from verify.limits import Limits
from verify.packed import kernels
from verify.packed.forecast import progress_of, states_to_come
from verify.packed.kernels import SHARDS
from verify.packed.model import Block, End
from verify.packed.search import Search
from verify.packed.store import Routing, Shard
from verify.packed.trace import TraceError, first_trace, trace

from .counter import Grid


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("compact", [False, True])
def test_counts_depth_and_ends(threads, compact):
    search = Search(Grid(60, 50, trap=(30, 20)), threads=threads, compact=compact)
    assert search.run() is None
    assert search.states == 60 * 50
    assert search.tally.expanded == 60 * 50
    assert search.tally.transitions == 59 * 50 + 60 * 49 - 2
    assert len(search.tally.levels) == 59 + 49 + 1
    assert sum(search.tally.levels) == search.states
    assert search.tally.complete == 1
    ((drained,), failed) = search.tally.ends[End.DRAINED], search.tally.ends[End.FAILED]
    assert not failed
    assert len(trace(search, drained).choices) == 50
    assert search.finished


def test_a_trap_is_reached_by_a_shortest_path_and_the_first_of_them():
    search = Search(Grid(8, 8, trap=(2, 3)))
    search.run()
    (drained,) = search.tally.ends[End.DRAINED]
    path = first_trace(search, [drained], lambda choice: choice)
    assert path.choices == (0, 0, 1, 1, 1)
    assert first_trace(search, [drained], lambda choice: -choice).choices == (1, 1, 1, 0, 0)
    assert [tuple(map(int, row)) for row in path.rows][-1] == (2, 3)


def test_a_full_row_decides_not_its_hash(monkeypatch):
    """Rows with one hash are different states: membership compares the whole row."""
    shard = Shard(0, 2)
    block = Block.of(2, 64, 1)
    block.rows[:50, 0] = np.arange(50) % 25
    block.report(0, 50)
    routing = Routing(64)
    routing.fill(block)
    routing.hashes[:] = 7
    routing.order[:50] = np.arange(50)
    routing.offsets[:] = [0, *[50] * SHARDS]
    shard.reserve(50)
    shard.insert(block, routing, 0, 0)
    assert shard.count == 25
    assert sorted(shard.keys[:25, 0]) == list(range(25))


def test_hash_compaction_takes_equal_hashes_for_equal_states():
    """What makes its result unfit for an unqualified verdict."""
    shard = Shard(0, 2, compact=True)
    block = Block.of(2, 64, 1)
    block.rows[:50, 0] = np.arange(50)
    block.report(0, 50)
    routing = Routing(64)
    routing.fill(block)
    routing.hashes[:] = 7
    routing.order[:50] = np.arange(50)
    routing.offsets[:] = [0, *[50] * SHARDS]
    shard.reserve(50)
    shard.insert(block, routing, 0, 0)
    assert shard.count == 1


def test_hashes_spread_over_shards_and_slots():
    search = Search(Grid(300, 300))
    search.run()
    counts = [shard.count for shard in search.shards]
    assert min(counts) > 0.9 * 90_000 / SHARDS
    assert max(counts) < 1.1 * 90_000 / SHARDS
    hashes = {int(kernels.hash_row(row)) for s in search.shards for row in s.keys[: s.count]}
    assert len(hashes) == 90_000


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_states=100), "100 states"),
        (Limits(max_seconds=1e-9), "seconds"),
        (Limits(max_memory_gb=1e-3), "memory"),
    ],
)
def test_limits_end_a_search_early(limits, reason):
    search = Search(Grid(100, 100))
    assert reason in str(search.run(limits))
    assert not search.finished


def test_a_search_goes_on_after_a_limit():
    search = Search(Grid(100, 100))
    while search.run(Limits(max_states=search.states + 500)) is not None:
        pass
    assert search.states == 10_000


def test_small_blocks_change_nothing(monkeypatch):
    model = Grid(80, 80)
    whole = Search(model)
    whole.run()
    monkeypatch.setattr("verify.packed.search.BLOCK", 7)
    pieces = Search(model)
    pieces.run()
    assert pieces.states == whole.states
    assert pieces.tally.transitions == whole.tally.transitions
    assert pieces.tally.levels == whole.tally.levels


def test_a_broken_parent_is_noticed():
    search = Search(Grid(8, 8, trap=(2, 3)))
    search.run()
    (drained,) = search.tally.ends[End.DRAINED]
    far = next(
        n * SHARDS + s.number
        for s in search.shards
        for n in range(s.count)
        if tuple(map(int, s.keys[n])) == (7, 7)
    )
    search.shards[drained % SHARDS].parents[drained // SHARDS] = far
    with pytest.raises(TraceError):
        trace(search, drained)


def test_forecast_of_a_bell_and_of_growth():
    bell = [int(np.exp(10 - (d - 20) ** 2 / 40)) for d in range(41)]
    estimate = states_to_come(bell[:25])
    assert estimate is not None
    assert estimate == pytest.approx(sum(bell[25:]), rel=0.1)
    assert states_to_come([2**d for d in range(20)]) is None
    assert states_to_come([1, 2]) is None


def test_progress_tells_where_a_search_is():
    seen = []
    search = Search(Grid(100, 100))
    search.run(hooks=[lambda s: seen.append(progress_of(s))])
    assert seen[0].states == 1
    assert seen[-1].depth > seen[0].depth
    assert all(p.queue > 0 for p in seen)


@pytest.mark.parametrize("compact", [False, True])
def test_a_spilled_search_is_the_same_search(tmp_path, compact):
    model = Grid(150, 140, trap=(60, 40))
    whole = Search(model, compact=compact)
    whole.run()
    search = Search(model, compact=compact, spill=tmp_path)
    search.run(Limits(max_states=5000))
    assert "memory" in str(search.run(Limits(max_memory_gb=1e-3)))
    assert search.spilled, "first spill, and give up only when that is not enough"
    assert search.run() is None
    assert search.states == whole.states == 150 * 140
    assert search.tally.ends == whole.tally.ends
    assert search.tally.bounds == whole.tally.bounds
    (drained,) = search.tally.ends[End.DRAINED]
    assert len(trace(search, drained).choices) == 100
    assert not list(tmp_path.iterdir()), "spilled files have no names"


def test_a_full_disk_ends_the_search_undetermined(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("verify.packed.store.os.posix_fallocate", full)
    search = Search(Grid(100, 100), spill=tmp_path)
    assert "No space left" in str(search.run(Limits(max_memory_gb=1e-3)))
    assert not search.intact
