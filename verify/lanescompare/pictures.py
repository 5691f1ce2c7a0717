"""Pictures of a comparison: lanes over time, real beside simulated, and co-execution per round.

Time is drawn in each run's own median forward of the first stage, because the simulated durations
are constants chosen for the protocol, not the engine's milliseconds; panels of a figure share one
scale, and a second axis gives the seconds.
"""

import io
from collections.abc import Callable, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from verify.lanescompare.compare import BurstComparison, Comparison
from verify.lanescompare.gaptable import CO_EXECUTION_TOLERANCE, GATED_STAGE
from verify.lanescompare.metrics import RunMetrics
from verify.lanescompare.runs import LaneRun

LANE_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Colour-blind safe (Paul Tol's bright scheme); lanes beyond seven repeat."""


def to_svg(figure: Figure) -> str:
    """Return `figure` as SVG text that is the same on every run."""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "frontier-verify", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def draw_lanes(burst: BurstComparison) -> Figure:
    """Draw one row of panels per real round: the round, and the simulated *after* run beside it."""
    simulated = burst.after.ledger.run
    lines = simulated.lanes * simulated.stages
    rows = len(burst.rounds)
    figure = Figure(figsize=(12.8, rows * (0.34 * lines + 1.15)), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False, sharex=True, sharey=True)
    for row, item in zip(axes, burst.rounds, strict=True):
        share = item.metrics.stages[GATED_STAGE].co_execution
        _draw_run(row[0], item.round.run, item.metrics)
        row[0].set_title(
            f"real, {item.round.name}: co-execution {_share(share)}", loc="left", fontsize=9
        )
        _draw_run(row[1], simulated, burst.after.measured)
        row[1].set_title(
            f"simulated, {burst.after.ledger.admission}: "
            f"co-execution {_share(burst.after.co_execution)}",
            loc="left",
            fontsize=9,
        )
    for axis in axes[-1]:
        axis.set_xlabel("time in median first-stage forwards (top axis: ms)", fontsize=8)
    return figure


def _share(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _draw_run(axis: Axes, run: LaneRun, metrics: RunMetrics) -> None:
    unit = metrics.stages[GATED_STAGE].median_duration or 1.0
    begin = run.forwards[0].start if run.forwards else 0.0
    for forward in run.forwards:
        line = forward.stage * run.lanes + forward.lane
        left, width = (forward.start - begin) / unit, forward.duration / unit
        colour = LANE_COLOURS[forward.lane % len(LANE_COLOURS)]
        axis.barh(line, width, left=left, height=0.8, color=colour, edgecolor="white", lw=0.6)
        label = ",".join(map(str, forward.requests))
        axis.text(left + width / 2, line, label, ha="center", va="center", size=7, color="white")
    places = [(stage, lane) for stage in range(run.stages) for lane in range(run.lanes)]
    axis.set_yticks(range(len(places)), [f"stage {s} lane {lane}" for s, lane in places])
    axis.set_ylim(len(places) - 0.5, -0.5)
    axis.tick_params(labelsize=7)
    top = axis.secondary_xaxis("top", functions=(_times(unit * 1e3), _times(1e-3 / unit)))
    top.tick_params(labelsize=6, pad=0)
    for stage in range(1, run.stages):
        axis.axhline(stage * run.lanes - 0.5, color="#999999", lw=0.6)


def _times(factor: float) -> Callable[[ArrayLike], NDArray[np.float64]]:
    def scale(values: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(values, dtype=np.float64) * factor

    return scale


def draw_co_execution(comparison: Comparison) -> Figure:
    """Draw the first stage's co-execution of every round against both simulated values."""
    figure = Figure(figsize=(12.8, 3.8), layout="constrained")
    axes = figure.subplots(1, len(comparison.bursts), squeeze=False, sharey=True)[0]
    for axis, burst in zip(axes, comparison.bursts, strict=True):
        _draw_shares(axis, burst, gated=comparison.model == "moe")
    axes[0].set_ylabel("time both busy / time any busy", fontsize=8)
    return figure


def _draw_shares(axis: Axes, burst: BurstComparison, *, gated: bool) -> None:
    names = [item.round.name for item in burst.rounds]
    shares = [item.metrics.stages[GATED_STAGE].co_execution or 0.0 for item in burst.rounds]
    bars = axis.bar(names, shares, width=0.5, color="#4477aa", label="real round")
    axis.bar_label(bars, fmt="%.3f", fontsize=8, label_type="center", color="white")
    if shares:
        axis.axhline(sum(shares) / len(shares), color="#4477aa", ls="--", lw=1, label="real, mean")
    for side, colour in ((burst.after, "#228833"), (burst.before, "#ee6677")):
        if side.co_execution is not None:
            name = f"simulated, {side.ledger.admission}: {side.co_execution:.3f}"
            axis.axhline(side.co_execution, color=colour, lw=1.5, label=name)
    if gated and burst.after.co_execution is not None:
        low = burst.after.co_execution - CO_EXECUTION_TOLERANCE
        axis.axhspan(
            low,
            burst.after.co_execution + CO_EXECUTION_TOLERANCE,
            color="#228833",
            alpha=0.12,
            label=f"tolerance of the mean, {CO_EXECUTION_TOLERANCE}",
        )
    axis.set_ylim(0, 1.1)
    axis.tick_params(labelsize=8)
    axis.set_title(f"burst of {burst.size}", loc="left", fontsize=9)
    axis.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)


def pictures(comparison: Comparison) -> Sequence[tuple[str, str, str]]:
    """Return every picture as (file stem, caption, SVG text)."""
    model = comparison.model
    found = [
        (
            f"co_execution_{model}",
            f"{model}: first-stage co-execution of every real round and of the simulated runs",
            to_svg(draw_co_execution(comparison)),
        )
    ]
    for burst in comparison.bursts:
        caption = (
            f"{model}, burst of {burst.size}: forwards of every lane and stage, numbered by "
            "request; real left, simulated right, one scale in median first-stage forwards"
        )
        found.append((f"lanes_{model}_n{burst.size}", caption, to_svg(draw_lanes(burst))))
    return found
