"""Batch formation of one lane as in vLLM v1, over a block-counted KV cache (issue 3).

Running requests come first, in the order of their admission, then waiting ones; a prompt is cut
into chunks that fit the token budget; a request has at most one chunk in flight. When the cache
is full, the running request that was admitted last is preempted and will be computed again; one
with a chunk in flight only after that. So the request that was admitted first always gets on: it
is never preempted by another, and gives way itself only when it is the last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from frontier.requests import Request


@dataclass(frozen=True, slots=True)
class BatchingConfig:
    """Limits of batch formation; the defaults are those of the published synthetic fixture.

    Parameters
    ----------
    token_budget
        Tokens of one batch.
    max_sequences
        Requests in one batch.
    block_size, num_blocks
        Tokens per KV block, and blocks per lane.
    chunked_prefill
        Whether a prompt may be cut into chunks.
    """

    token_budget: int = 16
    max_sequences: int = 4
    block_size: int = 16
    num_blocks: int = 128
    chunked_prefill: bool = True

    def blocks(self, tokens: int) -> int:
        """KV blocks that hold a number of tokens."""
        return -(-tokens // self.block_size)

    def require_fits(self, request: Request) -> None:
        """ValueError if the request can never run alone."""
        # The last generated token is never an input, so its key and value are not stored.
        tokens = request.prefill_tokens + request.decode_tokens - 1
        if self.blocks(tokens) > self.num_blocks:
            raise ValueError(
                f"request {request.number} needs {self.blocks(tokens)} KV blocks for {tokens} "
                f"tokens, but a lane has {self.num_blocks}: enlarge the cache or shorten it"
            )
        if not self.chunked_prefill and tokens > self.token_budget:
            raise ValueError(
                f"request {request.number} may have to compute {tokens} tokens in one piece, but "
                f"the token budget is {self.token_budget} and chunked prefill is off"
            )


class Chunk(NamedTuple):
    """What one batch does for one request, in tokens."""

    request: int
    prefill_tokens: int
    decode_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens of the chunk."""
        return self.prefill_tokens + self.decode_tokens


class SequenceSnapshot(NamedTuple):
    """A request on a lane, as a value: request, and the counts of :class:`LaneSequence`."""

    request: int
    computed: int
    generated: int
    scheduled: int
    prefilled: int
    blocks: int


class LaneSequence:
    """A request on a lane.

    Attributes
    ----------
    computed
        Tokens whose keys and values are in this lane's cache.
    generated
        Output tokens produced so far.
    scheduled
        Tokens of the chunk in flight, 0 if none.
    prefilled
        Prompt tokens computed at least once; a preempted request computes them again.
    blocks
        KV blocks held.
    """

    __slots__ = ("blocks", "computed", "generated", "prefilled", "request", "scheduled")

    def __init__(self, request: Request, computed: int = 0, generated: int = 0) -> None:
        self.request = request
        self.computed = computed
        self.generated = generated
        self.scheduled = 0
        self.prefilled = computed
        self.blocks = 0

    @property
    def known(self) -> int:
        """Tokens that exist: the prompt and what was generated."""
        return self.request.prefill_tokens + self.generated

    def will_end_with(self, token: int) -> bool:
        """Whether the chunk in flight yields the output token of this number, from 1."""
        yields = self.scheduled > 0 and self.computed + self.scheduled == self.known
        return yields and self.generated + 1 == token

    def chunk(self, tokens: int) -> Chunk:
        """Schedule tokens and say what they are."""
        self.scheduled = tokens
        decodes = self.generated > 0 and self.computed + 1 == self.known
        return Chunk(self.request.number, *((0, tokens) if decodes else (tokens, 0)))

    @staticmethod
    def of(request: Request, value: SequenceSnapshot) -> LaneSequence:
        """Build the sequence of a value."""
        sequence = LaneSequence(request, value.computed, value.generated)
        sequence.scheduled, sequence.prefilled = value.scheduled, value.prefilled
        sequence.blocks = value.blocks
        return sequence

    def snapshot(self) -> SequenceSnapshot:
        """Return the sequence as a value."""
        return SequenceSnapshot(
            self.request.number,
            self.computed,
            self.generated,
            self.scheduled,
            self.prefilled,
            self.blocks,
        )


class LaneBatcher:
    """The requests of one lane: a waiting queue, the running ones, and the lane's KV cache."""

    __slots__ = ("config", "free_blocks", "running", "waiting")

    def __init__(self, config: BatchingConfig) -> None:
        self.config = config
        self.waiting: deque[LaneSequence] = deque()
        self.running: list[LaneSequence] = []
        self.free_blocks = config.num_blocks

    def form(self) -> tuple[Chunk, ...]:
        """Form the next batch: what it does for each of its requests; empty if nothing can run."""
        chunks: list[Chunk] = []
        if not self._schedule_running(chunks):
            self._schedule_waiting(chunks)
        return tuple(chunks)

    def _has_room(self, chunks: list[Chunk]) -> int:
        """Tokens that a batch can still take."""
        if len(chunks) >= self.config.max_sequences:
            return 0
        return self.config.token_budget - sum([chunk.tokens for chunk in chunks])

    def _schedule_running(self, chunks: list[Chunk]) -> bool:
        """Add running requests; return whether the cache was too small for all of them."""
        preempted = False
        at = 0
        while at < len(self.running) and (room := self._has_room(chunks)) > 0:
            sequence = self.running[at]
            at += 1
            if sequence.scheduled:
                continue
            tokens = min(sequence.known - sequence.computed, room)
            while not self._allocate(sequence, tokens):
                preempted = True
                if self._preempt_after(at - 1) in (sequence, None):
                    return True
            chunks.append(sequence.chunk(tokens))
        return preempted

    def _schedule_waiting(self, chunks: list[Chunk]) -> None:
        while self.waiting and (room := self._has_room(chunks)) > 0:
            sequence = self.waiting[0]
            tokens = sequence.known - sequence.computed
            if tokens > room and not self.config.chunked_prefill:
                return
            tokens = min(tokens, room)
            if not self._allocate(sequence, tokens):
                return
            self.running.append(self.waiting.popleft())
            chunks.append(sequence.chunk(tokens))

    def _allocate(self, sequence: LaneSequence, tokens: int) -> bool:
        """Give a sequence the blocks for more tokens, or return False and change nothing."""
        more = self.config.blocks(sequence.computed + tokens) - sequence.blocks
        if more > self.free_blocks:
            return False
        self.free_blocks -= more
        sequence.blocks += more
        return True

    def _preempt_after(self, asks: int) -> LaneSequence | None:
        """Send to wait whoever was admitted last, if not before the request that asks for blocks.

        A request with a chunk in flight cannot go; the one that asks goes only if it is the last
        itself. So it may have to wait, without a chunk, until later ones are back: None then.
        """
        last = len(self.running) - 1
        later = [i for i in range(asks + 1, last + 1) if not self.running[i].scheduled]
        if not later and asks < last:
            return None
        sequence = self.running.pop(later[-1] if later else asks)
        self._free(sequence)
        sequence.computed = 0
        self.waiting.appendleft(sequence)
        return sequence

    def _free(self, sequence: LaneSequence) -> None:
        self.free_blocks += sequence.blocks
        sequence.blocks = 0

    def complete(self, sequence: LaneSequence) -> None:
        """Take in that the chunk in flight of a running request has been computed."""
        sequence.computed += sequence.scheduled
        sequence.scheduled = 0
        sequence.prefilled = max(
            sequence.prefilled, min(sequence.computed, sequence.request.prefill_tokens)
        )
        if sequence.computed == sequence.known:
            sequence.generated += 1

    def leave(self, sequence: LaneSequence) -> None:
        """Take a running request off the lane."""
        self.running.remove(sequence)
        self._free(sequence)

    def all_formed(self, only_first_token: bool) -> bool:
        """Whether no request needs another batch here, up to its first token or its last."""
        return not self.waiting and all(
            s.will_end_with(1 if only_first_token else s.request.decode_tokens)
            for s in self.running
        )

    def restore(self, waiting: list[LaneSequence], running: list[LaneSequence]) -> None:
        """Become the lane with these requests."""
        self.waiting = deque(waiting)
        self.running = running
        self.free_blocks = self.config.num_blocks - sum([s.blocks for s in running])
