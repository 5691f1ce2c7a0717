"""Lanes over time as one picture, PNG or SVG, the same on every run (issue 3)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

SUFFIXES: Final = (".png", ".svg")
COLOURS: Final = {
    "prefill": "#4477aa",
    "decode": "#1f7a30",
    "dense": "#ccbb44",
    "expert": "#aa3377",
    "attention": "#4477aa",
    "in room": "#ccbb44",
    "EP wave": "#aa3377",
    "tail": "#1f7a30",
    "forward": "#1f7a30",
    "queued": "#999999",
    "on its way": "#66aabb",
    "done, waits for the wave": "#cc88b5",
}
"""Colour-blind safe (Paul Tol's bright scheme)."""

OTHER: Final = "#bbbbbb"
UNFINISHED: Final = "#ee6677"
BAND: Final = "#66338f"
LIGHT_INK: Final = "#fdfdfd"
DARK_INK: Final = "#141414"
"""Inks of labels on bars, not those of a page, which follow its scheme: bars keep their colour."""

_LABELLED: Final = 400
_LABEL_WIDTH: Final = 0.005
"""Share of the picture's width that one letter of a label takes; shorter bars have no label."""


@dataclass(frozen=True)
class Bar:
    """One occupation: track, start and end in seconds, what it is, and a short label.

    ``kind`` chooses the colour; a bar that never ended is drawn to the end of the picture; a thin
    one lies below the others of its track and bears no label.
    """

    track: str
    start: float
    end: float
    kind: str
    label: str
    finished: bool = True
    thin: bool = False


@dataclass(frozen=True)
class Band:
    """A part of the time that is marked across all tracks, with what is said of it."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Clock:
    """What the axis counts: its label, and how many of its units a second of a bar is."""

    label: str
    scale: float


MILLISECONDS: Final = Clock("simulated time in ms", 1e3)
INSTANTS: Final = Clock("instant", 1.0)
"""A clock without durations: a bar's times are numbers of instants."""


def draw(
    title: str,
    tracks: Sequence[str],
    bars: Sequence[Bar],
    end: float,
    begin: float = 0.0,
    clock: Clock = MILLISECONDS,
    bands: Sequence[Band] = (),
) -> Figure:
    """Draw bars on their tracks, top to bottom, from ``begin`` to ``end``, and bands behind."""
    figure = Figure(figsize=(10.6, 1.2 + 0.32 * len(tracks)), layout="constrained")
    axis = figure.subplots()
    bars = [bar for bar in bars if bar.end > begin]
    lines = {track: line for line, track in enumerate(tracks)}
    labelled = len(bars) <= _LABELLED
    scale = clock.scale
    window = (end - begin) * scale
    spans: dict[tuple[int, str, bool, bool], list[tuple[float, float]]] = {}
    for bar in bars:
        line, left, width = lines[bar.track], bar.start * scale, (bar.end - bar.start) * scale
        spans.setdefault((line, bar.kind, bar.finished, bar.thin), []).append((left, width))
        if labelled and not bar.thin and width > _LABEL_WIDTH * len(bar.label) * window:
            middle = (max(left, begin * scale) + left + width) / 2
            _write(axis, middle, line, bar)
    # One collection a track and kind: a picture of a long run has a hundred thousand bars.
    for (line, kind, finished, thin), boxes in spans.items():
        axis.broken_barh(
            boxes,
            (line + 0.37, 0.12) if thin else (line - 0.36, 0.72),
            facecolor=COLOURS.get(kind, OTHER) if finished else UNFINISHED,
            edgecolor="white",
            lw=0.6 if labelled else 0.0,
            hatch=None if finished else "//",
        )
    axis.set_yticks(range(len(tracks)), list(tracks))
    axis.set_ylim(len(tracks) - 0.5, -0.5)
    axis.set_xlim(begin * scale, max(end * scale, 1e-6))
    axis.set_xlabel(clock.label, fontsize=8.5)
    if clock is INSTANTS:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    for band in bands:
        _draw_band(axis, band, scale)
    axis.tick_params(labelsize=8)
    axis.set_title(title, loc="left", fontsize=9)
    _legend(figure, bars)
    return figure


def _draw_band(axis: Axes, band: Band, scale: float) -> None:
    start, end = band.start * scale, band.end * scale
    axis.axvspan(start, end, facecolor=BAND, alpha=0.12, zorder=0)
    axis.axvline(start, color=BAND, lw=1.2, ls="--", zorder=3)
    axis.annotate(
        band.text,
        ((start + end) / 2, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        size=7,
        color=BAND,
        weight="bold",
    )


def colour_of(bar: Bar) -> str:
    """Colour that a bar is filled with."""
    return COLOURS.get(bar.kind, OTHER) if bar.finished else UNFINISHED


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` (WCAG 2)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21 (WCAG 2)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def readable_on(colour: str) -> str:
    """Ink that stands out most on a colour."""
    return max((LIGHT_INK, DARK_INK), key=lambda ink: contrast(ink, colour))


def _write(axis: Axes, at: float, line: int, bar: Bar) -> None:
    """Label a bar; on the hatching of one that never ends the label has a ground of its own."""
    colour, box = readable_on(colour_of(bar)), None
    if not bar.finished:
        colour, box = "#222222", {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0}
    text = axis.text(at, line, bar.label, ha="center", va="center", size=7, color=colour)
    text.set_clip_on(True)
    text.set_bbox(box)


def _legend(figure: Figure, bars: Sequence[Bar]) -> None:
    kinds = [kind for kind in COLOURS if any(bar.kind == kind and bar.finished for bar in bars)]
    handles = [Patch(color=COLOURS[kind], label=kind) for kind in kinds]
    if any(not bar.finished for bar in bars):
        never = Patch(facecolor=UNFINISHED, edgecolor="white", hatch="//", label="never ends")
        handles.append(never)
    if handles:
        figure.legend(handles=handles, loc="outside lower right", ncols=len(handles), fontsize=8)


def render(figure: Figure, path: Path) -> bytes:
    """Return the picture in the format of the file's suffix, ``.png`` or ``.svg``."""
    out = io.BytesIO()
    # Without a date, a version and random ids the same run gives the same bytes.
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "frontier-verify", "svg.fonttype": "none"}):
        figure.savefig(out, format=path.suffix[1:], metadata=metadata, dpi=120)
    return out.getvalue()
