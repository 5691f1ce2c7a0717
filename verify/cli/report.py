"""The HTML report of a counterexample or of a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from models.explanation import after_instants, explanation_lines
from models.instants import Instants, film
from models.sample import sample_run
from models.scenario import Scenario
from models.story import MOST_STEPS, tell_known
from verify.cli.checking import CheckResult, Witness
from verify.cli.dossier import Dossier, dossier_of, violation_message
from verify.cli.pictures import (
    lanes_over_instants,
    lanes_over_time,
    picture_bytes,
    waits_picture,
)
from verify.cli.render import liveness_lines, scenario_line, what_holds
from verify.cli.telling import Telling, telling_of
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


def waits_drawing(analysis: WaitFor, everybody: bool = False) -> Drawing:
    """Return the wait-for graph with its description in words; see :func:`draw_waits`."""
    arrows, hidden = shown_arrows(analysis, everybody)
    words = [
        f"{arrow.source}, {arrow.label}, "
        + ("which nothing will end" if arrow.target == NOTHING else arrow.target)
        + (" (part of the cycle)" if arrow.in_cycle else "")
        for arrow in arrows
    ]
    words += [more_words(hidden)] if hidden else []
    svg = picture_bytes(waits_picture(analysis, "", everybody), _SVG).decode()
    title = "Who waits for whom" + (" (the cycle is red)" if analysis.cycle else "")
    title += " where the cycle begins" if everybody else ""
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
    why = (f"{what_holds(result)}: all {data['states']:,} states were explored.",)
    sample = sample_run(scenario)
    repeats = sample.repeats or None
    return Page(
        title=what_holds(result),
        verdict="holds vacuously" if result.vacuous else "holds",
        subtitle=scenario_line(scenario),
        why=why,
        facts=(*facts, *_liveness_facts(result)),
        drawings=(
            _instants_drawing(
                film(scenario, sample.schedule, repeats, MOST_STEPS), "One run among all timings"
            ),
        ),
        story=tell_known(scenario, sample.schedule, None),
        repeats_from=len(sample.schedule) - repeats + 1 if repeats else None,
    )


def _violated_page(result: CheckResult, witness: Witness, facts: tuple[Fact, ...]) -> Page:
    scenario = result.scenario
    if isinstance(scenario, Scenario) and not scenario.interrupted and witness.repeats is None:
        dossier = dossier_of(scenario, witness.schedule, witness.classification, witness.text)
        return dossier_page(dossier, facts)
    return telling_page(telling_of(scenario, witness), (*facts, *_liveness_facts(result)))


def _liveness_facts(result: CheckResult) -> tuple[Fact, ...]:
    """Return the verdict on each liveness property, with its control, as facts."""
    if result.liveness is None:
        return ()
    return tuple(Fact(name, lines) for name, lines in liveness_lines(result).items())


def telling_page(telling: Telling, facts: tuple[Fact, ...] = ()) -> Page:
    """Return the page of a run that is told without times."""
    witness = telling.witness
    everybody = bool(telling.repeats)
    return Page(
        title=telling.title,
        verdict="violated",
        subtitle=scenario_line(telling.scenario),
        why=witness.lines,
        facts=facts,
        drawings=(
            _instants_drawing(telling.film),
            *([waits_drawing(witness.wait_for, everybody)] if witness.wait_for.waits else []),
        ),
        story=telling.story,
        mermaid=mermaid(witness.wait_for, everybody) if witness.wait_for.waits else "",
        command=f"frontier-verify replay {witness.path}",
        repeats_from=telling.stem + 1 if telling.repeats else None,
    )


def _instants_drawing(film: Instants, title: str = "Who does what") -> Drawing:
    """Return who did what from instant to instant, with its description in words."""
    svg = picture_bytes(lanes_over_instants(film, ""), _SVG).decode()
    never = dict.fromkeys(
        f"{s.doing.track}: {s.doing.label}" for s in film.stretches if not s.finished
    )
    words = f"Lanes over instants. What never ends: {'; '.join(never) or 'nothing'}."
    title += ", instant by instant"
    if film.period:
        title += f" (instants {film.entry + 1} to {film.entry + film.period} repeat for ever)"
        words += f" From instant {film.entry + 1} on the cycle repeats for ever."
    return Drawing(title, words, svg)
