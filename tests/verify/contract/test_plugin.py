"""The pytest plugin, run on sessions of its own."""

import subprocess
import sys
import time

import pytest

from tests.verify.contract.samples import foreign

pytest_plugins = ["pytester"]

SUITE = """
from verify.pytest_plugin import AdmissionContract
class TestContext(AdmissionContract):
    impl = {impl!r}
    rule = {rule!r}
    max_tickets = 2
"""


@pytest.fixture
def run(pytester):
    def run(revision, rule="ep_ordered", manifest=None, options=()):
        pytester.makepyfile(test_it=SUITE.format(impl=foreign(revision), rule=rule))
        if manifest is not None:
            pytester.makefile(".toml", contract=manifest)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *options)

    return run


def test_one_test_per_clause(run):
    result = run("third")
    result.assert_outcomes(passed=56)


def test_a_broken_clause_fails_with_the_command_that_replays_it(run):
    result = run("second")
    result.assert_outcomes(passed=55, failed=1)
    result.stdout.fnmatch_lines(
        ["*AC-59 violated, expected holds*", "*3  try 0.1", "*replay: frontier-verify contract*"]
    )


def test_a_known_deviation_is_pinned(run):
    result = run("second", manifest='[clauses]\nAC-59 = "violated"\n')
    result.assert_outcomes(passed=56)


def test_an_unexpected_pass_fails(run):
    result = run("third", manifest='[clauses]\nAC-59 = "violated"\n')
    result.assert_outcomes(passed=55, failed=1)
    result.stdout.fnmatch_lines(["*unexpected pass*"])


def test_the_command_line_chooses_implementation_and_rule(run):
    options = ("--admission-impl", foreign("second"), "--admission-rule", "strict_fifo")
    run("third", options=options).assert_outcomes(passed=54)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ('[clauses]\nAC-99 = "violated"\n', "AC-99"),
        ('[clauses]\nAC-01 = "maybe"\n', "maybe"),
        ('[claims]\nx = "holds"\n', "claims"),
        (
            '[clauses]\nAC-54 = "violated"\n',
            "AC-54, which is no clause of ep_ordered but of strict_",
        ),
    ],
)
def test_a_wrong_manifest_is_an_error(run, manifest, message):
    result = run("third", manifest=manifest)
    assert result.ret != 0
    assert message in result.stdout.str() + result.stderr.str()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--admission-impl", "nowhere.py:C"), "there is no file nowhere.py"),
        (("--admission-rule", "fifo"), "unknown rule 'fifo'"),
        (("--admission-max-tickets", "-3"), "max_tickets must be at least 1, got -3"),
        (("--admission-manifest", "nowhere.toml"), "cannot read nowhere.toml"),
    ],
)
def test_wrong_options_are_one_error(run, options, message):
    result = run("third", options=options)
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()


def test_the_plugin_costs_an_unconcerned_session_next_to_nothing():
    """The whole import of the plugin, in a fresh interpreter that has pytest already."""
    code = (
        "import pytest, sys, time; t = time.perf_counter(); import verify.pytest_plugin; "
        "assert 'verify.contract' not in sys.modules; print(time.perf_counter() - t)"
    )
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 1.0
    assert time.perf_counter() - started < 30


def test_a_scenario_of_the_manifest_is_checked_over_the_implementation(run):
    manifest = '[clauses]\nAC-59 = "violated"\n[scenarios]\n"published-repair" = "{}"\n'
    options = ("-k", "published-repair")
    run("second", manifest=manifest.format("violated"), options=options).assert_outcomes(
        passed=1, deselected=56
    )
    result = run("second", manifest=manifest.format("holds"), options=options)
    result.assert_outcomes(failed=1, deselected=56)
    result.stdout.fnmatch_lines(["*circular_wait*", "*frontier-verify check published-repair*"])
