"""The HTML report of a counterexample or of a check."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frontier.durations import MILLISECOND
from models.counterexample import Counterexample, Violated, signature_of
from models.explanation import after_instants
from models.instants import Instants, film
from models.sample import sample_run
from models.scenario import Scenario
from models.story import MOST_STEPS, tell_known
from models.subjects import AnyScenario
from models.witness import ROUNDS, TimedSchedule, Witness
from verify.cli.checking import CheckResult
from verify.cli.checking import Witness as Shown
from verify.cli.dossier import Dossier, dossier_of
from verify.cli.pictures import (
    lanes_over_instants,
    lanes_over_time,
    picture_bytes,
    waits_picture,
)
from verify.cli.render import liveness_lines, scenario_line, what_holds
from verify.report.page import Drawing, Fact, Page
from verify.waitfor import WaitFor
from verify.waitgraph import NOTHING, mermaid, shown_arrows

MOST_TIMES = 60
"""Times of a run or witness that a page lists."""

_SVG = Path("drawing.svg")


def waits_drawing(analysis: WaitFor, everybody: bool = False, when: str = "") -> Drawing:
    """Return the wait-for graph with its description in words; see :func:`draw_waits`.

    ``when`` says of which state it is, if not of the last one.
    """
    shown = shown_arrows(analysis, everybody)
    words = [
        f"{arrow.source}, {arrow.label}, "
        + ("which nothing will end" if arrow.target == NOTHING else arrow.target)
        + (" (part of the cycle)" if arrow.in_cycle else "")
        for arrow in shown.arrows
    ]
    words += [shown.more] if shown.more else []
    svg = picture_bytes(waits_picture(analysis, "", everybody), _SVG).decode()
    title = "Who waits for whom" + (" (the cycle is red)" if analysis.cycle else "")
    return Drawing(title + when, f"Wait-for graph: {'; '.join(words)}", svg)


def _recorded_drawing(recorded: TimedSchedule) -> Drawing:
    svg = picture_bytes(lanes_over_time(recorded, ""), _SVG).decode()
    return Drawing(
        "Lanes over time in the recorded run",
        "Lanes over time, as the run in the event log had them. The same in words: the steps "
        "below; what never ends is hatched red.",
        svg,
    )


def _lanes_drawing(witness: Witness) -> Drawing:
    svg = picture_bytes(lanes_over_time(witness.timed, ""), _SVG).decode()
    assumed = witness.assumption.replace("_", " ")
    title = f"Lanes over time in the timed witness: computed whole milliseconds ({assumed} times)"
    return Drawing(
        title,
        "Lanes over time. The times are computed, the smallest under which the simulator does this "
        "schedule; a run read from a log had its own. The same in words: the steps below; what "
        "never ends is hatched red.",
        svg,
    )


def _recorded_facts(recorded: TimedSchedule) -> tuple[Fact, ...]:
    arrivals = tuple(
        f"lane {lane}: {', '.join(_milliseconds(time) for time in own)} ms"
        for lane, own in enumerate(recorded.arrivals)
        if own
    )
    times = [f"{event}: {_milliseconds(takes)} ms" for event, takes in recorded.durations]
    facts = [Fact("arrivals", arrivals)] if arrivals else []
    return (*facts, Fact("times of the run", _first_times(times)))


def _milliseconds(nanoseconds: int) -> str:
    """Nanoseconds in milliseconds, to the last digit."""
    return f"{nanoseconds / MILLISECOND:.6f}".rstrip("0").rstrip(".")


def _first_times(times: list[str]) -> tuple[str, ...]:
    more = len(times) - MOST_TIMES
    return (*times[:MOST_TIMES], *([f"and {more} more"] if more > 0 else []))


def _witness_facts(dossier: Dossier) -> tuple[Fact, ...]:
    if dossier.recorded is not None:
        return _recorded_facts(dossier.recorded)
    witness = dossier.witness
    if witness is None:
        return (Fact("no times", dossier.refused[-1].contradiction),)
    arrivals = tuple(
        f"lane {lane}: {', '.join(map(str, own))} ms"
        for lane, own in enumerate(witness.arrivals)
        if own
    )
    times = [f"{timed.event}: {timed.milliseconds} ms" for timed in witness.durations]
    facts = [Fact("arrivals", arrivals)] if arrivals else []
    if witness.period is not None:
        words = f"{witness.period} ms a round; {ROUNDS} rounds are simulated, all alike"
        facts.append(Fact("period", (words,)))
    facts.append(Fact("times of the witness", _first_times(times)))
    for none in dossier.refused:
        facts.append(Fact(f"why not {none.assumption.replace('_', ' ')} times", none.contradiction))
    return tuple(facts)


def _notes(scenario: AnyScenario) -> tuple[Fact, ...]:
    """Say how a context of one's own is run, where it is."""
    notes = scenario.context_notes
    return (Fact("note", notes),) if notes else ()


def _fate(dossier: Dossier) -> tuple[Fact, ...]:
    told = dossier.story.no_return or not dossier.fate
    return () if told else (Fact("point of no return", (dossier.fate,)),)


def _title(example: Counterexample) -> str:
    name = example.classification.replace("_", " ")
    stem = len(example.schedule) - example.repeats
    if not example.repeats:
        return f"{name} {after_instants(stem)}"
    again = "instant repeats" if example.repeats == 1 else f"{example.repeats} instants repeat"
    return f"{name}: {after_instants(stem)}, the next {again} for ever"


def _drawings(dossier: Dossier) -> Iterator[Drawing]:
    """Yield who waits for whom, and lanes over time, or over instants where time says less."""
    example = dossier.example
    waits = dossier.analysis.waits if dossier.goes_on else dossier.analysis.stuck
    if waits:
        when = " where the cycle begins" if example.repeats else ""
        yield waits_drawing(dossier.analysis, dossier.goes_on, when)
    if dossier.recorded is not None:
        yield _recorded_drawing(dossier.recorded)
    elif dossier.witness is not None and is_timed(example):
        yield _lanes_drawing(dossier.witness)
    else:
        yield _instants_drawing(dossier.film)


def is_timed(example: Counterexample) -> bool:
    """Whether lanes over time show it: of a lasso, or of groups, its instants say more."""
    return isinstance(example.scenario, Scenario) and not example.repeats


def _mermaid(dossier: Dossier) -> str:
    """Return the wait-for graph as text; empty if nobody waits."""
    text = mermaid(dossier.analysis, dossier.goes_on)
    return text if dossier.analysis.waits else ""


def dossier_page(dossier: Dossier, facts: tuple[Fact, ...] = ()) -> Page:
    """Return the page of a counterexample."""
    example = dossier.example
    stem = len(example.schedule) - example.repeats
    return Page(
        title=_title(example),
        verdict="violated",
        subtitle=scenario_line(example.scenario),
        why=dossier.lines,
        facts=(
            *facts,
            *_notes(example.scenario),
            *_fate(dossier),
            *_witness_facts(dossier),
        ),
        drawings=tuple(_drawings(dossier)),
        story=dossier.story,
        mermaid=_mermaid(dossier),
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
        known = (*facts, *_notes(scenario))
        return Page("not decided", "undetermined", scenario_line(scenario), limit, known)
    held = what_holds(result)
    why = (f"{held[0].upper()}{held[1:]}: all {data['states']:,} states were explored.",)
    sample = sample_run(scenario)
    repeats = sample.repeats or None
    return Page(
        title=what_holds(result),
        verdict="holds vacuously" if result.vacuous else "holds",
        subtitle=scenario_line(scenario),
        why=why,
        facts=(*facts, *_notes(scenario), *_liveness_facts(result)),
        drawings=(
            _instants_drawing(
                film(scenario, sample.schedule, repeats, MOST_STEPS), "One run among all timings"
            ),
        ),
        story=tell_known(scenario, sample.schedule, None),
        about_steps=(
            "One run among all timings, to look at: always the oldest pending event falls due, "
            "alone. Nothing is wrong in it, nor in any other."
        ),
        repeats_from=len(sample.schedule) - repeats + 1 if repeats else None,
    )


def _violated_page(result: CheckResult, witness: Shown, facts: tuple[Fact, ...]) -> Page:
    violation = witness.violation
    example = Counterexample(
        result.scenario,
        witness.schedule,
        witness.classification,
        signature_of(witness.wait_for),
        Violated(violation.property_name, violation.message),
        witness.repeats or 0,
        result.question.fairness,
    )
    dossier = dossier_of(example, witness.lines)
    return dossier_page(dossier, (*facts, *_liveness_facts(result)))


def _liveness_facts(result: CheckResult) -> tuple[Fact, ...]:
    """Return the verdict on each liveness property, with its control, as facts."""
    if result.liveness is None:
        return ()
    return tuple(Fact(name, lines) for name, lines in liveness_lines(result).items())


def _instants_drawing(film: Instants, title: str = "Who does what") -> Drawing:
    """Return who did what from instant to instant, with its description in words."""
    svg = picture_bytes(lanes_over_instants(film, ""), _SVG).decode()
    never = dict.fromkeys(
        f"{s.doing.track}: {s.doing.label}" for s in film.stretches if not s.finished
    )
    words = f"Lanes over instants. What never ends: {'; '.join(never) or 'nothing'}."
    title += ", instant by instant"
    if film.period:
        first, last = film.entry + 1, film.entry + film.period
        again = (
            f"instant {first} repeats" if first == last else f"instants {first} to {last} repeat"
        )
        title += f" ({again} for ever)"
        words += f" From instant {film.entry + 1} on the cycle repeats for ever."
    return Drawing(title, words, svg)
