"""Group scenarios: the ``DECODE_FFN`` stage fed by producers of groups (PROTOCOL.md section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from frontier.events import DENSE, EXPERT
from frontier.ffn import FfnConfig, FfnReplica, ScriptedGroups
from frontier.stale import STALE_RULES, UNLIMITED, InterruptibleFfn
from models.rules import RuleError, admission_rule, is_own_rule
from models.scenario import (
    NOTHING_STALE,
    ScenarioError,
    require_count,
    require_interruptions,
    require_one_of,
)

GROUP_KINDS: Final[Mapping[str, str]] = {"d": DENSE, "e": EXPERT, DENSE: DENSE, EXPERT: EXPERT}


@dataclass(frozen=True)
class GroupScenario:
    """What is checked of queued EP waves (issue 7).

    Parameters
    ----------
    groups
        Per producer, the kinds of its groups in order: ``dense`` or ``expert``.
    ep_size
        EP lanes.
    full_stages
        Full-stage schedulers that share the context: 1 as specified; with more, producer ``p``
        feeds the one of number ``p % full_stages``.
    admission
        Name of the admission rule.
    stale, interruptions
        How invalidated groups are handled, and how many invalidations may come, as of
        :class:`~models.scenario.Scenario`.
    ties
        Whether several events may fall due at the same instant.

    Raises
    ------
    ScenarioError
        On the first field that is wrong.
    """

    groups: tuple[tuple[str, ...], ...]
    ep_size: int = 2
    full_stages: int = 1
    admission: str = "ep_ordered"
    ties: bool = True
    stale: str = NOTHING_STALE
    interruptions: int | str = 1

    def __post_init__(self) -> None:
        require_count("ep_size", self.ep_size, least=1)
        require_count("full_stages", self.full_stages, least=1)
        try:
            admission_rule(self.admission)
        except RuleError as error:
            raise ScenarioError(str(error)) from error
        if not isinstance(self.ties, bool):
            raise ScenarioError(f"ties must be true or false, got {self.ties!r}")
        require_interruptions(self.stale, self.interruptions)
        if not self.groups:
            raise ScenarioError("groups must name the groups of at least one producer, got none")
        for producer, script in enumerate(self.groups):
            if not script:
                raise ScenarioError(f"groups of producer {producer} must not be empty")
            for kind in script:
                require_one_of(f"group kind of producer {producer}", kind, (DENSE, EXPERT))

    @property
    def endless(self) -> bool:
        """Never: scripts end."""
        return False

    @property
    def runs_foreign_code(self) -> bool:
        """Whether an admission rule from outside the core takes part."""
        return is_own_rule(self.admission)

    @property
    def context_hides(self) -> tuple[str, ...]:
        """Nothing: the context is the core's."""
        return ()

    @property
    def context_notes(self) -> tuple[str, ...]:
        """What PROTOCOL.md section 7 leaves open, and how it is taken here."""
        if admission_rule(self.admission).ticket_at == "arrival":
            return ()
        return (
            f"when a group gets its ticket under {self.admission} is not specified; here when the "
            f"first of its schedulers presents it",
        )

    @property
    def config(self) -> FfnConfig:
        """Shape and rule for the core."""
        return FfnConfig(self.ep_size, self.full_stages, admission_rule(self.admission))

    def make_replica(self) -> FfnReplica:
        """Build the stage with its producers, before its start."""
        if self.stale != NOTHING_STALE:
            most = UNLIMITED if isinstance(self.interruptions, str) else self.interruptions
            source = ScriptedGroups(self.groups)
            return InterruptibleFfn(self.config, source, STALE_RULES[self.stale], most)
        return FfnReplica(self.config, ScriptedGroups(self.groups))

    def to_json(self) -> dict[str, Any]:
        """Every field as a plain JSON value."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["groups"] = [list(script) for script in self.groups]
        return values

    def to_compact(self) -> dict[str, Any]:
        """Return the groups, and the other fields that differ from their defaults."""
        return {
            f.name: self.to_json()[f.name]
            for f in fields(self)
            if f.default is MISSING or getattr(self, f.name) != f.default
        }

    @staticmethod
    def of(values: Mapping[str, Any]) -> GroupScenario:
        """Build a scenario from named values as they stand in a file or on the command line.

        ``groups`` is a list of lists, or ``"d,e;e,d"``: producers separated by ``;``.

        Raises
        ------
        ScenarioError
            On an unknown field or a wrong value.
        """
        known = [f.name for f in fields(GroupScenario)]
        for name in values:
            if name not in known:
                raise ScenarioError(
                    f"{name!r} is no field of a scenario of groups; known fields: "
                    f"{', '.join(known)}"
                )
        given = dict(values)
        if isinstance(given.get("interruptions"), str) and given["interruptions"].isdecimal():
            given["interruptions"] = int(given["interruptions"])
        return GroupScenario(**{**given, "groups": _parse_groups(values["groups"])})


def _parse_groups(value: object) -> tuple[tuple[str, ...], ...]:
    if isinstance(value, str):
        value = [script.replace(",", " ").split() for script in value.split(";")]
    if not isinstance(value, list | tuple) or not all(isinstance(v, list | tuple) for v in value):
        raise ScenarioError(
            f"groups must be one sequence per producer, such as 'd,e;e,d', got {value!r}"
        )
    scripts = []
    for producer, script in enumerate(value):
        for kind in script:
            require_one_of(f"group kind of producer {producer}", kind, GROUP_KINDS)
        scripts.append(tuple(GROUP_KINDS[kind] for kind in script))
    return tuple(scripts)
