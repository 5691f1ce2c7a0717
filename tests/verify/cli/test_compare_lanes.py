"""The compare-lanes command: options, outputs, exit statuses."""

import csv
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from verify.lanescompare.compare import compare
from verify.lanescompare.ledger import read_ledgers
from verify.lanescompare.pictures import draw_lanes, pictures
from verify.lanescompare.trace import read_trace

from .. import programs
from ..lanescompare.ledgers import TRACES, base_rows, ledger_rows, write_jsonl
from ..programs import Run


def run(*args: object) -> Run:
    return programs.run("compare-lanes", *args)


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``<model>/<side>/<size>.jsonl``."""
    root = tmp_path_factory.mktemp("ledgers")
    for model in ("moe", "dense"):
        for side in ("before", "after"):
            (root / model / side).mkdir(parents=True)
        for size in (8, 16):
            write_jsonl(root / model / "before" / f"{size}.jsonl", base_rows(model, size))
            rows = ledger_rows(model, size, "ep_ordered")
            write_jsonl(root / model / "after" / f"{size}.jsonl", rows)
    return root


def sides(ledgers: Path, model: str = "moe", name: str = "") -> list[object]:
    """Both sides' ledgers: all of them, or the file called `name`."""
    base = ledgers / model
    before, after = (base / side / name for side in ("before", "after"))
    return ["--trace", TRACES / model, "--before", before, "--after", after]


def test_a_pass_says_so_first(ledgers: Path) -> None:
    found = run(*sides(ledgers))
    assert found.exit_code == 0
    assert found.stdout.startswith("PASS: moe, bursts of 8, 16 requests (26 MATCH, 2 HOLDS)")
    assert len(found.stdout.splitlines()) < 40


def test_ledgers_one_by_one_equal_the_directory(ledgers: Path) -> None:
    args: list[object] = ["--trace", TRACES / "moe", "--json"]
    for side in ("before", "after"):
        for size in (16, 8):
            args += [f"--{side}", ledgers / "moe" / side / f"{size}.jsonl"]
    assert run(*args).stdout == run(*sides(ledgers), "--json").stdout


def test_one_burst_names_the_other_as_not_compared(ledgers: Path) -> None:
    base = ledgers / "dense"
    found = run(
        *("--trace", TRACES / "dense", "--json", "-"),
        *("--before", base / "before" / "8.jsonl", "--after", base / "after" / "8.jsonl"),
    )
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    assert (data["bursts"], data["bursts_not_compared"], len(data["rows"])) == ([8], [16], 14)


@pytest.mark.parametrize("bare", [["--json"], ["--json", "-"], ["--json=-"]])
def test_json_on_standard_output(ledgers: Path, bare: list[str]) -> None:
    found = run(*bare, *sides(ledgers)) if bare[0] != "--json" else run(*sides(ledgers), *bare)
    assert json.loads(found.stdout)["status"] == "PASS"


def test_files(ledgers: Path, tmp_path: Path) -> None:
    names = {option: tmp_path / f"out.{option}" for option in ("json", "csv", "html")}
    args = [part for option, path in names.items() for part in (f"--{option}", path)]
    found = run(*sides(ledgers, "dense", "8.jsonl"), *args)
    assert found.stdout.startswith("PASS: dense")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in names.values())
    rows = list(csv.DictReader(io.StringIO(names["csv"].read_text())))
    data = json.loads(names["json"].read_text())["rows"]
    assert [row["status"] for row in rows] == [row["status"] for row in data]
    assert json.loads(rows[2]["vllm"]) == data[2]["vllm"]
    assert rows[0]["vllm"] == "null"


def test_page_is_whole_and_self_contained(ledgers: Path) -> None:
    page = run(*sides(ledgers, "dense", "8.jsonl"), "--html").stdout
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 2
    assert not re.search(r"""(src|href)=["'](?!#)""", page.replace("xlink:href", "href"))
    assert page.count('class="INFORMATIONAL"') == 1
    assert "b8-r2" in page


def test_pictures_are_the_same_every_time(ledgers: Path) -> None:
    base = ledgers / "moe"
    found = compare(
        read_trace(TRACES / "moe"),
        read_ledgers(base / "before" / "8.jsonl"),
        read_ledgers(base / "after" / "8.jsonl"),
    )
    drawn = pictures(found)
    assert drawn == pictures(found)
    assert [stem for stem, _, _ in drawn] == ["co_execution_moe", "lanes_moe_n8"]


def test_every_panel_of_a_burst_has_one_scale(ledgers: Path) -> None:
    base = ledgers / "dense"
    found = compare(
        read_trace(TRACES / "dense"),
        read_ledgers(base / "before" / "8.jsonl"),
        read_ledgers(base / "after" / "8.jsonl"),
    )
    figure = draw_lanes(found.bursts[0])
    panels = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert len(panels) == 6
    assert len({axes.get_xlim() for axes in panels}) == 1
    assert [axes.get_title(loc="left").split(":")[0] for axes in panels[:2]] == [
        "real, b8-r0",
        "simulated, ep_ordered",
    ]


def test_mismatch_exits_1_and_says_where(ledgers: Path, tmp_path: Path) -> None:
    delayed = ledger_rows("moe", 8, "ep_ordered", delay={1: 1})
    found = run(
        *("--trace", TRACES / "moe", "--before", ledgers / "moe" / "before" / "8.jsonl"),
        *("--after", write_jsonl(tmp_path / "l.jsonl", delayed)),
    )
    assert found.exit_code == 1
    assert found.stdout.startswith("MISMATCH: moe")
    assert "V3 burst 8 round 0: stage 0, forward 0: real [0] beside [1]" in found.stdout


def test_lost_controls_exit_1_with_the_rows_untouched(ledgers: Path) -> None:
    after = ledgers / "moe" / "after"
    found = run("--trace", TRACES / "moe", "--before", after, "--after", after, "--json")
    data = json.loads(found.stdout)
    assert found.exit_code == 1
    assert (data["status"], data["negative_control_holds"]) == ("PASS", False)
    assert data["counts"] == {
        "MATCH": 26,
        "MISMATCH": 0,
        "INFORMATIONAL": 0,
        "HOLDS": 0,
        "LOST": 2,
    }


def test_bad_input_exits_2_and_writes_nothing(ledgers: Path, tmp_path: Path) -> None:
    copy = tmp_path / "moe"
    shutil.copytree(TRACES / "moe", copy)
    with (copy / "forwards.jsonl").open("a") as out:
        out.write("{}\n")
    base = ledgers / "moe"
    found = run(
        *("--trace", copy, "--before", base / "before", "--after", base / "after"),
        *("--json", tmp_path / "out.json"),
    )
    assert found.exit_code == 2
    assert found.stderr.startswith(f"frontier-verify: {copy}/forwards.jsonl:145: missing field")
    assert found.stderr.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--json", "--csv"], "--json and --csv both go to standard output"),
        (["--json", "{tmp}/a.json", "--html", "{tmp}/none/a.html"], "does not exist"),
    ],
)
def test_outputs_without_a_place(
    ledgers: Path, tmp_path: Path, extra: list[str], message: str
) -> None:
    found = run(*sides(ledgers), *(part.format(tmp=tmp_path) for part in extra))
    assert found.exit_code == 2
    assert message in found.stderr
    assert list(tmp_path.iterdir()) == []
