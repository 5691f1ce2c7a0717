"""The kill matrix: ``python -m tests.mutants [--write reports/kill_matrix.md] [--only TEXT]``.

Every mutant runs in a copy of ``frontier/`` in a folder of its own, which comes first on the path
of a new process; this package, ``models`` and ``verify`` are the originals.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.zoo import ZOO
from verify.files import write_text_atomically

ROOT = Path(__file__).parent.parent.parent
LAYERS = ("contract", "API exploration", "lanes exploration", "Hypothesis", "timed run")
SEEDS = (1, 2, 3)
TIMEOUT_S = 180


def mutate(folder, mutant):
    """Copy the core into a folder and change it; the change must apply exactly once."""
    shutil.copytree(ROOT / "frontier", folder / "frontier")
    if mutant is None:
        return
    path = folder / "frontier" / mutant.file
    source = path.read_text()
    count = source.count(mutant.old)
    if count != 1:
        raise SystemExit(f"{mutant.name!r}: its text occurs {count} times in {mutant.file}")
    path.write_text(source.replace(mutant.old, mutant.new))


def run(mutant):
    """Run all layers over one mutant, or over the original; return what each found."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mutate(folder, mutant)
        env = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
        words = [mutant.name if mutant else "", *map(str, SEEDS)]
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.mutants.worker", *words],
            cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        hung = False
        try:
            output, errors = child.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = child.communicate()
            hung = True
    rows = [json.loads(line) for line in output.splitlines()]
    if child.returncode not in (0, -9) or (not rows and not hung):
        raise SystemExit(f"{mutant and mutant.name!r}: the worker failed:\n{errors}")
    return rows, hung


def verdicts(mutant, original):
    """Per layer, how often it killed the mutant and how often it ran, and an example."""
    rows, hung = run(mutant)
    table, example = {}, ""
    for row in rows:
        layer, found = row["layer"], row["found"]
        if layer == "import":
            return dict.fromkeys(LAYERS, (1, 1)), f"import: {found}"
        killed = found != original if layer == "timed run" else bool(found)
        killed_before, runs = table.get(layer, (0, 0))
        table[layer] = (killed_before + killed, runs + 1)
        if killed and not example:
            example = f"{layer}: {'another event sequence' if layer == 'timed run' else found}"
    if hung:
        missing = next((layer for layer in LAYERS if layer not in table), LAYERS[-1])
        table[missing] = (0, 0)
    return table, example


def cell(table, layer):
    """One cell of the matrix."""
    if layer not in table:
        return "-"
    killed, runs = table[layer]
    if runs == 0:
        return "time out"
    if runs > 1:
        return f"{killed}/{runs}"
    return "kills" if killed else "."


def is_killed(table):
    """Whether some layer kills it, the random one from every seed."""
    return any(killed == runs > 0 for killed, runs in table.values())


def report(results, seconds):
    """The matrix as Markdown."""
    survivors = [m for m, table, _ in results if not is_killed(table)]
    unargued = [m.name for m in survivors if not m.equivalent]
    wrong = [m.name for m, table, _ in results if m.equivalent and is_killed(table)]
    lines = [
        "# Kill matrix",
        "",
        "Built by `python -m reports.kill_matrix`; `python -m tests.mutants --only TEXT` runs a "
        "part of it.",
        "",
        f"{len(results)} one-change mutants of `frontier/`: {len(results) - len(survivors)} "
        f"killed, {len(survivors) - len(unargued)} argued equivalent, {len(unargued)} surviving "
        f"without an argument. {seconds:.0f} s.",
        "",
        "Layers: *contract*, the clauses at two live tickets; *API exploration*, every call "
        "sequence of three; *lanes exploration*, catalogue cases with pinned counts, and queued EP "
        "waves; *Hypothesis*, the state machines from seeds 1, 2 and 3 (kills / seeds); *timed "
        "run*, the event sequences of eight runs with constant times. `-`: the layer does not see "
        "the file. A mutant counts as killed if a layer without chance kills it, or the machines "
        "do from all three seeds; a time out kills nothing.",
        "",
        "| mutant | file | rule | " + " | ".join(LAYERS) + " | first kill |",
        "|---|---|---|" + "---|" * (len(LAYERS) + 1),
    ]
    for mutant, table, example in results:
        cells = " | ".join(cell(table, layer) for layer in LAYERS)
        first = example.replace("|", "/") if example else "equivalent" if mutant.equivalent else ""
        lines.append(f"| {mutant.name} | {mutant.file} | {mutant.rule} | {cells} | {first} |")
    argued = [m for m in survivors if m.equivalent]
    if argued:
        lines += ["", "## Equivalent mutants", ""]
        lines += [f"* **{m.name}** ({m.file}): {m.equivalent}" for m in argued]
    if wrong:
        lines += ["", f"Argued equivalent, yet killed: {', '.join(wrong)}."]
    return "\n".join(lines) + "\n", unargued, wrong


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--write", type=Path, help="write the matrix to this file")
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at once")
    arguments = parser.parse_args()
    started = time.monotonic()
    rows, _ = run(None)
    original = next(row["found"] for row in rows if row["layer"] == "timed run")
    false_kills = [row for row in rows if row["layer"] != "timed run" and row["found"]]
    if false_kills:
        raise SystemExit(f"the original itself is killed: {false_kills}")
    results = []
    chosen = [mutant for mutant in ZOO if arguments.only in mutant.name]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        found = pool.map(lambda mutant: verdicts(mutant, original), chosen)
        for mutant, (table, example) in zip(chosen, found, strict=True):
            results.append((mutant, table, example))
            cells = " ".join(f"{cell(table, layer):>5}" for layer in LAYERS)
            mark = "" if is_killed(table) or mutant.equivalent else "  SURVIVES"
            print(f"{cells}  {mutant.name}{mark}", flush=True)
    text, unargued, wrong = report(results, time.monotonic() - started)
    if arguments.write:
        write_text_atomically(arguments.write, text)
    else:
        print(text)
    sys.exit(1 if unargued or wrong else 0)


if __name__ == "__main__":
    main()
