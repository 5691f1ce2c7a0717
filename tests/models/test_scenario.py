"""Scenarios: what is accepted, and what a person is told otherwise."""

import pytest

from models.scenario import Scenario, ScenarioError, read_toml


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"lanes": 0}, "lanes must be a whole number of at least 1, got 0"),
        ({"stages": -1}, "stages must be"),
        ({"layers": True}, "layers must be"),
        ({"lanes": "two"}, "lanes must be"),
        ({"batches": "1,2,3"}, "2 lanes, but 3 entries"),
        ({"batches": [1]}, "2 lanes, but 1 entries"),
        ({"batches": "a"}, "batches must be a number"),
        ({"batches": -1}, "batches of lane 0 must be"),
        ({"batches": 1.5}, "batches must be a number"),
        ({"model": "mixture"}, "unknown model 'mixture'; expected one of: moe, dense"),
        ({"admission": "fifo"}, "unknown admission 'fifo'.*strict_fifo"),
        ({"stand_in": "none"}, "unknown stand_in"),
        ({"rooms": "one"}, "unknown rooms"),
        ({"arrivals": "poisson"}, "unknown arrivals"),
        ({"ties": 1}, "ties must be true or false"),
        ({"phases": "p,d"}, "2 lanes, but 1 sequences"),
        ({"phases": "p;d", "batches": 2}, "phases of lane 0 must name one phase per batch"),
        ({"phases": "p;x"}, "unknown phase of lane 1 'x'"),
        ({"phases": 3}, "phases must be one sequence per lane"),
        ({"colour": "red"}, "unknown field 'colour'.*known fields: lanes"),
    ],
)
def test_wrong_values_are_named(values, said):
    with pytest.raises(ScenarioError, match=said):
        Scenario.of(values)


def test_batches_in_every_spelling():
    assert Scenario.of({"lanes": 3}).batches == (2, 2, 2)
    assert Scenario.of({"lanes": 3, "batches": 1}).batches == (1, 1, 1)
    assert Scenario.of({"lanes": 3, "batches": "1"}).batches == (1, 1, 1)
    assert Scenario.of({"lanes": 3, "batches": "1,0,2"}).batches == (1, 0, 2)
    assert Scenario.of({"lanes": 3, "batches": [1, 0, 2]}).batches == (1, 0, 2)


def test_phases_give_the_batches():
    scenario = Scenario.of({"phases": "p,d;d"})
    assert scenario.batches == (2, 1)
    assert scenario.batch_phases == (("prefill", "decode"), ("decode",))
    assert Scenario.of({"phases": [["p", "d"], ["d"]]}) == scenario
    assert Scenario.of({"phases": ";p"}).batches == (0, 1)


def test_json_round_trips():
    scenario = Scenario.of({"lanes": 3, "phases": "p;d;", "admission": "late_ticket"})
    assert Scenario.of(scenario.to_json()) == scenario
    assert Scenario.of(scenario.to_compact()) == scenario


def test_unreadable_files(tmp_path):
    with pytest.raises(ScenarioError, match=r"cannot read .*missing"):
        read_toml(tmp_path / "missing.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="not valid TOML"):
        read_toml(binary)
