"""The API of a stage execution context in words, read off the core's own class.

What a person has to write is what the clauses of the contract need; signatures and first lines of
docstrings come from the core, so that they cannot differ from what is checked.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Final

from frontier.context import StageExecutionContext
from frontier.tickets import EP_WAVE, FULL_STAGE_WORLD, StageAdmissionTicket
from verify.contract.implementation import ARGUMENTS, MEMBERS

_WIDTH: Final = 100
_TODO: Final = "raise NotImplementedError"


@dataclass(frozen=True)
class Member:
    """One member of the API: its name, and how it is declared, on one line."""

    name: str
    signature: str


def api() -> tuple[Member, ...]:
    """Return the constructor, the properties and the methods that clauses need, in that order."""
    cls = StageExecutionContext.__name__
    properties = [
        Member(name, f"property {name} -> {_returns(member.fget)}")
        for name, member in _members()
        if isinstance(member, property)
    ]
    methods = [
        Member(name, f"{name}({', '.join(_parameters(member))}) -> {_returns(member)}")
        for name, member in _members()
        if not isinstance(member, property)
    ]
    given = ", ".join(_parameters(StageExecutionContext.__init__))
    ticket = f"{StageAdmissionTicket.__name__}({', '.join(_ticket_fields())})"
    constructor = Member("", f"{cls}({given})")
    return (constructor, *properties, *methods, Member("", f"{ticket}, frozen"))


def skeleton_text() -> str:
    """Return a Python file with every member of the API, each to be filled in."""
    return "\n".join((*_head(), *_class())) + "\n"


def _members() -> Iterator[tuple[str, Any]]:
    """Yield the members in the order in which the core's class defines them."""
    return ((name, each) for name, each in vars(StageExecutionContext).items() if name in MEMBERS)


def _parameters(function: Any) -> list[str]:
    """Return a method's parameters as written, without ``self`` and what only the core's has."""
    own = inspect.signature(function).parameters.values()
    names = [p for p in own if p.name not in ("self", "rule")]
    written = str(inspect.Signature(names)).removeprefix("(").removesuffix(")")
    # Annotations are texts here, as everywhere in the core, and are shown in quotes.
    return [part for part in _split(written.replace("'", "")) if part]


def _split(written: str) -> Iterator[str]:
    """Split at the commas that are inside no brackets."""
    depth, start = 0, 0
    for at, letter in enumerate(written):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield written[start:at].strip()
            start = at + 1
    yield written[start:].strip()


def _returns(function: Any) -> str:
    return str(inspect.signature(function).return_annotation)


def _ticket_fields() -> list[str]:
    return [
        f"{each.name}: {each.type}" + ("" if each.default != () else " = ()")
        for each in fields(StageAdmissionTicket)
    ]


def _summary(member: Any) -> str:
    return (inspect.getdoc(member) or "").splitlines()[0]


def _head() -> Iterator[str]:
    yield '"""A stage execution context of my own.'
    yield ""
    yield "frontier-verify contract --impl THIS_FILE.py:StageExecutionContext  # clause by clause"
    yield "frontier-verify check --context THIS_FILE.py:StageExecutionContext  # lanes over it"
    yield '"""'
    yield ""
    yield "from __future__ import annotations"
    yield ""
    yield "from collections.abc import Hashable, Sequence"
    yield "from dataclasses import dataclass"
    yield ""
    yield f'FULL_STAGE_WORLD = "{FULL_STAGE_WORLD}"'
    yield f'EP_WAVE = "{EP_WAVE}"'
    yield ""
    yield ""
    yield "@dataclass(frozen=True)"
    yield f"class {StageAdmissionTicket.__name__}:"
    yield f'    """{_summary(StageAdmissionTicket)}"""'
    yield ""
    yield from (f"    {each}" for each in _ticket_fields())
    yield ""
    yield ""


def _class() -> Iterator[str]:
    yield f"class {StageExecutionContext.__name__}:"
    yield f'    """{_summary(StageExecutionContext)}"""'
    yield ""
    yield from _declared("__init__", ["self", *_parameters(StageExecutionContext.__init__)], "None")
    yield from (f"        self.{name} = {name}" for name in ARGUMENTS)
    for name, member in _members():
        if name in ARGUMENTS:
            continue
        function = member.fget if isinstance(member, property) else member
        yield ""
        if isinstance(member, property):
            yield "    @property"
        yield from _declared(name, ["self", *_parameters(function)], _returns(function))
        yield f'        """{_summary(member)}"""'
        yield f"        {_TODO}"


def _declared(name: str, parameters: list[str], returns: str) -> Iterator[str]:
    line = f"    def {name}({', '.join(parameters)}) -> {returns}:"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"    def {name}("
    yield from (f"        {each}," for each in parameters)
    yield f"    ) -> {returns}:"
