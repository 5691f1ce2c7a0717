"""The workload of a serving replica: requests become batches (issue 3).

One class serves every role that forms batches: co-location runs requests to their end, a
``PREFILL`` replica hands them on after the first token, a decode replica takes them over then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, cast

from frontier.batching import BatchingConfig, Chunk, LaneBatcher, LaneSequence, SequenceSnapshot
from frontier.events import LANE_SCHEDULE, REQUEST, Batch, Event
from frontier.placement import Placement, RoundRobin
from frontier.requests import Request

Part = Literal["all", "prefill", "decode"]
"""Which part of a request's life a replica runs."""

PREFILL_PHASE: Final = "prefill"
DECODE_PHASE: Final = "decode"


class ConservationError(RuntimeError):
    """Requests, tokens or KV blocks were lost or made up: an error of the simulator itself."""


@dataclass(frozen=True, slots=True)
class ServingConfig:
    """How requests are placed and batched.

    Parameters
    ----------
    lanes
        Lanes of the replica.
    part
        Which part of a request's life it runs.
    burst
        Whether the requests wait from the start, else each arrives by an event of its own.
    online_to_lane_0
        The published fault: every request that arrives by an event is placed on lane 0.
    """

    lanes: int
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    placement: Placement = field(default_factory=RoundRobin)
    part: Part = "all"
    burst: bool = True
    online_to_lane_0: bool = False


class Progress(NamedTuple):
    """What a batch that ended did for one request.

    Prompt tokens computed for the first time, tokens generated, and whether the request left the
    replica, finished or to go on elsewhere.
    """

    request: int
    prefill_tokens: int
    decode_tokens: int
    left: bool
    finished: bool


class LaneSnapshot(NamedTuple):
    """One lane: its next batch number, waiting and running requests, and batches in flight."""

    next_batch: int
    waiting: tuple[SequenceSnapshot, ...]
    running: tuple[SequenceSnapshot, ...]
    in_flight: tuple[tuple[Batch, tuple[Chunk, ...]], ...]


class ServingSnapshot(NamedTuple):
    """A serving workload between two events, as a hashable value."""

    lanes: tuple[LaneSnapshot, ...]
    expected: int


class RequestWorkload:
    """Requests on lanes, formed into batches as in vLLM v1 (data of the published matrix).

    Parameters
    ----------
    config
        Placement and limits.
    requests
        Requests of the run by number. A ``decode`` part expects those with more than one token to
        generate; every other part expects all of them.

    Attributes
    ----------
    prefill_tokens, decode_tokens
        Prompt tokens computed for the first time, and tokens generated, by batches that ended.
    placed
        Lane of each request placed so far; kept, because the run's record names it.
    last_ended
        What the batch that ended last did, by request.

    Raises
    ------
    ValueError
        If a request can never run.
    """

    def __init__(self, config: ServingConfig, requests: Sequence[Request]) -> None:
        for request in requests:
            config.batching.require_fits(request)
        self.config = config
        self._requests = requests
        self.lanes = [LaneBatcher(config.batching) for _ in range(config.lanes)]
        self._contents: list[dict[Batch, tuple[Chunk, ...]]] = [{} for _ in range(config.lanes)]
        self._next_batch = [0] * config.lanes
        mine = [r for r in requests if config.part != "decode" or r.decode_tokens > 1]
        self._expected = len(mine)
        self.placed: dict[int, int] = {}
        self.last_ended: tuple[Progress, ...] = ()
        self.prefill_tokens = 0
        self.decode_tokens = 0
        self.finished = 0

    # ---------------------------------------------------------------- arrivals

    def start(self) -> list[Event]:
        """Place a burst and wake the lanes ``1, 2, ..., lanes-1, 0``, or announce the arrivals."""
        if self.config.part == "decode":
            return []
        if not self.config.burst:
            return [Event(REQUEST, request=request.number) for request in self._requests]
        for request in self._requests:
            self._place(request, online=False)
        order = [*range(1, self.config.lanes), 0]
        return [Event(LANE_SCHEDULE, lane) for lane in order if self.lanes[lane].waiting]

    def request(self, event: Event) -> int:
        """Place an arrived request; return its lane."""
        return self._place(self._requests[event.request], online=event.kind == REQUEST)

    def _place(self, request: Request, online: bool) -> int:
        outstanding = [len(lane.waiting) + len(lane.running) for lane in self.lanes]
        lane = self.config.placement.lane(request.number, outstanding)
        if online and self.config.online_to_lane_0:
            lane = 0
        computed, generated = (
            (request.prefill_tokens, 1) if self.config.part == "decode" else (0, 0)
        )
        self.lanes[lane].waiting.append(LaneSequence(request, computed, generated))
        self.placed[request.number] = lane
        self._expected -= 1
        return lane

    # ---------------------------------------------------------------- batches

    def next_batch(self, lane: int) -> Batch | None:
        """Form the lane's next batch, or None if nothing can run now."""
        chunks = self.lanes[lane].form()
        if not chunks:
            return None
        prefills = any(chunk.prefill_tokens for chunk in chunks)
        batch = Batch(lane, self._next_batch[lane], PREFILL_PHASE if prefills else DECODE_PHASE)
        self._next_batch[lane] += 1
        self._contents[lane][batch] = chunks
        return batch

    def contents(self, batch: Batch) -> tuple[Chunk, ...]:
        """Return what a batch in flight does for each of its requests."""
        return self._contents[batch.lane][batch]

    def batch_ended(self, batch: Batch) -> None:
        """Count the batch's tokens; requests that are done here leave their lane."""
        lane = self.lanes[batch.lane]
        chunks = self._contents[batch.lane].pop(batch)
        self.last_ended = tuple([self._progress(lane, chunk) for chunk in chunks])
        for progress in self.last_ended:
            self.prefill_tokens += progress.prefill_tokens
            self.decode_tokens += progress.decode_tokens
            self.finished += progress.finished

    def _progress(self, lane: LaneBatcher, chunk: Chunk) -> Progress:
        """Complete a request's chunk in flight."""
        sequence = next((s for s in lane.running if s.request.number == chunk.request), None)
        if sequence is None or sequence.scheduled != chunk.tokens:
            raise ConservationError(
                f"{chunk} ended, but in flight is {sequence and sequence.snapshot()}"
            )
        prefilled, generated = sequence.prefilled, sequence.generated
        lane.complete(sequence)
        finished = sequence.generated == sequence.request.decode_tokens
        leaves = finished or (self.config.part == "prefill" and sequence.generated == 1)
        if leaves:
            lane.leave(sequence)
        return Progress(
            chunk.request,
            sequence.prefilled - prefilled,
            sequence.generated - generated,
            leaves,
            finished,
        )

    @property
    def all_batches_formed(self) -> bool:
        """Whether no lane has, or will get, work that is still to become a batch."""
        return not self._expected and all(
            lane.all_formed(self.config.part == "prefill") for lane in self.lanes
        )

    # ---------------------------------------------------------------- conservation

    def check_conserved(self, lane: int) -> None:
        """Check one lane's requests, tokens and KV blocks.

        Raises
        ------
        ConservationError
            If chunks in flight and scheduled tokens differ, a request is in two batches, or
            blocks are lost.
        """
        batcher = self.lanes[lane]
        in_flight = {}
        for batch, chunks in self._contents[lane].items():
            for chunk in chunks:
                if chunk.request in in_flight:
                    raise ConservationError(f"request {chunk.request} is in two batches: {batch}")
                in_flight[chunk.request] = chunk.tokens
        scheduled = {s.request.number: s.scheduled for s in batcher.running if s.scheduled}
        if scheduled != in_flight:
            raise ConservationError(
                f"lane {lane} has {in_flight} tokens in flight but scheduled {scheduled}"
            )
        held = sum([s.blocks for s in batcher.running])
        if held + batcher.free_blocks != self.config.batching.num_blocks:
            raise ConservationError(
                f"lane {lane} holds {held} KV blocks and has {batcher.free_blocks} free, "
                f"of {self.config.batching.num_blocks}"
            )

    @property
    def population(self) -> tuple[int, int]:
        """Requests still expected, and requests on the lanes."""
        return self._expected, sum([len(x.waiting) + len(x.running) for x in self.lanes])

    # ---------------------------------------------------------------- snapshot

    def snapshot(self) -> ServingSnapshot:
        """Return what the future depends on."""
        return ServingSnapshot(
            tuple(
                [
                    LaneSnapshot(
                        number,
                        tuple([s.snapshot() for s in lane.waiting]),
                        tuple([s.snapshot() for s in lane.running]),
                        tuple(sorted(contents.items())),
                    )
                    for number, lane, contents in zip(
                        self._next_batch, self.lanes, self._contents, strict=True
                    )
                ]
            ),
            self._expected,
        )

    def restore(self, snapshot: Hashable) -> None:
        """Become the workload of a snapshot; the counts of tokens are not part of it."""
        lanes, self._expected = cast(ServingSnapshot, snapshot)
        for at, (number, waiting, running, in_flight) in enumerate(lanes):
            self._next_batch[at] = number
            self._contents[at] = dict(in_flight)
            self.lanes[at].restore(
                [self._sequence(value) for value in waiting],
                [self._sequence(value) for value in running],
            )

    def _sequence(self, value: SequenceSnapshot) -> LaneSequence:
        return LaneSequence.of(self._requests[value.request], value)
