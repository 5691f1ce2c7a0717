"""``frontier-verify matrix run|compare``: the before/after matrix of a set of cases (issue 3)."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from frontier.admission import ADMISSION_RULES
from models.matrix import CaseSet, CaseSetError, MatrixCase, load_set, published_differences
from models.rules import admission_rule, is_own_rule
from verify.cli import options as opt
from verify.cli.errors import UNDETERMINED, UsageError, emit, require_writable, tell
from verify.cli.render import err, out
from verify.matrix.compare import EXPLAIN, PASS, STOP, Judgement, compare
from verify.matrix.provenance import code_of, versions
from verify.matrix.root import MatrixError, MatrixRoot
from verify.matrix.runner import Job, JobResult, run_jobs

app = typer.Typer(
    help="Run a set of cases, and compare two runs of it.",
    no_args_is_help=True,
    add_completion=False,
)

BEFORE_AND_AFTER: Final = ("strict_fifo", "ep_ordered")
DEFAULT_ROOT: Final = Path("matrix")
_SOURCES: Final = Path(__file__).parents[2]
_PACKAGES: Final = ("frontier", "models", "verify")
_COLOURS: Final = {PASS: "green", EXPLAIN: "yellow", STOP: "red"}


@app.command("run")
def run_matrix(
    set_name: Annotated[
        str, typer.Option("--set", metavar="NAME|FILE.json", help="The set of cases.")
    ] = "published",
    group: Annotated[
        list[str] | None, typer.Option(help="Only these groups (a,b or given again).")
    ] = None,
    case: Annotated[
        list[str] | None, typer.Option(help="Only these cases (a,b or given again).")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Cases at once.")] = os.cpu_count() or 1,
    case_timeout: Annotated[float, typer.Option(help="Seconds that a case may take.")] = 60.0,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help="Admission rules (a,b or given again), or FILE.py:Name. "
            "Default: strict_fifo, ep_ordered."
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the matrix; with several rules one folder each in it. "
            "Default: matrix/SET/RULE.",
        ),
    ] = None,
    rerun: Annotated[bool, typer.Option("--rerun", help="Run complete cases again.")] = False,
) -> None:
    """Run each case in its own child process and store inputs, provenance and outcome.

    A run that was interrupted is completed by the same command. Exit code: 0 every case ran, 1 a
    case failed, was rejected or differs from what was published of it, 2 bad input, 3 interrupted.
    """
    if not 0 < case_timeout < math.inf:
        raise UsageError(f"case-timeout must be greater than 0 s, got {case_timeout:g}")
    rules = list(dict.fromkeys(_words(rule) or BEFORE_AND_AFTER))
    for name in rules:
        admission_rule(name)
    try:
        cases = load_set(set_name)
        selected = cases.select(_words(group), _words(case))
        bad = 0
        for name in rules:
            folder = _folder(root, cases, name, len(rules))
            bad += _run_rule(
                MatrixRoot(folder), set_name, cases, selected, name, jobs, case_timeout, rerun
            )
    except (CaseSetError, MatrixError) as error:
        raise UsageError(str(error)) from None
    except KeyboardInterrupt:
        tell("interrupted; the cases named above are stored, and the same command runs the others")
        raise typer.Exit(UNDETERMINED) from None
    raise typer.Exit(1 if bad else 0)


def _words(given: list[str] | None) -> tuple[str, ...]:
    """Words of an option that may be given again, or with commas."""
    return tuple(word.strip() for text in given or () for word in text.split(",") if word.strip())


def _folder(root: Path | None, cases: CaseSet, rule: str, rules: int) -> Path:
    if root is None:
        return DEFAULT_ROOT / cases.name / _file_name(rule)
    return root / _file_name(rule) if rules > 1 else root


def _file_name(rule: str) -> str:
    """Name of a rule's folder; a rule from a file keeps its letters and digits."""
    return re.sub(r"[^\w.-]+", "_", rule).strip("_")


def _run_rule(
    root: MatrixRoot,
    set_name: str,
    cases: CaseSet,
    selected: tuple[MatrixCase, ...],
    rule: str,
    parallel: int,
    timeout_s: float,
    rerun: bool,
) -> int:
    """Run what is missing under one rule; return how many cases are not as they should be."""
    code = code_of(_SOURCES, _PACKAGES)
    with root.writing({"set": cases.name, "rule": rule}):
        todo = [
            case
            for case in selected
            if rerun
            or is_own_rule(rule)  # its source is not part of the digest
            or not root.is_complete(case.case_id, case.inputs, code)
        ]
        kept = len(selected) - len(todo)
        outcomes: dict[str, dict[str, Any]] = {
            case.case_id: root.read_case(case.case_id).outcome
            for case in selected
            if case not in todo
        }

        def done(job: Job, result: JobResult, elapsed: float) -> None:
            outcomes[job.case_id] = result.outcome
            word = result.outcome["outcome"]
            err.print(f"{rule}  {job.case_id}  {word}  {elapsed:.2f} s", style="dim")

        run_jobs(
            root,
            matrix_jobs(set_name, todo, rule),
            {"code": code, "versions": versions(), "command": sys.argv},
            parallel=parallel,
            timeout_s=timeout_s,
            done=done,
        )
    return _summary(root.path, rule, selected, outcomes, kept)


def matrix_jobs(set_name: str, cases: Sequence[MatrixCase], rule: str) -> list[Job]:
    """One child process per case, under an admission rule."""
    # With -P and the folder named: a folder `models` where one stands must not pass for ours.
    start = (
        f"import sys; sys.path.insert(0, {str(_SOURCES)!r}); "
        "from models.matrix_case import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-P", "-c", start]
    return [
        Job(case.case_id, case.inputs, [*command, set_name, case.case_id, rule]) for case in cases
    ]


def _summary(
    path: Path,
    rule: str,
    selected: tuple[MatrixCase, ...],
    outcomes: dict[str, dict[str, Any]],
    kept: int,
) -> int:
    counts = Counter(outcome["outcome"] for outcome in outcomes.values())
    words = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
    out.print(f"[bold]{rule}[/]: {len(selected)} cases ({kept} kept): {words}; in {path}")
    bad = 0
    for case in selected:
        outcome = outcomes[case.case_id]
        differences = published_differences(case, rule, outcome)
        failed = outcome["outcome"] not in ("success", "admission_deadlock")
        if failed and outcome.get("error"):
            differences.append(f"{outcome['error']['kind']}: {outcome['error']['message']}")
        bad += failed or bool(differences)
        for text in differences:
            out.print(f"  [red]{case.case_id}[/]: {text}")
    compared = sum(f"outcome_{rule}" in case.published for case in selected)
    if compared and not bad:
        out.print(f"  every published figure of {compared} cases is reproduced")
    return bad


@app.command("compare")
def compare_matrices(
    before: Annotated[
        str, typer.Option(metavar="DIR|RULE", help="Matrix before the change (its folder).")
    ],
    after: Annotated[str, typer.Option(metavar="DIR|RULE", help="Matrix after the change.")],
    json_file: opt.JsonFile = None,
) -> None:
    """Judge every case by its path: unchanged, liveness or timing.

    Exit code: 0 no STOP, 1 a case is a STOP, 2 bad input.
    """
    require_writable(json_file)
    try:
        roots = [_find(name) for name in (before, after)]
        judgements = compare(*roots)
    except MatrixError as error:
        raise UsageError(str(error)) from None
    if not judgements:
        raise UsageError(f"neither {roots[0].path} nor {roots[1].path} has a complete case")
    data = _comparison_json(roots, judgements)
    if str(json_file) != "-":
        _print_comparison(judgements, data)
    if json_file is not None:
        emit(json_file, json.dumps(data, indent=1))
    raise typer.Exit(1 if data["verdicts"][STOP] else 0)


def _find(name: str) -> MatrixRoot:
    """Matrix of a folder, or the only one of a rule under the default root."""
    path = Path(name)
    if path.is_dir():
        return MatrixRoot(path)
    found = sorted(DEFAULT_ROOT.glob(f"*/{name}")) if name in ADMISSION_RULES else []
    if len(found) != 1:
        raise UsageError(
            f"no matrix folder {name!r}"
            + (f"; several match: {', '.join(map(str, found))}" if found else "")
            + "; run 'frontier-verify matrix run' first, or give the folder"
        )
    return MatrixRoot(found[0])


def _comparison_json(roots: list[MatrixRoot], judgements: list[Judgement]) -> dict[str, Any]:
    counts = Counter(judgement.verdict for judgement in judgements)
    return {
        "before": {"root": str(roots[0].path), **roots[0].header()},
        "after": {"root": str(roots[1].path), **roots[1].header()},
        "verdicts": {verdict: counts[verdict] for verdict in (PASS, EXPLAIN, STOP)},
        "deadlocks_repaired": sum(
            j.before == "admission_deadlock" and j.after == "success" for j in judgements
        ),
        "cases": [judgement.to_json() for judgement in judgements],
    }


def _print_comparison(judgements: list[Judgement], data: dict[str, Any]) -> None:
    table = Table(
        title=f"{data['before']['rule']} -> {data['after']['rule']}", title_justify="left"
    )
    for column in ("case", "path", "verdict", "before", "after", "co-execution", "reasons"):
        table.add_column(column, overflow="fold")
    for judgement in judgements:
        moved = [
            f"{stage}: {first:.4f} -> {second:.4f}"
            for stage, (first, second) in judgement.overlap.items()
            if first != second and judgement.before == judgement.after
        ]
        table.add_row(
            judgement.case_id,
            judgement.path,
            f"[{_COLOURS[judgement.verdict]}]{judgement.verdict}[/]",
            judgement.before or "-",
            judgement.after or "-",
            "\n".join(moved) or "-",
            "\n".join(judgement.reasons) or "-",
        )
    out.print(table)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in data["verdicts"].items())
    out.print(f"{verdicts}; {data['deadlocks_repaired']} deadlocks repaired")
