"""Serving systems: co-location, PDD and PD-AF built from one description (issue 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from frontier.admission import AdmissionRule, EpOrdered
from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape, PdAfCluster, PddCluster
from frontier.events import DECODE, DECODE_ATTN, DECODE_FFN, MONOLITHIC, PREFILL, Event
from frontier.ffn import FfnReplica
from frontier.placement import Placement, RoundRobin
from frontier.replica import Replica, ReplicaConfig
from frontier.requests import Request
from frontier.rooms import RoomRule, RoomsByPhase
from frontier.serving import RequestWorkload, ServingConfig
from frontier.standin import Standard, StandInRule

CO_LOCATION: Final = "co-location"
PDD: Final = "pdd"
PD_AF: Final = "pd-af"
ARCHITECTURES: Final = (CO_LOCATION, PDD, PD_AF)

ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    CO_LOCATION: (MONOLITHIC,),
    PDD: (PREFILL, DECODE),
    PD_AF: (PREFILL, DECODE_ATTN, DECODE_FFN),
}
"""Cluster roles of each architecture, in the order of a request's way."""


class ConfigurationError(ValueError):
    """A system that cannot be: a shape that a role does not take, or a request that cannot run."""


@dataclass(frozen=True, slots=True)
class ServingSpec:
    """A serving system and its requests.

    Parameters
    ----------
    architecture
        ``co-location``, ``pdd`` or ``pd-af``.
    lanes, stages, layers
        As of a replica, for every role; ``layers`` per stage.
    burst
        Whether all requests wait from the start, else each arrives by an event.
    online_to_lane_0
        The published fault: requests that arrive by an event are all placed on lane 0.
    ffn, micro_batches
        PD-AF: the FFN cluster, and the attention lane's batches in flight per stage.
    """

    architecture: str
    lanes: int
    stages: int
    layers: int
    moe: bool
    requests: tuple[Request, ...]
    admission: AdmissionRule = field(default_factory=EpOrdered)
    stand_in: StandInRule = field(default_factory=Standard)
    rooms: RoomRule = field(default_factory=RoomsByPhase)
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    placement: Placement = field(default_factory=RoundRobin)
    burst: bool = True
    online_to_lane_0: bool = False
    ffn: FfnShape = field(default_factory=FfnShape)
    micro_batches: int = 1

    @property
    def roles(self) -> tuple[str, ...]:
        """Cluster roles of the architecture."""
        return ROLES[self.architecture]

    @property
    def replica(self) -> ReplicaConfig:
        """Shape and rules of a replica with lanes."""
        return ReplicaConfig(
            lanes=self.lanes,
            stages=self.stages,
            layers=self.layers,
            moe=self.moe,
            admission=self.admission,
            stand_in=self.stand_in,
            rooms=self.rooms,
        )

    def require_valid(self) -> None:
        """ConfigurationError on a shape that a role does not take, naming role and value."""
        if self.architecture not in ARCHITECTURES:
            raise ConfigurationError(
                f"unknown architecture {self.architecture!r}; "
                f"expected one of: {', '.join(ARCHITECTURES)}"
            )
        counts = {
            "lanes": self.lanes,
            "stages": self.stages,
            "layers": self.layers,
            "micro_batches": self.micro_batches,
            "ep_size": self.ffn.ep_size,
            "token_budget": self.batching.token_budget,
            "max_sequences": self.batching.max_sequences,
            "block_size": self.batching.block_size,
            "num_blocks": self.batching.num_blocks,
        }
        for name, value in counts.items():
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {value}")
        if self.architecture == PD_AF:
            self._require_pd_af()
        elif self.micro_batches != 1:
            raise ConfigurationError(
                f"micro_batches is for pd-af only, got {self.micro_batches} "
                f"with {self.architecture}"
            )
        for request in self.requests:
            try:
                self.batching.require_fits(request)
            except ValueError as error:
                raise ConfigurationError(str(error)) from error

    def _require_pd_af(self) -> None:
        if self.lanes != 1:
            raise ConfigurationError(
                f"pd-af takes one lane per role (PREFILL, DECODE_ATTN), got lanes = {self.lanes}; "
                "use lanes = 1"
            )
        layers = self.stages * self.layers
        if not 0 <= self.ffn.dense_layers <= layers:
            raise ConfigurationError(
                f"dense_layers must be 0 ... {layers} for a model of {layers} layers, "
                f"got {self.ffn.dense_layers}"
            )


class ServingSystem:
    """A built system: what the loop drives, and its replicas and workloads by role.

    Raises
    ------
    ConfigurationError
        If the description is not valid.
    """

    def __init__(self, spec: ServingSpec) -> None:
        spec.require_valid()
        self.spec = spec
        self.system: Replica | PddCluster | PdAfCluster
        self.workloads: dict[str, RequestWorkload]
        self.replicas: dict[str, Replica]
        self.ffn: tuple[FfnReplica, ...] = ()
        serving = ServingConfig(
            spec.lanes,
            spec.batching,
            spec.placement,
            burst=spec.burst,
            online_to_lane_0=spec.online_to_lane_0,
        )
        halves = (replace(serving, part="prefill"), replace(serving, part="decode"))
        if spec.architecture == CO_LOCATION:
            workload = RequestWorkload(serving, spec.requests)
            self.system = Replica(spec.replica, workload)
            self.workloads = {MONOLITHIC: workload}
            self.replicas = {MONOLITHIC: self.system}
            return
        if spec.architecture == PDD:
            self.system = PddCluster(spec.replica, spec.replica, halves, spec.requests)
        else:
            attention = replace(spec.replica, in_flight=spec.stages * spec.micro_batches)
            self.system = PdAfCluster(spec.replica, attention, spec.ffn, halves, spec.requests)
        self.workloads = self.system.workloads
        parts = self.system.parts.items()
        self.replicas = {role: part for (role, _), part in parts if isinstance(part, Replica)}
        self.ffn = tuple(part for _, part in parts if isinstance(part, FfnReplica))

    def role_of(self, event: Event) -> str:
        """Role that handles an event."""
        return event.role or MONOLITHIC

    def lanes_of(self, role: str) -> int:
        """Schedulers of each stage of a role: lanes, or EP lanes and the full-stage one."""
        return self.ffn[0].config.schedulers if role == DECODE_FFN else self.spec.lanes

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens computed, each once."""
        return sum(workload.prefill_tokens for workload in self.workloads.values())

    @property
    def decode_tokens(self) -> int:
        """Tokens generated."""
        return sum(workload.decode_tokens for workload in self.workloads.values())

    @property
    def finished(self) -> int:
        """Requests that have all their tokens."""
        return sum(workload.finished for workload in self.workloads.values())
