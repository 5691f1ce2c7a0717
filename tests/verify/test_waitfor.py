"""AND-OR wait-for analysis on graphs that are known by hand."""

from hypothesis import given
from hypothesis import strategies as st

from verify.waitfor import Wait, analyse, chain, stuck_participants


def wait(source, *targets, mode="all"):
    return Wait(source, targets, f"waits for {targets}", "test", mode)


def test_a_cycle_of_all_is_stuck():
    analysis = analyse([wait("a", "b"), wait("b", "c"), wait("c", "a"), wait("d", "a")])
    assert analysis.stuck == ("a", "b", "c", "d")
    assert [(e.source, e.target) for e in analysis.cycle] == [("a", "b"), ("b", "c"), ("c", "a")]


def test_a_cycle_with_a_way_out_is_no_deadlock():
    """``b`` needs any of ``a`` and a participant that moves by itself."""
    analysis = analyse([wait("a", "b"), wait("b", "a", "free", mode="any")])
    assert analysis.stuck == ()
    assert analysis.cycle == ()


def test_any_of_stuck_ones_is_stuck():
    analysis = analyse([wait("a", "b", "c", mode="any"), wait("b", "a"), wait("c")])
    assert analysis.stuck == ("a", "b", "c")
    assert [w.source for w in analysis.dead_ends] == ["c"]


def test_all_with_one_stuck_member_is_stuck():
    assert stuck_participants([wait("a", "free", "b"), wait("b")]) == ("a", "b")


def test_several_waits_must_all_end():
    assert stuck_participants([wait("a", "free"), wait("a", "b"), wait("b", "a")]) == ("a", "b")


def test_the_shortest_cycle_is_reported():
    waits = [wait("a", "b"), wait("b", "c"), wait("c", "a"), wait("c", "d"), wait("d", "c")]
    assert len(analyse(waits).cycle) == 2


def test_a_self_wait_is_a_cycle_of_one():
    (edge,) = analyse([wait("a", "a")]).cycle
    assert (edge.source, edge.target) == ("a", "a")


def test_chain_to_the_dead_end():
    analysis = analyse([wait("a", "b"), wait("b", "c"), wait("c"), wait("x")])
    assert [(e.source, e.target) for e in chain(analysis, "a")] == [("a", "b"), ("b", "c")]
    assert chain(analysis, "x") == ()


names = st.sampled_from("abcdef")
waits = st.lists(
    st.builds(
        lambda s, t, m: Wait(s, tuple(t), "r", "k", m),
        names,
        st.lists(names, max_size=3, unique=True),
        st.sampled_from(["all", "any"]),
    ),
    max_size=10,
)


@given(waits)
def test_the_stuck_set_is_the_greatest_closed_one(given_waits):
    """Brute force: the union of all sets in which everybody has a wait that never ends."""

    def never_ends(w, members):
        if w.mode == "all" and w.targets:
            return any(t in members for t in w.targets)
        return all(t in members for t in w.targets)

    def closed(members):
        return all(
            any(w.source == m and never_ends(w, members) for w in given_waits) for m in members
        )

    sources = sorted({w.source for w in given_waits})
    greatest = set()
    for bits in range(2 ** len(sources)):
        members = {s for i, s in enumerate(sources) if bits >> i & 1}
        if closed(members):
            greatest |= members
    assert set(stuck_participants(given_waits)) == greatest


@given(waits)
def test_a_reported_cycle_is_a_cycle_of_stuck_waits(given_waits):
    analysis = analyse(given_waits)
    cycle = analysis.cycle
    for edge, following in zip(cycle, cycle[1:] + cycle[:1], strict=True):
        assert edge.target == following.source
        assert {edge.source, edge.target} <= set(analysis.stuck)
    if analysis.stuck and not analysis.dead_ends:
        assert cycle, "whoever is stuck without a dead end is in or before a cycle"
