"""``check`` with its engines: options, agreement, refusals, long runs."""

import json

import pytest
from typer.testing import CliRunner

from models.scenario import Scenario
from verify.cli import app, engines
from verify.cli.engines import EngineOptions, check_with
from verify.cli.errors import EngineDisagreementError, UsageError
from verify.limits import Limits

SMALL = ["--lanes", "2", "--stages", "2", "--no-ties"]
REPAIRED = ["--lanes", "3", "--stages", "3", "--stand-in", "withdraw_joined", "--no-ties"]
THREE = ["--lanes", "3", "--stages", "2", "--no-ties"]


def check(*arguments: str):
    done = CliRunner().invoke(app, ["check", *arguments, "--json", "-"])
    return done.exit_code, json.loads(done.stdout) if done.exit_code in (0, 1, 3) else done


def test_engines_give_one_answer():
    found = {}
    for engine in ("reference", "packed", "both"):
        code, data = check(*THREE, "--engine", engine)
        assert code == 1
        assert data["engine"] == engine
        found[engine] = [data[k] for k in ("states", "transitions", "depth", "path", "schedule")]
    assert found["reference"] == found["packed"] == found["both"]


def test_auto_takes_the_packed_engine_for_larger_graphs():
    assert check(*SMALL)[1]["engine"] == "reference"
    code, data = check(*REPAIRED)
    assert (code, data["engine"], data["states"]) == (0, "packed", 83_884)
    assert data["acyclic"] is True
    assert data["bytes_per_state"] <= 90


def test_auto_stays_with_the_reference_engine_outside_the_domain():
    code, data = check("--workload", "closed", "--slots", "1", "--lanes", "2", "--stages", "1")
    assert (code, data["engine"]) == (0, "reference")
    assert "packed" in data["engine_reason"]


def test_reductions_in_the_result():
    code, data = check(*THREE, "--reduction", "all")
    assert (code, data["counts"]) == (1, "reduced graph")
    assert data["reductions"] == ["canonical", "symmetry", "por"]
    assert "withdraw_joined" in data["reductions_refused"]["rendezvous"]
    assert data["classification"] == check(*THREE)[1]["classification"]
    assert data["depth"] == len(data["schedule"])


def test_ties_reduced_keep_the_verdict_and_own_up_to_longer_schedules():
    ties = [*THREE[:-1], "--ties"]
    code, data = check(*ties, "--reduction", "all")
    unreduced_code, unreduced = check(*ties)
    assert code == unreduced_code == 1
    assert data["reductions"] == ["ties", "canonical", "symmetry", "por"]
    assert data["classification"] == unreduced["classification"]
    assert data["depth"] > unreduced["depth"]
    assert (data["shortest"], unreduced["depth"]) == (False, len(unreduced["schedule"]))
    assert None in data["reached"].values()
    told = CliRunner().invoke(app, ["check", *ties, "--reduction", "all"]).stdout
    assert "a shorter schedule may exist" in told


def test_a_search_that_gives_up_names_reductions_that_are_sound():
    done = CliRunner().invoke(app, ["check", *REPAIRED[:-1], "--ties", "--max-states", "5000"])
    assert done.exit_code == 3
    assert "--reduction ties,canonical,symmetry,por,rendezvous" in done.stdout
    done = CliRunner().invoke(
        app, ["check", *REPAIRED[:4], "--admission", "late_ticket", "--max-states", "5"]
    )
    assert "--reduction" not in done.stdout


@pytest.mark.parametrize("engine", ["reference", "packed", "auto"])
def test_the_first_violation_can_end_the_search(engine):
    shape = [*THREE[:4], "--batches", "3", "--no-ties", "--admission", "lane_aware"]
    whole_code, whole = check(*shape, "--engine", "packed")
    code, data = check(*shape, "--engine", engine, "--first-violation")
    assert (code, data["complete"]) == (whole_code, False) == (1, False)
    assert (data["depth"], data["classification"]) == (whole["depth"], whole["classification"])
    assert data["states"] < whole["states"]
    assert check(*REPAIRED, "--first-violation")[1]["verdict"] == "holds"


@pytest.mark.parametrize(
    "arguments",
    [[], ["--lanes", "2", "--all-violations"], ["--groups", "d", "--same-as", "ep_ordered"]],
)
def test_the_first_violation_is_of_one_scenario_and_of_one_violation(arguments):
    done = CliRunner().invoke(app, ["check", *arguments, "--first-violation"])
    assert isinstance(done.exception, UsageError)
    assert "--first-violation" in str(done.exception)


def test_hash_compaction_never_says_holds():
    code, data = check(*SMALL, "--hash-compact")
    assert (code, data["verdict"]) == (3, "undetermined")
    assert "probability" in data["limit"]
    assert 0 < data["omission_bound"] < 1e-10
    code, data = check(*THREE, "--hash-compact")
    assert (code, data["verdict"]) == (1, "violated")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "fast"], "unknown engine"),
        (["--reduction", "fast"], "unknown reduction"),
        (["--engine", "reference", "--reduction", "all"], "needs the packed engine"),
        (["--threads", "0"], "--threads"),
        (["--workload", "closed", "--engine", "packed"], "does not take this scenario"),
        (["--resume", "/nowhere"], "holds no checkpoint"),
        (["--checkpoint", "a", "--resume", "b"], "not both"),
        (["--spill", "/nowhere", "--max-memory-gb", "1"], "not a folder"),
    ],
)
def test_bad_options_are_usage_errors(arguments, message):
    done = CliRunner().invoke(app, ["check", "--lanes", "2", *arguments])
    assert done.exception is not None
    assert message in str(done.exception)


def test_a_reduction_alone_needs_a_scenario():
    done = CliRunner().invoke(app, ["check", "--reduction", "all"])
    assert isinstance(done.exception, UsageError)


def test_checkpoint_and_resume(tmp_path):
    saved = str(tmp_path / "saved")
    code, data = check(*REPAIRED, "--checkpoint", saved, "--max-states", "20000")
    assert code == 3
    assert data["states"] < 83_884
    code, data = check(*REPAIRED, "--resume", saved)
    assert (code, data["states"], data["transitions"]) == (0, 83_884, 289_855)
    code, data = check(*REPAIRED, "--resume", saved)
    assert (code, data["states"]) == (0, 83_884)
    done = CliRunner().invoke(app, ["check", *REPAIRED, "--resume", saved])
    assert "s (with the time before the resume), " in done.stderr
    done = CliRunner().invoke(app, ["check", *THREE, "--resume", saved])
    assert "another system" in str(done.exception)


def test_a_difference_between_the_engines_is_never_a_verdict(monkeypatch):
    real = engines.check_packed

    def wrong(*arguments):
        result = real(*arguments)
        result.exploration.verdict.stats.__dict__["states"] += 1
        return result

    monkeypatch.setattr(engines, "check_packed", wrong)
    with pytest.raises(EngineDisagreementError, match="states"):
        check_with(Scenario(ties=False), EngineOptions(engine="both"), limits=Limits())


def test_an_interrupt_while_kernels_compile_is_undetermined(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(engines.Search, "prepare", interrupted)
    code, data = check(*REPAIRED, "--engine", "packed")
    assert (code, data["verdict"], data["states"]) == (3, "undetermined", 0)
    assert data["limit"] == "interrupted while the packed engine was compiled"


def test_a_checkpoint_that_cannot_be_written_costs_no_verdict(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("verify.packed.checkpoint._manifest", full)
    done = CliRunner().invoke(app, ["check", *REPAIRED, "--checkpoint", str(tmp_path / "here")])
    assert done.exit_code == 0
    assert "holds: every timing completes (83,884 states" in done.stdout
    assert "No space left on device; the search goes on without" in done.stderr
