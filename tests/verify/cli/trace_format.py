"""The trace-event format's own rules, checked on a file: what Perfetto's JSON importer demands.

From the published description of the format: ``X`` slices of one track nest, ``s`` and ``f`` come
in pairs of equal name, category and id, each bound to a slice that encloses it, ``b`` and ``e``
in pairs too, and ``M`` records name every process and thread in use.
"""

from collections import defaultdict
from typing import Any

KINDS = {"M", "X", "s", "f", "i", "b", "e"}
ROUNDING = 1e-3
"""Microseconds; the simulator counts nanoseconds."""
NAMED = {"process_name", "thread_name", "process_sort_index", "thread_sort_index"}


def faults(trace: Any) -> list[str]:
    """Everything in a trace that breaks a rule."""
    found = []
    events = trace["traceEvents"]
    if trace.get("displayTimeUnit") not in ("ms", "ns"):
        found.append("displayTimeUnit")
    slices: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    flows: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    asynchronous: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    names: set[tuple[int, int] | int] = set()
    for event in events:
        found += _plain_faults(event)
        place = (event["pid"], event["tid"])
        if event["ph"] == "X":
            slices[place].append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] in "sf":
            flows[event["cat"], event["name"], event["id"]].append(event)
        elif event["ph"] in "be":
            asynchronous[event["cat"], event["name"], event["id"]].append(event)
        elif event["name"] == "process_name":
            names.add(event["pid"])
        elif event["name"] == "thread_name":
            names.add(place)
    for place in slices:
        if place not in names or place[0] not in names:
            found.append(f"track {place} has no name")
        found += _nesting_faults(slices[place])
    for key, ends in flows.items():
        found += _flow_faults(key, ends, slices)
    for key, ends in asynchronous.items():
        if [event["ph"] for event in ends] != ["b", "e"]:
            found.append(f"asynchronous {key} has {[event['ph'] for event in ends]}")
    stamps = [event["ts"] for event in events if event["ph"] != "M"]
    if stamps != sorted(stamps):
        found.append("time goes back")
    return found


def _plain_faults(event: dict[str, Any]) -> list[str]:
    wrong = []
    if event["ph"] not in KINDS:
        wrong.append(f"unknown ph {event['ph']}")
    if type(event["pid"]) is not int or type(event["tid"]) is not int or not event["name"]:
        wrong.append(f"pid, tid or name of {event}")
    if event["ph"] == "M":
        if event["name"] not in NAMED or not isinstance(event["args"], dict):
            wrong.append(f"metadata {event}")
    elif not isinstance(event["ts"], int | float) or event["ts"] < 0:
        wrong.append(f"ts of {event}")
    if event["ph"] == "i" and event.get("s") not in ("g", "p", "t"):
        wrong.append(f"scope of {event}")
    if event["ph"] == "X" and not event["dur"] >= 0:
        wrong.append(f"dur of {event}")
    return wrong


def _nesting_faults(slices: list[tuple[float, float]]) -> list[str]:
    open_ends: list[float] = []
    wrong = []
    for begin, end in sorted(slices, key=lambda s: (s[0], -s[1])):
        while open_ends and open_ends[-1] <= begin + ROUNDING:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + ROUNDING:
            wrong.append(f"slice {begin}-{end} sticks out of the one around it")
        open_ends.append(end)
    return wrong


def _flow_faults(
    key: Any,
    ends: list[dict[str, Any]],
    slices: dict[tuple[int, int], list[tuple[float, float]]],
) -> list[str]:
    kinds = sorted(event["ph"] for event in ends)
    if kinds != ["f", "s"]:
        return [f"flow {key} has {kinds}"]
    start, finish = sorted(ends, key=lambda event: event["ph"], reverse=True)
    wrong = [] if start["ts"] <= finish["ts"] else [f"flow {key} goes back in time"]
    for event in (start, finish):
        around = slices[event["pid"], event["tid"]]
        if not any(begin <= event["ts"] <= end for begin, end in around):
            wrong.append(f"flow {key}: {event['ph']} at {event['ts']} lies in no slice")
    if finish.get("bp") != "e":
        wrong.append(f"flow {key} does not bind to the enclosing slice")
    return wrong
