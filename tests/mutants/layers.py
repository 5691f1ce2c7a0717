"""The layers that may kill a mutant; each returns what it found, or an empty string.

They run in a process of their own whose ``frontier`` is the mutant.
"""

import contextlib
import hashlib

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from frontier.des import Simulation
from frontier.durations import ConstantDurations
from models.catalogue import find_case
from models.claims import ReachedClaims
from models.contract import own_implementation
from models.group_invariants import group_invariants
from models.groups import GroupScenario
from models.invariants import lane_invariants
from models.machines.lanes import lanes_machine
from models.machines.waves import WavesMachine
from models.quiescent import QuiescentModel
from models.scenario import Scenario
from verify.contract.check import check_contract
from verify.contract.client import Bounds
from verify.contract.orders import ORDERS
from verify.explorer import explore
from verify.limits import Limits
from verify.machines.context_api import context_machine
from verify.properties import invariant, never_drained

CASES = (
    "published-deadlock-no-ties",
    "published-repair-no-ties",
    "published-repair",
    "rival-a-lane-aware-no-ties",
    "rival-c-late-ticket-no-ties",
    "one-stage-three-lanes-repair-no-ties",
    "late-join-open-no-ties",
    "late-join-open-withdrawn-no-ties",
    "published-repair-two-layers",
    "split-rooms",
    "control-dense",
    "three-batches-repair",
)
"""Catalogue cases with pinned counts, verdicts and reachability claims."""

GROUPS = {"d,e": (9, 12), "e,d": (12, 25), "d,e;e,d": (99, 362)}
"""States and transitions with ties (PROTOCOL.md section 7)."""

TIMED = (
    Scenario(),
    Scenario(admission="strict_fifo"),
    Scenario(admission="lane_aware", layers=2),
    Scenario(admission="late_ticket", batches=(3, 2)),
    Scenario(lanes=3, stages=1, batches=(2, 1, 1), arrivals="open", stand_in="withdraw_joined"),
    Scenario(model="dense", batches=(3, 3)),
    Scenario(lanes=4, stages=1, layers=2, batches=(1, 1, 1, 1)),
    Scenario(rooms="by_phase", phases=(("prefill", "decode"), ("decode", "prefill"))),
)


MOST_STATES = 5000
"""States after which an exploration is cut off; the original's are fewer."""

MOST_EVENTS = 2000
"""Events after which a timed run is cut off; the original's are shorter."""


def _broken(rule, bounds):
    for bound in bounds:
        report = check_contract(own_implementation(rule), ORDERS[rule], [bound], stop_at_first=True)
        found = [r for r in report.clauses if r.status == "violated"]
        if found:
            return ", ".join(r.clause.id for r in found)
    return ""


def contract(mutant, _seed):
    """The clauses, at the smallest bound: two live tickets."""
    return _broken(mutant.rule, [Bounds(2, 2, 1, 2, 2)])


def api_exploration(mutant, _seed):
    """Every call sequence of three live tickets, and of capacity 1."""
    return _broken(mutant.rule, [Bounds(3, 2, 1, 2, 2), Bounds(2, 2, 1, 1, 1)])


def _explored(scenario, invariants, observers=()):
    """States, transitions, and violating states of a scenario with the shallowest's depth."""
    model = QuiescentModel(scenario.make_replica, scenario.ties, observers)
    found = explore(
        model,
        (
            invariant("core_error", lambda state: state.failed and str(state.failed)),
            *invariants,
            never_drained(lambda state: state.failed is not None or model.is_complete(state)),
        ),
        limits=Limits(max_states=MOST_STATES),
    )
    stats = found.verdict.stats
    violations = getattr(found.verdict, "violations", ())
    depth = min((len(v.actions) for v in violations), default=None)
    return stats.states, stats.transitions, len({v.state_index for v in violations}), depth


def lanes_exploration(_mutant, _seed):
    """Pinned counts, violating states and reached claims of the lanes model; queued EP waves."""
    for name in CASES:
        case, claims = find_case(name), ReachedClaims()
        expect, scenario = case.expect, case.scenario
        wanted = (expect.states, expect.transitions, expect.violating_states, expect.depth)
        found = _explored(scenario, lane_invariants(scenario.config), (claims,))
        if found != wanted:
            return f"{name}: {found}, pinned {wanted}"
        missed = [claim for claim in expect.reached if not claims.reached.get(claim)]
        if missed:
            return f"{name}: never reached: {missed[0]}"
    for groups, counts in GROUPS.items():
        scenario = GroupScenario.of({"groups": groups})
        found = _explored(scenario, group_invariants(scenario.config))
        if found != (*counts, 0, None):
            return f"groups {groups}: {found}"
    return ""


def machines(mutant, number):
    """The Hypothesis machines, from one seed."""
    ci = settings(
        max_examples=30,
        stateful_step_count=40,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.target),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    chosen = []
    if mutant.touches_context:
        chosen.append(context_machine(own_implementation(mutant.rule), ORDERS[mutant.rule]))
    if mutant.rule == "ep_ordered":
        chosen += [lanes_machine("ep_ordered", "withdraw_joined"), WavesMachine]
        for machine in chosen[-2:]:
            machine.shortened_by = 0
    for machine in chosen:
        try:
            run_state_machine_as_test(seed(number)(machine), settings=ci)
        except Exception as error:
            return str(error).split("\n")[0][:90]
    return ""


def timed_runs(_mutant, _seed):
    """A digest of timed runs, to be compared with the original's."""
    digest = hashlib.sha256()
    for scenario in TIMED:
        seen = []
        durations = ConstantDurations(scenario.model == "moe", scenario.layers)
        with contextlib.suppress(Exception):
            simulation = Simulation(
                scenario.make_replica(), durations, [lambda *row, to=seen: to.append(row)]
            )
            for _ in range(MOST_EVENTS):
                if simulation.step() is None:
                    break
        digest.update(repr(seen).encode())
    return digest.hexdigest()


LAYERS = {
    "contract": contract,
    "API exploration": api_exploration,
    "lanes exploration": lanes_exploration,
    "Hypothesis": machines,
    "timed run": timed_runs,
}
