"""Kept counterexamples: what an emitted regression test calls (issue 5).

A kept counterexample fails as long as the rules in force show its violation. The rules in force
are those of its scenario, unless the environment variable ``FRONTIER_VERIFY_RULES`` names others
(``stand_in=withdraw_joined,admission=ep_ordered``, or ``context=FILE.py:Class`` for an
implementation of one's own); so the same test shows the defect before a
repair and guards it afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from models.explanation import after_instants, explain
from models.scenario import NOTHING_STALE, Scenario, ScenarioError
from models.counterexample import Counterexample, counterexample_of
from models.schedule import Played, play, ranks_of, walk_path
from models.shrinking import liveness_of
from models.subjects import AnyScenario
from models.trials import Trials, Wanted
from verify.path import decode
from verify.shrink import Rejection

RULES_VARIABLE: Final = "FRONTIER_VERIFY_RULES"
RULE_FIELDS: Final = ("admission", "stand_in", "rooms", "context", "stale")
MAX_STATES: Final = 200_000

REPAIRS: Final[tuple[dict[str, str], ...]] = (
    {"stale": "proper"},
    {"admission": "ep_ordered"},
    {"stand_in": "withdraw_joined"},
    {"rooms": "shared"},
    {"admission": "lane_aware"},
    {"admission": "late_ticket"},
    {"admission": "strict_fifo"},
    {"stand_in": "standard"},
    {"stand_in": "blocked_is_idle"},
    {"admission": "ep_ordered", "stand_in": "withdraw_joined"},
    {"admission": "ep_ordered", "rooms": "shared"},
    {"stand_in": "withdraw_joined", "rooms": "shared"},
    {"admission": "ep_ordered", "stand_in": "withdraw_joined", "rooms": "shared"},
)
"""Changes of rules in the order in which they are tried: the adopted ones first, then single
changes, then several at once."""


def with_rules(scenario: AnyScenario, rules: Mapping[str, str]) -> AnyScenario:
    """Return the scenario under other rules.

    Raises
    ------
    ScenarioError
        If a name is no rule field of the scenario or a value no rule.
    """
    known = [name for name in RULE_FIELDS if hasattr(scenario, name)]
    for name in rules:
        if name not in known:
            raise ScenarioError(f"unknown rule {name!r}; expected one of: {', '.join(known)}")
    return replace(scenario, **dict(rules))  # type: ignore[arg-type]


def parse_rules(text: str) -> dict[str, str]:
    """Read ``name=value`` pairs separated by commas.

    Raises
    ------
    ScenarioError
        If a pair has no ``=``.
    """
    pairs = [pair.split("=", 1) for pair in text.split(",") if pair.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ScenarioError(f"rules must look like stand_in=withdraw_joined, got {text!r}")
    return {name.strip(): value.strip() for name, value in pairs}


def decides(
    scenario: AnyScenario,
    max_states: int,
    liveness: tuple[str, ...] | None = None,
    fairness: str = "weak",
) -> Counterexample | Rejection:
    """Explore every timing of a scenario: a shortest counterexample, or why there is none.

    Parameters
    ----------
    scenario, max_states
        What is explored, and how many of its states at most.
    liveness, fairness
        Properties of runs that are asked (None: those that a check asks by itself).
    """
    asked = liveness_of(scenario) if liveness is None else liveness
    return Trials(Wanted(liveness=asked, fairness=fairness), max_states).search(scenario)


def find_repair(
    scenario: AnyScenario, max_states: int = MAX_STATES, fairness: str = "weak"
) -> dict[str, str] | None:
    """Return the first change of rules under which no timing of the scenario violates."""
    for repair in REPAIRS:
        if not all(_changes(scenario, name, rule) for name, rule in repair.items()):
            continue
        found = decides(with_rules(scenario, repair), max_states, fairness=fairness)
        if isinstance(found, Rejection) and found.proved:
            return repair
    return None


def _changes(scenario: AnyScenario, name: str, rule: str) -> bool:
    """Whether a scenario has this kind of rule, another one, and knows what it is about."""
    present = getattr(scenario, name, None)
    return present not in (None, rule) and not (name == "stale" and present == NOTHING_STALE)


@dataclass(frozen=True)
class Kept:
    """A counterexample to keep.

    ``path`` is the encoded schedule, ``classification`` the violation it ends in, ``repair`` the
    rules under which it must not happen (empty: no repair is known).
    """

    scenario: Mapping[str, Any]
    path: str
    classification: str
    repair: Mapping[str, str]

    def _recorded(self) -> Played:
        encoded = decode(self.path)
        scenario = Scenario.of(self.scenario)
        if Scenario.of(encoded.scenario) != scenario:
            raise AssertionError("the path belongs to another scenario than the test")
        return walk_path(scenario, encoded)

    def require_defect(self) -> None:
        """Fail unless the recorded schedule still ends in the recorded violation."""
        found = self._recorded().classification
        if found != self.classification:
            raise AssertionError(
                f"the recorded schedule ends in {found or 'no violation'}, not in "
                f"{self.classification}: the protocol has changed, record it anew"
            )

    def rules_in_force(self) -> dict[str, str]:
        """Rules that the test is run under: none changed, or what the environment says."""
        return parse_rules(os.environ.get(RULES_VARIABLE, ""))

    def require_no_violation(self, rules: Mapping[str, str] | None = None) -> None:
        """Fail if the recorded schedule, or any timing, violates under the rules in force."""
        recorded = self._recorded()
        given = self.rules_in_force() if rules is None else rules
        scenario = with_rules(recorded.scenario, given)
        ranks = ranks_of(recorded.schedule, recorded.scenario.lanes)
        found = counterexample_of(play(scenario, ranks))
        if found is not None:
            raise AssertionError(self._message(found, "the recorded schedule"))
        decided = decides(scenario, MAX_STATES)
        if isinstance(decided, Counterexample):
            raise AssertionError(self._message(decided, "another schedule"))
        if not decided.proved:
            raise AssertionError(f"undetermined: {decided.reason}")

    def require_repair(self) -> None:
        """Fail unless the named repair makes every timing complete."""
        self.require_no_violation(self.repair)

    def _message(self, found: Counterexample, what: str) -> str:
        ranks = ranks_of(found.schedule, found.scenario.lanes)
        played = play(found.scenario, ranks)
        text = explain(
            found.classification,
            played.analysis(),
            after_instants(len(found.schedule)),
            str(played.run.failure or "no event is left, but work is unfinished"),
        )
        repair = ",".join(f"{name}={value}" for name, value in self.repair.items())
        lines = [f"{what} ends in {found.classification}.", text]
        if repair:
            lines.append(f"repaired by {repair}: set {RULES_VARIABLE}={repair}")
        lines.append(f"replay: frontier-verify replay {self.path}")
        return "\n".join(lines)
