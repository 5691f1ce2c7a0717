"""What a person reads: verdict lines, the explanation, tables of stages, live progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.groups import GroupScenario
from models.lasso_story import STOPS, Control
from models.liveness import PROGRESS, STARVATION, Finding
from models.subjects import AnyScenario
from models.waits import WAVE_ORDER
from verify.cli.checking import CheckResult, Witness, overtaken_json
from verify.cli.errors import end_without_reader
from verify.limits import Progress, ProgressCallback
from verify.liveness import Lasso
from verify.words import counted


class _PipedConsole(Console):
    """A console that ends the program by a code of its own when nobody reads it any more."""

    def on_broken_pipe(self) -> None:
        """End the program (rich's own answer is exit code 1, here that of a violation)."""
        self.quiet = True
        end_without_reader()


out = _PipedConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
err = _PipedConsole(highlight=False, soft_wrap=True, stderr=True)

_COLOURS = {
    "holds": "green",
    "holds vacuously": "yellow",
    "violated": "red",
    "undetermined": "yellow",
}
_LINE_EVERY_S = 10.0


def verdict_markup(word: str) -> str:
    """Colour a verdict's word."""
    return f"[bold {_COLOURS.get(word, 'white')}]{word}[/]"


def scenario_line(scenario: AnyScenario, timed: bool = False) -> str:
    """One line that names shape, rules and work."""
    if isinstance(scenario, GroupScenario):
        return _group_line(scenario)
    batches = scenario.batches
    closed = scenario.workload == "closed"
    steps = "" if scenario.steps == 1 else f" of {scenario.steps} steps a request"
    noun = "slot" if closed else "batch"
    if len(set(batches)) == 1:
        work = counted(batches[0], noun) + steps
    else:
        work = f"{','.join(map(str, batches))} {noun}es"
    arrivals = f"{scenario.arrivals} arrivals"
    if closed:
        arrivals = "closed workload" + (
            ", first arrivals open" if scenario.arrivals == "open" else ""
        )
    stale = ""
    if scenario.stale != "none":
        stale = f"stale work {scenario.stale}, {scenario.interruptions} invalidated, "
    capacity = "" if scenario.capacity == "lanes" else f"capacity {scenario.capacity}, "
    over = "" if scenario.context is None else f", over {scenario.context}"
    return (
        f"{counted(scenario.lanes, 'lane')} x {counted(scenario.stages, 'stage')} x {work}, "
        f"{counted(scenario.layers, 'layer')}, {scenario.model}, "
        f"{stale}{capacity}{scenario.admission}, {scenario.stand_in}, {scenario.rooms} rooms, "
        f"{arrivals}{over}"
    ) + ("" if timed else f", ties {'on' if scenario.ties else 'off'}")


def _group_line(scenario: GroupScenario) -> str:
    producers = "; ".join(" ".join(script) for script in scenario.groups)
    stale = ""
    if scenario.stale != "none":
        stale = f"stale work {scenario.stale}, {scenario.interruptions} invalidated, "
    full = "" if scenario.full_stages == 1 else f", {scenario.full_stages} full-stage schedulers"
    return (
        f"DECODE_FFN stage fed by: {producers}; ep_size {scenario.ep_size}{full}, capacity 1, "
        f"{stale}{scenario.admission}, ties {'on' if scenario.ties else 'off'}"
    )


def _progress_text(p: Progress) -> str:
    found = f", {p.violations:,} violating so far (Ctrl-C shows the first)" if p.violations else ""
    left = "" if p.remaining_s is None else f", about {_duration(p.remaining_s)} left"
    rate = p.rate if p.recent_rate is None else p.recent_rate
    return (
        f"{p.states:,} states, {p.transitions:,} transitions, {rate:,.0f} new states/s, "
        f"depth {p.depth}, queue {p.queue:,}, {p.memory / 1e9:.2f} GB{found}{left}"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def live_progress(label: str) -> Iterator[ProgressCallback]:
    """Show an exploration's progress: a live line on a terminal, else a line every 10 seconds."""
    if err.is_terminal:
        with err.status(label) as status:
            yield lambda p: status.update(f"{label}: {_progress_text(p)}")
        return
    last = time.monotonic()

    def report(p: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY_S:
            last = time.monotonic()
            err.print(f"{label}: {_progress_text(p)}")

    yield report


def ticket_text(ticket: dict[str, Any]) -> str:
    """One ticket of the table of stages."""
    return f"seq {ticket['seq']}: {ticket['operation']}"


def stage_table(stages: list[dict[str, Any]]) -> Table:
    """Table of stages: active, FIFO, sealed, rooms, lanes."""
    table = Table(title="State", title_justify="left", show_lines=True)
    for column in ("stage", "active", "FIFO (head first)", "sealed", "rooms", "lanes"):
        table.add_column(column, overflow="fold")
    for stage in stages:
        rooms = [
            f"{room['phase'] + ' ' if room['phase'] else ''}layer {room['layer']}: "
            f"holds lane {_numbers(room['holds'])}"
            + (f", placeholder {_numbers(room['placeholders'])}" if room["placeholders"] else "")
            + f", waits for lane {_numbers(room['waits_for'])}"
            for room in stage["rooms"]
        ]
        lanes = [
            f"{lane.get('name', 'lane ' + str(lane['lane']))}: "
            + (f"runs {lane['running']}" if lane["running"] is not None else "not busy")
            + (f", queued {_numbers(lane['queued'])}" if lane["queued"] else "")
            for lane in stage["lanes"]
        ]
        table.add_row(
            str(stage["stage"]),
            "\n".join(map(ticket_text, stage["active"])) or "-",
            "\n".join(map(ticket_text, stage["fifo"])) or "-",
            "yes" if stage["sealed"] else "no",
            "\n".join(rooms) or "-",
            "\n".join(lanes),
        )
    return table


def _numbers(values: list[int]) -> str:
    return ", ".join(map(str, values))


def print_cycle(names: list[str]) -> None:
    """Print the wait-for cycle, if there is one."""
    if names:
        out.print(f"\n[bold]Cycle[/]  {' -> '.join([*names, names[0]])}")


def print_witness(witness: Witness) -> None:
    """Print a violation: schedule, state, cycle, explanation, and how to replay it."""
    out.print("\n[bold]Schedule[/] (what falls due, instant by instant)")
    if not witness.schedule:
        out.print("  none: the initial state is violating")
    repeats = witness.repeats or 0
    for number, instant in enumerate(witness.schedule, start=1):
        if repeats and number == len(witness.schedule) - repeats + 1:
            out.print("  from here on for ever:")
        out.print(f"  {number:>3}  " + "  together with  ".join(map(str, instant)))
    out.print()
    out.print(stage_table(witness.stages))
    print_cycle([edge.source for edge in witness.wait_for.cycle])
    out.print(f"\n[bold]Why[/]  {witness.text}")
    out.print("\n[bold]Replay[/]")
    out.print(f"frontier-verify replay {witness.path}")


def what_holds(result: CheckResult) -> str:
    """Say what a check that holds has proved."""
    asked = result.question.asked
    if result.exploration.verdict.stats.transitions == 0:
        return "there is no work, so nothing ever happens"
    if result.vacuous:
        return f"nothing is ever owed that {asked} asks for"
    if isinstance(result.scenario, GroupScenario):
        order = ", waves in queue order, never overtaken" if asked in ("all", STARVATION) else ""
        return f"every timing completes{order}"
    if not result.scenario.endless:
        return "every timing completes"
    parts = {
        "drained": "no timing ever drains",
        PROGRESS: "every lane ends batches for ever, and every wave ends",
        STARVATION: "every queued ticket is admitted",
    }
    words = "; ".join(parts.values()) if asked == "all" else parts[asked]
    return f"for any number of requests, {words}"


def _ends(result: CheckResult) -> str:
    if result.exploration.verdict.stats.acyclic:
        return "; the graph is acyclic, every end is complete"
    return ""


def _control_line(findings: Sequence[Finding], controls: Mapping[Lasso, Control]) -> str:
    """Say what the same properties come to if nothing is assumed fair, and by what run."""
    owed = [finding for finding in findings if not finding.vacuous]
    found = [(f, controls[f.control]) for f in owed if f.control is not None]
    finding, control = min(found, key=lambda pair: pair[1].kind == STOPS)
    return (
        f"control, without fairness: {len(found)} of {len(owed)} such properties are violated, "
        f"e.g. {finding.message}: {control}"
    )


def liveness_lines(result: CheckResult) -> dict[str, tuple[str, ...]]:
    """Return each property's verdict, with its negative control, and the overtaking bound."""
    liveness = result.liveness
    if liveness is None:
        return {}
    fairness = liveness.fairness
    assumed = "without fairness" if fairness == "none" else f"under {fairness} fairness"
    lines: dict[str, tuple[str, ...]] = {}
    for name in dict.fromkeys(finding.name for finding in liveness.findings):
        own = [finding for finding in liveness.findings if finding.name == name]
        bad = [finding.message for finding in own if finding.lasso is not None]
        empty = all(finding.vacuous for finding in own)
        text = "violated" if bad else "holds vacuously: nothing is ever owed" if empty else "holds"
        text += f" ({'; '.join(bad)})" if bad else ""
        with_control = name != WAVE_ORDER and not empty and fairness != "none"
        lines[f"{name} {'whatever is fair' if name == WAVE_ORDER else assumed}"] = (
            text,
            *([_control_line(own, result.controls)] if with_control else []),
        )
    bound = overtaken_json(liveness)
    lines["later tickets admitted past a waiting lane in one wait"] = (
        "no bound" if bound["unbounded"] else f"at most {bound['bound']}",
    )
    return lines


def _also(result: CheckResult) -> str:
    """Name the properties that are violated besides the one that is told."""
    findings = () if result.liveness is None else result.liveness.findings
    names = {finding.name for finding in findings if finding.lasso is not None}
    names -= {result.witnesses[0].violation.property_name}
    return f", and {' and '.join(sorted(names))}" if names else ""


def _print_liveness(result: CheckResult) -> None:
    """Print each property's verdict beside its negative control, and the overtaking bound."""
    for name, (verdict, *control) in liveness_lines(result).items():
        word = verdict.split(" ", 1)[0]
        shown = escape(verdict)
        if word in _COLOURS:
            shown = verdict_markup(word) + escape(verdict.removeprefix(word))
        out.print(f"  {name}: {shown}")
        for line in control:
            out.print(f"    {escape(line)}")


def print_scenario(scenario: AnyScenario, timed: bool = False) -> None:
    """Print what is asked about, and how a context of one's own is run.

    Every command that tells of a scenario begins with this.
    """
    out.print(scenario_line(scenario, timed))
    for note in scenario.context_notes:
        out.print(f"note: {escape(note)}")


def print_result(result: CheckResult) -> None:
    """Print the verdict on one scenario."""
    stats = result.exploration.verdict.stats
    print_scenario(result.scenario)
    seen = f"{counted(stats.states, 'state')}, {counted(stats.transitions, 'transition')}"
    applied = result.details.get("reductions")
    if applied:
        seen += f" under {' + '.join(applied)}"
    for name, why in result.details.get("reductions_refused", {}).items():
        out.print(f"reduction {name} is not sound here and was left out: {why}")
    word = result.verdict_word
    if word == "holds":
        if result.vacuous:
            word = "holds vacuously"
        out.print(f"{verdict_markup(word)}: {what_holds(result)} ({seen}{_ends(result)})")
        missed = [claim for claim, reached in result.reached.items() if reached is False]
        if missed:
            out.print(f"never happened in any timing: {'; '.join(missed)}")
        if result.liveness is not None:
            _print_liveness(result)
    elif word == "undetermined":
        limit = result.to_json()["limit"]
        out.print(
            f"{verdict_markup(word)}: {limit}; {seen}, no violation so far, but "
            + ("not every run was judged" if stats.complete else "not everything was seen")
            + f" (deepest instant {stats.max_depth})"
        )
        if result.details.get("sound_reductions"):
            out.print(
                "a smaller graph has the same ends: --reduction "
                + ",".join(result.details["sound_reductions"])
            )
    else:
        data = result.to_json()
        part = "" if stats.complete else ", exploration not complete"
        longer = result.details.get("shortest") is False
        out.print(
            f"{verdict_markup(word)}: {data['violation']} ({data['classification']}) at depth "
            f"{data['depth']}{' (a shorter schedule may exist)' if longer else ''}{_also(result)}; "
            f"{counted(data['violating_states'], 'violating state')} among "
            f"{seen}{part}"
        )
        if result.liveness is not None:
            _print_liveness(result)
        print_witness(result.witnesses[0])
        if len(result.witnesses) > 1:
            out.print("\n[bold]Further violating states[/]")
        for witness in result.witnesses[1:]:
            violation = witness.violation
            out.print(
                f"depth {violation.depth:>3}  {violation.property_name} "
                f"({witness.classification})  {witness.path}"
            )
    stored = result.details.get("bytes_per_state")
    err.print(
        f"{result.engine} engine: {stats.elapsed_s:.2f} s"
        + (" (with the time before the resume)" if result.details.get("resumed") else "")
        + f", {stats.states_per_s:,.0f} states/s"
        + ("" if stored is None else f", {stored} bytes a state"),
        style="dim",
    )
