"""Clusters: replicas of several roles that hand requests to each other (issue 3).

A cluster is again a system with ``start`` and ``handle``: it routes each event to the part that
its ``role`` names, and adds the transfers between the parts as timed events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from frontier.attention import AttentionReplica
from frontier.events import (
    BATCH_END,
    COMBINE_END,
    DECODE,
    DECODE_ATTN,
    DECODE_FFN,
    DENSE,
    EXPERT,
    FFN_RETURN,
    GROUP,
    KV_TRANSFER,
    PREFILL,
    STAGE_END,
    Batch,
    Event,
)
from frontier.ffn import FfnConfig, FfnReplica
from frontier.replica import Replica, ReplicaConfig, batch_of
from frontier.requests import Request
from frontier.serving import RequestWorkload, ServingConfig


class Part(Protocol):
    """One part of a cluster."""

    def start(self) -> list[Event]:
        """Events of the start."""
        ...

    def handle(self, event: Event) -> list[Event]:
        """Handle one event of this part."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether all work of this part has ended."""
        ...

    def snapshot(self) -> Any:
        """Return what the future depends on."""
        ...

    def restore(self, snapshot: Any) -> None:
        """Become the part of a snapshot."""
        ...


PartKey = tuple[str, int]
"""Role, and the stage for parts that are one stage each (-1 for those that have all stages)."""


class Cluster:
    """Parts by role, and what follows in other parts from an event of one.

    Parameters
    ----------
    parts
        The parts, in the order in which they start.
    """

    def __init__(self, parts: Mapping[PartKey, Part]) -> None:
        self.parts = dict(parts)

    def start(self) -> list[Event]:
        """Start every part, in order."""
        return [
            event._replace(role=role)
            for (role, _), part in self.parts.items()
            for event in part.start()
        ]

    def part_of(self, event: Event) -> Part:
        """Part that handles an event."""
        part = self.parts.get((event.role, -1))
        return self.parts[event.role, event.stage] if part is None else part

    def handle(self, event: Event) -> list[Event]:
        """Handle one event and return those that follow, in order of creation.

        Raises
        ------
        CoreError
            If a stage context rejects a call.
        """
        role = event.role
        follow = self.part_of(event).handle(event)
        own = [e if e.role else e._replace(role=role) for e in follow]
        return own + self._transfers(event)

    def _transfers(self, event: Event) -> list[Event]:
        """Transfers to other parts that begin with an event just handled."""
        raise NotImplementedError

    @property
    def is_complete(self) -> bool:
        """Whether every part is complete."""
        return all(part.is_complete for part in self.parts.values())

    def snapshot(self) -> tuple[Hashable, ...]:
        """Return what the future depends on."""
        return tuple([part.snapshot() for part in self.parts.values()])

    def restore(self, snapshot: tuple[Hashable, ...]) -> None:
        """Become the cluster of a snapshot, whatever this one was before."""
        for part, own in zip(self.parts.values(), snapshot, strict=True):
            part.restore(own)


def _kv_transfers(workload: RequestWorkload, to: str) -> list[Event]:
    """One transfer per request that has its first token and wants more, in batch order."""
    return [
        Event(KV_TRANSFER, request=progress.request, role=to)
        for progress in workload.last_ended
        if progress.left and not progress.finished
    ]


class PddCluster(Cluster):
    """Prefill and decode disaggregated: ``PREFILL``, KV transfer, ``DECODE``.

    Each role has its own lanes, stages and contexts. A request's KV moves when its prefill batch
    has ended, and takes its place on a decode lane when it arrives there.
    """

    def __init__(
        self,
        prefill: ReplicaConfig,
        decode: ReplicaConfig,
        serving: tuple[ServingConfig, ServingConfig],
        requests: Sequence[Request],
    ) -> None:
        self.workloads = {
            PREFILL: RequestWorkload(serving[0], requests),
            DECODE: RequestWorkload(serving[1], requests),
        }
        super().__init__(
            {
                (PREFILL, -1): Replica(prefill, self.workloads[PREFILL]),
                (DECODE, -1): Replica(decode, self.workloads[DECODE]),
            }
        )

    def _transfers(self, event: Event) -> list[Event]:
        if event.kind != BATCH_END:
            return []
        return _kv_transfers(self.workloads[event.role], DECODE)


class Shipment(NamedTuple):
    """A batch on its way to, or in, the FFN cluster: the layer is the stage's own."""

    batch: Batch
    layer: int
    kind: str


class M2nLink:
    """The transfer of groups from the attention cluster to one ``DECODE_FFN`` stage, in order.

    The link carries one group at a time, so that groups arrive in the order in which they were
    sent (PROTOCOL.md section 7: the producer's following group becomes pending when one arrives).
    """

    def __init__(self, stage: int) -> None:
        self._stage = stage
        self._outbox: deque[Shipment] = deque()
        self._delivered: dict[int, Shipment] = {}
        self._arrived = 0

    def send(self, shipment: Shipment) -> list[Event]:
        """Take a group; its ``group`` event if the link is free."""
        self._outbox.append(shipment)
        return self.following(0) if len(self._outbox) == 1 else []

    def take(self, group: int) -> Shipment:
        """Take back the group of an id, once it has ended."""
        return self._delivered.pop(group)

    def start(self) -> list[Event]:
        """Nothing is on its way at the start."""
        return []

    def deliver(self, producer: int) -> str:  # noqa: ARG002 - one producer
        """Take the group that arrived and return its kind."""
        shipment = self._outbox.popleft()
        self._delivered[self._arrived] = shipment
        self._arrived += 1
        return shipment.kind

    def following(self, producer: int) -> list[Event]:
        """Return the event of the group at the head of the link, if any."""
        if not self._outbox:
            return []
        return [Event(GROUP, producer, None, self._stage, role=DECODE_FFN)]

    @property
    def exhausted(self) -> bool:
        """Whether nothing is on its way."""
        return not self._outbox

    def snapshot(self) -> Hashable:
        """Return what is on its way and what has arrived."""
        return tuple(self._outbox), tuple(sorted(self._delivered.items())), self._arrived

    def restore(self, snapshot: Hashable) -> None:
        """Become the link of a snapshot."""
        outbox, delivered, self._arrived = cast(
            tuple[tuple[Shipment, ...], tuple[tuple[int, Shipment], ...], int], snapshot
        )
        self._outbox, self._delivered = deque(outbox), dict(delivered)


@dataclass(frozen=True, slots=True)
class FfnShape:
    """The FFN cluster of a PD-AF system.

    Parameters
    ----------
    ep_size
        EP lanes of every stage.
    dense_layers
        The first layers of a mixture-of-experts model that are dense.
    """

    ep_size: int = 2
    dense_layers: int = 0


class PdAfCluster(Cluster):
    """Decode disaggregated again: ``PREFILL``, then ``DECODE_ATTN`` and ``DECODE_FFN`` in turn.

    Stage ``s`` of the attention replica sends its groups to stage ``s`` of the FFN cluster, and
    gets them back by ``ffn_return``.

    Raises
    ------
    ValueError
        If the prefill or the attention replica has more than one lane.
    """

    def __init__(
        self,
        prefill: ReplicaConfig,
        attention: ReplicaConfig,
        ffn: FfnShape,
        serving: tuple[ServingConfig, ServingConfig],
        requests: Sequence[Request],
    ) -> None:
        if prefill.lanes != 1:
            raise ValueError(f"PD-AF takes one lane per role, got {prefill.lanes} for PREFILL")
        self._ffn = ffn
        self._attention = attention
        self.links = [M2nLink(stage) for stage in range(attention.stages)]
        self.workloads = {
            PREFILL: RequestWorkload(serving[0], requests),
            DECODE_ATTN: RequestWorkload(serving[1], requests),
        }
        parts: dict[PartKey, Part] = {
            (PREFILL, -1): Replica(prefill, self.workloads[PREFILL]),
            (DECODE_ATTN, -1): AttentionReplica(
                attention, self.workloads[DECODE_ATTN], self._to_ffn
            ),
        }
        for link_stage, link in enumerate(self.links):
            config = FfnConfig(ffn.ep_size, admission=attention.admission, stage=link_stage)
            parts[DECODE_FFN, link_stage] = FfnReplica(config, link)
        super().__init__(parts)

    def _to_ffn(self, batch: Batch, stage: int, layer: int) -> list[Event]:
        model_layer = stage * self._attention.layers + layer
        expert = self._attention.moe and model_layer >= self._ffn.dense_layers
        return self.links[stage].send(Shipment(batch, layer, EXPERT if expert else DENSE))

    def _transfers(self, event: Event) -> list[Event]:
        if event.kind == BATCH_END:
            return _kv_transfers(self.workloads[event.role], DECODE_ATTN)
        if event.role == DECODE_FFN and event.kind in (COMBINE_END, STAGE_END):
            back = self.links[event.stage].take(batch_of(event).number)
            return [
                Event(
                    FFN_RETURN,
                    back.batch.lane,
                    back.batch,
                    event.stage,
                    back.layer,
                    role=DECODE_ATTN,
                )
            ]
        return []
