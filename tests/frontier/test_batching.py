"""Batch formation as in vLLM v1 (issue 3, data of the published matrix)."""

import pytest

from frontier.batching import BatchingConfig, Chunk, LaneBatcher, LaneSequence
from frontier.requests import Request


def lane(*requests, **limits):
    batcher = LaneBatcher(BatchingConfig(**{"num_blocks": 64, **limits}))
    for number, (prefill, decode) in enumerate(requests):
        batcher.waiting.append(LaneSequence(Request(number, prefill, decode)))
    return batcher


def finish(batcher, chunks):
    for chunk in chunks:
        sequence = next(s for s in batcher.running if s.request.number == chunk.request)
        batcher.complete(sequence)
        if sequence.generated == sequence.request.decode_tokens:
            batcher.leave(sequence)


def test_prompt_that_fills_the_budget_is_alone():
    batcher = lane((16, 1), (16, 1))
    assert batcher.form() == (Chunk(0, 16, 0),)
    assert batcher.form() == (Chunk(1, 16, 0),), "the first is in flight and takes no budget"
    assert batcher.form() == ()


def test_running_requests_come_first_and_the_next_prompt_is_cut():
    """The batches behind the published 11 forwards of 4 requests on a lane with 3 stages."""
    batcher = lane((16, 3), (16, 3))
    first = batcher.form()
    finish(batcher, first)
    mixed = batcher.form()
    assert mixed == (Chunk(0, 0, 1), Chunk(1, 15, 0))
    finish(batcher, mixed)
    assert batcher.form() == (Chunk(0, 0, 1), Chunk(1, 1, 0))


def test_no_two_chunks_of_one_request_in_flight():
    batcher = lane((40, 1))
    assert batcher.form() == (Chunk(0, 16, 0),)
    assert batcher.form() == ()
    finish(batcher, (Chunk(0, 16, 0),))
    assert batcher.form() == (Chunk(0, 16, 0),)
    finish(batcher, (Chunk(0, 16, 0),))
    assert batcher.form() == (Chunk(0, 8, 0),)


def test_sequence_cap_counts_requests_of_one_batch():
    batcher = lane(*[(1, 1)] * 6, max_sequences=4)
    assert [chunk.request for chunk in batcher.form()] == [0, 1, 2, 3]
    assert [chunk.request for chunk in batcher.form()] == [4, 5]


def test_without_chunked_prefill_a_prompt_waits_for_a_budget_of_its_own():
    batcher = lane((10, 1), (10, 1), chunked_prefill=False)
    assert batcher.form() == (Chunk(0, 10, 0),)
    assert batcher.form() == (Chunk(1, 10, 0),)


def test_blocks_are_counted_and_freed():
    batcher = lane((16, 1), (16, 1), block_size=4, num_blocks=7)
    first = batcher.form()
    assert batcher.free_blocks == 3
    assert batcher.form() == (), "4 blocks are needed, 3 are free"
    finish(batcher, first)
    assert batcher.free_blocks == 7
    assert batcher.form() == (Chunk(1, 16, 0),)


def test_full_cache_preempts_the_last_admitted_and_computes_it_again():
    batcher = lane((4, 4), (4, 4), block_size=2, num_blocks=5)
    finish(batcher, batcher.form())
    assert [s.blocks for s in batcher.running] == [2, 2]
    chunks = batcher.form()  # both need a third block; one is left
    assert chunks == (Chunk(0, 0, 1),)
    preempted = batcher.waiting[0]
    assert (preempted.request.number, preempted.computed, preempted.generated) == (1, 0, 1)
    assert preempted.blocks == 0
    for _ in range(3):
        finish(batcher, chunks)
        chunks = batcher.form()
    assert chunks == (Chunk(1, 5, 0),), "prompt and generated token are computed again"
    finish(batcher, chunks)
    assert batcher.running[0].generated == 2
    assert batcher.running[0].prefilled == 4, "prompt tokens count once"


def test_a_request_in_flight_is_not_preempted_and_the_first_waits_for_it():
    batcher = lane((4, 3), (4, 3), (4, 3), block_size=2, num_blocks=6, token_budget=4)
    first, second, third = batcher.form(), batcher.form(), batcher.form()
    assert batcher.free_blocks == 0
    finish(batcher, first)
    assert batcher.form() == (), "the others are in flight, and to preempt itself would be unfair"
    assert [s.blocks for s in batcher.running] == [2, 2, 2]
    finish(batcher, third)
    assert batcher.form() == (Chunk(0, 0, 1),), "the last one makes room for the first"
    assert [s.request.number for s in batcher.waiting] == [2]
    finish(batcher, second)
    assert batcher.form() == (Chunk(1, 0, 1),), "one block is left, and nobody else is admitted"


def test_the_last_request_gives_way_itself_and_a_later_one_in_flight_is_waited_for():
    batcher = lane((4, 3), (4, 3), block_size=2, num_blocks=4, token_budget=4)
    first, second = batcher.form(), batcher.form()
    finish(batcher, second)
    assert batcher.form() == (), "the first is in flight, and the last finds no block"
    assert [s.request.number for s in batcher.running] == [0]
    assert [s.request.number for s in batcher.waiting] == [1]
    finish(batcher, first)
    assert batcher.form() == (Chunk(0, 0, 1),)


@pytest.mark.parametrize(
    ("request_", "limits", "message"),
    [
        (Request(3, 33, 1), {"block_size": 16, "num_blocks": 2}, "request 3 needs 3 KV blocks"),
        (Request(0, 17, 1), {"chunked_prefill": False}, "chunked prefill is off"),
    ],
)
def test_requests_that_can_never_run_are_rejected(request_, limits, message):
    with pytest.raises(ValueError, match=message):
        BatchingConfig(**limits).require_fits(request_)
    BatchingConfig(**limits).require_fits(Request(0, 16, 1))
