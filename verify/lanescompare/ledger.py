"""Reads stage ledgers of the simulator: a header line, then one line per batch and stage."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from verify.lanescompare.fields import LaneDataError, Record, read_records
from verify.lanescompare.runs import Forward, LaneRun

FORMAT = "frontier-verify"
VERSION = 1
SUCCESS = "success"
DEADLOCK = "admission_deadlock"
MODELS = ("moe", "dense")


@dataclass(frozen=True)
class Ledger:
    """One simulated run of one burst.

    Parameters
    ----------
    path : Path
        The file it was read from.
    model : str
        ``moe`` or ``dense``.
    admission : str
        Name of the admission rule that ran.
    outcome : str
        ``success``, ``admission_deadlock`` or another way to end without success.
    run : LaneRun
        The forwards, in simulated seconds.
    """

    path: Path
    model: str
    admission: str
    outcome: str
    run: LaneRun

    @property
    def succeeded(self) -> bool:
        """Whether the run ended with every request complete."""
        return self.outcome == SUCCESS and self.run.completed == self.run.requests


def read_ledgers(path: Path) -> tuple[Ledger, ...]:
    """Read every ledger of a file, or of the ``*.jsonl`` files of a directory in name order.

    A file may hold several ledgers one after the other; each begins with its header line.

    Raises
    ------
    LaneDataError
        A file, header or row is missing, malformed or contradicts its header.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise LaneDataError(
            "no *.jsonl file", where=str(path), remedy="expected stage ledgers (simulate --ledger)"
        )
    return tuple(ledger for file in files for ledger in _read_file(file))


def _read_file(path: Path) -> Iterator[Ledger]:
    header: Record | None = None
    rows: list[Record] = []
    for record in read_records(path, holds="a stage ledger (simulate --ledger)"):
        if "ledger" in record.values:
            if header is not None:
                yield _ledger(path, header, rows)
            header, rows = record, []
        elif header is None:
            raise LaneDataError(
                "the first line is not a ledger header",
                where=record.where,
                remedy=f'expected {{"ledger": "{FORMAT}", "version": {VERSION}, …}}',
            )
        else:
            rows.append(record)
    if header is None:
        raise LaneDataError(
            "empty", where=str(path), remedy="expected a stage ledger (simulate --ledger)"
        )
    yield _ledger(path, header, rows)


def _ledger(path: Path, header: Record, rows: Iterable[Record]) -> Ledger:
    if header.text("ledger") != FORMAT or header.count("version") != VERSION:
        raise LaneDataError(
            f"ledger {header.values['ledger']!r} version {header.values.get('version')!r}",
            where=header.where,
            remedy=f"expected {FORMAT!r} version {VERSION}",
        )
    model = header.text("model")
    if model not in MODELS:
        raise LaneDataError(
            f"model {model!r}", where=header.where, remedy=f"expected one of {', '.join(MODELS)}"
        )
    lanes, stages = header.count("lanes", at_least=1), header.count("stages", at_least=1)
    requests = header.count("requests", at_least=1)
    completed = header.count("requests_completed")
    if completed > requests:
        raise LaneDataError(
            f"{completed} of {requests} requests completed",
            where=header.where,
            remedy="expected no more than all",
        )
    run = LaneRun(
        lanes=lanes,
        stages=stages,
        requests=requests,
        completed=completed,
        forwards=_forwards(rows, lanes, stages, requests),
        placement=_placement(header, lanes, requests),
    )
    return Ledger(path, model, header.text("admission"), header.text("outcome"), run)


def _placement(header: Record, lanes: int, requests: int) -> dict[int, int]:
    placement: dict[int, int] = {}
    for key, lane in header.mapping("placement").items():
        index = int(key) if key.isdecimal() else requests
        if index >= requests or isinstance(lane, bool) or lane not in range(lanes):
            raise LaneDataError(
                f"placement of request {key!r} on lane {lane!r}",
                where=header.where,
                remedy=f"expected requests 0 to {requests - 1} on lanes 0 to {lanes - 1}",
            )
        placement[index] = lane
    return placement


def _forwards(
    rows: Iterable[Record], lanes: int, stages: int, requests: int
) -> tuple[Forward, ...]:
    forwards: list[Forward] = []
    seen: dict[tuple[int, int, int], str] = {}
    for row in rows:
        role, replica = row.text("role"), row.count("replica")
        if role != "MONOLITHIC" or replica != 0:
            raise LaneDataError(
                f"a row of replica {replica} of role {role}",
                where=row.where,
                remedy="expected one co-location replica (simulate --architecture co-location)",
            )
        lane, stage, batch = row.count("lane"), row.count("stage"), row.count("batch")
        members = row.items("requests", int)
        start, end = row.seconds("start_s"), row.seconds("end_s")
        if lane >= lanes or stage >= stages or not all(0 <= m < requests for m in members):
            raise LaneDataError(
                f"lane {lane}, stage {stage}, requests {members}",
                where=row.where,
                remedy=f"the header has {lanes} lanes, {stages} stages, {requests} requests",
            )
        if end < start:
            raise LaneDataError(
                f"ends at {end} s before its start at {start} s",
                where=row.where,
                remedy="expected start_s <= end_s",
            )
        first = seen.setdefault((lane, stage, batch), row.where)
        if first != row.where:
            raise LaneDataError(
                f"batch {batch} of lane {lane} at stage {stage} appears twice",
                where=row.where,
                remedy=f"its first row is at {first}; keep one",
            )
        forwards.append(Forward(start, end, lane, stage, tuple(members)))
    return tuple(forwards)
