"""``frontier-verify simulate`` with requests, as a person meets it (issue 3)."""

import json

import pytest
from typer.testing import CliRunner

from models.scenario import ScenarioError
from verify.cli import app
from verify.cli.errors import UsageError

FIELDS = {
    "outcome",
    "requests_completed",
    "prefill_tokens",
    "decode_tokens",
    "makespan_s",
    "request_end_s",
    "lane_overlap",
    "first_start_s",
    "wait_for",
}
DENSE = ("--lanes", "2", "--stages", "2", "--layers", "3", "--model", "dense")


def simulate(*arguments):
    return CliRunner().invoke(app, ["simulate", *arguments])


def simulate_json(*arguments, code=0):
    done = simulate(*arguments, "--json", "-")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_json_has_the_fields_of_the_issue_and_the_published_figures():
    found = simulate_json(
        *DENSE, "--requests", "8", "--prefill", "16", "--decode", "3", "--admission", "strict_fifo"
    )
    assert set(found) >= FIELDS
    assert found["outcome"] == "success"
    assert (found["requests_completed"], found["prefill_tokens"], found["decode_tokens"]) == (
        8,
        128,
        24,
    )
    assert found["first_start_s"]["0"] == {"0": 0.05, "1": 0.0}
    assert set(found["lane_overlap"]["0"]) == {
        "multi_lane_busy_time_s",
        "busy_time_s",
        "co_execution_fraction",
        "peak_lanes",
        "self_overlap",
    }
    assert found["lane_overlap"]["1"]["multi_lane_busy_time_s"] == 0.45
    assert found["wait_for"] is None
    assert len(found["request_end_s"]) == 8
    assert max(found["request_end_s"]) == found["makespan_s"] == 0.6


def test_the_aligned_fixture_is_one_prompt_per_batch():
    found = simulate_json(
        "--lanes", "2", "--stages", "2", "--layers", "8", "--model", "dense",
        "--requests", "16", "--prefill", "256", "--admission", "strict_fifo",
    )  # fmt: skip
    assert found["lane_overlap"]["0"]["multi_lane_busy_time_s"] == 0.84


def test_a_drained_run_exits_1_with_its_explanation():
    arguments = ("--lanes", "2", "--stages", "2", "--layers", "3", "--requests", "4")
    found = simulate_json(*arguments, "--admission", "strict_fifo", code=1)
    assert found["outcome"] == "admission_deadlock"
    assert found["wait_for"]["cycle"]
    assert found["request_end_s"] == [None] * 4
    done = simulate(*arguments, "--admission", "strict_fifo")
    assert "Circular wait" in done.output


@pytest.mark.parametrize("architecture", ["co-location", "pdd", "pd-af"])
def test_every_architecture_completes(architecture):
    found = simulate_json("--architecture", architecture, "--requests", "8", "--decode", "3")
    assert found["outcome"] == "success"
    assert found["decode_tokens"] == 24


def test_poisson_arrivals_are_seeded():
    arguments = (*DENSE, "--requests", "6", "--arrivals", "poisson:50")
    first = simulate_json(*arguments, "--seed", "1")
    assert first == simulate_json(*arguments, "--seed", "1")
    assert first != simulate_json(*arguments, "--seed", "2")


def test_trace_of_arrivals_and_the_late_join(tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("arrival_ms\n0\n2\n8\n")
    arguments = ("--lanes", "4", "--stages", "1", "--layers", "6", "--arrivals", f"times:{times}")
    found = simulate_json(*arguments, code=1)
    assert (found["outcome"], found["requests_completed"]) == ("other_failure", 0)
    repaired = simulate_json(*arguments, "--stand-in", "withdraw_joined")
    assert repaired["requests_completed"] == 3
    text = " ".join(CliRunner().invoke(app, ["simulate", *arguments]).output.split())
    assert "drained (stranded_rendezvous), outcome other_failure: 0 of" in text
    # What never ends occupies the stage too, up to the last event.
    assert "busy 0 ms" not in text
    assert "at most 3 at once; first starts: lane 0 at 0 ms" in text
    assert "unfinished at the end: lane 0 since 0 ms, lane 1 since 2 ms, lane 2 since 8 ms" in text


def test_files_are_written_and_recorded_times_give_the_same_run(tmp_path):
    names = {
        "--ledger": "l.jsonl", "--trace": "t.json", "--plot": "p.svg",
        "--metrics": "m", "--record": "r.jsonl", "--json": "j.json",
    }  # fmt: skip
    outputs = [text for o, name in names.items() for text in (o, str(tmp_path / name))]
    arguments = (*DENSE, "--requests", "4", "--decode", "2")
    done = simulate(*arguments, "--durations", "random:1,20", "--seed", "4", *outputs)
    assert done.exit_code == 0, done.output
    assert {p.name for p in tmp_path.iterdir()} == set(names.values())
    assert {p.name for p in (tmp_path / "m").iterdir()} == {
        "requests.csv",
        "requests.json",
        "system.json",
    }
    first = json.loads((tmp_path / "j.json").read_text())
    assert first == simulate_json(*arguments, "--durations", str(tmp_path / "r.jsonl"))
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert (
        simulate(*arguments, "--durations", "random:1,20", "--seed", "4", *outputs).exit_code == 0
    )
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}


def test_png_chart_is_the_same_bytes_again(tmp_path):
    for name in ("a.png", "b.png"):
        simulate("--requests", "4", "--admission", "strict_fifo", "--plot", str(tmp_path / name))
    first = (tmp_path / "a.png").read_bytes()
    assert first.startswith(b"\x89PNG")
    assert first == (tmp_path / "b.png").read_bytes()


BAD = [
    (("--requests", "0"), "requests must be at least 1"),
    (("--requests", "4", "--prefill", "0"), "prefill_tokens must be at least 1"),
    (("--prefill", "4"), "needs --requests"),
    (("--requests", "4", "--batches", "2"), "leave one of them out"),
    (("--requests", "4", "--architecture", "mesh"), "unknown architecture 'mesh'"),
    (("--requests", "4", "--architecture", "pd-af", "--lanes", "2"), "one lane per role"),
    (("--requests", "4", "--arrivals", "open"), "must be burst, poisson:RATE or times"),
    (("--requests", "4", "--arrivals", "poisson:fast"), "needs requests per second"),
    (("--requests", "4", "--arrivals", "poisson:0"), "must be positive"),
    (("--arrivals", "times:none.csv"), "cannot read none.csv"),
    (("--requests", "4", "--placement", "best"), "unknown placement"),
    (("--requests", "4", "--placement", "fixed:7"), "names lane 7"),
    (("--requests", "4", "--fault", "gremlins"), "unknown fault"),
    (("--requests", "4", "--durations", "slow"), "durations must be"),
    (("--requests", "4", "--durations", "random:5"), "random times must be"),
    (("--requests", "4", "--durations", "random:5,1"), "random times must be"),
    (("--requests", "4", "--durations", "none.csv"), "cannot read none.csv"),
    (("--requests", "4", "--num-blocks", "1", "--decode", "9"), "configuration rejected"),
    (("--requests", "4", "--plot", "chart.gif"), "must be a .png or .svg"),
    (("--requests", "4", "--ledger", "no/where.jsonl"), "does not exist"),
    (("--requests", "4", "--admission", "best"), "unknown admission 'best'"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input_says_what_is_wrong_and_writes_nothing(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = simulate(*arguments)
    assert isinstance(done.exception, UsageError | ScenarioError), done.output
    assert message in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_table_without_a_row_is_bad_input(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("kind,ms\nattention_done,8\n")
    done = simulate("--requests", "2", "--durations", str(table))
    assert isinstance(done.exception, UsageError)
    assert "no row that fits wave_end" in str(done.exception)


def test_a_case_brings_its_shape_and_rules():
    found = simulate_json("published-deadlock", "--requests", "4", code=1)
    assert found["outcome"] == "admission_deadlock"
    assert found["stages"][0]["rooms"][0]["phase"] is None, "the case's rooms are shared"


def test_a_rule_of_ones_own_that_hangs_the_ffn_is_explained_there(tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text(
        "class NoWaves:\n"
        "    def blockers(self, ticket, queue, active):\n"
        "        return [ticket] if ticket.scope == 'ep_wave' else []\n"
    )
    found = simulate_json(
        "--architecture", "pd-af", "--requests", "2", "--decode", "2",
        "--admission", f"{rule}:NoWaves", code=1,
    )  # fmt: skip
    assert found["outcome"] == "other_failure"
    assert found["role"] == "DECODE_FFN"
    assert found["wait_for"]["stuck"]


@pytest.mark.parametrize("rule", ["strict_fifo", "ep_ordered"])
def test_full_full_wave_full_of_groups(rule, tmp_path):
    """Groups come every 1 ms and hold the stage for 6 ms: one after the other, in FIFO order."""
    found = simulate_json("--groups", "d,d,e,d", "--ep-size", "2", "--admission", rule)
    assert found["outcome"] == "success"
    assert [group["kind"] for group in found["groups"]] == ["dense", "dense", "expert", "dense"]
    assert [group["arrival_s"] for group in found["groups"]] == [0.001, 0.002, 0.003, 0.004]
    assert [group["start_s"] for group in found["groups"]] == [0.001, 0.007, 0.013, 0.019]
    assert [group["end_s"] for group in found["groups"]] == [0.007, 0.013, 0.019, 0.025]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--groups", "d,x"), "group kind"),
        (("--groups", "d;e", "--requests", "2"), "leave out --requests"),
        (("--groups", "d", "--ep-size", "0"), "ep_size must be"),
    ],
)
def test_bad_groups(arguments, message):
    done = simulate(*arguments)
    assert isinstance(done.exception, UsageError | ScenarioError), done.output
    assert message in str(done.exception)


def test_groups_that_a_rule_keeps_out_are_explained(tmp_path):
    rule = tmp_path / "mine.py"
    rule.write_text(
        "class NoWaves:\n"
        "    def blockers(self, ticket, queue, active):\n"
        "        return [ticket] if ticket.scope == 'ep_wave' else []\n"
    )
    found = simulate_json("--groups", "d,e", "--admission", f"{rule}:NoWaves", code=1)
    assert found["outcome"] == "other_failure"
    assert [group["end_s"] for group in found["groups"]] == [0.007, None]
    assert "EP lane" in found["explanation"]
