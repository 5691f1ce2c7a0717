"""The wait-for graph drawn and as Mermaid: same arrows, the cycle marked."""

from pathlib import Path

from verify.lane_chart import render
from verify.waitfor import Wait, analyse
from verify.waitgraph import MOST_NODES, NOTHING, arrows_of, draw_waits, mermaid, shown_arrows

CIRCLE = analyse(
    (
        Wait("a", ("b",), "waits for b", "in_room"),
        Wait("b", ("a",), "waits for a", "refused"),
        Wait("c", ("a",), "waits for a", "presented_by"),
    )
)
DEAD_END = analyse(
    (
        Wait("a", ("b",), "waits for b", "in_room"),
        Wait("b", (), "waits for ever", "never_enters"),
        Wait("free", ("nobody",), "waits a little", "refused"),
    )
)


def test_the_cycle_is_marked_and_others_are_not():
    marked = {(arrow.source, arrow.target): arrow.in_cycle for arrow in arrows_of(CIRCLE)}
    assert marked == {("a", "b"): True, ("b", "a"): True, ("c", "a"): False}


def test_a_wait_without_an_end_points_to_nothing_and_who_is_not_stuck_is_left_out():
    arrows = {(arrow.source, arrow.target) for arrow in arrows_of(DEAD_END)}
    assert arrows == {("a", "b"), ("b", NOTHING)}


def test_mermaid_names_every_node_and_marks_the_cycle():
    lines = mermaid(CIRCLE).splitlines()
    assert lines[0] == "graph LR"
    assert '    n0["a"]' in lines
    assert '    n0 ==>|"in room"| n1' in lines
    assert '    n2 -->|"presented by"| n0' in lines
    assert lines[-1].startswith("    linkStyle 0,1 stroke:")
    assert '(["nothing will end this wait"])' in mermaid(DEAD_END)


def test_pictures_are_the_same_on_every_run_and_show_every_name():
    path = Path("waits.svg")
    first, second = (render(draw_waits(CIRCLE), path) for _ in range(2))
    assert first == second
    for name in ("a", "b", "c", "in room", "presented by"):
        assert f">{name}</text>".encode() in first
    assert render(draw_waits(DEAD_END), Path("waits.png")).startswith(b"\x89PNG")


def test_nothing_stuck_is_an_empty_picture():
    assert render(draw_waits(analyse(())), Path("x.svg")).startswith(b"<?xml")


def test_a_large_graph_is_cut_down_to_its_cycle_and_says_so():
    crowd = tuple(Wait(f"w{n}", ("a", "b"), "waits", "refused") for n in range(20))
    analysis = analyse((*CIRCLE.waits, *crowd))
    shown = shown_arrows(analysis)
    assert {(arrow.source, arrow.target) for arrow in shown.arrows} == {("a", "b"), ("b", "a")}
    assert shown.hidden == 21
    assert "and 21 more that wait for these" in mermaid(analysis)
    assert b"and 21 more that wait for these" in render(draw_waits(analysis), Path("x.svg"))


def test_a_large_graph_without_a_cycle_keeps_the_dead_end():
    crowd = tuple(Wait(f"w{n}", ("a",), "waits", "refused") for n in range(20))
    shown = shown_arrows(analyse((*DEAD_END.waits, *crowd)))
    pairs = {(arrow.source, arrow.target) for arrow in shown.arrows}
    assert {("a", "b"), ("b", NOTHING)} <= pairs
    assert len(pairs) + shown.hidden == 22
    assert len({name for pair in pairs for name in pair}) == MOST_NODES


def test_a_large_graph_keeps_dead_ends_apart_from_the_cycle_and_counts_who_waits_elsewhere():
    crowd = tuple(Wait(f"w{n}", ("a",), "waits", "refused") for n in range(20))
    apart = (Wait("d", (), "waits for ever", "never_enters"), Wait("e", ("d",), "waits", "refused"))
    other = (Wait("x", ("y",), "waits", "refused"), Wait("y", ("x",), "waits", "refused"))
    shown = shown_arrows(analyse((*CIRCLE.waits, *crowd, *apart, *other)))
    pairs = {(arrow.source, arrow.target) for arrow in shown.arrows}
    assert pairs == {("a", "b"), ("b", "a"), ("d", NOTHING)}
    assert (shown.hidden, shown.elsewhere) == (24, 2)
    assert shown.more == "and 24 more, 22 of which wait for these"


def test_of_hundreds_of_dead_ends_as_many_as_can_be_read_are_drawn():
    ends = tuple(Wait(f"d{n}", (), "waits for ever", "no_wake_up") for n in range(300))
    shown = shown_arrows(analyse(ends))
    assert [arrow.source for arrow in shown.arrows] == [f"d{n}" for n in range(MOST_NODES - 1)]
    assert shown.more == f"and {300 - (MOST_NODES - 1)} more"


def test_without_a_cycle_the_nearest_are_drawn_whatever_their_names():
    """A lane that nobody wakes is waited for by a room, and the room by many lanes."""
    lanes = tuple(Wait(f"lane {n}", ("room",), "waits", "in_room") for n in range(40))
    chain = tuple(Wait(f"far {n}", (f"lane {n}",), "waits", "refused") for n in range(40))
    room = Wait("room", ("last",), "needs it", "needs_lane")
    end = Wait("last", (), "would be admitted", "no_wake_up")
    shown = shown_arrows(analyse((*chain, *lanes, room, end)))
    pairs = {(arrow.source, arrow.target) for arrow in shown.arrows}
    assert {("last", NOTHING), ("room", "last"), ("lane 0", "room")} <= pairs
    assert not any(arrow.source.startswith("far") for arrow in shown.arrows)
    assert shown.more == f"and {82 - (MOST_NODES - 1)} more that wait for these"


def test_a_large_circle_that_will_be_broken_is_cut_too():
    waits = tuple(
        Wait(f"n{n}", (f"n{(n + 1) % 50}", "free"), "waits", "refused", "any") for n in range(50)
    )
    shown = shown_arrows(analyse(waits), everybody=True)
    names = {name for arrow in shown.arrows for name in (arrow.source, arrow.target)}
    assert "free" in names
    assert len(names) == MOST_NODES
    assert shown.more == f"and {51 - MOST_NODES} more that wait for these"
