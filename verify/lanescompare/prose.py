"""A comparison in words: headline, compact cells, one line per finding."""

from verify.lanescompare.compare import Comparison
from verify.lanescompare.document import status_counts
from verify.lanescompare.gaptable import Json


def cell(value: Json) -> str:
    """Return a gap-table value for people: requests run together, ``-`` for none.

    >>> cell([[[0], [3]], [[6], None]])
    '0+3 6+-'
    >>> cell({"lane0/stage0": [[0], [2]], "lane0/stage1": [[0], [2]]})
    'lane0: 0 2'
    """
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, dict):
        return _sequences(value)
    if isinstance(value, list):
        return " ".join(_group(item) for item in value)
    return str(value)


def _group(item: Json) -> str:
    """Show one batch ``[0, 2]`` as ``0,2``, one pairing ``[[0], None]`` as ``0+-``."""
    if not isinstance(item, list):
        return "-" if item is None else str(item)
    nested = any(part is None or isinstance(part, list) for part in item)
    return ("+" if nested else ",").join(map(_group, item))


def _sequences(value: dict[str, Json]) -> str:
    """One part a lane; its stages apart only where they differ."""
    lanes: dict[str, dict[str, str]] = {}
    for place, batches in value.items():
        lane, _, stage = place.partition("/")
        lanes.setdefault(lane, {})[stage] = cell(batches)
    parts = []
    for lane, stages in lanes.items():
        if len(set(stages.values())) == 1:
            parts.append(f"{lane}: {next(iter(stages.values()))}")
        else:
            parts.extend(f"{lane} {stage}: {batches}" for stage, batches in stages.items())
    return "; ".join(parts)


def headline(comparison: Comparison) -> str:
    """Return the verdict in one sentence."""
    counts = ", ".join(f"{n} {name}" for name, n in status_counts(comparison).items() if n)
    control = "hold" if comparison.negative_control_holds else "are LOST"
    sizes = ", ".join(str(burst.size) for burst in comparison.bursts)
    return (
        f"{comparison.status}: {comparison.model}, bursts of {sizes} requests ({counts}); "
        f"negative controls {control}"
    )


def findings(comparison: Comparison) -> list[str]:
    """Return one line for everything that does not hold, and for what was left out."""
    lines = [
        f"{row.status} {row.check} burst {row.burst} round {row.round}: {row.note}"
        for row in comparison.rows
        if row.note
    ]
    for burst in comparison.bursts:
        for item in burst.rounds:
            where = f"placement burst {burst.size} round {item.round.number}"
            placement = item.placement
            for kind, faults in (
                ("", placement.wrong),
                ("unseen in ", placement.unseen),
                ("no placement record in ", placement.unrecorded),
            ):
                lines.extend(
                    f"MISMATCH {where}: request {request}: {kind}{fault}"
                    for request, fault in faults.items()
                )
    if comparison.trace.dummies:
        lines.append(
            f"not compared: {comparison.trace.dummies} dummy forwards of ranks without work"
        )
    if comparison.not_compared:
        sizes = ", ".join(map(str, comparison.not_compared))
        lines.append(f"not compared: bursts of {sizes} requests, no ledger was given for them")
    return lines
