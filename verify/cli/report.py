"""The HTML report of a counterexample or of a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models.counterexample import Counterexample, Violated, signature_of
from models.explanation import after_instants
from models.scenario import Scenario
from models.schedule import play
from models.story import tell_known
from models.witness import ROUNDS
from verify.cli.checking import CheckResult, Witness
from verify.cli.dossier import Dossier, dossier_of
from verify.cli.pictures import lanes_over_time, picture_bytes, waits_picture
from verify.cli.render import scenario_line
from verify.report.page import Drawing, Fact, Page
from verify.waitfor import WaitFor
from verify.waitgraph import NOTHING, mermaid, more_words, shown_arrows

MOST_TIMES = 60
"""Times of a witness that a page lists."""

_SVG = Path("drawing.svg")


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
    if witness.period is not None:
        words = f"{witness.period} ms a round; {ROUNDS} rounds are simulated, all alike"
        facts.append(Fact("period", (words,)))
    facts.append(Fact("times of the witness", tuple(times)))
    for none in dossier.refused:
        facts.append(Fact(f"why not {none.assumption.replace('_', ' ')} times", none.contradiction))
    return tuple(facts)


def _fate(dossier: Dossier) -> tuple[Fact, ...]:
    told = dossier.story.no_return or not dossier.fate
    return () if told else (Fact("point of no return", (dossier.fate,)),)


def _title(example: Counterexample) -> str:
    name = example.classification.replace("_", " ")
    if not example.repeats:
        return f"{name} {after_instants(len(example.schedule))}"
    instants = "instant repeats" if example.repeats == 1 else f"{example.repeats} instants repeat"
    return f"{name}: the last {instants} for ever"


def _drawings(dossier: Dossier) -> Iterator[Drawing]:
    if dossier.analysis.stuck:
        yield waits_drawing(dossier.analysis)
    if isinstance(dossier.example.scenario, Scenario):
        yield _lanes_drawing(dossier)


def dossier_page(dossier: Dossier, facts: tuple[Fact, ...] = ()) -> Page:
    """Return the page of a counterexample."""
    example = dossier.example
    stem = len(example.schedule) - example.repeats
    return Page(
        title=_title(example),
        verdict="violated",
        subtitle=scenario_line(example.scenario),
        why=dossier.lines,
        facts=(*facts, *_fate(dossier), *_witness_facts(dossier)),
        drawings=tuple(_drawings(dossier)),
        story=dossier.story,
        mermaid=mermaid(dossier.analysis) if dossier.analysis.stuck else "",
        command="" if dossier.path is None else f"frontier-verify replay {dossier.path}",
        repeats_from=stem + 1 if example.repeats else None,
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


def _violated_page(result: CheckResult, witness: Witness, facts: tuple[Fact, ...]) -> Page:
    violation = witness.violation
    violated = Violated(violation.property_name, violation.message)
    example = Counterexample(
        result.scenario,
        witness.schedule,
        witness.classification,
        signature_of(witness.wait_for),
        violated,
        witness.repeats or 0,
        result.question.fairness,
    )
    return dossier_page(dossier_of(example, witness.lines), facts)
