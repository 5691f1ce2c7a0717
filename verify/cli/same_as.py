"""``frontier-verify check --same-as RULE``: whether a change of admission rule can be observed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from frontier.events import Event
from models.explanation import Narrator
from models.quiescent import QuiescentModel, QuiescentRun
from models.subjects import AnyScenario, stages_of
from models.view import describe_event
from verify.cli.errors import UNDETERMINED
from verify.cli.render import out, print_scenario, stage_table, verdict_markup
from verify.equality import Differ, Same, Undecided, compare
from verify.limits import Limits
from verify.path import EncodedPath, encode, fingerprint


@dataclass(frozen=True)
class Side:
    """One rule's live run of the schedule that tells the rules apart."""

    rule: str
    path: str
    notes: tuple[str, ...]
    stages: list[dict[str, Any]]


@dataclass(frozen=True)
class Comparison:
    """Whether a scenario's graph is that of the same scenario under another admission rule.

    ``schedule`` and ``sides`` are of a difference, else empty.
    """

    scenario: AnyScenario
    rule: str
    found: Same | Differ[Any] | Undecided
    schedule: tuple[tuple[Event, ...], ...]
    sides: tuple[Side, ...]

    @property
    def verdict(self) -> str:
        """``holds`` (one graph), ``violated`` or ``undetermined``."""
        names = {Same: "holds", Differ: "violated", Undecided: "undetermined"}
        return names[type(self.found)]

    @property
    def exit_code(self) -> int:
        """0 one graph, 1 a difference, 3 undetermined."""
        return {"holds": 0, "violated": 1, "undetermined": UNDETERMINED}[self.verdict]

    def to_json(self) -> dict[str, Any]:
        """Every field as plain JSON values."""
        differs = isinstance(self.found, Differ)
        return {
            "scenario": self.scenario.to_json(),
            "same_as": self.rule,
            "verdict": self.verdict,
            "violation": "same_graph" if differs else None,
            "states": self.found.states,
            "transitions": self.found.transitions,
            "depth": len(self.schedule) if differs else None,
            "limit": self.found.limit if isinstance(self.found, Undecided) else None,
            "path": self.sides[0].path if differs else None,
            "schedule": [[describe_event(e) for e in i] for i in self.schedule]
            if differs
            else None,
            "sides": [
                {"admission": s.rule, "path": s.path, "notes": list(s.notes), "stages": s.stages}
                for s in self.sides
            ],
        }


def _play(scenario: AnyScenario, found: Differ[Any]) -> tuple[Side, tuple[tuple[Event, ...], ...]]:
    narrator = Narrator()
    model = QuiescentModel(scenario.make_replica, scenario.ties)
    run: QuiescentRun = model.begin((narrator,))
    schedule = []
    for number in found.actions:
        action = model.actions(run.state())[number]
        schedule.append(tuple(run.pending[position] for position in action))
        narrator.take()
        run.fire(action)
    notes = tuple(f"{event}" + (f": {note}" if note else "") for event, note in narrator.take())
    path = encode(
        EncodedPath(scenario.to_compact(), found.initial, found.actions, fingerprint(run.state()))
    )
    return Side(scenario.admission, path, notes, stages_of(run.system)), tuple(schedule)


def check_same_as(scenario: AnyScenario, rule: str, limits: Limits) -> Comparison:
    """Compare a scenario's graph with that under another admission rule.

    Raises
    ------
    ScenarioError
        If the rule is unknown.
    """
    other = replace(scenario, admission=rule)
    models = [QuiescentModel(s.make_replica, s.ties) for s in (scenario, other)]
    found = compare(models[0], models[1], limits)
    if not isinstance(found, Differ):
        return Comparison(scenario, rule, found, (), ())
    own, schedule = _play(scenario, found)
    against, _ = _play(other, found)
    return Comparison(scenario, rule, found, schedule, (own, against))


def print_comparison(comparison: Comparison) -> None:
    """Print the verdict, and the schedule and both outcomes of a difference."""
    found, rule = comparison.found, comparison.rule
    print_scenario(comparison.scenario)
    seen = f"{found.states:,} states, {found.transitions:,} transitions"
    verdict = verdict_markup(comparison.verdict)
    if isinstance(found, Same):
        out.print(
            f"{verdict}: the graph under {rule} is the same, transition by transition ({seen})"
        )
        return
    if isinstance(found, Undecided):
        out.print(f"{verdict}: {found.limit}; {seen}, no difference so far")
        return
    instants = len(comparison.schedule)
    out.print(f"{verdict}: {rule} can be told apart after {instants} instants ({seen} before)")
    out.print("\n[bold]Schedule[/] (what falls due, instant by instant)")
    for number, instant in enumerate(comparison.schedule, start=1):
        out.print(f"  {number:>3}  " + "  together with  ".join(map(str, instant)))
    for side in comparison.sides:
        out.print(f"\n[bold]The last instant under {side.rule}[/]")
        for note in side.notes:
            out.print(f"     {note}")
        out.print(stage_table(side.stages))
        out.print(f"frontier-verify replay {side.path}")
