"""Stories: a path told step by step, as plain values that reports, pages and prose share.

Nothing here knows what the parts of a state are: a model names them (:mod:`models.story`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Item:
    """One thing in a part of a state; ``tone`` says how it stands out (empty: not at all)."""

    text: str
    tone: str = ""


@dataclass(frozen=True)
class Part:
    """A named part of a state within a section, with its items in order."""

    section: str
    name: str
    items: tuple[Item, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """The items without their tones."""
        return tuple(item.text for item in self.items)


@dataclass(frozen=True)
class Change:
    """A part that differs between two steps, with its items before and after."""

    section: str
    name: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def gone(self) -> tuple[str, ...]:
        """Items that are there no more."""
        return _minus(self.before, self.after)

    @property
    def new(self) -> tuple[str, ...]:
        """Items that were not there before."""
        return _minus(self.after, self.before)

    def __str__(self) -> str:
        """``section, name: before -> after``, of long parts only what differs."""
        if max(len(self.before), len(self.after)) <= 1 or not (self.new or self.gone):
            text = f"{', '.join(self.before) or '-'} -> {', '.join(self.after) or '-'}"
        else:
            text = ", ".join([*(f"- {i}" for i in self.gone), *(f"+ {i}" for i in self.new)])
        return f"{self.section}, {self.name}: {text}"


def _minus(these: Sequence[str], those: Sequence[str]) -> tuple[str, ...]:
    left = Counter(these) - Counter(those)
    found = []
    for text in these:
        if left[text] > 0:
            left[text] -= 1
            found.append(text)
    return tuple(found)


@dataclass(frozen=True)
class Handled:
    """An event that was handled in a step, what came of it, and in which tone to say so."""

    event: str
    note: str
    tone: str = ""


@dataclass(frozen=True)
class Choice:
    """An instant that could come next.

    ``completes`` says whether a run can still complete after it, None if that is not known.
    """

    number: int
    events: tuple[str, ...]
    taken: bool
    completes: bool | None


@dataclass(frozen=True)
class Step:
    """What fell due, what was handled, and the state afterwards with its choices.

    ``waits`` says of each participant that cannot move now what it waits for; ``unlisted`` is the
    number of choices that are not in ``choices``.
    """

    number: int
    fired: tuple[str, ...]
    handled: tuple[Handled, ...]
    parts: tuple[Part, ...]
    changes: tuple[Change, ...]
    waits: tuple[str, ...]
    choices: tuple[Choice, ...]
    unlisted: int
    can_complete: bool | None


@dataclass(frozen=True)
class NoReturn:
    """The first step after which no continuation completes, and what a healthy run does instead.

    ``healthy`` are the instants of a shortest completing run from the state before; both are
    empty if the initial state is lost already.
    """

    step: int
    text: str
    healthy: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Story:
    """A path as a reader sees it.

    ``no_return`` is None if the path ends well, or if the graph is too large to know; then
    ``fate`` says so in words. ``endless`` says that the work never ends: a run that goes well
    goes on for ever.
    """

    steps: tuple[Step, ...]
    no_return: NoReturn | None
    fate: str
    endless: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the story as plain JSON values."""
        return asdict(self)


def changes_between(before: Sequence[Part], after: Sequence[Part]) -> tuple[Change, ...]:
    """Parts that differ, in the order of the later state; vanished parts last."""
    old = {(part.section, part.name): part.texts for part in before}
    new = {(part.section, part.name): part.texts for part in after}
    names = [*new, *(name for name in old if name not in new)]
    return tuple(
        Change(*name, old.get(name, ()), new.get(name, ()))
        for name in names
        if old.get(name, ()) != new.get(name, ())
    )
