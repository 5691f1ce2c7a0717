"""One call sequence step by step, for replays."""

from __future__ import annotations

from dataclasses import dataclass

from verify.contract.clauses import CLAUSE, Clause
from verify.contract.errors import ContractInputError
from verify.contract.implementation import Implementation
from verify.contract.operations import Call
from verify.contract.reference import Reference
from verify.contract.session import Deviation, Profile, Session


@dataclass(frozen=True)
class Step:
    """One call of a walk: its number from 1, its text, and what came of it."""

    number: int
    text: str
    outcome: str


@dataclass(frozen=True)
class Walk:
    """A call sequence as it went.

    Attributes
    ----------
    steps
        The calls that were made.
    deviation
        The first difference to the contract, None for none.
    ending
        How a sequence without a difference ended.
    whole
        Whether every call was made and judged.
    """

    steps: tuple[Step, ...]
    deviation: Deviation | None
    ending: str
    whole: bool

    @property
    def clause(self) -> Clause:
        """The broken clause; only after a deviation."""
        if self.deviation is None:
            raise ValueError("the walk has no deviation, so there is no broken clause")
        return CLAUSE[self.deviation.clause]


def walk(
    implementation: Implementation,
    reference: Reference,
    profile: Profile,
    calls: tuple[Call, ...],
) -> Walk:
    """Make the calls on a new context, compare each, and drain the context at the end.

    Raises
    ------
    ContractInputError
        If a call needs a method or a ticket that is not there.
    """
    session = Session(implementation, reference, profile)
    steps: list[Step] = []
    for number, call in enumerate(calls, start=1):
        if not session.can(call):
            raise ContractInputError(
                f"replay: call {number}, {call.text!r}: the implementation lacks the method, or "
                f"no earlier call minted the ticket"
            )
        expected = reference.expect(session.state, call)
        wrong = session.apply(call)
        if wrong is not None:
            steps.append(Step(number, call.text, f"deviates: {wrong.observed}"))
            return Walk(tuple(steps), wrong, "", True)
        steps.append(Step(number, call.text, f"as expected ({expected.outcome})"))
        if session.open_ended:
            ending = "the protocol page does not say what follows this call; stopped there"
            return Walk(tuple(steps), None, ending, number == len(calls))
    wrong = session.drain()
    if wrong is not None:
        steps.append(Step(len(calls) + 1, "release and admit until idle", "deviates"))
        return Walk(tuple(steps), wrong, "", True)
    return Walk(tuple(steps), None, "every call as expected, and the context drains", True)
