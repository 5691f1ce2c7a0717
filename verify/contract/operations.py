"""Operations and calls of a contract client, and the one text form that replays them.

A call names tickets by the operation they were minted for, so that a sequence means the same for
every implementation. The text form is what reports print and ``--replay`` reads:
``full 0.0; wave w0; try 0.0; release 0.0; cancel w0; bind 0.0; shift 0.0 > w1;
promote 0.0 + 1.0 > w1; restore w1 > 0.1 + 1.1``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, Literal, NamedTuple, get_args

from verify.contract.errors import ContractInputError

WAVE_LANE: Final = -1
"""Lane number of operations that are EP waves."""


class Operation(NamedTuple):
    """An operation id: hashable, and with a ``lane`` for rules that ask for one.

    Waves have lane :data:`WAVE_LANE`; the scope of an operation follows from its lane.
    """

    lane: int
    number: int

    def __deepcopy__(self, memo: object) -> Operation:
        """Return itself: an operation id is a value."""
        return self

    @property
    def is_wave(self) -> bool:
        """Whether the operation is an EP wave."""
        return self.lane == WAVE_LANE

    @property
    def text(self) -> str:
        """``lane.number``, or ``wNUMBER`` for a wave."""
        return f"w{self.number}" if self.is_wave else f"{self.lane}.{self.number}"


class Unhashable(list[Any]):
    """Stands for an operation id that cannot be hashed."""


Kind = Literal[
    "full", "wave", "try", "release", "cancel", "bind", "shift", "promote", "restore", "owns", "ask"
]
"""Methods in one word: ``shift`` transitions scope, ``ask`` asks all three is_* questions."""
Participants = Literal["exact", "none", "short", "long", "reversed", "shifted"]
Oddity = Literal["", "unhashable", "scope", "other-stage", "other-replica", "odd-scope"]

FOREIGN: Final[tuple[Oddity, ...]] = ("other-stage", "other-replica", "odd-scope")
"""Oddities that replace the ticket: of another stage, another replica, of unknown scope."""


class Call(NamedTuple):
    """One call of the public API (PROTOCOL.md section 2).

    Attributes
    ----------
    kind
        Method, in one word.
    tickets
        Operations whose latest tickets are passed.
    new
        Operation ids passed for tickets to be minted.
    participants
        How the EP participant set relates to the exact one.
    oddity
        What is wrong with the arguments besides, empty for nothing: an unhashable operation id,
        an unknown scope asked for, or a ticket of another stage, replica or unknown scope.
    """

    kind: Kind
    tickets: tuple[Operation, ...] = ()
    new: tuple[Operation, ...] = ()
    participants: Participants = "exact"
    oddity: Oddity = ""

    @property
    def text(self) -> str:
        """The call in the text form of this module."""
        parts: list[str] = [self.kind]
        named = " + ".join(op.text for op in self.tickets)
        minted = " + ".join(op.text for op in self.new)
        if self.kind in ("full", "wave"):
            parts.append(minted)
        elif self.kind in ("shift", "promote", "restore"):
            parts.append(f"{named or '-'} > {minted or '-'}")
        else:
            parts.append(named)
        if self.participants != "exact":
            parts.append(f"participants={self.participants}")
        if self.oddity:
            parts.append(f"odd={self.oddity}")
        return " ".join(parts)


@cache
def participant_ids(participants: Participants, ep_size: int) -> tuple[int, ...]:
    """Participant set of a call on a context of ``ep_size``; only ``exact`` is right."""
    exact = tuple(range(ep_size))
    return {
        "exact": exact,
        "none": (),
        "short": exact[:-1],
        "long": (*exact, ep_size),
        "reversed": exact[::-1],
        "shifted": tuple(i + 1 for i in exact),
    }[participants]


def format_calls(calls: tuple[Call, ...]) -> str:
    """Join calls to one replay text."""
    return "; ".join(call.text for call in calls)


_OPERATION = re.compile(r"(?:w(\d+)|(\d+)\.(\d+))")
_WORDS: Final[tuple[str, ...]] = get_args(Kind)
_SETS: Final[tuple[str, ...]] = get_args(Participants)
_ODDITIES: Final = ("unhashable", "scope", *FOREIGN)


def _parse_operation(word: str, where: str) -> Operation:
    match = _OPERATION.fullmatch(word)
    if match is None:
        raise ContractInputError(
            f"replay: {where!r}: {word!r} is no operation; write LANE.NUMBER (0.1) or wNUMBER (w0)"
        )
    wave, lane, number = match.groups()
    return Operation(WAVE_LANE, int(wave)) if wave else Operation(int(lane), int(number))


def _parse_operations(text: str, where: str) -> tuple[Operation, ...]:
    words = [word.strip() for word in text.split("+")]
    return tuple(_parse_operation(word, where) for word in words if word not in ("", "-"))


def _parse_call(text: str) -> Call:
    kind, _, rest = text.partition(" ")
    if kind not in _WORDS:
        raise ContractInputError(
            f"replay: {text!r}: unknown call {kind!r}; expected one of {', '.join(_WORDS)}"
        )
    options = dict(re.findall(r"(participants|odd)=(\S+)", rest))
    body = re.sub(r"(participants|odd)=\S+", "", rest).strip()
    participants, oddity = options.get("participants", "exact"), options.get("odd", "")
    if participants not in _SETS or (oddity and oddity not in _ODDITIES):
        raise ContractInputError(
            f"replay: {text!r}: participants is one of {', '.join(_SETS)}; "
            f"odd is one of {', '.join(_ODDITIES)}"
        )
    named, _, minted = body.partition(">")
    if kind in ("full", "wave"):
        named, minted = "", named
    call = Call(
        kind,  # type: ignore[arg-type]  # checked against _WORDS above
        _parse_operations(named, text),
        _parse_operations(minted, text),
        participants,
        oddity,
    )
    _require_shape(call, text)
    return call


def _require_shape(call: Call, text: str) -> None:
    """Refuse a call with the wrong number of operations, or of the wrong scope."""
    counts = {
        "full": (0, 1),
        "wave": (0, 1),
        "shift": (1, 1),
        "promote": (None, 1),
        "restore": (1, None),
    }
    tickets, new = counts.get(call.kind, (1, 0))
    wrong_scope = (
        (call.kind == "full" and any(op.is_wave for op in call.new))
        or (call.kind in ("wave", "promote") and not all(op.is_wave for op in call.new))
        or (call.kind == "restore" and any(op.is_wave for op in call.new))
    )
    if (
        (tickets is not None and len(call.tickets) != tickets)
        or (new is not None and len(call.new) != new)
        or wrong_scope
    ):
        raise ContractInputError(
            f"replay: {text!r}: wrong number of operations; write it like 'full 0.0', 'try 0.0', "
            f"'shift 0.0 > w0', 'promote 0.0 + 1.0 > w0' or 'restore w0 > 0.1 + 1.1'"
        )


def parse_calls(text: str) -> tuple[Call, ...]:
    """Read a replay text.

    Raises
    ------
    ContractInputError
        If the text is not in the form of this module.
    """
    calls = tuple(_parse_call(part.strip()) for part in text.split(";") if part.strip())
    if not calls:
        raise ContractInputError("replay: no call given; write for example 'full 0.0; try 0.0'")
    return calls
