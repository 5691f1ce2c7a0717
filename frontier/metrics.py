"""Request and system metrics of a run, in simulated time (issue 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontier.durations import SECOND
from frontier.events import BATCH_END, KV_TRANSFER, LANE_SCHEDULE, REQUEST, Event
from frontier.ledger import seconds
from frontier.serving import ConservationError
from frontier.system import ServingSystem


@dataclass(slots=True)
class RequestTimes:
    """When one request got its first and its last token, in nanoseconds; None if it did not."""

    arrival: int
    first_token: int | None = None
    end: int | None = None
    tokens: int = 0


class RequestMetrics:
    """Observer that notes first and last token of each request."""

    def __init__(self, serving: ServingSystem) -> None:
        self._serving = serving
        self.times = [RequestTimes(request.arrival_ns) for request in serving.spec.requests]

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:  # noqa: ARG002
        """Read what a batch that ended did for its requests."""
        if event.kind != BATCH_END:
            return
        for progress in self._serving.workloads[self._serving.role_of(event)].last_ended:
            times = self.times[progress.request]
            if progress.decode_tokens:
                times.tokens += progress.decode_tokens
                if times.first_token is None:
                    times.first_token = now
            if progress.finished:
                times.end = now

    @property
    def makespan(self) -> int:
        """End of the last request that finished, in nanoseconds; 0 if none did."""
        return max([times.end for times in self.times if times.end is not None], default=0)

    @property
    def request_end_s(self) -> list[float | None]:
        """End of each request in seconds, None where it did not end."""
        return [_since(0, times.end) for times in self.times]

    def rows(self) -> list[dict[str, Any]]:
        """One row per request: size, lanes, times in seconds, None where a time does not exist."""
        return [self._row(number, times) for number, times in enumerate(self.times)]

    def _row(self, number: int, times: RequestTimes) -> dict[str, Any]:
        request = self._serving.spec.requests[number]
        first, end = times.first_token, times.end
        per_token = None
        if first is not None and end is not None and times.tokens > 1:
            per_token = seconds(round((end - first) / (times.tokens - 1)))
        return {
            "request": number,
            "prefill_tokens": request.prefill_tokens,
            "decode_tokens": request.decode_tokens,
            **{
                f"lane_{role.lower()}": workload.placed.get(number)
                for role, workload in self._serving.workloads.items()
            },
            "arrival_s": seconds(times.arrival),
            "first_token_s": _since(0, first),
            "end_s": _since(0, end),
            "generated_tokens": times.tokens,
            "ttft_s": _since(times.arrival, first),
            "e2e_s": _since(times.arrival, end),
            "tpot_s": per_token,
        }

    def system(self) -> dict[str, Any]:
        """Totals, throughput and latency summaries of the whole run."""
        rows = self.rows()
        makespan = self.makespan
        serving = self._serving
        return {
            "requests": len(rows),
            "requests_completed": serving.finished,
            "prefill_tokens": serving.prefill_tokens,
            "decode_tokens": serving.decode_tokens,
            "makespan_s": seconds(makespan),
            "requests_per_s": _rate(serving.finished, makespan),
            "decode_tokens_per_s": _rate(serving.decode_tokens, makespan),
            **{
                name: _summary([row[name] for row in rows])
                for name in ("ttft_s", "e2e_s", "tpot_s")
            },
        }


def _since(start: int, instant: int | None) -> float | None:
    """Seconds from a start to an instant in nanoseconds, None if it never came."""
    return None if instant is None else seconds(instant - start)


def _rate(count: int, makespan: int) -> float | None:
    return round(count * SECOND / makespan, 6) if makespan else None


def _summary(values: Sequence[float | None]) -> dict[str, float] | None:
    """Mean, median, 90th and 99th percentile (nearest rank) and maximum of what exists."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return None

    def rank(percent: int) -> float:
        return known[max(0, -(-len(known) * percent // 100) - 1)]

    mean = round(sum(known) / len(known), 9)
    return {"mean": mean, "p50": rank(50), "p90": rank(90), "p99": rank(99), "max": known[-1]}


class ConservationCheck:
    """Observer that checks requests, tokens and KV blocks at every event that can change them.

    Every request is in one place: still to come, on a lane of one role, on its way between roles,
    or finished. Tokens are checked against the batches in flight, blocks against the cache.
    """

    def __init__(self, serving: ServingSystem) -> None:
        self._serving = serving
        self._travelling = 0

    def __call__(self, now: int, event: Event, follow: Sequence[Event]) -> None:  # noqa: ARG002
        """Check the lane that an event concerned, and the count of requests.

        Raises
        ------
        ConservationError
            On the first event after which something is lost or made up.
        """
        if event.kind not in (REQUEST, KV_TRANSFER, LANE_SCHEDULE, BATCH_END):
            return
        self._travelling += sum(e.kind == KV_TRANSFER for e in follow)
        self._travelling -= event.kind == KV_TRANSFER
        workload = self._serving.workloads[self._serving.role_of(event)]
        if event.lane >= 0:
            workload.check_conserved(event.lane)
        self._check_requests()

    def _check_requests(self) -> None:
        first, *later = self._serving.workloads.values()
        expected, on_lanes = first.population
        placed = on_lanes + sum(workload.population[1] for workload in later)
        total = expected + placed + self._travelling + self._serving.finished
        if total != len(self._serving.spec.requests):
            raise ConservationError(
                f"{len(self._serving.spec.requests)} requests, but {expected} are to come, "
                f"{placed} on lanes, {self._travelling} on their way and "
                f"{self._serving.finished} finished"
            )
