"""What is kept of a counterexample: a regression test, a catalogue case with its twin."""

from __future__ import annotations

import json
import pprint
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from models.regression import RULES_VARIABLE, to_folder, with_rules
from verify.cli.checking import CheckResult, check_scenario
from verify.cli.dossier import Dossier
from verify.cli.errors import UsageError
from verify.cli.render import scenario_line
from verify.path import decode, encode

_TEST = '''"""Keeps a counterexample of frontier-verify as a test: {classification}.

{line}

{explanation}

{usage}

    frontier-verify replay {path}
"""

from pathlib import Path

from models.regression import Kept

KEPT = Kept(
    # The scenario, with the rules under which it violates.
    scenario={scenario},
    # The schedule, instant by instant, and as a path.
    schedule={schedule},
    path="{path}",
    classification="{classification}",
    # The change of rules that must repair it.
    repair={repair},
    # Files of rules of one's own are named from here.
    folder=str(Path(__file__).parent),
)


def test_no_timing_violates_under_the_rules_in_force():
    KEPT.require_no_violation()


def test_the_schedule_still_shows_the_defect_under_the_recorded_rules():
    KEPT.require_defect()
{repair_test}'''

_REPAIR_TEST = """

def test_the_repair_makes_every_timing_complete():
    KEPT.require_repair()
"""


def rules_text(rules: Mapping[str, str]) -> str:
    """Rules as ``name=value`` pairs separated by commas."""
    return ",".join(f"{name}={value}" for name, value in rules.items())


def _wrap(text: str, width: int = 96) -> str:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def regression_test(dossier: Dossier, repair: Mapping[str, str] | None, folder: Path) -> str:
    """Return a self-contained regression test of a counterexample.

    Parameters
    ----------
    dossier
        The counterexample; it must have an encoded path.
    repair
        Rules under which it must not happen, None if none are known.
    folder
        Folder that the test will stand in: it names rules of one's own from there.
    """
    if dossier.path is None:
        raise UsageError("the schedule has too many ties to encode; shrink it first")
    example = dossier.example
    usage = (
        f"The first test fails as long as the rules in force violate. Set {RULES_VARIABLE} to try "
        f"others"
    ) + (f", such as {RULES_VARIABLE}={rules_text(repair)}, which must pass." if repair else ".")
    schedule = pprint.pformat([[str(event) for event in own] for own in example.schedule], width=84)
    encoded = decode(dossier.path)
    path = encode(replace(encoded, scenario=to_folder(encoded.scenario, folder)))
    named = to_folder(example.scenario.to_json(), folder)
    scenario = pprint.pformat(named, sort_dicts=False, width=84)
    return _TEST.format(
        classification=example.classification,
        line=scenario_line(example.scenario),
        explanation=_wrap(dossier.text),
        usage=_wrap(usage),
        path=path,
        scenario=scenario.replace("\n", "\n    "),
        schedule=schedule.replace("\n", "\n    "),
        repair=json.dumps(dict(repair or {})),
        repair_test=_REPAIR_TEST if repair else "",
    )


def _toml_value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return str(value)


def _table(values: Mapping[str, Any]) -> str:
    rows = [f"{name} = {_toml_value(v)}" for name, v in values.items() if v is not None]
    return "\n".join(rows)


def _case(title: str, reason: str, twin: str | None, result: CheckResult) -> str:
    data = result.to_json()
    head = {"title": title, "reason": reason, "twin": twin}
    expect = {
        "verdict": data["verdict"],
        "class": data["classification"],
        "states": data["states"],
        "transitions": data["transitions"],
        "depth": data["depth"],
        "violating_states": data["violating_states"] or None,
        "reached": [claim for claim, reached in data["reached"].items() if reached],
    }
    scenario = _table(data["scenario"])
    return f"{_table(head)}\n\n[scenario]\n{scenario}\n\n[expect]\n{_table(expect)}\n"


def case_files(dossier: Dossier, repair: Mapping[str, str] | None, path: Path) -> dict[Path, str]:
    """Return the catalogue case and its twin: file to content.

    Raises
    ------
    UsageError
        If no change of rules is known that repairs the scenario: a case needs a twin.
    """
    if repair is None:
        raise UsageError("no change of rules repairs the scenario, and a case needs a twin")
    example = dossier.example
    twin = path.with_name(f"{path.stem}_repaired.toml")
    violated = check_scenario(example.scenario)
    repaired_scenario = with_rules(example.scenario, repair)
    holds = check_scenario(repaired_scenario)
    changed = rules_text(repair)
    return {
        path: _case(
            f"{example.classification}: {scenario_line(example.scenario)}",
            dossier.text,
            twin.stem,
            violated,
        ),
        twin: _case(
            f"Repaired by {changed}: {scenario_line(repaired_scenario)}",
            f"Twin of {path.stem}, one change away: {changed}.",
            None,
            holds,
        ),
    }
