"""Which engine checks a scenario, and how a packed search becomes a result like any other."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final

import numpy as np

from models.packed.bridge import Bridge
from models.packed.kernel import MET_OTHERWISE, STOOD_STILL
from models.packed.lanes import PackedLanes, outside_domain
from models.packed.reductions import REDUCTIONS, SAME_PATHS, plan
from models.quiescent import ProtocolState, QuiescentModel
from models.scenario import Scenario
from models.subjects import AnyScenario
from verify.cli.checking import CheckResult, Question, Witness, check_scenario, witness_of
from verify.cli.errors import EngineDisagreementError, UsageError, tell
from verify.explorer import Exploration
from verify.graph import Graph
from verify.limits import INTERRUPTED, Limits, ProgressCallback
from verify.packed.checkpoint import Checkpointer, CheckpointError, resume
from verify.packed.forecast import progress_of
from verify.packed.model import End
from verify.packed.search import Hook, Search
from verify.packed.trace import Trace, depth_of, first_trace, lift, trace
from verify.verdict import Holds, Stats, Undetermined, Verdict, Violated, Violation

ENGINES: Final = ("auto", "reference", "packed", "both")

SMALL: Final = 3000
"""``auto`` leaves graphs of fewer states to the reference engine: it needs no compiled kernels."""

NOTICE_AFTER_S: Final = 2.0
COMPILING: Final = "compiling the packed engine: some 20 seconds, once; the result is kept"

_PROPERTY: Final = {End.DRAINED: "drained", End.FAILED: "core_error"}


@dataclass(frozen=True)
class EngineOptions:
    """How to search; all but ``engine`` concern the packed engine only."""

    engine: str = "auto"
    reductions: tuple[str, ...] = ()
    threads: int | None = None
    hash_compact: bool = False
    checkpoint: Path | None = None
    checkpoint_every_s: float = 120.0
    resume: Path | None = None
    spill: Path | None = None

    @property
    def packed_only(self) -> str | None:
        """Name of an option that only the packed engine has, if one is given."""
        given = {
            "--reduction": bool(self.reductions),
            "--hash-compact": self.hash_compact,
            "--checkpoint": self.checkpoint is not None,
            "--resume": self.resume is not None,
            "--spill": self.spill is not None,
            "--threads": self.threads is not None,
        }
        return next((name for name, present in given.items() if present), None)


def obstacle_to_packed(
    scenario: AnyScenario, question: Question, reductions: tuple[str, ...] = ()
) -> str | None:
    """Say why the packed engine cannot answer a question, or None if it can."""
    if not isinstance(scenario, Scenario):
        return "the packed engine has no model of a stage fed by groups"
    if question.liveness:
        return f"the packed engine keeps no graph to judge {question.asked} on"
    return outside_domain(scenario, reductions)


def check_with(
    scenario: AnyScenario,
    options: EngineOptions,
    *,
    question: Question | None = None,
    limits: Limits | None = None,
    progress: ProgressCallback | None = None,
    all_violations: bool = False,
) -> CheckResult:
    """Check a scenario with the engine that the options name.

    Raises
    ------
    UsageError
        If the packed engine is asked for and does not take the scenario, or an option does not
        apply to the engine.
    """
    limits = limits or Limits()
    question = question or Question.of(scenario)
    obstacle = obstacle_to_packed(scenario, question, options.reductions)
    packed_only = options.packed_only
    if options.engine == "reference" and packed_only:
        raise UsageError(f"{packed_only} needs the packed engine; leave out --engine reference")
    if options.engine in ("packed", "both") or packed_only:
        if obstacle is not None or not isinstance(scenario, Scenario):
            raise UsageError(
                f"the packed engine does not take this scenario: {obstacle}; "
                "use --engine reference without options of the packed engine"
            )
        if options.engine == "both":
            return _check_both(scenario, options, limits, progress, all_violations)
        return check_packed(scenario, options, limits, progress, all_violations)

    def reference(within: Limits) -> CheckResult:
        return check_scenario(
            scenario,
            question=question,
            limits=within,
            progress=progress,
            all_violations=all_violations,
        )

    if options.engine == "reference":
        return reference(limits)
    if obstacle is not None or not isinstance(scenario, Scenario):
        result = reference(limits)
        return dataclasses.replace(result, details={"engine_reason": obstacle})
    smaller = min(SMALL, limits.max_states or SMALL)
    result = reference(dataclasses.replace(limits, max_states=smaller))
    cut_short = result.exploration.verdict.stats.states >= smaller and not (
        result.exploration.verdict.stats.complete
    )
    told = limits.first_violation and isinstance(result.exploration.verdict, Violated)
    if told or not cut_short or limits.max_states == smaller:
        return result
    return check_packed(scenario, options, limits, progress, all_violations)


# -------------------------------------------------------------------- packed


def check_packed(
    scenario: Scenario,
    options: EngineOptions,
    limits: Limits,
    progress: ProgressCallback | None,
    all_violations: bool,
) -> CheckResult:
    """Check a scenario with the packed engine; every reported schedule is replayed on the core."""
    try:
        model, search = _prepared(scenario, options)
    except KeyboardInterrupt:
        return _nothing_known(scenario)
    limit = _run(search, options, limits, progress)
    core = QuiescentModel(scenario.make_replica, scenario.ties)
    found = _violating(search)
    violations, witnesses = [], []
    for number, (_, state) in enumerate(found if all_violations else found[:1]):
        path = _core_path(search, model, state, _peers(search, found, state, all_violations))
        violation, witness = _witness(scenario, core, path, number)
        violations.append(violation)
        witnesses.append(witness)
    reached = search.tally.reached | model.reached_at_start
    doubt = _doubt(reached)
    stats = Stats(
        states=search.states,
        transitions=search.tally.transitions,
        max_depth=max(0, len(search.tally.levels) - 1),
        elapsed_s=search.tally.seconds,
        memory_bytes=search.stored_bytes,
        complete=limit is None and not options.hash_compact,
        acyclic=None if limit is not None or doubt is not None else True,
    )
    verdict = _verdict(stats, violations, limit or doubt, search)
    exploration: Exploration[ProtocolState] = Exploration(verdict, Graph(), ())
    claims: dict[str, Any] = model.claims(reached)
    if not SAME_PATHS.issuperset(model.plan.applied):
        claims = {name: seen or None for name, seen in claims.items()}
    return CheckResult(
        scenario,
        exploration,
        claims,
        tuple(witnesses),
        Question.of(scenario),
        engine="packed",
        details=_details(search, model, options, found),
    )


def _prepared(scenario: Scenario, options: EngineOptions) -> tuple[PackedLanes, Search]:
    """Make a search whose kernels are compiled."""
    with compiling_notice():
        model = PackedLanes(scenario, options.reductions)
        search = Search(
            model, threads=options.threads, compact=options.hash_compact, spill=options.spill
        )
        search.prepare()
    return model, search


def _nothing_known(scenario: Scenario) -> CheckResult:
    """Make the result of a search that was interrupted before it began."""
    stats = Stats(0, 0, 0, 0.0, 0, complete=False, acyclic=None)
    verdict = Undetermined(stats, f"{INTERRUPTED} while the packed engine was compiled")
    return CheckResult(
        scenario, Exploration(verdict, Graph(), ()), {}, (), Question.of(scenario), engine="packed"
    )


@contextmanager
def compiling_notice() -> Iterator[None]:
    """Say what takes so long when kernels are compiled: the first time, and after an update."""
    timer = Timer(NOTICE_AFTER_S, lambda: print(COMPILING, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _run(
    search: Search, options: EngineOptions, limits: Limits, progress: ProgressCallback | None
) -> str | None:
    hooks: list[Hook] = []
    if progress is not None:
        hooks.append(lambda s: progress(progress_of(s)))
    directory = options.checkpoint or options.resume
    if directory is None:
        return search.run(limits, hooks)
    keeper = Checkpointer(directory, every_s=options.checkpoint_every_s)
    try:
        keeper.begin(search, resumed=options.resume is not None)
        if options.resume is not None:
            resume(search, options.resume)
    except CheckpointError as error:
        raise UsageError(str(error)) from None
    limit = search.run(limits, [*hooks, _without_failing(keeper)])
    if search.intact:
        _without_failing(keeper.save)(search)
    return limit


def _without_failing(save: Hook) -> Hook:
    """Save, and say so if that fails: what was explored is not lost for a full disk."""

    def saved(search: Search) -> None:
        try:
            save(search)
        except CheckpointError as error:
            tell(f"{error}; the search goes on without, and the last checkpoint stays valid")

    return saved


def _verdict(
    stats: Stats,
    violations: Sequence[Violation],
    limit: str | None,
    search: Search,
) -> Verdict:
    if violations:
        return Violated(stats, tuple(violations))
    if limit is not None:
        return Undetermined(stats, limit)
    if search.compact:
        return Undetermined(
            stats,
            "hash compaction: no violation among the states seen, but a state may have been "
            f"taken for another with probability at most {search.omission_bound:.2g}",
        )
    return Holds(stats)


def _doubt(reached: int) -> str | None:
    """Say what a proof rests on that was seen to be false, or None."""
    if reached & STOOD_STILL:
        return "a transition moved no batch on: termination is not proved"
    if reached & MET_OTHERWISE:
        return "a group did not meet as the rendezvous reduction assumes: leave it out"
    return None


def _details(
    search: Search, model: PackedLanes, options: EngineOptions, found: Sequence[Any]
) -> dict[str, Any]:
    details: dict[str, Any] = {
        "violating_states": len(found),
        "threads": search.threads,
        "bytes_per_state": round(search.stored_bytes / max(1, search.states), 1),
        "reductions": list(model.plan.applied),
        "reductions_refused": dict(model.plan.refused),
        "shortest": SAME_PATHS.issuperset(model.plan.applied),
        "counts": "reduced graph" if model.plan.applied else "unreduced graph",
    }
    if not search.finished and not model.plan.applied:
        details["sound_reductions"] = list(plan(model.scenario, REDUCTIONS).applied)
    if options.resume is not None:
        details["resumed"] = True
    if options.spill is not None:
        details["spilled"] = search.spilled
    if options.hash_compact:
        details["omission_bound"] = search.omission_bound
    return details


def _violating(search: Search) -> list[tuple[End, int]]:
    """Violating states by depth."""
    found = [(end, state) for end, states in search.tally.ends.items() for state in states]
    return sorted(found, key=lambda item: depth_of(search, item[1]))


def _peers(
    search: Search, found: list[tuple[End, int]], state: int, all_violations: bool
) -> list[int]:
    """Violating states that may be reported in place of this one: those of the same depth."""
    if all_violations or search.compact:
        return [state]
    depth = depth_of(search, state)
    return [other for _, other in found if depth_of(search, other) == depth]


def _instant_order(choice: int) -> tuple[int, list[int]]:
    """Sort as the core numbers instants: single events first, then pairs, by position."""
    positions = [i for i in range(choice.bit_length()) if choice >> i & 1]
    return len(positions), positions


def _core_path(
    search: Search, model: PackedLanes, state: int, peers: list[int]
) -> tuple[PackedLanes, Trace]:
    """Shortest schedule to a violating state, as a path of the unreduced packed model."""
    path = trace(search, state) if search.compact else first_trace(search, peers, _instant_order)
    if not model.plan.applied:
        return model, path
    unreduced = model.unreduced()
    return unreduced, lift(path, unreduced, unreduced.projection(model))


def _witness(
    scenario: Scenario,
    core: QuiescentModel,
    lifted: tuple[PackedLanes, Trace],
    number: int,
) -> tuple[Violation, Witness]:
    unreduced, path = lifted
    actions, state = replay_on_core(core, unreduced, path)
    end = End.FAILED if state.failed is not None else End.DRAINED
    message = (
        f"the core rejected {state.failed}"
        if end == End.FAILED
        else "no event is left, but work is unfinished"
    )
    violation = Violation(_PROPERTY[end], message, number, 0, actions)
    return violation, witness_of(scenario, core, violation, state)


def replay_on_core(
    core: QuiescentModel, model: PackedLanes, path: Trace
) -> tuple[tuple[int, ...], ProtocolState]:
    """Run a packed path on the core, state by state; return action numbers and the last state.

    Raises
    ------
    EngineDisagreementError
        If the core goes another way at any step, or the path's last state is not violating.
    """
    bridge = Bridge(model)
    (state,) = core.initial_states()
    numbers = []
    for step, (row, choice) in enumerate(zip(path.rows[1:], path.choices, strict=True)):
        action = bridge.action_of(state, choice)
        numbers.append(core.actions(state).index(action))
        state = core.step(state, action)
        if not np.array_equal(bridge.row_of(state), row):
            raise EngineDisagreementError(
                f"the packed engine and the core differ after instant {step + 1} of "
                f"{len(path.choices)} on {model.name}"
            )
    if state.failed is None and (core.actions(state) or core.is_complete(state)):
        raise EngineDisagreementError(
            f"the core goes on where the packed engine stops, on {model.name}: {state}"
        )
    return tuple(numbers), state


# -------------------------------------------------------------------- both


def _check_both(
    scenario: Scenario,
    options: EngineOptions,
    limits: Limits,
    progress: ProgressCallback | None,
    all_violations: bool,
) -> CheckResult:
    """Run both engines and compare everything that they say."""
    packed = check_packed(scenario, options, limits, progress, all_violations)
    reference = check_scenario(
        scenario, limits=limits, progress=progress, all_violations=all_violations
    )
    differences = _differences(reference.to_json(), packed.to_json(), bool(options.reductions))
    if not reference.exploration.verdict.stats.complete:
        differences = []
    if differences:
        raise EngineDisagreementError(
            "the engines disagree, so neither verdict stands: " + "; ".join(differences)
        )
    details = {
        **reference.details,
        "engines_agree": reference.exploration.verdict.stats.complete,
        "packed_elapsed_s": round(packed.exploration.verdict.stats.elapsed_s, 6),
    }
    return dataclasses.replace(reference, engine="both", details=details)


def _differences(reference: dict[str, Any], packed: dict[str, Any], reduced: bool) -> list[str]:
    names = ["verdict", "violation"]
    if not reduced:
        names += ["states", "transitions", "depth", "violating_states", "max_depth", "path"]
    return [
        f"{name}: reference {reference[name]}, packed {packed[name]}"
        for name in names
        if reference[name] != packed[name]
    ]
