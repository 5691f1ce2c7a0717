"""Fates on hand-made graphs."""

import pytest

from verify.fate import fates_of, point_of_no_return, states_along
from verify.graph import Graph


def graph_of(successors: dict[int, list[int]]) -> Graph:
    graph = Graph()
    for state in range(len(successors)):
        graph.add_state(-1, 0) if state == 0 else graph.add_state(0, 0)
    for state in range(len(successors)):
        graph.targets.extend(successors[state])
        graph.offsets.append(len(graph.targets))
    return graph


# 0 -> 1 -> 2 (done), 1 -> 3 -> 4 (stuck), 0 -> 4
FORK = graph_of({0: [1, 4], 1: [2, 3], 2: [], 3: [4], 4: []})


def test_only_states_with_a_way_to_the_end_can_complete():
    fates = fates_of(FORK, [2])
    assert [fates.can_complete(state) for state in range(5)] == [True, True, True, False, False]
    assert fates.way(0) == (1, 2)
    assert fates.way(2) == ()


def test_the_point_of_no_return_is_the_first_lost_state_of_the_path():
    fates = fates_of(FORK, [2])
    path = states_along(FORK, 0, (0, 1, 0))
    assert path == (0, 1, 3, 4)
    assert point_of_no_return(fates, path) == 2
    assert point_of_no_return(fates, (0, 1, 2)) is None


def test_without_a_completed_state_everything_is_lost_from_the_start():
    fates = fates_of(FORK, [])
    assert point_of_no_return(fates, (0, 1)) == 0
    with pytest.raises(ValueError, match="no continuation"):
        fates.way(0)


def test_a_state_on_a_cycle_can_complete_through_its_exit():
    graph = graph_of({0: [1], 1: [0, 2], 2: []})
    assert fates_of(graph, [2]).way(0) == (1, 2)


def test_an_unfinished_graph_tells_no_fate():
    graph = graph_of({0: [1], 1: []})
    graph.add_state(0, 0)
    with pytest.raises(ValueError, match="only 2 of 3 states"):
        fates_of(graph, [1])
