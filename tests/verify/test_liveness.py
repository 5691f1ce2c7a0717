"""The lasso search against brute force, and where a naive "eventually" goes wrong."""

import random
from itertools import combinations

import numpy as np
import pytest

from verify.bounds import most_during_wait
from verify.fairness import Compassion, Edges, Fairness, Justice, fair_part
from verify.graph import Graph
from verify.liveness import LeadsTo, always_eventually, find_lasso


def graph_of(successors):
    """Number states breadth-first from 0 and store their transitions in order."""
    graph, order, index = Graph(), [0], {0: 0}
    graph.add_state(-1, 0)
    for source in order:
        for number, target in enumerate(successors[source]):
            if target not in index:
                index[target] = graph.add_state(index[source], number)
                order.append(target)
            graph.targets.append(index[target])
        graph.offsets.append(len(graph.targets))
    return graph


def mask(edges, *numbers):
    chosen = np.zeros(len(edges.targets), dtype=bool)
    chosen[list(numbers)] = True
    return chosen


def nothing(edges):
    return mask(edges)


def anywhere(edges):
    return np.ones(edges.states, dtype=bool)


def naive_eventually(graph, goal):
    """The mistake: obligations follow the search tree, so a state is judged by its first path."""
    met = [False] * graph.states
    for state in range(1, graph.states):
        parent = graph.parent[state]
        edge = graph.offsets[parent] + graph.action[state]
        met[state] = met[parent] or bool(goal[edge])
    terminal = [graph.offsets[i] == graph.offsets[i + 1] for i in range(graph.states)]
    return all(met[i] for i in range(graph.states) if terminal[i])


def test_a_join_hides_the_bad_path_from_the_naive_search():
    # 0 -> 1 -> 3 by the goal, 0 -> 2 -> 3 without it; the tree knows state 3 by its first path.
    graph = graph_of({0: [1, 2], 1: [3], 2: [3], 3: []})
    edges = Edges(graph)
    goal = mask(edges, 0)
    assert naive_eventually(graph, goal)
    lasso = find_lasso(edges, LeadsTo("p", "", anywhere(edges) & (np.arange(4) == 0), goal),
                       Fairness("weak"))  # fmt: skip
    assert lasso is not None
    assert lasso.cycle == ()
    assert lasso.stem == (1, 0)


def test_a_cycle_is_invisible_to_the_naive_search():
    # The only terminal state lies behind the goal, but the run may stay in 1 <-> 2 for ever.
    graph = graph_of({0: [1], 1: [2, 3], 2: [1], 3: []})
    edges = Edges(graph)
    goal = mask(edges, 2)
    assert naive_eventually(graph, goal)
    prop = LeadsTo("p", "", np.arange(4) == 0, goal)
    lasso = find_lasso(edges, prop, Fairness("weak"))
    assert lasso is not None
    assert (lasso.stem, lasso.cycle) == ((0,), (0, 0))


def test_justice_excludes_a_cycle_that_holds_an_event_back():
    graph = graph_of({0: [1], 1: [0, 2], 2: [0]})
    edges = Edges(graph)
    goal = mask(edges, 3)
    prop = always_eventually("p", "", edges, goal)
    fair = Fairness("weak", (Justice("way out", mask(edges, 2)),))
    assert find_lasso(edges, prop, fair) is None
    unfair = find_lasso(edges, prop, Fairness("none", may_stop=True))
    assert unfair is not None
    assert (unfair.stem, unfair.cycle) == ((), (0, 0))


def test_compassion_needs_the_component_searched_again():
    # Cycle 0 <-> 1 meets an opportunity that it never takes; the loop at 0 meets none.
    graph = graph_of({0: [0, 1], 1: [0, 2], 2: []})
    edges = Edges(graph)
    prop = LeadsTo("p", "", anywhere(edges), mask(edges, 3))
    pair = Compassion("taken if offered", mask(edges, 1), mask(edges, 3))
    part = fair_part(edges, ~prop.goal, Fairness("strong", (), (pair,)))
    assert part.component.tolist() == [part.component[0], -1, -1]
    lasso = find_lasso(edges, prop, Fairness("strong", (), (pair,)))
    assert lasso is not None
    assert (lasso.stem, lasso.cycle) == ((), (0,))
    without_loop = Fairness("strong", (), (Compassion("x", mask(edges, 0, 1), mask(edges, 3)),))
    found = find_lasso(edges, LeadsTo("p", "", np.arange(3) < 2, mask(edges, 3)), without_loop)
    assert found is None


def test_without_fairness_a_run_may_stop_where_it_is():
    graph = graph_of({0: [1], 1: []})
    edges = Edges(graph)
    prop = LeadsTo("p", "", np.arange(2) == 0, mask(edges, 0))
    assert find_lasso(edges, prop, Fairness("weak")) is None
    stopped = find_lasso(edges, prop, Fairness("none", may_stop=True))
    assert stopped is not None
    assert (stopped.stem, stopped.cycle) == ((), ())


def test_an_incomplete_graph_is_refused():
    graph = Graph()
    graph.add_state(-1, 0)
    with pytest.raises(ValueError, match="0 of 1 states were expanded"):
        Edges(graph)


def connected(edges, chosen):
    """States of a non-empty set of transitions that is strongly connected, else None."""
    out = {}
    for edge in chosen:
        out.setdefault(int(edges.sources[edge]), set()).add(int(edges.targets[edge]))
    states = set(out) | {t for targets in out.values() for t in targets}
    for start in states:
        seen, todo = {start}, [start]
        while todo:
            for target in out.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        if seen != states:
            return None
    return states


def brute_force_stem(edges, prop, fairness):
    """Length of a shortest stem into any fair set of transitions, by trying all of them."""
    goal_free = [e for e in range(len(edges.targets)) if not prop.goal[e]]
    accepting = set(np.flatnonzero(edges.terminal).tolist())
    for size in range(1, len(goal_free) + 1):
        for chosen in combinations(goal_free, size):
            states = connected(edges, chosen)
            if states is None or states <= accepting:
                continue
            taken = list(chosen)
            just = all(j.edges[taken].any() for j in fairness.justice)
            pairs = all(p.then[taken].any() or not p.when[taken].any()
                        for p in fairness.compassion)  # fmt: skip
            if just and pairs:
                accepting |= states
    level, seen, length = {(0, bool(prop.trigger[0]))}, set(), 0
    while level:
        if any(armed and state in accepting for state, armed in level):
            return length
        seen |= level
        following = set()
        for state, armed in level:
            for edge in range(edges.offsets[state], edges.offsets[state + 1]):
                target = int(edges.targets[edge])
                if armed and not prop.goal[edge]:
                    following.add((target, True))
                following.add((target, bool(prop.trigger[target])))
                following.add((target, False))
        level = following - seen
        length += 1
    return None


def check_lasso(edges, prop, fairness, lasso):
    """A lasso really is a run that violates the property."""
    stem = edges.walk(0, lasso.stem)
    states = [0, *(int(edges.targets[e]) for e in stem)]
    assert states[-1] == lasso.entry
    armed = [i for i, s in enumerate(states) if prop.trigger[s]]
    assert any(not prop.goal[stem[i:]].any() for i in armed)
    cycle = edges.walk(lasso.entry, lasso.cycle)
    if not cycle:
        assert edges.terminal[lasso.entry]
        return
    assert edges.targets[cycle[-1]] == lasso.entry
    assert not prop.goal[cycle].any()
    assert all(j.edges[cycle].any() for j in fairness.justice)
    assert all(p.then[cycle].any() or not p.when[cycle].any() for p in fairness.compassion)


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_brute_force_on_random_graphs(seed):
    chance = random.Random(seed)
    found = missed = 0
    for _ in range(40):
        states = chance.randint(2, 5)
        successors = {
            s: [chance.randrange(states) for _ in range(chance.randint(0, 2))]
            for s in range(states)
        }
        edges = Edges(graph_of(successors))
        count = len(edges.targets)

        def some(share, count=count):
            return np.array([chance.random() < share for _ in range(count)], dtype=bool)

        prop = LeadsTo("p", "", some(0.5, edges.states), some(0.2))
        justice = tuple(Justice("j", some(0.6)) for _ in range(chance.randint(0, 2)))
        pairs = tuple(Compassion("c", some(0.4), some(0.4)) for _ in range(chance.randint(0, 2)))
        fairness = Fairness("f", justice, pairs)
        lasso = find_lasso(edges, prop, fairness)
        expected = brute_force_stem(edges, prop, fairness)
        assert (None if lasso is None else len(lasso.stem)) == expected
        if lasso is None:
            missed += 1
        else:
            check_lasso(edges, prop, fairness, lasso)
            found += 1
    assert found
    assert missed


def test_a_bound_is_the_heaviest_wait_and_a_loop_has_none():
    # A wait begins on 0 -> 1, collects on 1 -> 2 and 2 -> 3, and is served on 3 -> 0.
    graph = graph_of({0: [1], 1: [2, 3], 2: [3], 3: [0]})
    edges = Edges(graph)
    waiting = np.array([False, True, True, True])
    served = mask(edges, 4)
    before = np.array([1, 2, 1, 3, 1])
    after = np.zeros(5, dtype=int)
    assert most_during_wait(edges, waiting, served, before, after) == 7
    looping = graph_of({0: [1], 1: [1, 0]})
    loop = Edges(looping)
    count = np.array([0, 1, 0])
    args = (np.array([False, True]), mask(loop, 2), count, np.zeros(3, dtype=int))
    assert most_during_wait(loop, *args) is None
