"""``frontier-verify pairings``: the join rules against engine ranks in lockstep, exhaustively."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

import typer

from frontier.standin import STAND_IN_RULES
from models.pairings import Label, PairingModel, Unfinished, Wave, WholeRun, shapes
from models.scenario import Scenario
from verify.cli import options as opt
from verify.cli.errors import UNDETERMINED, emit, require_writable
from verify.cli.render import out, scenario_line
from verify.labels import Shown, Witness, only_in, shown_labels
from verify.limits import Limits
from verify.path import EncodedPath, encode, fingerprint

KINDS: dict[str, type[Label]] = {"waves": Wave, "whole_runs": WholeRun, "unfinished": Unfinished}
_SAYS = {
    "waves": "EP waves",
    "whole_runs": "pairings of whole runs",
    "unfinished": "runs left unfinished",
}


@dataclass(frozen=True)
class ShapeResult:
    """What both models show on one shape."""

    scenario: Scenario
    simulator: Shown[Label]
    reference: Shown[Label]

    @property
    def limit(self) -> str | None:
        """Why the comparison is incomplete, or None."""
        return self.simulator.limit or self.reference.limit

    def only(self, side: str, kind: str) -> dict[Label, Witness]:
        """Return the labels of a kind that one side shows alone, in order of depth."""
        one, other = self.simulator, self.reference
        if side == "reference":
            one, other = other, one
        found = only_in(one, other)
        return {label: w for label, w in found.items() if isinstance(label, KINDS[kind])}


@cache
def _reference(scenario: Scenario, limits: Limits) -> Shown[Label]:
    model = PairingModel.reference(scenario)
    return shown_labels(model.recorded, model.labels, limits=limits)


def compare_shape(scenario: Scenario, limits: Limits) -> ShapeResult:
    """Explore both models of one scenario; the reference once for all rules."""
    model = PairingModel.simulator(scenario)
    plain = Scenario()
    unruled = replace(
        scenario, admission=plain.admission, stand_in=plain.stand_in, rooms=plain.rooms
    )
    return ShapeResult(
        scenario,
        shown_labels(model.recorded, model.labels, limits=limits),
        _reference(unruled, limits),
    )


def summarise(results: Sequence[ShapeResult]) -> dict[str, Any]:
    """Return counts and the smallest witness per side and kind, as JSON values."""
    return {
        f"only_{side}": {kind: _difference(results, side, kind) for kind in KINDS}
        for side in ("simulator", "reference")
    }


def _difference(results: Sequence[ShapeResult], side: str, kind: str) -> dict[str, Any]:
    """Count over all shapes; the first shape is the smallest, its first witness the shortest."""
    count, smallest = 0, None
    for result in results:
        found = result.only(side, kind)
        count += len(found)
        if found and smallest is None:
            label, witness = next(iter(found.items()))
            smallest = _witness(result.scenario, side, label, witness)
    return {"count": count, "smallest": smallest}


def _witness(scenario: Scenario, side: str, label: Label, witness: Witness) -> dict[str, Any]:
    make = PairingModel.simulator if side == "simulator" else PairingModel.reference
    lines, state = make(scenario).follow(witness.actions)
    path = EncodedPath(scenario.to_compact(), witness.initial, witness.actions, fingerprint(state))
    return {
        "scenario": scenario.to_json(),
        "pairing": str(label),
        "schedule": lines,
        "path": encode(path) if side == "simulator" else None,
    }


def pairings(
    lanes: opt.Lanes = None,
    stages: opt.Stages = None,
    layers: opt.Layers = None,
    batches: opt.Batches = None,
    arrivals: opt.Arrivals = None,
    phases: opt.Phases = None,
    admission: opt.Admission = None,
    stand_in: opt.StandIn = None,
    rooms: opt.Rooms = None,
    ties: opt.Ties = None,
    max_states: Annotated[
        int, typer.Option(help="Give up on a model beyond this many states.")
    ] = 500_000,
    json_file: opt.JsonFile = None,
) -> None:
    """Compare which batches can share an EP wave: the lanes model against ranks in lockstep.

    Every timing of both is explored. Without a shape (lanes, stages, layers, batches, phases,
    arrivals) all small shapes are; without --stand-in every stand-in rule is. Exit code: 0
    compared, 2 bad input, 3 a limit was reached.
    """
    require_writable(json_file)
    rules = {"admission": admission, "stand_in": stand_in, "rooms": rooms, "ties": ties}
    shape = {
        "lanes": lanes,
        "stages": stages,
        "layers": layers,
        "batches": batches,
        "arrivals": arrivals,
        "phases": phases,
    }
    base = opt.scenario_from(None, {**shape, **rules})
    names = [base.stand_in] if stand_in is not None else list(STAND_IN_RULES)
    entries = []
    for name in names:
        ruled = replace(base, stand_in=name)
        single = any(value is not None for value in shape.values())
        entry = compare_rules([ruled] if single else list(shapes(ruled)), Limits(max_states))
        entries.append(entry)
        if str(json_file) != "-":
            _print(entry)
    if json_file is not None:
        emit(json_file, json.dumps({"rules": entries}, indent=1))
    raise typer.Exit(UNDETERMINED if any(entry["limit"] for entry in entries) else 0)


def compare_rules(scenarios: Sequence[Scenario], limits: Limits) -> dict[str, Any]:
    """Compare shapes under one set of rules; ``limit`` says why nothing can be concluded."""
    results: list[ShapeResult] = []
    for scenario in scenarios:
        result = compare_shape(scenario, limits)
        if result.limit is not None:
            return {**_rules(scenario), "limit": f"{scenario_line(scenario)}: {result.limit}"}
        results.append(result)
    return {
        **_rules(scenarios[0]),
        "limit": None,
        "shapes": len(results),
        "states_simulator": sum(r.simulator.stats.states for r in results),
        "states_reference": sum(r.reference.stats.states for r in results),
        **summarise(results),
    }


def _rules(scenario: Scenario) -> dict[str, Any]:
    return {
        "admission": scenario.admission,
        "stand_in": scenario.stand_in,
        "rooms": scenario.rooms,
        "ties": scenario.ties,
    }


def _print(entry: dict[str, Any]) -> None:
    rules = f"{entry['admission']}, {entry['stand_in']}, {entry['rooms']} rooms"
    if entry["limit"]:
        out.print(f"[bold yellow]undetermined[/] {rules}: {entry['limit']}")
        return
    out.print(
        f"[bold]{rules}[/]: {_plural(entry['shapes'])}, every timing "
        f"({entry['states_simulator']:,} + {entry['states_reference']:,} states)"
    )
    for side, who in (("only_simulator", "simulator"), ("only_reference", "lockstep")):
        for kind, what in _SAYS.items():
            found = entry[side][kind]
            out.print(f"  {what} only in the {who}: {found['count']}")
            if found["smallest"]:
                _print_smallest(found["smallest"])


def _print_smallest(smallest: dict[str, Any]) -> None:
    out.print(f"    smallest: {smallest['pairing']}", markup=False)
    out.print(f"    in {scenario_line(Scenario.of(smallest['scenario']))}", markup=False)
    for number, line in enumerate(smallest["schedule"], start=1):
        out.print(f"    {number:>3}  {line}", markup=False)
    if smallest["path"]:
        out.print(f"    frontier-verify replay {smallest['path']}", markup=False)


def _plural(shapes_compared: int) -> str:
    return f"{shapes_compared} shape{'' if shapes_compared == 1 else 's'}"
