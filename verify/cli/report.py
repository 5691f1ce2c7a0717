"""The HTML report of a counterexample or of a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.explanation import after_instants, explanation_lines
from models.groups import GroupScenario
from models.scenario import Scenario
from models.schedule import Schedule, play
from models.story import tell, tell_known
from verify.cli.checking import CheckResult, Witness
from verify.cli.dossier import Dossier, dossier_of, violation_message
from verify.cli.pictures import lanes_over_time, picture_bytes, waits_picture
from verify.cli.render import scenario_line
from verify.report.page import Drawing, Fact, Page
from verify.waitfor import WaitFor
from verify.waitgraph import NOTHING, mermaid, more_words, shown_arrows

MOST_TIMES = 60
"""Times of a witness that a page lists."""

_SVG = Path("drawing.svg")


def why_lines(dossier: Dossier) -> tuple[str, ...]:
    """Return the explanation of a counterexample, sentence by sentence."""
    return explanation_lines(
        dossier.example.classification,
        dossier.analysis,
        after_instants(len(dossier.example.schedule)),
        violation_message(dossier.played),
    )


def waits_drawing(analysis: WaitFor) -> Drawing:
    """Return the wait-for graph with its description in words."""
    arrows, hidden = shown_arrows(analysis)
    words = [
        f"{arrow.source}, {arrow.label}, "
        + ("which nothing will end" if arrow.target == NOTHING else arrow.target)
        + (" (part of the cycle)" if arrow.in_cycle else "")
        for arrow in arrows
    ]
    words += [more_words(hidden)] if hidden else []
    svg = picture_bytes(waits_picture(analysis, ""), _SVG).decode()
    title = "Who waits for whom" + (" (the cycle is red)" if analysis.cycle else "")
    return Drawing(title, f"Wait-for graph: {'; '.join(words)}", svg)


def _lanes_drawing(dossier: Dossier) -> Drawing:
    witness = dossier.witness
    svg = picture_bytes(lanes_over_time(witness, ""), _SVG).decode()
    title = f"Lanes over time in the timed witness ({witness.assumption.replace('_', ' ')} times)"
    return Drawing(
        title,
        "Lanes over time. The same in words: the steps below; what never ends is hatched red.",
        svg,
    )


def _witness_facts(dossier: Dossier) -> tuple[Fact, ...]:
    witness = dossier.witness
    arrivals = tuple(
        f"lane {lane}: {', '.join(map(str, own))} ms"
        for lane, own in enumerate(witness.arrivals)
        if own
    )
    times = [f"{timed.event}: {timed.milliseconds} ms" for timed in witness.durations]
    if len(times) > MOST_TIMES:
        times[MOST_TIMES:] = [f"and {len(times) - MOST_TIMES} more"]
    facts = [Fact("arrivals", arrivals)] if arrivals else []
    facts.append(Fact("times of the witness", tuple(times)))
    for none in dossier.refused:
        facts.append(Fact(f"why not {none.assumption.replace('_', ' ')} times", none.contradiction))
    return tuple(facts)


def _fate(dossier: Dossier) -> tuple[Fact, ...]:
    story = dossier.story
    return () if story.no_return else (Fact("point of no return", (story.fate,)),)


def dossier_page(dossier: Dossier, facts: tuple[Fact, ...] = ()) -> Page:
    """Return the page of a counterexample."""
    example = dossier.example
    depth = len(example.schedule)
    return Page(
        title=f"{example.classification.replace('_', ' ')} {after_instants(depth)}",
        verdict="violated",
        subtitle=scenario_line(example.scenario),
        why=why_lines(dossier),
        facts=(*facts, *_fate(dossier), *_witness_facts(dossier)),
        drawings=(waits_drawing(dossier.analysis), _lanes_drawing(dossier)),
        story=dossier.story,
        mermaid=mermaid(dossier.analysis),
        command="" if dossier.path is None else f"frontier-verify replay {dossier.path}",
    )


def _counts(data: dict[str, Any]) -> tuple[Fact, ...]:
    reached = tuple(claim for claim, true in data["reached"].items() if true)
    never = tuple(claim for claim, true in data["reached"].items() if not true)
    complete = "the whole graph" if data["complete"] else "a part of the graph"
    facts = [
        Fact(
            "explored", (f"{complete}: {data['states']:,} states, {data['transitions']:,} steps",)
        ),
        Fact("deepest instant", (str(data["max_depth"]),)),
    ]
    if data["violating_states"]:
        facts.append(Fact("violating states", (f"{data['violating_states']:,}",)))
    facts += [Fact("reached", reached)] if reached else []
    facts += [Fact("never happened", never)] if never else []
    return tuple(facts)


def check_page(result: CheckResult) -> Page:
    """Return the page of a check, whatever its verdict."""
    facts = _counts(result.to_json())
    if result.witnesses:
        return _violated_page(result, result.witnesses[0], facts)
    scenario, data = result.scenario, result.to_json()
    if result.verdict_word == "undetermined":
        limit = (f"Neither proved nor refuted: {data['limit']}.", "No violation was seen so far.")
        return Page("not decided", "undetermined", scenario_line(scenario), limit, facts)
    endless = scenario.endless
    goal = "goes on, for any number of requests" if endless else "completes"
    why = (f"Every timing {goal}: all {data['states']:,} states were explored.",)
    story = None
    if isinstance(scenario, Scenario) and not endless:
        story = tell_known(scenario, play(scenario, {}).schedule, None)
    return Page(f"every timing {goal}", "holds", scenario_line(scenario), why, facts, story=story)


def _group_page(scenario: GroupScenario, witness: Witness, facts: tuple[Fact, ...]) -> Page:
    """Return the page of a violation at a stage fed by groups: its instants are facts."""
    instants = tuple(" together with ".join(map(str, instant)) for instant in witness.schedule)
    name = witness.classification.replace("_", " ")
    return Page(
        title=f"{name} {after_instants(len(witness.schedule))}",
        verdict="violated",
        subtitle=scenario_line(scenario),
        why=(witness.text,),
        facts=(*facts, Fact("schedule", instants)),
        drawings=(waits_drawing(witness.wait_for),),
        mermaid=mermaid(witness.wait_for),
        command=f"frontier-verify replay {witness.path}",
    )


def _violated_page(result: CheckResult, witness: Witness, facts: tuple[Fact, ...]) -> Page:
    if isinstance(result.scenario, GroupScenario):
        return _group_page(result.scenario, witness, facts)
    if witness.repeats is None and not result.scenario.interrupted:
        dossier = dossier_of(
            result.scenario, witness.schedule, witness.classification, witness.text
        )
        return dossier_page(dossier, facts)
    return _untimed_page(result.scenario, witness, facts)


def _untimed_page(scenario: Scenario, witness: Witness, facts: tuple[Fact, ...]) -> Page:
    """Return the page of a run that repeats for ever, or to which no times can be given."""
    schedule: Schedule = witness.schedule
    stem = len(schedule) - (witness.repeats or 0)
    name = witness.classification.replace("_", " ")
    title = f"{name} {after_instants(len(schedule))}"
    if witness.repeats:
        title = f"{name}: the last {witness.repeats} of {len(schedule)} instants repeat for ever"
    return Page(
        title=title,
        verdict="violated",
        subtitle=scenario_line(scenario),
        why=(witness.text,),
        facts=facts,
        drawings=(waits_drawing(witness.wait_for),) if witness.wait_for.stuck else (),
        story=tell(scenario, schedule),
        command=f"frontier-verify replay {witness.path}",
        repeats_from=stem + 1 if witness.repeats else None,
    )
