"""The result of a contract check, clause by clause, for people, programs and CI."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, Literal
from xml.etree import ElementTree

from verify.contract.clauses import LATITUDES, Clause
from verify.contract.client import Bounds
from verify.contract.explore import Exploration, Finding
from verify.contract.operations import format_calls
from verify.contract.script import as_python
from verify.words import counted

Status = Literal["holds", "violated", "missing", "unreached"]
Verdict = Literal["holds", "violated", "undetermined"]

EXIT_CODES: Final[dict[Verdict, int]] = {"holds": 0, "violated": 1, "undetermined": 3}
"""What a program returns for a verdict; an implementation that lacks members is violated."""


@dataclass(frozen=True)
class ClauseResult:
    """What a check found out about one clause.

    Attributes
    ----------
    clause, status
        The clause, and whether it holds, is violated, needs members that are missing, or was
        never reached within the bounds.
    checks
        Comparisons that agreed.
    finding
        The shortest call sequence that breaks it.
    missing
        Members that it needs and the implementation lacks.
    """

    clause: Clause
    status: Status
    checks: int = 0
    finding: Finding | None = None
    missing: tuple[str, ...] = ()

    @property
    def extent(self) -> str:
        """How far the verdict goes: comparisons that agreed, or calls of the finding."""
        if self.status == "holds":
            return counted(self.checks, "check")
        if self.finding is None or self.status != "violated":
            return ""
        calls = len(self.finding.calls)
        return f"in {counted(calls, 'call')}" if calls else "when constructed"

    @property
    def message(self) -> str:
        """What is wrong, in one line; empty when nothing is."""
        if self.status == "missing":
            return f"missing: {', '.join(self.missing)}"
        if self.status == "unreached":
            return "never reached: raise the bounds, or mend what is violated first"
        if self.finding is None:
            return ""
        deviation, calls = self.finding.deviation, format_calls(self.finding.calls)
        what = f"expected: {deviation.expected}; observed: {deviation.observed}"
        return f"{calls}: {what}" if calls else what


@dataclass(frozen=True)
class ContractReport:
    """The verdict on one implementation under one admission rule's contract."""

    implementation: str
    rule: str
    own_rule: str | None
    clauses: tuple[ClauseResult, ...]
    explorations: tuple[Exploration, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """``holds`` only if every clause was reached and agreed throughout."""
        return self.verdict_on(frozenset(result.clause.id for result in self.clauses))

    def verdict_on(self, wanted: frozenset[str]) -> Verdict:
        """Return the verdict on some of the clauses, by id."""
        statuses = [result.status for result in self.clauses if result.clause.id in wanted]
        if "violated" in statuses or "missing" in statuses:
            return "violated"
        complete = all(exploration.complete for exploration in self.explorations)
        return "holds" if complete and "unreached" not in statuses else "undetermined"

    @property
    def exit_code(self) -> int:
        """0 holds, 1 violated or missing, 3 undetermined."""
        return EXIT_CODES[self.verdict]

    @property
    def observed(self) -> dict[str, str]:
        """What the implementation does where the protocol page leaves it open."""
        merged: dict[str, str] = {}
        for exploration in self.explorations:
            merged.update(exploration.observed)
        return {LATITUDES[key]: choice for key, choice in sorted(merged.items())}

    def replay_command(self, result: ClauseResult) -> str:
        """Command that shows the clause's finding again."""
        words = ["frontier-verify contract"]
        if self.own_rule is None:
            words.append(f"--impl {quote(self.implementation)}")
        elif self.own_rule != self.rule:
            words.append(f"--own-rule {quote(self.own_rule)}")
        words.append(f"--rule {self.rule}")
        finding = result.finding
        if finding is not None and finding.calls:
            profile = finding.profile
            words.append(f"--capacity {profile.capacity} --ep-size {profile.ep_size}")
            words.append(f'--replay "{format_calls(finding.calls)}"')
        return " ".join(words)

    def to_json(self) -> dict[str, Any]:
        """Return the whole report as plain JSON values."""
        return {
            "implementation": self.implementation,
            "rule": self.rule,
            "own_rule": self.own_rule,
            "verdict": self.verdict,
            "bounds": [_exploration_json(exploration) for exploration in self.explorations],
            "states": sum(exploration.states for exploration in self.explorations),
            "transitions": sum(exploration.transitions for exploration in self.explorations),
            "calls": sum(exploration.calls for exploration in self.explorations),
            "clauses": [self._clause_json(result) for result in self.clauses],
            "left_open": self.observed,
            "notes": list(self.notes),
        }

    def _clause_json(self, result: ClauseResult) -> dict[str, Any]:
        clause, finding = result.clause, result.finding
        data: dict[str, Any] = {
            "id": clause.id,
            "group": clause.group,
            "text": clause.text,
            "section": clause.section,
            "status": result.status,
            "checks": result.checks,
            "missing": list(result.missing),
            "message": result.message or None,
            "calls": None,
            "length": None,
            "expected": None,
            "observed": None,
            "replay": None,
            "script": None,
        }
        if finding is not None:
            data |= {
                "calls": [call.text for call in finding.calls],
                "length": len(finding.calls),
                "expected": finding.deviation.expected,
                "observed": finding.deviation.observed,
                "replay": self.replay_command(result),
                "script": self.script(result),
            }
        return data

    def script(self, result: ClauseResult) -> str | None:
        """Python that shows the finding, None where no call sequence is needed."""
        if result.finding is None or not result.finding.calls:
            return None
        title = f"{result.clause.id}: {result.clause.text}"
        return as_python(result.finding, self.implementation, title)


def _exploration_json(exploration: Exploration) -> dict[str, Any]:
    return {
        **exploration.bounds._asdict(),
        "states": exploration.states,
        "transitions": exploration.transitions,
        "calls": exploration.calls,
        "depth": exploration.depth,
        "complete": exploration.complete,
    }


def bounds_text(exploration: Exploration) -> str:
    """Name a bound and what was explored within it, in one line."""
    return (
        f"{exploration.bounds.text}: {counted(exploration.states, 'state')}, "
        f"{counted(exploration.transitions, 'transition')}, {counted(exploration.calls, 'call')}, "
        f"depth {exploration.depth}{'' if exploration.complete else ', NOT COMPLETE'}"
    )


def to_junit(reports: list[ContractReport]) -> str:
    """Return JUnit XML: one suite per report, one test case per clause.

    A clause that was never reached is an error, a missing or violated one a failure.
    """
    root = ElementTree.Element("testsuites", name="admission contract")
    for report in reports:
        counts = [result.status for result in report.clauses]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=f"{report.implementation} under {report.rule}",
            tests=str(len(counts)),
            failures=str(counts.count("violated") + counts.count("missing")),
            errors=str(counts.count("unreached")),
        )
        for result in report.clauses:
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"contract.{report.rule}", name=result.clause.id
            )
            if result.status != "holds":
                kind = "error" if result.status == "unreached" else "failure"
                node = ElementTree.SubElement(
                    case, kind, type=result.status, message=f"{result.clause.text}"
                )
                node.text = f"{result.message}\n{report.replay_command(result)}"
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


__all__ = ["Bounds", "ClauseResult", "ContractReport", "bounds_text", "to_junit"]
