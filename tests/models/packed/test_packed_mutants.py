"""A broken rule or a broken reduction in the packed model is found, one planted at a time.

The kernel's source is changed by one text replacement and run uncompiled.
"""

import re
import types
from dataclasses import replace
from pathlib import Path

import interpreted
import numpy as np
import pytest
from packed_lockstep import packed, projected_ends, reduced_ends, reference

from models.packed import kernel, lanes, layout
from models.scenario import Scenario

SOURCE = Path(kernel.__file__).read_text(encoding="utf-8")

BASE = Scenario(ties=False)
THREE = Scenario(lanes=3, stages=1, batches=(2, 2, 2), ties=False)
STRICT = replace(THREE, admission="strict_fifo")
LATE_JOIN = Scenario(lanes=3, stages=1, batches=(1, 1, 1), arrivals="open", ties=False)
LANE_AWARE = Scenario(admission="lane_aware", ties=False)
LATE_TICKET = Scenario(admission="late_ticket", ties=False)
PHASES = (("decode", "prefill"), ("prefill", "decode"))
SPLIT = Scenario(rooms="by_phase", phases=PHASES, layers=2, ties=False)
TIES = Scenario(ties=True)
BLOCKED = Scenario(admission="strict_fifo", stand_in="blocked_is_idle", ties=False)
WITHDRAW = Scenario(
    lanes=3, stages=1, batches=(1, 1, 1), arrivals="open", stand_in="withdraw_joined", ties=False
)


def mutant(before: str, after: str) -> types.SimpleNamespace:
    """The kernel with one change, interpreted."""
    assert SOURCE.count(before) == 1, f"{SOURCE.count(before)} places have {before!r}"
    text = SOURCE.replace(before, after)
    text = text.replace(
        "from verify.packed.jit import Array, jit, jit_views, part\n",
        "from verify.packed.jit import Array\nfrom interpreted import *\n",
    )
    text = re.sub(r"    \w+_at,\n", "", text)  # the native views, imported by name
    namespace: dict[str, object] = {}
    exec(compile(text, "mutant", "exec"), namespace)
    return types.SimpleNamespace(**namespace)


@pytest.fixture
def plant(monkeypatch):
    def planted(before, after):
        monkeypatch.setattr(lanes, "address_of", interpreted.address_of)
        monkeypatch.setattr(lanes._Scratch, "WORK", np.int16)
        monkeypatch.setattr(lanes, "k", mutant(before, after))

    return planted


def test_the_unchanged_kernel_agrees_when_interpreted(plant):
    plant(
        "GOING, COMPLETE, DRAINED, FAILED = range(4)",
        "GOING, COMPLETE, DRAINED, FAILED = 0, 1, 2, 3",
    )
    for scenario in (BASE, TIES, LATE_JOIN, SPLIT, LANE_AWARE):
        assert packed(scenario) == reference(scenario, 5000)


RULES = {
    "no seal": ("    w[g[AT_SEALED] + stage] = 1\n", "    pass\n", BASE),
    "seal survives": ("        w[g[AT_SEALED] + stage] = 0\n", "        pass\n", BASE),
    "siblings not woken": ("    ready = backlog & ~w", "    ready = 0 & ~w", THREE),
    "own work not woken": ("    if backlog >> lane & 1:\n", "    if False:\n", BASE),
    "woken in the wrong order": (
        "    for other in range(g[LANES]):\n        if ready >> other",
        "    for other in range(g[LANES] - 1, -1, -1):\n        if ready >> other",
        Scenario(lanes=4, stages=1, batches=(2, 2, 2, 2), admission="lane_aware", ties=False),
    ),
    "any ticket is the head": ("    elif mine > 0:\n", "    elif False:\n", STRICT),
    "busy lanes block": (
        "            if not holding >> (w[at + i] - 1) & 1:",
        "            if True:",
        LANE_AWARE,
    ),
    "ticket at arrival": (
        "    if g[ADMISSION] != LATE_TICKET:\n        mint",
        "    if True:\n        mint",
        LATE_TICKET,
    ),
    "placeholder stays with its lane": ("    w[at] &= ~(1 << lane)\n", "    pass\n", LATE_JOIN),
    "placeholder for queued lanes": (
        "    if not w[g[AT_BACKLOG] + stage] >> lane & 1 or w[g[AT_SEALED] + stage]:",
        "    if True:",
        Scenario(admission="strict_fifo", ties=False, lanes=2, stages=2, batches=(2, 2)),
    ),
    "own head blocks": (
        "head != 0 and head != 1 + lane",
        "head != 0",
        Scenario(
            lanes=3,
            stages=2,
            batches=(2, 1, 2),
            admission="lane_aware",
            stand_in="blocked_is_idle",
            ties=False,
        ),
    ),
    "nothing withdrawn": ("        w[at] &= ~w[g[AT_BUSY] + stage]\n", "        pass\n", WITHDRAW),
    "stops when no placeholder": (
        "    if not stored and missing == 0:",
        "    if not stored and False:",
        BASE,
    ),
    "layer skipped": (
        "if layer + 1 < g[LAYERS] else TAIL",
        "if layer + 2 < g[LAYERS] else TAIL",
        Scenario(layers=2, ties=False),
    ),
    "phases meet": (
        "    if g[PHASES] == 1:\n        return 0\n    column",
        "    if True:\n        return 0\n    column",
        SPLIT,
    ),
    "too many in flight": (
        "w[g[AT_IN_FLIGHT] + lane] < g[STAGES] and",
        "w[g[AT_IN_FLIGHT] + lane] < g[STAGES] + 1 and",
        Scenario(stages=1, ties=False),
    ),
    "wrong start order": ("        lane = (i + 1) % g[LANES]\n", "        lane = i\n", THREE),
    "pending order lost": (
        "                w[g[AT_PENDING] + keep] = 1 + events[i]\n                keep += 1\n",
        "                w[g[AT_PENDING] + keep] = 1 + events[i]\n                keep += 1\n"
        "        if keep > 1:\n"
        "            w[g[AT_PENDING]], w[g[AT_PENDING] + 1] = "
        "w[g[AT_PENDING] + 1], w[g[AT_PENDING]]\n",
        BASE,
    ),
    "arrival of the last stage forgotten": (
        "        emit(u, BATCH_END, lane, 0, 0)\n",
        "        pass\n",
        BASE,
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_a_broken_rule_differs_from_the_core(name, plant, monkeypatch):
    before, after, scenario = RULES[name]
    plant(before, after)
    monkeypatch.setattr(layout, "_has_parts", lambda *_: False)
    assert packed(scenario) != reference(scenario, 8000)


OPEN = Scenario(
    lanes=2, stages=2, batches=(2, 1), arrivals="open", stand_in="withdraw_joined", ties=False
)
WAITING = Scenario(lanes=2, stages=1, batches=(3, 2), ties=False)

TAKE = "            fifo = fifo & ((1 << at) - 1) | fifo >> (at + width) << at\n"
HASH_AND_COMPARE = SOURCE[
    SOURCE.index("    h = low") : SOURCE.index("            break\n        at = ")
]

PARTS = {
    "the content of a part is not compared": (
        "if memo[index[at] - 1, M_VIEW] == view and memo[index[at] - 1, M_STAGE] == stage:",
        "if memo[index[at] - 1, M_STAGE] == stage:",
        BASE,
    ),
    "the stage of a part is not compared": (
        HASH_AND_COMPARE,
        HASH_AND_COMPARE.replace(" + stage * 0x1E3779B1", "").replace(
            " and memo[index[at] - 1, M_STAGE] == stage", ""
        ),
        BASE,
    ),
    "tickets are not counted": (
        "        view += 1 << g[CONTROL_BITS] + ((fifo & ticket) - 1) * g[COUNTED]\n",
        "        pass\n",
        THREE,
    ),
    "an arrival has no ticket": ("        fifo |= arrives << at\n", "        pass\n", BASE),
    "no ticket is taken": (TAKE, "            pass\n", BASE),
    "the next ticket is taken": (TAKE, "            at += width\n" + TAKE, BASE),
    "a batch is not handed on": (
        "                    to = stage + 1\n",
        "                    to = -1\n",
        BASE,
    ),
    "a batch is handed on to its own stage": (
        "                    to = stage + 1\n",
        "                    to = stage + 1 if stage + 2 < stages else stages - 1\n",
        BASE,
    ),
    "the last batch's end lets nobody in": (
        "                        to = taken - 1\n",
        "                        to = -1\n",
        WAITING,
    ),
    "waiting batches are not counted down": (
        "    flip(out, 32 * bits[WORD, f] + bits[SHIFT, f], waiting ^ (waiting - 1))\n",
        "",
        WAITING,
    ),
    "in flight is not counted": ("or load >= g[STAGES]", "or False", replace(OPEN, stages=1)),
    "an arrival at the stage just left sees its old part": (
        "                    part = bits_of(out, stage * size, size)\n",
        "                    part = parts[stage]\n",
        WAITING,
    ),
    "requests are not counted down": ("left ^ (left - 1)", "0", replace(OPEN, batches=(1, 0))),
    "another event than the one that fell due is taken out": (
        "                    before = (c - requests) * pending_width\n",
        "                    before = 0\n",
        BASE,
    ),
    "the next stage's new event is forgotten": (
        "                pends |= memo[number, at + 2] << pended * pending_width\n",
        "",
        BASE,
    ),
    "new events in the wrong order": (
        "                pends |= memo[number, at + 2] << pended * pending_width\n"
        "                pended += info >> PENDS_AT & PENDS_MASK\n",
        "                pended = info >> PENDS_AT & PENDS_MASK\n"
        "                pends = pends << pended * pending_width | memo[number, at + 2]\n",
        Scenario(lanes=2, stages=2, batches=(2, 2), admission="lane_aware", ties=False),
    ),
    "claims of the arrival are forgotten": (
        "                claims |= info >> CLAIMS_AT & CLAIMS_MASK\n",
        "",
        BASE,
    ),
    "the end of a batch is no claim": ("                        claims |= BATCH_ENDED\n", "", BASE),
    "work in flight counts as done": ("DRAINED if load else", "", STRICT),
}


@pytest.mark.parametrize("name", PARTS)
def test_broken_parts_differ_from_the_core(name, plant, monkeypatch):
    before, after, scenario = PARTS[name]
    plant(before, after)
    monkeypatch.setattr(lanes, "MEMO_BYTES", 1200)  # a small index: its places are shared
    try:
        found = packed(scenario)
    except RuntimeError:  # a ticket that is not there, a field that overflows: noticed too
        found = None
    assert found != reference(scenario, 8000)


REDUCTIONS = {
    "attention is alone though lanes may arrive": (
        "            w[g[AT_QUEUED] + at] or has_work_above(w, g, lane, stage)\n",
        "            False\n",
    ),
    "attention is alone though a placeholder is stale": (
        "    if w[g[AT_ROOM] + stage * g[LAYERS] + layer] & busy:\n        return False\n",
        "",
    ),
    "attention is alone though a tail is due": (
        " and status != IN_ROOM + PER_LAYER * layer:\n",
        " and status != IN_ROOM + PER_LAYER * layer and status != TAIL:\n",
    ),
    "a tail is alone at any stage": (
        "    if stage + 1 < g[STAGES] or not w[g[AT_SEALED] + stage]:\n",
        "    if not w[g[AT_SEALED] + stage]:\n",
    ),
}

REDUCTIONS |= {
    "the key forgets placeholders": (
        "            key = key << 1 | (w[g[AT_ROOM] + room] >> lane & 1)\n",
        "            key = key << 1\n",
    ),
    "placeholders do not move with their lanes": (
        "                w[room] ^= 1 << a | 1 << b\n",
        "                pass\n",
    ),
    "lanes with different work are sorted together": (
        "        other = classes[first]\n",
        "        other = first + 1 if first + 1 < g[LANES] else -1\n",
    ),
}

PROBES = [
    Scenario(lanes=3, stages=2, batches=(2, 1, 2), ties=False),
    Scenario(lanes=2, stages=3, batches=(2, 2), stand_in="withdraw_joined", ties=False),
    Scenario(lanes=3, stages=1, layers=2, batches=(1, 1, 1), arrivals="open", ties=False),
    Scenario(lanes=3, stages=2, batches=(1, 1, 1), arrivals="open", ties=False),
]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_broken_reduction_loses_or_invents_an_end(name, plant):
    """Ends of the reduced search against the projected ends of the unreduced one."""
    reductions = ("canonical", "por" if "alone" in name else "symmetry")
    truth = [projected_ends(scenario, reductions) for scenario in PROBES]
    plant(*REDUCTIONS[name])
    assert truth != [reduced_ends(scenario, reductions) for scenario in PROBES]


def test_sound_reductions_keep_every_end():
    for reductions in (("canonical",), ("canonical", "symmetry"), ("canonical", "por")):
        for scenario in PROBES:
            assert projected_ends(scenario, reductions) == reduced_ends(scenario, reductions)
