"""Options of a request-level run, and the system, work and times that they describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape
from frontier.durations import (
    MILLISECOND,
    ConstantDurations,
    Durations,
    RandomDurations,
    RecordedDurations,
    TableDurations,
)
from frontier.durations_io import read_recording, read_table
from frontier.placement import parse_placement
from frontier.requests import Request, poisson_times, read_requests_csv, uniform_requests
from frontier.system import PD_AF, ConfigurationError, ServingSpec
from models.scenario import Scenario
from verify.cli.errors import UsageError

_REQUESTS = "Requests"
_SYSTEM = "Serving system"

Architecture = Annotated[
    str | None,
    typer.Option(help="co-location (default), pdd or pd-af.", rich_help_panel=_SYSTEM),
]
Requests = Annotated[
    int | None,
    typer.Option(
        help="Number of requests; makes it a request-level run.", rich_help_panel=_REQUESTS
    ),
]
Prefill = Annotated[
    int | None,
    typer.Option(help="Prompt tokens of each request; default 16.", rich_help_panel=_REQUESTS),
]
Decode = Annotated[
    int | None,
    typer.Option(
        help="Generated tokens of each request, the first by its prefill; default 1.",
        rich_help_panel=_REQUESTS,
    ),
]
Placement = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="round_robin (default), least_outstanding, random or fixed:0,1,…",
        rich_help_panel=_REQUESTS,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Seed of Poisson arrivals, random placement and random times.",
        rich_help_panel=_REQUESTS,
    ),
]
Fault = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="online_lane_0: requests that arrive later than the start are all placed on lane 0.",
        rich_help_panel=_REQUESTS,
    ),
]
DurationsOption = Annotated[
    str | None,
    typer.Option(
        metavar="constant|FILE|random:LO,HI",
        help="Times: the constants, a table (.csv), a recorded trace (.jsonl), or random ms.",
        rich_help_panel="Times",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(help="Tokens of one batch; default: one prompt.", rich_help_panel=_SYSTEM),
]
MaxSequences = Annotated[
    int | None, typer.Option(help="Requests in one batch; default 4.", rich_help_panel=_SYSTEM)
]
BlockSize = Annotated[
    int | None, typer.Option(help="Tokens per KV block; default 16.", rich_help_panel=_SYSTEM)
]
NumBlocks = Annotated[
    int | None, typer.Option(help="KV blocks per lane; default 1024.", rich_help_panel=_SYSTEM)
]
ChunkedPrefill = Annotated[
    bool | None,
    typer.Option(
        "--chunked-prefill/--no-chunked-prefill",
        help="Whether a prompt may be cut into chunks; default: yes.",
        rich_help_panel=_SYSTEM,
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="d,e;e,d",
        help="Run the DECODE_FFN stage alone: groups per producer, dense or expert.",
        rich_help_panel=_SYSTEM,
    ),
]
EpSize = Annotated[
    int | None,
    typer.Option(
        help="pd-af, groups: EP lanes of the FFN cluster; default 2.", rich_help_panel=_SYSTEM
    ),
]
DenseLayers = Annotated[
    int | None,
    typer.Option(
        help="pd-af: first layers of a moe model that are dense.", rich_help_panel=_SYSTEM
    ),
]
MicroBatches = Annotated[
    int | None,
    typer.Option(
        help="pd-af: batches of the attention lane in flight per stage; default 1.",
        rich_help_panel=_SYSTEM,
    ),
]

_OUTPUT = "Output"
LedgerFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the stage ledger (JSONL).", rich_help_panel=_OUTPUT),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a trace for Perfetto or chrome://tracing (JSON).",
        rich_help_panel=_OUTPUT,
    ),
]
PlotFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.png|.svg", help="Draw the lanes over time.", rich_help_panel=_OUTPUT
    ),
]
MetricsDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Write requests.csv, requests.json and system.json.",
        rich_help_panel=_OUTPUT,
    ),
]
RecordFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.jsonl",
        help="Write the times of this run, for --durations FILE.jsonl.",
        rich_help_panel=_OUTPUT,
    ),
]
EventsFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.jsonl",
        help="Write the event log of this run, which shrink and explain read.",
        rich_help_panel=_OUTPUT,
    ),
]

FAULTS: Final = ("online_lane_0",)
DEFAULT_ROOMS: Final = "by_phase"
"""Rooms of a request-level run unless said otherwise: those of the published matrix."""


@dataclass(frozen=True)
class ServingOptions:
    """Request-level options as they were given; None where they were not."""

    architecture: str | None = None
    requests: int | None = None
    prefill: int | None = None
    decode: int | None = None
    arrivals: str | None = None
    placement: str | None = None
    seed: int = 0
    fault: str | None = None
    token_budget: int | None = None
    max_sequences: int | None = None
    block_size: int | None = None
    num_blocks: int | None = None
    chunked_prefill: bool | None = None
    ep_size: int | None = None
    dense_layers: int | None = None
    micro_batches: int | None = None

    @property
    def asked_for(self) -> bool:
        """Whether any option makes it a request-level run."""
        named = (value for name, value in vars(self).items() if name not in ("seed", "arrivals"))
        return any(value is not None for value in named) or ":" in (self.arrivals or "")

    def default_shape(self, lanes: int | None, rooms: str | None) -> dict[str, Any]:
        """Lanes and rooms of a run that no scenario describes: those of the published matrix.

        PD-AF takes one lane per role, so one is its default.
        """
        one = 1 if self.architecture == PD_AF else None
        return {"lanes": one if lanes is None else lanes, "rooms": rooms or DEFAULT_ROOMS}

    def spec(self, scenario: Scenario) -> ServingSpec:
        """Build the system over a scenario's shape and rules.

        Raises
        ------
        UsageError
            On an option that is wrong or does not fit.
        """
        if self.fault is not None and self.fault.replace("-", "_") not in FAULTS:
            raise UsageError(f"unknown fault {self.fault!r}; expected one of: {', '.join(FAULTS)}")
        try:
            requests = self._requests()
            spec = ServingSpec(
                architecture=self.architecture or "co-location",
                lanes=scenario.lanes,
                stages=scenario.stages,
                layers=scenario.layers,
                moe=scenario.model == "moe",
                requests=requests,
                admission=scenario.config.admission,
                stand_in=scenario.config.stand_in,
                rooms=scenario.config.rooms,
                batching=self._batching(requests),
                placement=parse_placement(
                    self.placement or "round_robin", scenario.lanes, self.seed
                ),
                burst=(self.arrivals or "burst") == "burst",
                online_to_lane_0=self.fault is not None,
                ffn=FfnShape(**_given(ep_size=self.ep_size, dense_layers=self.dense_layers)),
                **_given(micro_batches=self.micro_batches),
            )
            spec.require_valid()
        except ConfigurationError as error:
            raise UsageError(f"configuration rejected: {error}") from None
        except ValueError as error:
            raise UsageError(str(error)) from None
        return spec

    def _batching(self, requests: tuple[Request, ...]) -> BatchingConfig:
        budget = self.token_budget
        if budget is None:
            budget = max(request.prefill_tokens for request in requests)
        return BatchingConfig(
            token_budget=budget,
            num_blocks=1024 if self.num_blocks is None else self.num_blocks,
            **_given(
                max_sequences=self.max_sequences,
                block_size=self.block_size,
                chunked_prefill=self.chunked_prefill,
            ),
        )

    def _requests(self) -> tuple[Request, ...]:
        kind, _, rest = (self.arrivals or "burst").partition(":")
        prefill = 16 if self.prefill is None else self.prefill
        decode = 1 if self.decode is None else self.decode
        if kind == "times" and rest:
            return self._trace(Path(rest), prefill, decode)
        if self.requests is None:
            raise UsageError(
                "a request-level run needs --requests N (or --arrivals times:FILE.csv)"
            )
        if kind == "burst" and not rest:
            return uniform_requests(self.requests, prefill, decode)
        if kind != "poisson" or not rest:
            raise UsageError(
                "arrivals of a request-level run must be burst, poisson:RATE or times:FILE.csv, "
                f"got {self.arrivals!r}"
            )
        try:
            rate = float(rest)
        except ValueError:
            raise UsageError(f"poisson:RATE needs requests per second, got {rest!r}") from None
        uniform_requests(self.requests, prefill, decode)  # sizes first: a clearer message
        times = poisson_times(self.requests, rate, self.seed)
        return uniform_requests(self.requests, prefill, decode, times)

    def _trace(self, path: Path, prefill: int, decode: int) -> tuple[Request, ...]:
        try:
            requests = read_requests_csv(read_text(path), prefill, decode)
        except ValueError as error:
            raise UsageError(f"{path}: {error}") from None
        if self.requests is not None and self.requests != len(requests):
            raise UsageError(
                f"{path} has {len(requests)} requests, but --requests is {self.requests}; "
                "leave out --requests"
            )
        return requests


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def read_text(path: Path) -> str:
    """Read a text file; UsageError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path}: it is not UTF-8 text") from None


def parse_durations(text: str | None, constant: ConstantDurations, seed: int) -> Durations:
    """Execution-time model of ``--durations``.

    Raises
    ------
    UsageError
        On another word, a file that cannot be read, or bounds that are none.
    """
    if text is None or text == "constant":
        return constant
    if text.startswith("random:"):
        return _random(text, seed)
    path = Path(text)
    if path.suffix not in (".csv", ".jsonl"):
        raise UsageError(
            "durations must be constant, random:LO,HI (ms), a table FILE.csv or a recorded trace "
            f"FILE.jsonl, got {text!r}"
        )
    content = read_text(path)
    try:
        if path.suffix == ".csv":
            return TableDurations(read_table(content))
        return RecordedDurations(read_recording(content))
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None


def _random(text: str, seed: int) -> RandomDurations:
    try:
        low, high = (round(float(word) * MILLISECOND) for word in text[len("random:") :].split(","))
        return RandomDurations(low, high, seed)
    except (ValueError, OverflowError):
        raise UsageError(
            f"random times must be random:LO,HI in ms with 0 < LO <= HI, got {text!r}"
        ) from None
