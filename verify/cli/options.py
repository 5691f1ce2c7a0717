"""Scenario options that ``check``, ``simulate`` and others share."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from models.catalogue import find_case, load_question, load_scenario
from models.groups import GroupScenario
from models.scenario import Scenario, ScenarioError
from models.subjects import AnyScenario

_SHAPE = "Shape"
_RULES = "Rules"
_WORK = "Work"
_GROUPS = "Queued EP waves"


def _usual(name: str, scenario: type[Scenario] | type[GroupScenario] = Scenario) -> str:
    """Return what the help shows as the default: that of a scenario that does not name it."""
    (value,) = [f.default for f in fields(scenario) if f.name == name]
    if isinstance(value, tuple):
        return str(value[0])
    return {True: "ties", False: "no-ties"}[value] if isinstance(value, bool) else str(value)


Source = Annotated[
    str | None,
    typer.Argument(metavar="[CASE|FILE.toml]", help="A catalogue case or a scenario file."),
]
Lanes = Annotated[
    int | None,
    typer.Option(help="Attention-DP lanes.", show_default=_usual("lanes"), rich_help_panel=_SHAPE),
]
Stages = Annotated[
    int | None,
    typer.Option(help="Pipeline stages.", show_default=_usual("stages"), rich_help_panel=_SHAPE),
]
Layers = Annotated[
    int | None,
    typer.Option(
        help="Model layers per stage.", show_default=_usual("layers"), rich_help_panel=_SHAPE
    ),
]
Batches = Annotated[
    str | None,
    typer.Option(
        metavar="N|a,b,…",
        help="Batches of every lane, or of each lane in turn.",
        show_default=_usual("batches"),
        rich_help_panel=_WORK,
    ),
]
ModelKind = Annotated[
    str | None,
    typer.Option(
        "--model", help="moe or dense.", show_default=_usual("model"), rich_help_panel=_SHAPE
    ),
]
Admission = Annotated[
    str | None,
    typer.Option(
        help="strict_fifo, lane_aware, ep_ordered, late_ticket, or FILE.py:Name for your own.",
        show_default=_usual("admission"),
        rich_help_panel=_RULES,
    ),
]
StandIn = Annotated[
    str | None,
    typer.Option(
        help="standard, withdraw_joined, blocked_is_idle, or FILE.py:Name for your own.",
        show_default=_usual("stand_in"),
        rich_help_panel=_RULES,
    ),
]
Rooms = Annotated[
    str | None,
    typer.Option(
        help="shared or by_phase.",
        show_default=f"{_usual('rooms')}; of simulated requests by_phase",
        rich_help_panel=_RULES,
    ),
]
Arrivals = Annotated[
    str | None,
    typer.Option(
        help="burst: all at the start; open: each at any time (closed: the first of each slot).",
        show_default=_usual("arrivals"),
        rich_help_panel=_WORK,
    ),
]
Phases = Annotated[
    str | None,
    typer.Option(
        metavar="p,d;d,p", help="Phase of each batch, lane by lane.", rich_help_panel=_WORK
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="d,e;e,d",
        help="Check a DECODE_FFN stage instead: dense and expert groups of each producer.",
        rich_help_panel=_GROUPS,
    ),
]
EpSize = Annotated[
    int | None,
    typer.Option(
        help="EP lanes of the DECODE_FFN stage.",
        show_default=_usual("ep_size", GroupScenario),
        rich_help_panel=_GROUPS,
    ),
]
FullStages = Annotated[
    int | None,
    typer.Option(
        help="Full-stage schedulers that share its context.",
        show_default=_usual("full_stages", GroupScenario),
        rich_help_panel=_GROUPS,
    ),
]
WorkloadKind = Annotated[
    str | None,
    typer.Option(
        "--workload",
        help="finite: the batches, once; closed: slots that recirculate for ever.",
        show_default=_usual("workload"),
        rich_help_panel=_WORK,
    ),
]
Slots = Annotated[
    int | None,
    typer.Option(
        help="Closed: batch slots of each lane.",
        show_default=_usual("slots"),
        rich_help_panel=_WORK,
    ),
]
Steps = Annotated[
    str | None,
    typer.Option(
        metavar="N|forever",
        help="Closed: steps of each request, a prefill and then decodes.",
        show_default=_usual("steps"),
        rich_help_panel=_WORK,
    ),
]
Capacity = Annotated[
    str | None,
    typer.Option(
        metavar="lanes|N",
        help="Full-stage owners of each stage.",
        show_default=_usual("capacity"),
        rich_help_panel=_SHAPE,
    ),
]
Stale = Annotated[
    str | None,
    typer.Option(
        help="Batches may be invalidated in flight; handled as proper, no_cancel, no_wake or "
        "wrong_lane.",
        rich_help_panel=_RULES,
    ),
]
Interruptions = Annotated[
    str | None,
    typer.Option(
        metavar="N|forever",
        help="With --stale: invalidations at most.",
        show_default=_usual("interruptions"),
        rich_help_panel=_WORK,
    ),
]
Ties = Annotated[
    bool | None,
    typer.Option(
        "--ties/--no-ties",
        help="Whether events may fall due at the same instant.",
        show_default=_usual("ties"),
        rich_help_panel=_RULES,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.py:Class",
        help="Run over this stage execution context; it has its admission rule inside. Its API is "
        "checked clause by clause by: frontier-verify contract --impl FILE.py:Class.",
        rich_help_panel=_RULES,
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE|-", help="Write the result as JSON."),
]


def asked_by(source: str) -> tuple[str | None, str | None]:
    """Return the property and the fairness that a case, or a case file, asks of its scenario."""
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        return load_question(path)
    case = find_case(source)
    return case.asked, case.fairness


def load_any_source(source: str) -> AnyScenario:
    """Return the scenario of a file (by its suffix or because it exists) or of a case."""
    path = Path(source)
    if path.suffix == ".toml" or path.is_file():
        return load_scenario(path)
    return find_case(source).scenario


def load_source(source: str) -> Scenario:
    """As :func:`load_any_source`, of lanes.

    Raises
    ------
    ScenarioError
        If it cannot be read, or is a scenario of groups.
    """
    loaded = load_any_source(source)
    if not isinstance(loaded, Scenario):
        raise ScenarioError(f"{source} is a scenario of groups; expected one of lanes")
    return loaded


def scenario_from(source: str | None, options: dict[str, Any]) -> Scenario:
    """Build a scenario of lanes: the source's fields, with the options given put over them.

    A new number of lanes, batches or phases discards what the source says of the others.

    Raises
    ------
    ScenarioError
        If the source cannot be read, is no scenario of lanes, or the fields do not fit together.
    """
    given = {name: value for name, value in options.items() if value is not None}
    base: dict[str, Any] = {}
    if source is not None:
        base = load_source(source).to_json()
        if base["phases"] is None or "batches" in given or "lanes" in given:
            del base["phases"]
        reshaped = {"phases", "lanes", "slots", "workload"} & given.keys()
        if reshaped and "batches" not in given:
            del base["batches"]
    return Scenario.of({**base, **given})


def any_scenario_from(source: str | None, options: dict[str, Any]) -> AnyScenario:
    """As :func:`scenario_from`, and of groups if the options or the source name groups.

    Raises
    ------
    ScenarioError
        Also if fields of lanes and of groups are mixed.
    """
    given = {name: value for name, value in options.items() if value is not None}
    base = load_any_source(source).to_json() if source is not None else {}
    if "groups" not in given and "groups" not in base:
        for name in ("ep_size", "full_stages"):
            if name in given:
                raise ScenarioError(f"{name} is of a scenario of groups; add --groups")
        return scenario_from(source, given)
    if base and "groups" not in base:
        raise ScenarioError(f"{source} is a scenario of lanes; leave out --groups")
    return GroupScenario.of({**base, **given})
