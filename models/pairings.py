"""Pairings: which batches share an EP wave, in the lanes model and in the lockstep reference.

A pairing is read off the pending wave ends of a quiescent state, the same way in both models
(issue 8, PROTOCOL.md section 5).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from frontier.events import WAVE_END, Batch
from models.lockstep import Lockstep
from models.quiescent import Action, ProtocolState, QuiescentModel
from models.scenario import Scenario


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


def waves(state: ProtocolState) -> Collection[Wave]:
    """Return the waves under way in a state; every dispatched wave is under way in some state."""
    return [Wave(e.stage, e.layer, e.members) for e in state.pending if e.kind == WAVE_END]


def simulator(scenario: Scenario) -> QuiescentModel:
    """Return the lanes model of a scenario."""
    return QuiescentModel(scenario.make_replica, scenario.ties)


def reference(scenario: Scenario) -> QuiescentModel:
    """Return the lockstep model of a scenario's shape, arrivals and work; its rules play no part."""
    return QuiescentModel(lambda: Lockstep.of(scenario), scenario.ties)


def schedule(model: QuiescentModel, actions: Sequence[Action | int]) -> list[str]:
    """Return the instants of a path in words, one line per instant.

    Parameters
    ----------
    model
        The model the path belongs to.
    actions
        Action numbers of a path from the initial state.
    """
    state = model.initial_states()[0]
    lines = []
    for number in actions:
        action = model.actions(state)[number]  # type: ignore[index]
        lines.append(" and ".join(str(state.pending[place]) for place in action))
        state = model.step(state, action)
    return lines


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
