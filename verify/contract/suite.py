"""The contract as a pytest class: subclass it in one line, get one test per clause."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import pytest

from verify.contract.check import check_contract
from verify.contract.clauses import clauses_of
from verify.contract.client import Bounds
from verify.contract.errors import ContractInputError
from verify.contract.loader import load
from verify.contract.manifest import Manifest, read_manifest
from verify.contract.orders import ORDERS
from verify.contract.report import ClauseResult, ContractReport

_SCENARIO_CHECK = "verify.cli.contexts"
"""Module that explores scenarios over a foreign context; imported only when one is named."""


_loaded = cache(load)
"""Each implementation is loaded once per session."""


@cache
def contract_report(impl: str, rule: str, max_tickets: int) -> ContractReport:
    """Check an implementation once per session.

    Raises
    ------
    ContractInputError
        If it cannot be loaded.
    """
    bounds = [Bounds(max_tickets), Bounds(min(max_tickets, 3), 2, 1, 1, 1)]
    return check_contract(_loaded(impl), ORDERS[rule], bounds)


class AdmissionContract:
    """One test per clause, for a stage execution context of your own.

    .. code-block:: python

        class TestMyContext(AdmissionContract):
            impl = "engine/context.py:StageExecutionContext"

    Attributes
    ----------
    impl
        ``FILE.py:Class`` or ``package.module:Class``; ``--admission-impl`` overrides it. A
        relative file is looked up from the rootdir, then from the test file's folder.
    rule
        Admission rule whose contract it is; ``--admission-rule`` overrides it.
    max_tickets
        Tickets live at once; ``--admission-max-tickets`` overrides it.
    manifest
        Expectation manifest; default: ``contract.toml`` beside the test file, then in the rootdir.
    """

    impl: ClassVar[str] = ""
    rule: ClassVar[str] = "ep_ordered"
    max_tickets: ClassVar[int] = 3
    manifest: ClassVar[str] = ""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make one test per clause, and one per scenario of the manifest."""
        config, folder = metafunc.config, Path(str(metafunc.module.__file__)).parent
        try:
            suite = _Suite(type(self), config, folder)
        except ContractInputError as error:
            raise pytest.UsageError(str(error)) from None
        metafunc.parametrize("admission", suite.tests(), ids=str)

    def test_contract(self, admission: _Expectation) -> None:
        """Compare one clause's, or scenario's, verdict with the expected one."""
        problem = admission.problem()
        if problem:
            pytest.fail(problem, pytrace=False)


class _Suite:
    """What one subclass tests, resolved against the command line."""

    def __init__(self, cls: type[AdmissionContract], config: pytest.Config, folder: Path) -> None:
        given = config.getoption("--admission-impl") or cls.impl
        if not given:
            raise ContractInputError(
                f"{cls.__name__} names no implementation; set impl = 'FILE.py:Class' or give "
                f"--admission-impl"
            )
        self.folders = (config.invocation_params.dir, config.rootpath, folder)
        self.impl = self._located(given)
        self.rule = config.getoption("--admission-rule") or cls.rule
        if self.rule not in ORDERS:
            raise ContractInputError(
                f"unknown rule {self.rule!r}; expected one of: {', '.join(ORDERS)}"
            )
        self.max_tickets = config.getoption("--admission-max-tickets") or cls.max_tickets
        if self.max_tickets < 1:
            raise ContractInputError(f"max_tickets must be at least 1, got {self.max_tickets}")
        named = config.getoption("--admission-manifest") or cls.manifest
        self.manifest = self._manifest(named, (folder, config.rootpath))
        self.manifest.require_clauses_of(self.rule)
        _loaded(self.impl)  # one error for all clauses, if it cannot be loaded

    def _located(self, impl: str) -> str:
        where, _, class_name = impl.rpartition(":")
        if where.endswith(".py") and not Path(where).is_absolute():
            for folder in self.folders:
                if (folder / where).is_file():
                    return f"{folder / where}:{class_name}"
        return impl

    def _manifest(self, named: str, folders: tuple[Path, Path]) -> Manifest:
        if named:
            found = [folder / named for folder in self.folders if (folder / named).is_file()]
            return read_manifest(found[0] if found else Path(named))
        for folder in folders:
            if (folder / "contract.toml").is_file():
                return read_manifest(folder / "contract.toml")
        return Manifest()

    def tests(self) -> list[_Expectation]:
        clauses = [
            _ClauseExpectation(self, clause.id, self.manifest.expected(clause.id))
            for clause in clauses_of(self.rule)
        ]
        scenarios = [
            _ScenarioExpectation(self, name, verdict)
            for name, verdict in self.manifest.scenarios.items()
        ]
        return [*clauses, *scenarios]


class _Expectation:
    """One test: what is expected of a clause or scenario."""

    def __init__(self, suite: _Suite, name: str, expected: str) -> None:
        self.suite = suite
        self.name = name
        self.expected = expected

    def __str__(self) -> str:
        return self.name

    def problem(self) -> str:
        """Say what is wrong, with a command that shows it; empty for nothing."""
        raise NotImplementedError

    def _surprise(self, found: str, title: str, details: list[str]) -> str:
        if found == self.expected:
            return ""
        pinned = f"expected {self.expected} ({self.suite.manifest.source})"
        head = f"{self.name} {found}, {pinned}: {title}"
        if found == "holds":
            head += "\nunexpected pass: the pinned deviation is gone; take its line out"
        return "\n".join([head, *details])


class _ClauseExpectation(_Expectation):
    def problem(self) -> str:
        suite = self.suite
        report = contract_report(suite.impl, suite.rule, suite.max_tickets)
        (result,) = [r for r in report.clauses if r.clause.id == self.name]
        return self._surprise(result.status, result.clause.text, _details(report, result))


def _details(report: ContractReport, result: ClauseResult) -> list[str]:
    lines = [f"replay: {report.replay_command(result)}"]
    finding = result.finding
    if finding is None:
        return [*([result.message] if result.message else []), *lines]
    calls = [f"  {number}  {call.text}" for number, call in enumerate(finding.calls, start=1)]
    deviation = finding.deviation
    return [
        *calls,
        f"expected: {deviation.expected}",
        f"observed: {deviation.observed}",
        *lines,
    ]


class _ScenarioExpectation(_Expectation):
    def problem(self) -> str:
        check: Any = importlib.import_module(_SCENARIO_CHECK)
        try:
            found, summary = check.scenario_verdict(self.name, self.suite.impl)
        except ContractInputError as error:
            return f"{self.name}: {error}"
        replay = f"replay: frontier-verify check {self.name} --context {quote(self.suite.impl)}"
        return self._surprise(found, summary, [replay])
