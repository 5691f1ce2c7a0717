"""The case catalogue: one TOML file per case, with its scenario, expectation and reason."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from models.scenario import ScenarioError, read_toml
from models.subjects import AnyScenario, scenario_of

CASES: Final = Path(__file__).parent / "cases"
_EXPECTATIONS: Final = ("verdict", "class", "states", "transitions", "depth", "violating_states")


@dataclass(frozen=True)
class Expectation:
    """What a case claims; fields that do not apply are None.

    ``depth`` is the number of transitions on a shortest violating schedule; ``reached`` the
    reachability claims without which the verdict would be vacuous.
    """

    verdict: str
    classification: str | None
    states: int
    transitions: int
    depth: int | None
    violating_states: int
    reached: tuple[str, ...]

    def differences(self, found: dict[str, Any]) -> list[str]:
        """Compare with the JSON of a check; one line per difference."""
        wanted: dict[str, Any] = {
            "verdict": self.verdict,
            "classification": self.classification,
            "states": self.states,
            "transitions": self.transitions,
            "depth": self.depth,
            "violating_states": self.violating_states,
        }
        lines = [
            f"{name}: expected {value}, found {found[name]}"
            for name, value in wanted.items()
            if found[name] != value
        ]
        lines += [f"never reached: {c}" for c in self.reached if not found["reached"].get(c)]
        return lines


@dataclass(frozen=True)
class Case:
    """A named scenario with its expectation.

    ``twin`` names the case one change away that holds, for every violated one. ``asked`` and
    ``fairness`` say what is checked, None meaning what is usual for the scenario.
    """

    name: str
    title: str
    reason: str
    scenario: AnyScenario
    expect: Expectation
    twin: str | None
    asked: str | None = None
    fairness: str | None = None


_CASE_FIELDS: Final = ("title", "reason", "scenario", "expect", "twin", "property", "fairness")


def load_case(path: Path) -> Case:
    """Read one case file.

    Raises
    ------
    ScenarioError
        If a table or field is missing or wrong, naming the file.
    """
    content = read_toml(path)
    try:
        expect = content["expect"]
        return Case(
            name=path.stem,
            title=content["title"],
            reason=" ".join(content["reason"].split()),
            scenario=scenario_of(content["scenario"]),
            expect=Expectation(
                verdict=expect["verdict"],
                classification=expect.get("class"),
                states=expect["states"],
                transitions=expect["transitions"],
                depth=expect.get("depth"),
                violating_states=expect.get("violating_states", 0),
                reached=tuple(expect.get("reached", ())),
            ),
            twin=content.get("twin"),
            asked=content.get("property"),
            fairness=content.get("fairness"),
        )
    except KeyError as error:
        raise ScenarioError(f"{path} lacks {error.args[0]!r}") from None
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


@lru_cache(maxsize=1)
def catalogue() -> dict[str, Case]:
    """Every case by name, in order of name."""
    cases = [load_case(path) for path in sorted(CASES.glob("*.toml"))]
    return {case.name: case for case in cases}


def find_case(name: str) -> Case:
    """Return a case of the catalogue.

    Raises
    ------
    ScenarioError
        If there is none, with the closest names.
    """
    cases = catalogue()
    if name in cases:
        return cases[name]
    close = difflib.get_close_matches(name, cases, n=3)
    hint = f"; did you mean {' or '.join(close)}?" if close else "; see frontier-verify cases list"
    raise ScenarioError(f"no case named {name!r} in the catalogue{hint}")


def load_scenario(path: Path) -> AnyScenario:
    """Read a scenario from a TOML file: fields at the top level, or in a table ``[scenario]``.

    Raises
    ------
    ScenarioError
        If it cannot be read, is wrong, names no field at all (a file that was cut short), or has
        something beside the table that nobody would read.
    """
    content = read_toml(path)
    for name in content if "scenario" in content else ():
        if name not in _CASE_FIELDS:
            raise ScenarioError(
                f"{path}: {name!r} stands beside the table [scenario], where nobody reads it; put "
                f"the fields of the scenario into the table"
            )
    values = content.get("scenario", content)
    if not isinstance(values, dict):
        raise ScenarioError(f"{path}: scenario must be a table, got {values!r}")
    if not values:
        raise ScenarioError(f"{path} names no field of a scenario, such as lanes = 2")
    try:
        return scenario_of(values)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def load_question(path: Path) -> tuple[str | None, str | None]:
    """Read what a case file asks, ``property`` and ``fairness``; None for what it leaves open.

    Raises
    ------
    ScenarioError
        If the file cannot be read.
    """
    content = read_toml(path)
    if "scenario" not in content:
        return None, None
    return content.get("property"), content.get("fairness")
