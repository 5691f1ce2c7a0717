"""Pairings: which batches share an EP wave, in the lanes model and in the lockstep reference.

A pairing is read off the pending wave ends of a quiescent state, the same way in both models
(issue 8, PROTOCOL.md section 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from frontier.events import WAVE_END, Batch
from models.lockstep import Lockstep
from models.quiescent import Action, ProtocolState, QuiescentModel
from models.scenario import Scenario
from verify.recording import Recorded, RecordingModel


class Wave(NamedTuple):
    """One EP wave: where it ran and the real batches in it, in lane order."""

    stage: int
    layer: int
    members: tuple[Batch, ...]

    def __str__(self) -> str:
        """Return for instance ``stage 1, layer 0: lane 0 batch 1 alone``."""
        names = [f"lane {b.lane} batch {b.number}" for b in self.members]
        shared = " with ".join(names) if len(names) > 1 else f"{names[0]} alone"
        return f"stage {self.stage}, layer {self.layer}: {shared}"


class WholeRun(NamedTuple):
    """Every wave of a run that ended complete."""

    waves: frozenset[Wave]

    def __str__(self) -> str:
        """Return the waves, one after the other."""
        return "; ".join(map(str, sorted(self.waves)))

    @property
    def partners_change(self) -> str:
        """Where some batch's partners change: ``layers`` of a stage, ``stages``, or nowhere."""
        met: dict[int, dict[int, set[tuple[Batch, ...]]]] = {}
        for wave in self.waves:
            met.setdefault(wave.stage, {}).setdefault(wave.layer, set()).add(wave.members)
        if any(groups != layers[0] for layers in met.values() for groups in layers.values()):
            return "layers"
        return "stages" if any(layers[0] != met[0][0] for layers in met.values()) else ""


class Unfinished(NamedTuple):
    """A run that ended with work left: drained, or failed in the core."""

    reason: str

    def __str__(self) -> str:
        """Return the reason."""
        return self.reason


Label = Wave | WholeRun | Unfinished


def waves(state: ProtocolState) -> Collection[Wave]:
    """Return the waves under way in a state; every dispatched wave is under way in some state."""
    return [Wave(e.stage, e.layer, e.members) for e in state.pending if e.kind == WAVE_END]


@dataclass(frozen=True)
class PairingModel:
    """A system whose states remember their waves, and how to read pairings off them.

    Parameters
    ----------
    system
        The lanes model or the lockstep reference of a scenario.
    """

    system: QuiescentModel

    @staticmethod
    def simulator(scenario: Scenario) -> PairingModel:
        """Return the lanes model of a scenario."""
        return PairingModel(QuiescentModel(scenario.make_replica, scenario.ties))

    @staticmethod
    def reference(scenario: Scenario) -> PairingModel:
        """Return the lockstep model of a scenario's shape and work; its rules play no part."""
        return PairingModel(QuiescentModel(lambda: Lockstep.of(scenario), scenario.ties))

    @property
    def recorded(self) -> RecordingModel[ProtocolState, Action, Wave]:
        """The system with the waves of the run in its states; paths are those of the system."""
        return RecordingModel(self.system, waves)

    def labels(self, state: Recorded[ProtocolState, Wave], terminal: bool) -> Collection[Label]:
        """Return the waves under way, and at the end of a run the whole of it."""
        if not terminal:
            return waves(state.state)
        if state.state.failed is not None:
            return [Unfinished(f"the core rejected {state.state.failed}")]
        if self.system.is_complete(state.state):
            return [WholeRun(state.history)]
        return [Unfinished("no event is left, but work is unfinished")]

    def follow(self, actions: Sequence[int]) -> tuple[list[str], ProtocolState]:
        """Return the instants of a path in words, one line each, and the state it ends in."""
        state = self.system.initial_states()[0]
        lines = []
        for number in actions:
            action = self.system.actions(state)[number]
            lines.append(" together with ".join(str(state.pending[place]) for place in action))
            state = self.system.step(state, action)
        return lines, state


def shapes(rules: Scenario) -> Iterator[Scenario]:
    """Yield the small shapes that are compared exhaustively, smallest first, under `rules`.

    Two lanes on one and two stages with one and two layers, up to two batches a lane, with one
    phase and with two; three lanes with one batch a lane. Each as a burst and with open arrivals.
    """
    for stages, layers, phases in (
        (1, 1, "p;p"),
        (1, 1, "p;d"),
        (1, 1, "p,p;p"),
        (1, 1, "p,p;p,p"),
        (1, 2, "p;p"),
        (1, 2, "p,p;p,p"),
        (2, 1, "p;p"),
        (2, 1, "p,p;p"),
        (2, 1, "p,p;p,p"),
        (2, 2, "p;p"),
        (2, 2, "p,p;p"),
        (1, 1, "p;p;p"),
        (1, 1, "p,p;p;p"),
        (2, 1, "p;p;p"),
    ):
        for arrivals in ("burst", "open"):
            values = {
                **rules.to_json(),
                "lanes": phases.count(";") + 1,
                "stages": stages,
                "layers": layers,
                "phases": phases,
                "arrivals": arrivals,
            }
            del values["batches"]
            yield Scenario.of(values)
