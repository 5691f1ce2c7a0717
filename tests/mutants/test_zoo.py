"""The zoo itself: every mutant applies, names are unique, and a few are killed in earnest."""

import pytest

from tests.mutants.__main__ import ROOT, is_killed, run, verdicts
from tests.mutants.zoo import ZOO


def test_the_zoo_is_large_and_every_mutant_has_a_name_of_its_own():
    assert len(ZOO) >= 50
    assert len({mutant.name for mutant in ZOO}) == len(ZOO)


@pytest.mark.parametrize("mutant", ZOO, ids=lambda mutant: mutant.name)
def test_each_mutant_changes_one_place(mutant):
    source = (ROOT / "frontier" / mutant.file).read_text()
    assert source.count(mutant.old) == 1
    compile(source.replace(mutant.old, mutant.new), mutant.file, "exec")


@pytest.mark.heavy
@pytest.mark.parametrize("mutant", ZOO, ids=lambda mutant: mutant.name)
def test_every_mutant_that_is_not_equivalent_is_killed(mutant):
    rows, _ = run(None)
    original = next(row["found"] for row in rows if row["layer"] == "timed run")
    table, _ = verdicts(mutant, original)
    assert is_killed(table) != bool(mutant.equivalent)
