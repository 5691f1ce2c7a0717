"""``explain`` with its files, and ``check --report``."""

import json

import pytest

from .program import program

__all__ = ["program"]


def test_every_file_is_written(program, tmp_path):
    files = {name: tmp_path / name for name in ("r.html", "w.svg", "t.png", "p.json", "g.mmd")}
    done = program(
        "explain",
        "rival-a-lane-aware",
        *("--html", files["r.html"]),
        *("--waits", files["w.svg"]),
        *("--timeline", files["t.png"]),
        *("--trace", files["p.json"]),
        *("--mermaid", files["g.mmd"]),
        *("--json", tmp_path / "e.json"),
    )
    assert done.code == 0
    assert files["r.html"].read_text().startswith("<!DOCTYPE html>")
    assert files["w.svg"].read_bytes().startswith(b"<?xml")
    assert files["t.png"].read_bytes().startswith(b"\x89PNG")
    assert files["g.mmd"].read_text().startswith("graph LR")
    data = json.loads((tmp_path / "e.json").read_text())
    assert len(data["story"]["steps"]) == data["depth"] + 1
    assert program("shrink", tmp_path / "e.json").code == 0


def test_the_trace_has_a_slice_for_every_batch_and_what_never_ends(program, tmp_path):
    file = tmp_path / "p.json"
    program("explain", "late-join-open", "--trace", file)
    records = json.loads(file.read_text())["traceEvents"]
    slices = [record for record in records if record["ph"] == "X"]
    batches = [record["name"] for record in slices if record["cat"] == "batch"]
    assert sorted(batches) == [
        "batch 0 (prefill)",
        "batch 0 (prefill)",
        "batch 0 (prefill), never ends",
    ]
    assert any(record["name"] == "waits in a room for ever" for record in slices)
    assert {record["name"] for record in records if record["ph"] == "i"} == {
        f"request {number} arrives" for number in range(3)
    }
    tracks = [record["args"]["name"] for record in records if record["name"] == "thread_name"]
    assert tracks == ["stage 0 lane 0", "stage 0 lane 1", "stage 0 lane 2", "stage 0 EP waves"]


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("published-deadlock", "violated"),
        ("published-repair", "holds"),
        ("late-join-burst", "violated"),
    ],
)
def test_check_reports_any_verdict(program, tmp_path, source, word):
    file = tmp_path / "report.html"
    program("check", source, "--report", file)
    text = file.read_text()
    assert f'<span class="verdict {word}">{word}</span>' in text
    assert '"steps":[' in text


def test_check_reports_undetermined_and_lassos(program, tmp_path):
    file = tmp_path / "report.html"
    done = program("check", "late-join-burst", "--max-states", 20, "--report", file)
    assert done.code == 3
    assert '<span class="verdict undetermined">' in file.read_text()
    closed = "--workload closed --capacity 1 --model dense"
    done = program("check", *closed.split(" "), "--report", file)
    assert done.code == 1
    assert "repeat for ever" in file.read_text()
    assert '"repeatsFrom":' in file.read_text()


def test_files_that_cannot_be_are_refused_before_any_work(program, tmp_path):
    done = program("explain", "published-deadlock", "--waits", tmp_path / "w.pdf")
    assert done.code == 2
    assert ".png or .svg" in done.err
    done = program("explain", "published-deadlock", "--html", "/no/such/folder/x.html")
    assert done.code == 2
    assert "does not exist" in done.err
    assert program("check", "--report", tmp_path / "x.html").code == 2
    assert list(tmp_path.iterdir()) == []


def test_explore_refuses_what_it_cannot_serve(program):
    assert program("explore", "no-such-case").code == 2
    done = program("explore", "published-deadlock", "--port", 70000)
    assert done.code == 2
    assert "between 0 and 65535" in done.err


def test_a_run_of_hundreds_of_requests_is_explained_on_one_small_page(program, tmp_path):
    log, page = tmp_path / "run.jsonl", tmp_path / "run.html"
    shape = "--lanes 4 --stages 2 --layers 2 --requests 300 --decode 3 --arrivals poisson:40"
    more = ("--seed", "1", "--rooms", "shared")
    assert program("simulate", *shape.split(" "), *more, "--events", log).code == 1
    done = program("explain", log, "--html", page)
    assert done.code == 0, done.err
    assert "instants are not told" in done.out
    assert page.stat().st_size < 1_000_000


def test_a_closed_workload_that_drains_is_explained_and_shrunk(program, tmp_path):
    drained, page = tmp_path / "drained.json", tmp_path / "page.html"
    shape = "--workload closed --lanes 3 --stages 1 --admission strict_fifo"
    program("check", *shape.split(" "), "--json", drained)
    assert json.loads(drained.read_text())["classification"] == "lost_wakeup"
    done = program("explain", drained, "--html", page)
    assert done.code == 0, done.err
    assert "no continuation goes on for ever" in done.out
    assert "can then go on for ever" in done.out
    assert "no continuation goes on from here on" in done.out
    assert page.exists()
    data = json.loads(program("shrink", drained, "--json", "-").out)
    assert data["minimal"] is True
    assert data["scenario"]["workload"] == "closed"
    assert {row["pass"] for row in data["minimality"]} >= {"lanes", "schedule"}


def test_a_lasso_is_explained_with_a_periodic_witness(program, tmp_path):
    lasso, page = tmp_path / "lasso.json", tmp_path / "page.html"
    closed = "--workload closed --capacity 1 --model dense"
    program("check", *closed.split(" "), "--json", lasso)
    done = program("explain", lasso, "--html", page)
    assert done.code == 0, done.err
    assert "Starvation: a lane is passed over for ever" in done.out
    assert "from here on for ever" in done.out
    assert "2 ms a round; 3 rounds are simulated, all alike" in page.read_text()


def test_stale_work_is_reported_and_explained_with_times(program, tmp_path):
    page, result = tmp_path / "page.html", tmp_path / "r.json"
    done = program("check", "stale-no-wake", "--report", page, "--json", result)
    assert done.code == 1, done.err
    assert "lost wakeup" in page.read_text()
    for source in ("stale-no-wake", result):
        told = program("explain", source)
        assert told.code == 0, told.err
        assert "invalidate(lane 1, batch 0)" in told.out


def test_instants_that_only_bring_work_are_one_line(program, tmp_path):
    log = str(tmp_path / "run.jsonl")
    arguments = "simulate --lanes 4 --stages 2 --layers 3 --requests 24 --arrivals poisson:100"
    program(*arguments.split(), "--seed", "3", "--rooms", "shared", "--events", log)
    lines = program("explain", log).out.splitlines()
    at = lines.index("     nothing changes in these 16 instants but what is still to come")
    assert lines[at - 1].startswith("14-29  4 x request(lane 0), ")
    assert not any(line.startswith("15  ") for line in lines)
    assert any(line.startswith("13  ") for line in lines)


def test_an_event_log_is_shown_with_the_times_of_its_own_run(program, tmp_path):
    log, page, data = tmp_path / "run.jsonl", tmp_path / "page.html", tmp_path / "e.json"
    lanes, trace = tmp_path / "t.svg", tmp_path / "p.json"
    shape = "simulate --lanes 3 --stages 1 --admission strict_fifo --durations random:1,20 --seed 3"
    assert program(*shape.split(), "--events", log).code == 1
    times = [json.loads(line)["t"] for line in log.read_text().splitlines()[1:]]
    files = ("--html", page, "--json", data, "--timeline", lanes, "--trace", trace)
    done = program("explain", log, *files)
    assert done.code == 0, done.err
    assert json.loads(data.read_text())["instants_ns"] == times
    text = page.read_text()
    assert "attention_done(lane 0, batch 0, stage 0, layer 0): 5.376262 ms" in text
    assert "Lanes over time in the recorded run" in text
    assert "computed whole milliseconds" not in text
    ends = {r["ts"] + r["dur"] for r in json.loads(trace.read_text())["traceEvents"] if "dur" in r}
    assert 49581.534 in ends, "when lane 0's stage ends, in microseconds"
    assert (
        json.loads(program("explain", "late-join-burst", "--json", "-").out)["instants_ns"] is None
    )
