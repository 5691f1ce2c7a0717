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

SUFFIXES: Final = (".png", ".svg")
COLOURS: Final = {
    "prefill": "#4477aa",
    "decode": "#228833",
    "dense": "#ccbb44",
    "expert": "#aa3377",
    "attention": "#4477aa",
    "in room": "#ccbb44",
    "EP wave": "#aa3377",
    "tail": "#228833",
    "forward": "#228833",
    "queued": "#999999",
}
"""Colour-blind safe (Paul Tol's bright scheme)."""

UNFINISHED: Final = "#ee6677"
_LABELLED: Final = 400
_LABEL_WIDTH: Final = 0.003
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


def draw(
    title: str, tracks: Sequence[str], bars: Sequence[Bar], end: float, begin: float = 0.0
) -> Figure:
    """Draw bars on their tracks, top to bottom, from ``begin`` to ``end`` seconds."""
    figure = Figure(figsize=(12.8, 1.2 + 0.32 * len(tracks)), layout="constrained")
    axis = figure.subplots()
    bars = [bar for bar in bars if bar.end > begin]
    lines = {track: line for line, track in enumerate(tracks)}
    labelled = len(bars) <= _LABELLED
    window = (end - begin) * 1e3
    spans: dict[tuple[int, str, bool, bool], list[tuple[float, float]]] = {}
    for bar in bars:
        line, left, width = lines[bar.track], bar.start * 1e3, (bar.end - bar.start) * 1e3
        spans.setdefault((line, bar.kind, bar.finished, bar.thin), []).append((left, width))
        if labelled and not bar.thin and width > _LABEL_WIDTH * len(bar.label) * window:
            middle = (max(left, begin * 1e3) + left + width) / 2
            axis.text(
                middle,
                line,
                bar.label,
                ha="center",
                va="center",
                size=6,
                color="white",
                clip_on=True,
            )
    # One collection a track and kind: a picture of a long run has a hundred thousand bars.
    for (line, kind, finished, thin), boxes in spans.items():
        axis.broken_barh(
            boxes,
            (line + 0.37, 0.12) if thin else (line - 0.36, 0.72),
            facecolor=COLOURS.get(kind, "#bbbbbb") if finished else UNFINISHED,
            edgecolor="white",
            lw=0.6 if labelled else 0.0,
            hatch=None if finished else "//",
        )
    axis.set_yticks(range(len(tracks)), list(tracks))
    axis.set_ylim(len(tracks) - 0.5, -0.5)
    axis.set_xlim(begin * 1e3, max(end * 1e3, 1e-6))
    axis.set_xlabel("simulated time in ms", fontsize=8)
    axis.tick_params(labelsize=7)
    axis.set_title(title, loc="left", fontsize=9)
    _legend(figure, bars)
    return figure


def _write(axis: Axes, at: float, line: int, bar: Bar) -> None:
    """Label a bar; on the hatching of one that never ends the label has a ground of its own."""
    colour, box = "white", None
    if not bar.finished:
        colour, box = "#222222", {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0}
    text = axis.text(at, line, bar.label, ha="center", va="center", size=6, color=colour)
    text.set_clip_on(True)
    text.set_bbox(box)


def _legend(figure: Figure, bars: Sequence[Bar]) -> None:
    kinds = [kind for kind in COLOURS if any(bar.kind == kind and bar.finished for bar in bars)]
    handles = [Patch(color=COLOURS[kind], label=kind) for kind in kinds]
    if any(not bar.finished for bar in bars):
        handles.append(Patch(facecolor=UNFINISHED, hatch="//", label="never ends"))
    if handles:
        figure.legend(handles=handles, loc="outside lower right", ncols=len(handles), fontsize=7)


def render(figure: Figure, path: Path) -> bytes:
    """Return the picture in the format of the file's suffix, ``.png`` or ``.svg``."""
    out = io.BytesIO()
    # Without a date, a version and random ids the same run gives the same bytes.
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with mpl.rc_context({"svg.hashsalt": "frontier-verify", "svg.fonttype": "none"}):
        figure.savefig(out, format=path.suffix[1:], metadata=metadata, dpi=120)
    return out.getvalue()
