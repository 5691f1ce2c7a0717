"""Mutants by a tool, and what survives: ``python -m reports.mutation`` builds ``mutation.md``.

Runs mutmut over ``frontier/`` (configured in ``pyproject.toml``; results are kept in ``mutants/``,
so that a run that was stopped goes on) and writes the page from its results. ``--no-run`` only
writes. Why a survivor is no gap is argued in ``mutation.toml``, by function and by what the mutant
changed; a survivor that no entry fits is UNEXPLAINED.
"""

from __future__ import annotations

import ast
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code

from verify.files import write_text_atomically
from verify.words import counted

HERE = Path(__file__).parent
ROOT = HERE.parent
CORE = ROOT / "frontier"
RESULTS = ROOT / "mutants" / "frontier"
COMMAND = ["mutmut", "run", "--max-children", "1"]
ALIVE = ("survived", "no tests")


class Argument(NamedTuple):
    """Why certain survivors are no gap: those in ``function`` whose new lines match ``change``."""

    function: str
    change: str
    why: str


class Survivor(NamedTuple):
    """A mutant that no test noticed: module, function, its lines before and after."""

    module: str
    function: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    status: str

    @property
    def text(self) -> str:
        """The change in one line of the page."""
        old, new = (" / ".join(line.strip() for line in lines) for lines in self[2:4])
        note = " (reached by no test)" if self.status == "no tests" else ""
        change = f"`{old or '(nothing)'}` becomes `{new or '(nothing)'}`"
        return f"* `{self.module}.{self.function}`{note}: {change}"


def arguments() -> list[Argument]:
    """Read the arguments."""
    data = tomllib.loads((HERE / "mutation.toml").read_text(encoding="utf-8"))
    return [Argument(**entry) for entry in data.get("survivor", [])]


def statuses(module: str) -> dict[str, str]:
    """Status of each mutant of a module by the tool's name for it."""
    path = RESULTS / f"{module}.py.meta"
    if not path.exists():
        return {}
    codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return {name: status_by_exit_code[code] for name, code in codes.items()}


def survivor(module: str, name: str, status: str) -> Survivor:
    """Look up what a mutant changed."""
    lines = get_diff_for_mutant(name, path=f"frontier/{module}.py").splitlines()
    changed = [line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    return Survivor(
        module,
        function_of(name),
        tuple(line[1:] for line in changed if line.startswith("-")),
        tuple(line[1:] for line in changed if line.startswith("+")),
        status,
    )


def function_of(name: str) -> str:
    """``Class.method`` or ``function`` of ``frontier.module.xǁClassǁmethod__mutmut_3``."""
    mangled = name.rpartition(".")[2].partition("__mutmut_")[0]
    if mangled.startswith("xǁ"):
        return ".".join(mangled.split("ǁ")[1:])
    return mangled.removeprefix("x_")


def argued(alive: Survivor, known: list[Argument]) -> str:
    """Why a survivor is no gap; empty if nobody has said."""
    where, after = f"{alive.module}.{alive.function}", "\n".join(alive.after)
    fits = (a.why for a in known if fnmatchcase(where, a.function) and re.search(a.change, after))
    return next(fits, "")


def untouched(module: str) -> int:
    """Functions of a module that the tool leaves alone because they are decorated."""
    tree = ast.parse((CORE / f"{module}.py").read_text(encoding="utf-8"))
    return sum(
        isinstance(node, ast.FunctionDef)
        and bool(node.decorator_list)
        and ast.unparse(node.decorator_list[0]) not in ("staticmethod", "classmethod")
        for node in ast.walk(tree)
    )


def page() -> Iterator[str]:
    """Write the page line by line."""
    modules = sorted(path.stem for path in CORE.glob("[!_]*.py"))
    found = {module: statuses(module) for module in modules}
    alive = [
        survivor(module, name, status)
        for module in modules
        for name, status in found[module].items()
        if status in ALIVE
    ]
    known = arguments()
    why = {each: argued(each, known) for each in alive}
    yield from _head(sum(map(len, found.values())))
    yield from _table(found, why)
    unexplained = [each for each in alive if not why[each]]
    yield "## Survivors without an argument\n"
    yield "\n".join(f"{each.text} **UNEXPLAINED**" for each in unexplained) or "None."
    yield "\n## Survivors, by argument\n"
    for reason in dict.fromkeys(a.why for a in known):
        mine = [each for each in alive if why[each] == reason]
        if mine:
            yield f"**{reason}** {counted(len(mine), 'mutant')}:\n"
            yield "\n".join(each.text for each in mine) + "\n"


def _head(total: int) -> Iterator[str]:
    yield "# Mutants by a tool\n"
    yield (
        f"Built by `python -m reports.mutation` from the results of `{' '.join(COMMAND)}`: mutmut "
        f"{version('mutmut')}, Python {platform.python_version()}, {counted(total, 'mutant')} of "
        "`frontier/`. The tests and options are those of `[tool.mutmut]` in `pyproject.toml`; "
        "[docs/contracts.md](../docs/contracts.md) says how they were chosen. The curated mutants, "
        "and which layer kills them, are in [kill_matrix.md](kill_matrix.md).\n"
    )


def _table(found: dict[str, dict[str, str]], why: dict[Survivor, str]) -> Iterator[str]:
    yield (
        "Killed by a failing test, or by a test that no longer ends (*time out*). *Explained* "
        "survivors are argued below. *Not run*: the tool did not get there. *Decorated*: "
        "functions that the tool leaves alone, mostly properties, as it does fields of classes and "
        "constants.\n"
    )
    yield "| module | mutants | killed | time out | explained | UNEXPLAINED | not run | decorated |"
    yield "|---|---|---|---|---|---|---|---|"
    total: Counter[str] = Counter()
    for module, by_name in found.items():
        row = Counter({"mutants": len(by_name), "decorated": untouched(module)})
        row.update(status for status in by_name.values() if status not in ALIVE)
        own = [reason for each, reason in why.items() if each.module == module]
        row.update("explained" if reason else "UNEXPLAINED" for reason in own)
        total += row
        yield _row(module, row)
    yield _row("all", total) + "\n"
    odd = set(total) - {"mutants", "decorated", "killed", "timeout", "explained", "UNEXPLAINED"}
    odd -= {"not checked"}
    if odd:
        yield "Besides: " + ", ".join(f"{total[name]} {name}" for name in sorted(odd)) + ".\n"


def _row(name: str, row: Counter[str]) -> str:
    columns = ("mutants", "killed", "timeout", "explained", "UNEXPLAINED", "not checked")
    cells = [str(row[column]) for column in (*columns, "decorated")]
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    """Run the tool, unless told not to, and write the page."""
    if "--no-run" not in sys.argv[1:]:
        subprocess.run([sys.executable, "-m", *COMMAND], cwd=ROOT, check=True)
    write_text_atomically(HERE / "mutation.md", "\n".join(page()) + "\n")
    print(f"{HERE / 'mutation.md'} written", file=sys.stderr)


if __name__ == "__main__":
    main()
