"""Scenarios: the shape, the rules and the work that a check or a run is about."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final

from frontier.closed import FOREVER, ClosedReplica, ClosedWorkload
from frontier.replica import Replica, ReplicaConfig
from frontier.stale import (
    STALE_RULES,
    UNLIMITED,
    InterruptibleClosedReplica,
    InterruptibleReplica,
)
from frontier.workload import FiniteWorkload
from models.contexts import hidden, implementation_of, make_contexts, shortcomings
from models.rules import RuleError, admission_rule, is_own_rule, room_rule, stand_in_rule
from verify.contract.errors import ContractInputError

MODELS: Final = ("moe", "dense")
ARRIVALS: Final = ("burst", "open")
WORKLOADS: Final = ("finite", "closed")
STEPS_FOREVER: Final = "forever"
CAPACITY_LANES: Final = "lanes"
NOTHING_STALE: Final = "none"
PHASES: Final[Mapping[str, str]] = {
    "p": "prefill",
    "d": "decode",
    "prefill": "prefill",
    "decode": "decode",
}


MOST: Final = 10_000
"""Largest lanes, stages, layers, batches, ..."""


class ScenarioError(ValueError):
    """A scenario that cannot be; the message names the field, the value and what was expected."""


@dataclass(frozen=True)
class Scenario:
    """What is checked or simulated (PROTOCOL.md sections 1, 3 and 4).

    Parameters
    ----------
    lanes, stages, layers
        Attention-DP lanes, pipeline stages, and model layers per stage; each at least 1.
    batches
        Number of batches of each lane, one entry per lane.
    model
        ``moe`` or ``dense``.
    admission, stand_in, rooms
        Names of the rules, or ``FILE.py:Name`` for one of your own.
    arrivals
        ``burst`` (all at the start) or ``open`` (each at any time; of a closed workload the first
        request of each slot).
    phases
        Per lane the phase of each batch, ``prefill`` or ``decode``; None means all prefill.
    ties
        Whether several events may fall due at the same instant.
    workload
        ``finite``: the batches named, once; ``closed``: ``slots`` batch slots per lane that
        recirculate for ever, ``batches`` then being the slots (issue 7).
    slots, steps
        Of a closed workload: slots of each lane, and steps of each request (a prefill step, then
        decode steps; ``"forever"`` decodes without end).
    capacity
        Full-stage owners of each stage: ``"lanes"`` or a number.
    stale, interruptions
        How invalidated batches are handled (``none``: no batch is invalidated), and how many
        invalidations may come from outside (``"forever"``: without end).
    context
        ``FILE.py:Class`` or ``package.module:Class`` of a stage execution context to run over in
        the place of the core's own (issue 4); it has its admission rule inside.

    Raises
    ------
    ScenarioError
        On the first field that is wrong.
    """

    lanes: int = 2
    stages: int = 2
    layers: int = 1
    batches: tuple[int, ...] = (2, 2)
    model: str = "moe"
    admission: str = "ep_ordered"
    stand_in: str = "standard"
    rooms: str = "shared"
    arrivals: str = "burst"
    phases: tuple[tuple[str, ...], ...] | None = None
    ties: bool = True
    workload: str = "finite"
    slots: int = 2
    steps: int | str = 1
    capacity: int | str = CAPACITY_LANES
    stale: str = NOTHING_STALE
    interruptions: int | str = 1
    context: str | None = None

    def __post_init__(self) -> None:
        for name in ("lanes", "stages", "layers"):
            require_count(name, getattr(self, name), least=1)
        if self.phases is not None and len(self.phases) != self.lanes:
            raise ScenarioError(
                f"phases must have one sequence per lane: {self.lanes} lanes, "
                f"but {len(self.phases)} sequences"
            )
        if len(self.batches) != self.lanes:
            raise ScenarioError(
                f"batches must have one entry per lane: {self.lanes} lanes, "
                f"but {len(self.batches)} entries {list(self.batches)}"
            )
        for lane, count in enumerate(self.batches):
            require_count(f"batches of lane {lane}", count, least=0)
        require_one_of("model", self.model, MODELS)
        try:
            admission_rule(self.admission)
            stand_in_rule(self.stand_in)
            room_rule(self.rooms)
        except RuleError as error:
            raise ScenarioError(str(error)) from error
        require_one_of("arrivals", self.arrivals, ARRIVALS)
        if not isinstance(self.ties, bool):
            raise ScenarioError(f"ties must be true or false, got {self.ties!r}")
        if self.phases is not None:
            self._require_phases(self.phases)
        self._require_workload()
        if self.context is not None:
            self._require_context(self.context)

    def _require_context(self, name: object) -> None:
        if not isinstance(name, str):
            raise ScenarioError(f"context must be FILE.py:Class or module:Class, got {name!r}")
        if self.workload == "closed":
            raise ScenarioError(
                "context: a closed workload renames its batches, which a context of another "
                "implementation cannot; leave out context or the closed workload"
            )
        try:
            implementation_of(name, admission_rule(self.admission))
        except ContractInputError as error:
            raise ScenarioError(f"context: {error}") from error

    def _require_interruptions(self) -> None:
        require_interruptions(self.stale, self.interruptions)
        if self.stale != NOTHING_STALE and self.context is not None:
            raise ScenarioError("stale work needs the core's own context; leave out context")

    def _require_workload(self) -> None:
        require_one_of("workload", self.workload, WORKLOADS)
        require_count("slots", self.slots, least=1)
        if self.steps != STEPS_FOREVER:
            require_count("steps", self.steps, 1, f" or {STEPS_FOREVER!r}")
        if self.capacity != CAPACITY_LANES:
            require_count("capacity", self.capacity, 1, f" or {CAPACITY_LANES!r}")
        self._require_interruptions()
        if self.workload != "closed":
            for name in ("slots", "steps"):
                if getattr(self, name) != getattr(Scenario, name):
                    raise ScenarioError(f"{name} are of a closed workload; add workload = closed")
            return
        if self.phases is not None:
            raise ScenarioError("phases are of a finite workload; a closed one has steps")
        if self.batches != (self.slots,) * self.lanes:
            raise ScenarioError(
                f"batches are of a finite workload; a closed one has slots: expected none, "
                f"got {list(self.batches)} for {self.slots} slots a lane"
            )

    def _require_phases(self, phases: tuple[tuple[str, ...], ...]) -> None:
        for lane, (sequence, count) in enumerate(zip(phases, self.batches, strict=True)):
            if len(sequence) != count:
                raise ScenarioError(
                    f"phases of lane {lane} must name one phase per batch: {count} batches, "
                    f"but {len(sequence)} phases {list(sequence)}"
                )
            for phase in sequence:
                require_one_of(f"phase of lane {lane}", phase, ("prefill", "decode"))

    @property
    def interrupted(self) -> bool:
        """Whether batches may become stale by events from outside."""
        return self.stale != NOTHING_STALE

    @property
    def endless(self) -> bool:
        """Whether the work never ends."""
        return self.workload == "closed"

    @property
    def batch_phases(self) -> tuple[tuple[str, ...], ...]:
        """Per lane the phase of each batch."""
        if self.phases is not None:
            return self.phases
        return tuple(("prefill",) * count for count in self.batches)

    @property
    def config(self) -> ReplicaConfig:
        """Shape and rules for the core."""
        return ReplicaConfig(
            lanes=self.lanes,
            stages=self.stages,
            layers=self.layers,
            moe=self.model == "moe",
            admission=admission_rule(self.admission),
            stand_in=stand_in_rule(self.stand_in),
            rooms=room_rule(self.rooms),
            capacity=None if isinstance(self.capacity, str) else self.capacity,
        )

    @property
    def runs_foreign_code(self) -> bool:
        """Whether a rule or context from outside the core takes part."""
        return self.context is not None or any(map(is_own_rule, (self.admission, self.stand_in)))

    @property
    def context_hides(self) -> tuple[str, ...]:
        """Members that the foreign context lacks, so that its state is not seen whole."""
        if self.context is None:
            return ()
        return hidden(implementation_of(self.context, admission_rule(self.admission)))

    @property
    def context_notes(self) -> tuple[str, ...]:
        """How a replica runs over a foreign context; empty for the core's own."""
        if self.context is None:
            return ()
        implementation = implementation_of(self.context, admission_rule(self.admission))
        rule = (
            f"is given the rule {self.admission}"
            if implementation.takes_rule
            else f"has its admission rule inside; tickets are minted as {self.admission} says"
        )
        return tuple(f"the context {note}" for note in (rule, *shortcomings(implementation)))

    def make_replica(self) -> Replica:
        """Build the replica with its workload, before its start."""
        if self.stale != NOTHING_STALE:
            return self._make_interruptible()
        if self.workload == "closed":
            return ClosedReplica(self.config, self._make_slots())
        config, workload = self.config, FiniteWorkload(self.batch_phases, self.arrivals)
        contexts = None if self.context is None else make_contexts(self.context, config)
        return Replica(config, workload, contexts)

    def _make_slots(self) -> ClosedWorkload:
        steps = FOREVER if isinstance(self.steps, str) else self.steps
        return ClosedWorkload(self.lanes, self.slots, steps, self.arrivals)

    def _make_interruptible(self) -> Replica:
        rule = STALE_RULES[self.stale]
        most = UNLIMITED if isinstance(self.interruptions, str) else self.interruptions
        if self.workload == "closed":
            return InterruptibleClosedReplica(self.config, self._make_slots(), rule, most)
        workload = FiniteWorkload(self.batch_phases, self.arrivals)
        return InterruptibleReplica(self.config, workload, rule, most)

    def to_json(self) -> dict[str, Any]:
        """Every field as a plain JSON value."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["batches"] = list(self.batches)
        if self.phases is not None:
            values["phases"] = [list(sequence) for sequence in self.phases]
        return values

    def to_compact(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as plain JSON values."""
        full = self.to_json()
        defaults = {f.name: f.default for f in fields(self) if f.default is not MISSING}
        return {
            name: value for name, value in full.items() if getattr(self, name) != defaults[name]
        }

    @staticmethod
    def of(values: Mapping[str, Any]) -> Scenario:
        """Build a scenario from named values as they stand in a file or on the command line.

        ``batches`` may be one number for all lanes, a list, or ``"2,1"``; ``phases`` a list of
        lists or ``"p,d;d,p"``, and then ``batches`` may be left out, as it is for a closed
        workload. ``steps`` and ``capacity`` may be numbers in words.

        Raises
        ------
        ScenarioError
            On an unknown field or a wrong value.
        """
        known = [f.name for f in fields(Scenario)]
        for name in values:
            if name not in known:
                raise ScenarioError(
                    f"unknown field {name!r} in the scenario; known fields: {', '.join(known)}"
                )
        given = dict(values)
        lanes = given.get("lanes", Scenario.lanes)
        require_count("lanes", lanes, least=1)
        phases = given.get("phases")
        if phases is not None:
            given["phases"] = _parse_phases(phases)
        if "batches" in given:
            given["batches"] = _parse_batches(given["batches"], lanes)
        elif phases is not None:
            given["batches"] = tuple(len(sequence) for sequence in given["phases"])
        elif given.get("workload") == "closed":
            slots = given.get("slots", Scenario.slots)
            require_count("slots", slots, least=1)
            given["batches"] = (slots,) * lanes
        else:
            given["batches"] = (2,) * lanes
        for name in ("steps", "capacity", "interruptions"):
            if isinstance(given.get(name), str) and given[name].isdecimal():
                given[name] = int(given[name])
        return Scenario(**given)


def require_count(name: str, value: object, least: int, alternative: str = "") -> None:
    """Raise :class:`ScenarioError` unless the value is a whole number from ``least`` on.

    Beyond :data:`MOST` nothing can be explored, and building it would only exhaust the machine.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        expected = f"a whole number of at least {least}{alternative}"
        raise ScenarioError(f"{name} must be {expected}, got {value!r}")
    if value > MOST:
        raise ScenarioError(f"{name} must be at most {MOST:,}, got {value}")


def require_one_of(name: str, value: object, known: Sequence[str] | Mapping[str, Any]) -> None:
    """Raise :class:`ScenarioError` unless the value is one of the known names."""
    if not isinstance(value, str) or value not in known:
        raise ScenarioError(f"unknown {name} {value!r}; expected one of: {', '.join(known)}")


def require_interruptions(stale: str, interruptions: int | str) -> None:
    """Raise :class:`ScenarioError` unless rule and number of invalidations can be."""
    require_one_of("stale", stale, (NOTHING_STALE, *STALE_RULES))
    if interruptions != STEPS_FOREVER:
        require_count("interruptions", interruptions, 1, f" or {STEPS_FOREVER!r}")
    if stale == NOTHING_STALE and interruptions != 1:
        raise ScenarioError("interruptions need a rule for stale work, such as stale = proper")


def _parse_batches(value: object, lanes: int) -> tuple[int, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,) * lanes
    if isinstance(value, str):
        words = value.split(",")
        try:
            numbers = tuple(int(word) for word in words)
        except ValueError:
            raise ScenarioError(
                f"batches must be a number or numbers separated by commas, got {value!r}"
            ) from None
        return numbers * lanes if len(numbers) == 1 else numbers
    if isinstance(value, list | tuple):
        return tuple(value)
    raise ScenarioError(f"batches must be a number or one number per lane, got {value!r}")


def _parse_phases(value: object) -> tuple[tuple[str, ...], ...]:
    if isinstance(value, str):
        value = [[w for w in lane.split(",") if w.strip()] for lane in value.split(";")]
    if not isinstance(value, list | tuple) or not all(isinstance(v, list | tuple) for v in value):
        raise ScenarioError(
            f"phases must be one sequence per lane, such as 'p,d;d,p', got {value!r}"
        )
    sequences = []
    for lane, sequence in enumerate(value):
        for phase in sequence:
            require_one_of(f"phase of lane {lane}", str(phase).strip(), PHASES)
        sequences.append(tuple(PHASES[str(phase).strip()] for phase in sequence))
    return tuple(sequences)


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    ScenarioError
        If it cannot be read or is no TOML, naming the file and the place.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ScenarioError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not valid TOML: {error}") from None
