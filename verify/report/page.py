"""One self-contained HTML page: verdict, explanation, drawings, stepper (issue 5).

Style and script stand in the page itself and nothing is loaded from anywhere. The page knows
steps, parts and choices (:mod:`verify.story`), never lanes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from verify.lane_chart import BAND
from verify.story import Step, Story
from verify.waitgraph import CYCLE_COLOUR, MOVING_COLOUR, WAIT_COLOUR

_FOLDER: Final = Path(__file__).parent

_PAPER_AND_INK: Final = (
    ("#ffffff", "var(--paper)"),
    ("#222222", "var(--ink)"),
    ("#000000", "var(--ink)"),
    (CYCLE_COLOUR, "var(--bad)"),
    (WAIT_COLOUR, "var(--link)"),
    (MOVING_COLOUR, "var(--good)"),
    (BAND, "var(--mark)"),
)
"""Colours of the drawings that follow the page's light or dark scheme."""


@dataclass(frozen=True)
class Drawing:
    """A picture with a title and a description for those who cannot see it."""

    title: str
    description: str
    svg: str


@dataclass(frozen=True)
class Fact:
    """A name and its value, or its values."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """What the page shows.

    Parameters
    ----------
    title, verdict
        Headline, and the verdict's word, which chooses its colour.
    subtitle
        One line that names what was checked.
    why
        Explanation, sentence by sentence; the first is the headline, the last the contradiction.
    facts
        Names and values, such as counts.
    drawings
        Pictures as SVG text.
    story
        The steps, None if there are none to show.
    mermaid
        Text for pasting into an issue, or empty.
    command
        How to replay the schedule, or empty.
    live
        Whether a server answers choices.
    repeats_from
        First step of a cycle that repeats for ever, or None.
    about_steps
        Which run the steps are of, in a sentence; empty where that is plain.
    """

    title: str
    verdict: str
    subtitle: str
    why: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    story: Story | None = None
    mermaid: str = ""
    command: str = ""
    live: bool = False
    repeats_from: int | None = None
    about_steps: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def story_data(story: Story, repeats_from: int | None = None) -> dict[str, Any]:
    """Return a story as the page's script reads it."""
    lost = None if story.no_return is None else story.no_return.step
    return {
        "steps": [_step_data(step) for step in story.steps],
        "offset": story.steps[0].number,
        "lost": lost,
        "endless": story.endless,
        "repeatsFrom": repeats_from,
    }


def _step_data(step: Step) -> dict[str, Any]:
    changed = {(change.section, change.name) for change in step.changes}
    gone = [c for c in step.changes if not c.after]
    sections: dict[str, list[dict[str, Any]]] = {}
    for part in step.parts:
        sections.setdefault(part.section, []).append(
            {
                "name": part.name,
                "items": [[item.text, item.tone] for item in part.items],
                "changed": (part.section, part.name) in changed,
            }
        )
    names = {(part.section, part.name) for part in step.parts}
    for change in gone:
        if (change.section, change.name) not in names:
            sections.setdefault(change.section, []).append(
                {"name": change.name, "items": [["gone", "ghost"]], "changed": True}
            )
    return {
        "fired": list(step.fired),
        "handled": [[h.event, h.note, h.tone] for h in step.handled],
        "sections": [{"name": name, "parts": parts} for name, parts in sections.items()],
        "changes": [str(change) for change in step.changes],
        "waits": list(step.waits),
        "choices": [[c.number, list(c.events), c.taken, c.completes] for c in step.choices],
        "unlisted": step.unlisted,
        "canComplete": step.can_complete,
    }


def inline_svg(text: str, prefix: str) -> str:
    """Return a picture as it may stand in a page: no preamble, ids of its own, page colours."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r"url\(#", f"url(#{prefix}-", text)
    text = re.sub(r'href="#', f'href="#{prefix}-', text)
    for colour, variable in _PAPER_AND_INK:
        text = text.replace(colour, variable)
    return re.sub(r"<svg ", '<svg aria-hidden="true" focusable="false" ', text, count=1)


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2")


def _read(name: str) -> Markup:
    return Markup((_FOLDER / name).read_text(encoding="utf-8"))


def script_json(value: object) -> str:
    """Return JSON that may stand in a script element: no closing tag, no comment."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def render_page(page: Page) -> str:
    """Return the page as text."""
    drawings: Sequence[tuple[Drawing, Markup]] = [
        (drawing, Markup(inline_svg(drawing.svg, f"d{number}")))
        for number, drawing in enumerate(page.drawings)
    ]
    data: dict[str, Any] = {"live": page.live, **page.extra}
    if page.story is not None:
        data |= story_data(page.story, page.repeats_from)
    return _template().render(
        page=page,
        drawings=drawings,
        style=_read("page.css"),
        script=_read("page.js"),
        data=Markup(script_json(data)),
    )
