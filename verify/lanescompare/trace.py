"""Reads the forward traces of a vLLM run: ``requests.jsonl``, ``rounds.json``, ``forwards.jsonl``.

The format is documented in ``docs/lanes_compare.md``. Stage times: a forward runs from
``forward_start_monotonic_s`` to ``send_start_monotonic_s``; at the last stage, which sends nothing
on, to ``end_wall_s`` minus its round's ``wall_minus_monotonic_s``.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify.lanescompare.fields import (
    LaneDataError,
    Record,
    parse_object,
    read_records,
    read_text,
)
from verify.lanescompare.runs import Forward, LaneRun

FINISHED = frozenset({"stop", "length"})
"""Finish reasons of a request that ran to its end; anything else (abort, null) did not complete."""

_NAMED_SIZE = re.compile(r"b(\d+)-r\d+")


@dataclass(frozen=True)
class Request:
    """One line of ``requests.jsonl``: a request of one round and its placement record."""

    name: str
    burst: str
    round: int
    index: int
    lane: int
    completed: bool
    where: str


@dataclass(frozen=True)
class Round:
    """One round of a burst: `run` holds its forwards on the monotonic clock."""

    name: str
    number: int
    run: LaneRun

    @property
    def size(self) -> int:
        """Requests in the burst."""
        return self.run.requests


@dataclass(frozen=True)
class Trace:
    """All rounds of one traced run, by burst size and round number.

    ``dummies`` counts forwards without requests, which belong to no lane or round that the trace
    could name.
    """

    path: Path
    lanes: int
    stages: int
    rounds: tuple[Round, ...]
    dummies: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Burst sizes in the trace, ascending."""
        return tuple(sorted({r.size for r in self.rounds}))

    def of_size(self, size: int) -> tuple[Round, ...]:
        """Return the rounds of one burst size, by round number."""
        return tuple(r for r in self.rounds if r.size == size)


def read_trace(directory: Path) -> Trace:
    """Read the trace in `directory`.

    Raises
    ------
    LaneDataError
        A file, field, clock offset or request is missing, unknown, duplicated or contradictory.
    """
    requests = _read_requests(directory / "requests.jsonl")
    offsets = _read_offsets(directory / "rounds.json")
    _check_rounds(requests.values(), offsets, directory)
    rows = tuple(read_records(directory / "forwards.jsonl", holds="one forward a line"))
    if not rows:
        raise LaneDataError(
            "no forward",
            where=str(directory / "forwards.jsonl"),
            remedy="expected one forward a line",
        )
    lanes = 1 + max(r.lane for r in requests.values())
    stages = 1 + max(row.count("stage") for row in rows)
    forwards = defaultdict(list)
    working = [row for row in rows if not _is_dummy(row)]
    for row in working:
        burst, forward = _read_forward(row, requests, offsets, last_stage=stages - 1)
        forwards[burst].append(forward)
    grouped = defaultdict(list)
    for request in requests.values():
        grouped[request.burst].append(request)
    rounds = [_round(members, forwards[burst], lanes, stages) for burst, members in grouped.items()]
    _check_distinct(rounds, directory)
    return Trace(
        directory,
        lanes,
        stages,
        rounds=tuple(sorted(rounds, key=lambda r: (r.size, r.number))),
        dummies=len(rows) - len(working),
    )


def _read_requests(path: Path) -> dict[str, Request]:
    requests: dict[str, Request] = {}
    for row in read_records(path, holds="one request a line"):
        output = row.count("num_output_tokens")
        request = Request(
            name=row.text("request_id"),
            burst=row.text("burst"),
            round=row.count("round"),
            index=row.count("index"),
            lane=row.count("lane"),
            completed=row.optional_text("finish_reason") in FINISHED and output > 0,
            where=row.where,
        )
        if request.name in requests:
            raise LaneDataError(
                f"request {request.name!r} appears twice",
                where=row.where,
                remedy=f"its first record is at {requests[request.name].where}; keep one",
            )
        requests[request.name] = request
    if not requests:
        raise LaneDataError("no request", where=str(path), remedy="expected one request a line")
    return requests


def _read_offsets(path: Path) -> dict[str, float]:
    document = parse_object(read_text(path, holds="the rounds with their clock offsets"), str(path))
    offsets: dict[str, float] = {}
    for number, values in enumerate(document.items("rounds", dict)):
        row = Record(values, f"{path}: rounds[{number}]")
        burst = row.text("burst")
        if burst in offsets:
            raise LaneDataError(
                f"round {burst!r} appears twice", where=row.where, remedy="keep one clock offset"
            )
        offsets[burst] = row.seconds("wall_minus_monotonic_s")
    return offsets


def _check_rounds(
    requests: Iterable[Request], offsets: Mapping[str, float], directory: Path
) -> None:
    first = {r.burst: r for r in reversed(list(requests))}
    for burst, request in first.items():
        if burst not in offsets:
            raise LaneDataError(
                f"round {burst!r} has no clock offset",
                where=request.where,
                remedy=f"expected an entry with wall_minus_monotonic_s in {directory}/rounds.json",
            )
    for burst in offsets:
        if burst not in first:
            raise LaneDataError(
                f"round {burst!r} has no request",
                where=f"{directory}/rounds.json",
                remedy="expected its requests in requests.jsonl",
            )


def _is_dummy(row: Record) -> bool:
    """Whether a forward carries no request and no token: a rank without work keeping step."""
    tokens = row.count("num_prefill_tokens") + row.count("num_decode_tokens")
    return row.values.get("request_ids") == [] and tokens == 0


def _read_forward(
    row: Record, requests: Mapping[str, Request], offsets: Mapping[str, float], *, last_stage: int
) -> tuple[str, Forward]:
    row.count("batch_id")
    names = row.items("request_ids", str)
    members = []
    for name in names:
        if name not in requests:
            raise LaneDataError(
                f"unknown request {name!r}", where=row.where, remedy="expected it in requests.jsonl"
            )
        members.append(requests[name])
    burst, lane = members[0].burst, members[0].lane
    if any((m.burst, m.lane) != (burst, lane) for m in members):
        raise LaneDataError(
            f"requests {names} are of different rounds or lanes",
            where=row.where,
            remedy="expected one lane's batch; check `burst` and `lane` in requests.jsonl",
        )
    stage = row.count("stage")
    start = row.seconds("forward_start_monotonic_s")
    if stage < last_stage:
        end = row.seconds("send_start_monotonic_s")
    else:
        end = row.seconds("end_wall_s") - offsets[burst]
    if end < start:
        raise LaneDataError(
            f"the forward ends {start - end:.6f} s before it starts",
            where=row.where,
            remedy=f"check its times and the clock offset of round {burst!r}",
        )
    return burst, Forward(start, end, lane, stage, tuple(m.index for m in members))


def _round(
    members: Sequence[Request], forwards: Sequence[Forward], lanes: int, stages: int
) -> Round:
    """Build one round; its size is the ``b<size>`` of its name, else the requests it lists."""
    burst = members[0].burst
    named = _NAMED_SIZE.fullmatch(burst)
    size = int(named[1]) if named else 1 + max(m.index for m in members)
    seen: dict[int, Request] = {}
    for member in members:
        if member.index >= size or member.index in seen:
            raise LaneDataError(
                f"index {member.index} of request {member.name!r} is taken or out of range",
                where=member.where,
                remedy=f"expected distinct indices 0 to {size - 1} in round {burst!r}",
            )
        if member.round != members[0].round:
            raise LaneDataError(
                f"round number {member.round} in round {burst!r}",
                where=member.where,
                remedy=f"expected {members[0].round}, as at {members[0].where}",
            )
        seen[member.index] = member
    run = LaneRun(
        lanes=lanes,
        stages=stages,
        requests=size,
        completed=sum(m.completed for m in members),
        forwards=tuple(forwards),
        placement={m.index: m.lane for m in members},
    )
    return Round(burst, members[0].round, run)


def _check_distinct(rounds: Iterable[Round], directory: Path) -> None:
    names: dict[tuple[int, int], str] = {}
    for item in rounds:
        key = (item.size, item.number)
        if key in names:
            raise LaneDataError(
                f"rounds {names[key]!r} and {item.name!r} are both round {key[1]} of {key[0]}",
                where=f"{directory}/requests.jsonl",
                remedy="expected distinct round numbers within a burst size",
            )
        names[key] = item.name
