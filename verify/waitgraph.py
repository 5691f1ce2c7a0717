"""The wait-for graph as a picture and as Mermaid text, with the cycle marked (issue 5)."""

from __future__ import annotations

import math
import textwrap
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.text import Text

from verify.waitfor import WaitFor

NOTHING: Final = "nothing"
"""Stands for the target of a wait that nothing ends."""

MOST_NODES: Final = 9
"""Participants up to which everybody is drawn."""

CYCLE_COLOUR: Final = "#cc3311"
WAIT_COLOUR: Final = "#33669a"
MOVING_COLOUR: Final = "#1d7a35"
TEXT_COLOUR: Final = "#222222"
BOX_COLOUR: Final = "#ffffff"

Point = tuple[float, float]


@dataclass(frozen=True)
class Arrow:
    """One wait drawn: from, to, its kind in words, whether it is part of the cycle."""

    source: str
    target: str
    label: str
    in_cycle: bool


def arrows_of(analysis: WaitFor, everybody: bool = False) -> tuple[Arrow, ...]:
    """Return the waits of the stuck participants, one arrow per pair, cycle first.

    With ``everybody`` also the waits of those that can still move, and for those that go on: of a
    run that repeats for ever nobody need be stuck.
    """
    if everybody:
        return _all_arrows(analysis)
    cycle = {(edge.source, edge.target) for edge in analysis.cycle}
    stuck = set(analysis.stuck)
    found: dict[tuple[str, str], Arrow] = {}
    for edge in analysis.cycle:
        pair = (edge.source, edge.target)
        found[pair] = Arrow(*pair, _words(edge.kind), True)
    for wait in analysis.stuck_waits:
        targets = [target for target in wait.targets if target in stuck]
        for target in targets or ([] if wait.targets else [NOTHING]):
            pair = (wait.source, target)
            found.setdefault(pair, Arrow(*pair, _words(wait.kind), pair in cycle))
    return tuple(found.values())


def _all_arrows(analysis: WaitFor) -> tuple[Arrow, ...]:
    found = {(arrow.source, arrow.target): arrow for arrow in arrows_of(analysis)}
    for wait in analysis.waits:
        for target in wait.targets:
            pair = (wait.source, target)
            found.setdefault(pair, Arrow(*pair, _words(wait.kind), False))
    return tuple(found.values())


def moving(analysis: WaitFor) -> frozenset[str]:
    """Participants that somebody waits for and that wait for nobody: they go on."""
    waiting = {wait.source for wait in analysis.waits}
    return frozenset(t for wait in analysis.waits for t in wait.targets if t not in waiting)


@dataclass(frozen=True)
class Shown:
    """The waits to draw, and how many participants are left out.

    ``hidden`` participants are not drawn; ``elsewhere`` of them wait for none that is.
    """

    arrows: tuple[Arrow, ...]
    hidden: int = 0
    elsewhere: int = 0

    @property
    def more(self) -> str:
        """Say what is not drawn; empty if everybody is."""
        if not self.hidden:
            return ""
        more, waiting = f"and {self.hidden} more", self.hidden - self.elsewhere
        if not self.elsewhere:
            return f"{more} that wait{'s' if self.hidden == 1 else ''} for these"
        return f"{more}, {waiting} of which wait for these" if waiting else more


def shown_arrows(analysis: WaitFor, everybody: bool = False) -> Shown:
    """Return the waits to draw.

    A graph of more than :data:`MOST_NODES` is cut down to what explains it: the cycle, which is
    always whole, and the waits that nothing ends. Without a cycle those nearest to the ends of
    the chains are drawn as well, as many as there is room for.
    """
    arrows = arrows_of(analysis, everybody)
    everyone = _nodes(analysis, arrows)
    if len(everyone) <= MOST_NODES:
        return Shown(arrows)
    cycle = list(dict.fromkeys(edge.source for edge in analysis.cycle))
    ends = [name for arrow in arrows if arrow.target == NOTHING for name in (NOTHING, arrow.source)]
    core = list(dict.fromkeys([*cycle, *ends]))
    ordered = core if cycle else _nearest(core, everyone, arrows)
    drawn = set(ordered[: max(MOST_NODES, len(cycle))])
    kept = tuple(arrow for arrow in arrows if {arrow.source, arrow.target} <= drawn)
    drawn = {name for arrow in kept for name in (arrow.source, arrow.target)}
    drawn.discard(NOTHING)
    waiting = _behind(sorted(drawn), arrows).keys() - drawn
    hidden = len(set(everyone) - drawn - {NOTHING})
    return Shown(kept, hidden, hidden - len(waiting))


def _behind(start: Sequence[str], arrows: Sequence[Arrow]) -> dict[str, int]:
    """Who waits for one of these, however indirectly: name to the number of waits between."""
    waits_for: dict[str, list[str]] = {}
    for arrow in arrows:
        waits_for.setdefault(arrow.target, []).append(arrow.source)
    distance = dict.fromkeys(start, 0)
    queue = deque(start)
    while queue:
        name = queue.popleft()
        for source in waits_for.get(name, ()):
            if source not in distance:
                distance[source] = distance[name] + 1
                queue.append(source)
    return distance


def _nearest(core: Sequence[str], everyone: Sequence[str], arrows: Sequence[Arrow]) -> list[str]:
    """Order everybody by how far they wait behind the core, and those who go on, as they come.

    Who waits in a circle that somebody else will break is behind neither, and comes last.
    """
    sources = {arrow.source for arrow in arrows}
    go_on = [name for name in everyone if name not in sources]
    distance = _behind([*core, *go_on], arrows)
    rest = [name for name in everyone if name not in core]
    return [*core, *sorted(rest, key=lambda name: distance.get(name, len(everyone)))]


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def _nodes(analysis: WaitFor, arrows: Sequence[Arrow]) -> list[str]:
    cycle = [edge.source for edge in analysis.cycle]
    ends = [name for arrow in arrows for name in (arrow.source, arrow.target)]
    return list(dict.fromkeys([*cycle, *ends]))


def _layers(nodes: Sequence[str], arrows: Sequence[Arrow]) -> dict[str, int]:
    """Distance to the end of the chain of waits; without a cycle every chain has one."""
    layer = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for arrow in arrows:
            layer[arrow.source] = max(layer[arrow.source], min(layer[arrow.target] + 1, len(nodes)))
    return layer


def _in_columns(columns: Sequence[Sequence[str]], left: float) -> dict[str, Point]:
    places: dict[str, Point] = {}
    for number, column in enumerate(columns):
        for row, name in enumerate(column):
            places[name] = (left + 3.4 * number, (len(column) - 1) / 2 * 1.5 - 1.5 * row)
    return places


def _layout(analysis: WaitFor, arrows: Sequence[Arrow]) -> dict[str, Point]:
    nodes = _nodes(analysis, arrows)
    cycle = [edge.source for edge in analysis.cycle]
    if not cycle:
        layer = _layers(nodes, arrows)
        columns = [
            [name for name in nodes if layer[name] == depth]
            for depth in sorted(set(layer.values()), reverse=True)
        ]
        return _in_columns(columns, 0.0)
    places = {}
    for number, name in enumerate(cycle):
        angle = math.pi / 2 - 2 * math.pi * number / len(cycle)
        places[name] = (2.6 * math.cos(angle), 1.0 + 0.45 * len(cycle) * math.sin(angle))
    others = [name for name in nodes if name not in places]
    half = -(-len(others) // 2) if len(others) > 4 else len(others)
    columns = [others[at : at + half] for at in range(0, len(others), half)] if others else []
    return {**places, **{k: (x, y + 1.0) for k, (x, y) in _in_columns(columns, 5.8).items()}}


def draw_waits(analysis: WaitFor, title: str = "", everybody: bool = False) -> Figure:
    """Draw who waits for whom; the cycle, if there is one, in red, and who goes on in green."""
    shown = shown_arrows(analysis, everybody)
    arrows = shown.arrows
    going_on = moving(analysis)
    places = _layout(analysis, arrows)
    xs = [x for x, _ in places.values()] or [0.0]
    ys = [y for _, y in places.values()] or [0.0]
    width, height = max(xs) - min(xs) + 3.4, max(ys) - min(ys) + 1.8
    figure = Figure(figsize=(max(5.0, 0.85 * width), max(2.2, 0.85 * height)), layout="constrained")
    axis = figure.subplots()
    axis.set_axis_off()
    axis.set_xlim(min(xs) - 1.7, max(xs) + 1.7)
    axis.set_ylim(min(ys) - 0.9, max(ys) + 0.9)
    nodes = {}
    for name, place in places.items():
        in_cycle = any(arrow.in_cycle and arrow.source == name for arrow in arrows)
        colour = CYCLE_COLOUR if in_cycle else MOVING_COLOUR if name in going_on else WAIT_COLOUR
        words = f"{name} (goes on)" if name in going_on else name
        nodes[name] = _draw_node(axis, words, place, colour)
    # The boxes get their size when they are laid out, and arrows end at the boxes.
    figure.draw_without_rendering()
    for arrow in arrows:
        _draw_arrow(axis, arrow, nodes)
    if title:
        axis.set_title(title, loc="left", fontsize=9, color=TEXT_COLOUR)
    if shown.more:
        where: dict[str, Any] = {"transform": axis.transAxes, "ha": "right", "va": "bottom"}
        axis.text(0.99, 0.01, shown.more, fontsize=8, color=TEXT_COLOUR, **where)
    return figure


def _draw_node(axis: Axes, name: str, place: Point, colour: str) -> Text:
    text = "nothing will\nend this wait" if name == NOTHING else textwrap.fill(name, 24)
    return axis.text(
        *place,
        text,
        ha="center",
        va="center",
        fontsize=9,
        color=TEXT_COLOUR,
        zorder=3,
        style="italic" if name == NOTHING else "normal",
        bbox={
            "boxstyle": "round,pad=0.45",
            "facecolor": BOX_COLOUR,
            "edgecolor": colour,
            "linewidth": 1.6,
            "linestyle": "--" if name == NOTHING else "-",
        },
    )


def _draw_arrow(axis: Axes, arrow: Arrow, nodes: Mapping[str, Text]) -> None:
    source, target = nodes[arrow.source], nodes[arrow.target]
    (x0, y0), (x1, y1) = source.get_position(), target.get_position()
    colour = CYCLE_COLOUR if arrow.in_cycle else WAIT_COLOUR
    axis.add_patch(
        FancyArrowPatch(
            (x0, y0),
            (x1, y1),
            patchA=source.get_bbox_patch(),
            patchB=target.get_bbox_patch(),
            arrowstyle="-|>",
            mutation_scale=14,
            shrinkA=2,
            shrinkB=3,
            linewidth=2.2 if arrow.in_cycle else 1.2,
            color=colour,
            connectionstyle="arc3,rad=0.12",
            zorder=2,
        )
    )
    bend = 0.06
    axis.text(
        (x0 + x1) / 2 + bend * (y1 - y0),
        (y0 + y1) / 2 - bend * (x1 - x0),
        arrow.label,
        ha="center",
        va="center",
        fontsize=7.5,
        color=colour,
        zorder=4,
        bbox={"facecolor": BOX_COLOUR, "edgecolor": "none", "pad": 0.8, "alpha": 0.9},
    )


def mermaid(analysis: WaitFor, everybody: bool = False) -> str:
    """Return the wait-for graph as Mermaid text, for pasting into an issue."""
    shown = shown_arrows(analysis, everybody)
    arrows = shown.arrows
    going_on = moving(analysis)
    names = {name: f"n{number}" for number, name in enumerate(_nodes(analysis, arrows))}
    lines = ["graph LR"]
    for name, key in names.items():
        text = "nothing will end this wait" if name == NOTHING else name
        text += " (goes on)" if name in going_on else ""
        opening, closing = ("([", "])") if name == NOTHING else ("[", "]")
        lines.append(f'    {key}{opening}"{text}"{closing}')
    for arrow in arrows:
        line = "==>" if arrow.in_cycle else "-->"
        lines.append(f'    {names[arrow.source]} {line}|"{arrow.label}"| {names[arrow.target]}')
    if shown.more:
        lines.append(f'    more["{shown.more}"]')
    marked = [str(number) for number, arrow in enumerate(arrows) if arrow.in_cycle]
    if marked:
        lines.append(f"    linkStyle {','.join(marked)} stroke:{CYCLE_COLOUR},stroke-width:3px")
    return "\n".join(lines) + "\n"
