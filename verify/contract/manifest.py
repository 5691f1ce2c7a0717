"""The expectation manifest ``contract.toml``: which clause or scenario has which known verdict.

.. code-block:: toml

    [clauses]
    AC-59 = "violated"          # known: strict head for lane work

    [scenarios]
    published-deadlock = "violated"

What is not named is expected to hold. A named deviation that is gone is as much a surprise as a
new one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from verify.contract.clauses import CLAUSE_BY_ID
from verify.contract.errors import ContractInputError

CLAUSE_VERDICTS: Final = ("holds", "violated", "missing")
SCENARIO_VERDICTS: Final = ("holds", "violated")


@dataclass(frozen=True)
class Manifest:
    """Expected verdicts by clause id and by scenario name."""

    clauses: Mapping[str, str] = field(default_factory=dict)
    scenarios: Mapping[str, str] = field(default_factory=dict)
    source: str = "no manifest"

    def expected(self, clause_id: str) -> str:
        """Return the expected verdict of a clause; ``holds`` unless named."""
        return self.clauses.get(clause_id, "holds")

    def require_clauses_of(self, rule: str) -> None:
        """Refuse a clause that is none of a rule's contract: no test would ever look at it.

        Raises
        ------
        ContractInputError
            Naming the clause and the rules that have it.
        """
        for name in self.clauses:
            rules = CLAUSE_BY_ID[name].rules
            if rule not in rules:
                raise ContractInputError(
                    f"{self.source}: [clauses] names {name}, which is no clause of {rule} but of "
                    f"{', '.join(rules)}; take it out"
                )


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises
    ------
    ContractInputError
        If it cannot be read, is no TOML, or names an unknown section, clause or verdict.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ContractInputError(f"cannot read {path}: {error}") from None
    for section in data:
        if section not in ("clauses", "scenarios"):
            raise ContractInputError(
                f"{path}: unknown section {section!r}; expected [clauses] and [scenarios]"
            )
    clauses = _section(path, data, "clauses", CLAUSE_VERDICTS)
    for name in clauses:
        if name not in CLAUSE_BY_ID:
            raise ContractInputError(
                f"{path}: [clauses] names {name!r}; `frontier-verify contract --list` shows all"
            )
    return Manifest(clauses, _section(path, data, "scenarios", SCENARIO_VERDICTS), str(path))


def _section(
    path: Path, data: Mapping[str, Any], name: str, verdicts: tuple[str, ...]
) -> dict[str, str]:
    section = data.get(name, {})
    if not isinstance(section, dict):
        raise ContractInputError(f"{path}: {name} must be a section, [{name}]")
    for key, value in section.items():
        if value not in verdicts:
            raise ContractInputError(
                f"{path}: [{name}] {key} is {value!r}; expected one of {', '.join(verdicts)}"
            )
    return section
