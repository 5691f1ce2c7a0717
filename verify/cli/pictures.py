"""Pictures of a counterexample: waits, lanes over time, a Perfetto trace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from frontier.chrome import ChromeTrace
from frontier.events import ENVIRONMENT, REQUEST, STAGE_END, CoreError, Event
from frontier.ledger import StageRow
from frontier.system import CO_LOCATION, ServingSpec, ServingSystem
from models.instants import Instants, Stretch, lane_track, lane_tracks
from models.scenario import Scenario
from models.story import MOST_STEPS
from models.timeline import ATTENTION, FORWARD, IN_ROOM, QUEUED, TAIL, WAVE, Span, timeline_of
from models.witness import TimedSchedule
from verify.cli.errors import UsageError
from verify.lane_chart import INSTANTS, Band, Bar, draw, render
from verify.waitfor import WaitFor
from verify.waitgraph import draw_waits

_SHORT: Final = {
    ATTENTION: "attention",
    IN_ROOM: "in room",
    WAVE: "wave",
    TAIL: "tail",
    QUEUED: "queued",
    FORWARD: "forward",
}


def _label(span: Span) -> str:
    layer = f" {span.layer}" if span.layer > 0 else ""
    return f"b{span.batch.number} {_SHORT[span.kind]}{layer}"


def _lanes_of(timed: TimedSchedule) -> Scenario:
    """Return the scenario of a timed schedule; UsageError unless it is one of lanes."""
    if not isinstance(timed.scenario, Scenario):
        raise UsageError(
            "the stage is fed by groups, and this picture is of lanes; leave out --timeline and "
            "--trace"
        )
    return timed.scenario


def lanes_over_time(timed: TimedSchedule, title: str) -> Figure:
    """Lanes × time of a timed schedule, the waits that never end hatched.

    Of a long schedule the last instants are drawn, those that its story tells.
    """
    scenario, instants = _lanes_of(timed), timed.instants
    begin = instants[-MOST_STEPS] if len(instants) > MOST_STEPS else 0
    timeline = timeline_of(timed, begin)
    tracks = lane_tracks(scenario.lanes, scenario.stages)
    bars = [
        Bar(
            lane_track(span.stage, span.batch.lane),
            span.start / 1e9,
            span.end / 1e9,
            span.kind,
            _label(span),
            span.finished,
            thin=span.kind == QUEUED,
        )
        for span in timeline.spans
    ]
    return draw(
        title, tracks, bars, timeline.end / 1e9, begin / 1e9, bands=_invalidations(timed, begin)
    )


def _invalidations(timed: TimedSchedule, begin: int) -> list[Band]:
    """Return when batches became stale, as marks across all lanes."""
    return [
        Band(at / 1e9, at / 1e9, str(event))
        for event, at in timed.durations
        if event.kind in ENVIRONMENT and at >= begin
    ]


def lanes_over_instants(film: Instants, title: str) -> Figure:
    """Draw who does what from instant to instant; what repeats for ever is marked."""
    bars = [
        Bar(
            stretch.doing.track,
            stretch.start,
            stretch.end,
            stretch.doing.kind,
            stretch.doing.label,
            stretch.finished,
            thin=stretch.doing.waits,
        )
        for stretch in film.stretches
        if stretch.finished
    ]
    bars += _for_ever(film)
    bands = []
    if film.period:
        second = film.entry + film.period
        bands = [
            Band(film.entry, second, "the cycle"),
            Band(second, second + film.period, "the same again, and so for ever"),
        ]
    return draw(title, film.tracks, bars, film.end, film.begin, INSTANTS, bands)


def _for_ever(film: Instants) -> list[Bar]:
    """Return what never ends, one bar a track however many batches wait on it."""
    open_ended: dict[str, list[Stretch]] = {}
    for stretch in film.stretches:
        if not stretch.finished:
            open_ended.setdefault(stretch.doing.track, []).append(stretch)
    return [
        Bar(track, own[0].start, film.end, own[0].doing.kind, _joined(own), False)
        for track, own in open_ended.items()
    ]


def _joined(stretches: Sequence[Stretch]) -> str:
    return ", ".join(dict.fromkeys(stretch.doing.label for stretch in stretches)) + " for ever"


def waits_picture(analysis: WaitFor, title: str, everybody: bool = False) -> Figure:
    """Draw the wait-for graph of a state, the cycle marked; see :func:`draw_waits`."""
    return draw_waits(analysis, title, everybody)


def perfetto_trace(timed: TimedSchedule) -> str:
    """Trace of a timed schedule for Perfetto, the same picture as of any simulator run."""
    scenario = _lanes_of(timed)
    shape = ServingSpec(
        architecture=CO_LOCATION,
        lanes=scenario.lanes,
        stages=scenario.stages,
        layers=scenario.layers,
        moe=scenario.model == "moe",
        requests=(),
        burst=False,
    )
    trace = ChromeTrace(ServingSystem(shape))
    arrived = 0
    admitted: dict[tuple[int, int, int], int] = {}

    def observe(now: int, event: Event, follow: Sequence[Event]) -> None:
        nonlocal arrived
        if event.kind == REQUEST:
            event = event._replace(request=arrived)
            arrived += 1
        trace(now, event, follow)
        for started in follow:
            if started.batch is not None and not started.is_urgent:
                key = (started.stage, started.batch.lane, started.batch.number)
                admitted.setdefault(key, now)
        if event.kind == STAGE_END and event.batch is not None:
            lane, number, phase = event.batch
            start = admitted.pop((event.stage, lane, number), now)
            row = StageRow("MONOLITHIC", 0, event.stage, lane, number, phase, start, now, (), 0, 0)
            trace.row(row)

    simulation = timed.simulation(scenario.make_replica(), (observe,))
    with suppress(CoreError):
        simulation.run(timed.until)
    return trace.text(simulation.now)


def picture_bytes(figure: Figure, path: Path) -> bytes:
    """Render a picture in the format of the file's suffix."""
    return render(figure, path)
