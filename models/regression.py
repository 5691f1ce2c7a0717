"""Kept counterexamples: what an emitted regression test calls (issue 5).

A kept counterexample fails as long as the rules in force show its violation. The rules in force
are those of its scenario, unless the environment variable ``FRONTIER_VERIFY_RULES`` names others
(``stand_in=withdraw_joined,admission=ep_ordered``, or ``context=FILE.py:Class`` for an
implementation of one's own); so the same test shows the defect before a
repair and guards it afterwards.
"""

from __future__ import annotations

import os
import unittest
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from models.counterexample import Counterexample, counterexample_of
from models.quiescent import QuiescentRun
from models.recorded import recorded_counterexample
from models.scenario import NOTHING_STALE, Scenario, ScenarioError
from models.schedule import Instant, Played, play, play_exactly, ranks_of, walk_path
from models.shrinking import liveness_of
from models.subjects import AnyScenario, scenario_of
from models.trials import Trials, Wanted
from models.wakeups import schedule_lines
from verify.path import PathError, decode
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
    runs_first: bool = False,
) -> Counterexample | Rejection:
    """Explore every timing of a scenario: a shortest counterexample, or why there is none.

    Parameters
    ----------
    scenario, max_states
        What is explored, and how many of its states at most.
    liveness, fairness
        Properties of runs that are asked (None: those that a check asks by itself).
    runs_first
        Whether a violating run is told before a bad state.
    """
    asked = liveness_of(scenario) if liveness is None else liveness
    if runs_first:
        runs = Wanted(liveness=asked, fairness=fairness, only_runs=True)
        found = Trials(runs, max_states).search(scenario)
        if isinstance(found, Counterexample):
            return found
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


def from_folder(rules: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return rule fields whose files are named from a folder, for use anywhere."""
    return {
        name: str(folder / value) if _is_file_rule(name, value) else value
        for name, value in rules.items()
    }


def to_folder(rules: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return rule fields whose files are named from here, for use in a folder."""
    named = {}
    for name, value in rules.items():
        if _is_file_rule(name, value):
            file, _, attribute = str(value).rpartition(":")
            there = Path(os.path.relpath(Path(file).resolve(), folder.resolve()))
            value = f"{there.as_posix()}:{attribute}"
        named[name] = value
    return named


def _is_file_rule(name: str, value: Any) -> bool:
    return name in RULE_FIELDS and isinstance(value, str) and ".py:" in value


class RuleChanged(unittest.SkipTest):
    """The rule that was recorded answers otherwise now, so the recorded defect cannot be shown.

    Test runners report it as a skipped test, with its reason.
    """


@dataclass(frozen=True)
class Kept:
    """A counterexample to keep.

    Parameters
    ----------
    scenario
        Fields of the scenario, with the rules under which it violates.
    path
        The encoded schedule.
    classification
        The violation that it ends in.
    repair
        Rules under which it must not happen (empty: no repair is known).
    schedule
        The schedule in words, instant by instant; it is what is still known of it if a rule of
        one's own has changed.
    folder
        Folder from which files of rules of one's own are named.
    """

    scenario: Mapping[str, Any]
    path: str
    classification: str
    repair: Mapping[str, str]
    schedule: Sequence[Sequence[str]] = ()
    folder: str = "."

    def _scenario(self) -> AnyScenario:
        encoded = decode(self.path)
        folder = Path(self.folder)
        scenario = scenario_of(from_folder(self.scenario, folder))
        if scenario_of(from_folder(encoded.scenario, folder)) != scenario:
            raise AssertionError("the path belongs to another scenario than the test")
        return scenario

    def require_defect(self) -> None:
        """Fail unless the recorded schedule still ends in the recorded violation.

        Raises
        ------
        RuleChanged
            If a rule of one's own answers otherwise than when this was recorded.
        """
        scenario = self._scenario()
        try:
            example = recorded_counterexample(scenario, decode(self.path), MAX_STATES)
        except PathError as error:
            if scenario.runs_foreign_code:
                raise RuleChanged(self._what_changed(scenario)) from None
            raise AssertionError(f"{error}; record it anew") from None
        found = None if example is None else example.classification
        if found == self.classification:
            return
        if scenario.runs_foreign_code:
            raise RuleChanged(self._what_changed(scenario))
        raise AssertionError(
            f"the recorded schedule ends in {found or 'no violation'}, not in "
            f"{self.classification}: the protocol has changed, record it anew"
        )

    def _what_changed(self, scenario: AnyScenario) -> str:
        own = ", ".join(v for n, v in self.scenario.items() if _is_file_rule(n, v))
        text = f"{own} answers otherwise than when this was recorded: "
        played, refused = play_words(scenario, self.schedule)
        if refused is not None:
            return text + refused + "; the first test says whether nothing violates any more"
        found = counterexample_of(played)
        end = "no violation" if found is None else found.classification
        return text + f"the schedule now ends in {end}, not in {self.classification}"

    def rules_in_force(self) -> dict[str, str]:
        """Rules that the test is run under: none changed, or what the environment says."""
        return parse_rules(os.environ.get(RULES_VARIABLE, ""))

    def require_no_violation(self, rules: Mapping[str, str] | None = None) -> None:
        """Fail if the recorded schedule, or any timing, violates under the rules in force."""
        recorded = self._scenario()
        given = self.rules_in_force() if rules is None else rules
        scenario = with_rules(recorded, given)
        found = self._carried_over(recorded, scenario)
        if found is not None:
            raise AssertionError(self._message(found, "the recorded schedule"))
        decided = decides(scenario, MAX_STATES)
        if isinstance(decided, Counterexample):
            raise AssertionError(self._message(decided, "another schedule"))
        if not decided.proved:
            raise AssertionError(f"undetermined: {decided.reason}")

    def _carried_over(self, recorded: AnyScenario, scenario: AnyScenario) -> Counterexample | None:
        """Carry the recorded schedule over to other rules, where that can be done."""
        finite = isinstance(recorded, Scenario) and not recorded.endless
        if not finite or not isinstance(scenario, Scenario):
            return None
        try:
            schedule = walk_path(recorded, decode(self.path)).schedule
        except PathError:
            schedule = play_words(recorded, self.schedule)[0].schedule
        return counterexample_of(play(scenario, ranks_of(schedule, scenario.lanes)))

    def require_repair(self) -> None:
        """Fail unless the named repair leaves no timing that violates."""
        self.require_no_violation(self.repair)

    def _message(self, found: Counterexample, what: str) -> str:
        played = play_exactly(found.scenario, found.schedule)
        text = " ".join(
            schedule_lines(
                found.scenario,
                found.schedule,
                found.classification,
                played.analysis(),
                found.violated.message,
            )
        )
        repair = ",".join(f"{name}={value}" for name, value in self.repair.items())
        lines = [f"{what} ends in {found.classification}.", text]
        if repair:
            lines.append(f"repaired by {repair}: set {RULES_VARIABLE}={repair}")
        lines.append(f"replay: frontier-verify replay {self.path}")
        return "\n".join(lines)


def play_words(
    scenario: AnyScenario, schedule: Sequence[Sequence[str]]
) -> tuple[Played, str | None]:
    """Fire instants given in words, as far as they go.

    Returns
    -------
    tuple of Played and str or None
        The run, and why it could not go on, None if all of it was fired.
    """
    run = QuiescentRun(scenario.make_replica())
    run.begin()
    fired: list[Instant] = []
    refused = None
    for number, words in enumerate(schedule, start=1):
        known = [str(event) for event in run.pending]
        missing = [word for word in words if word not in known]
        if missing:
            refused = (
                f"the schedule is not possible any more, in instant {number} "
                f"{' and '.join(missing)} cannot fall due"
            )
            break
        positions = tuple(sorted(known.index(word) for word in words))
        fired.append(tuple(run.pending[at] for at in positions))
        run.fire(positions)
    return Played(scenario, tuple(fired), run), refused
