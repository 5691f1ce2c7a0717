"""A call sequence as Python that anyone can run against the implementation."""

from __future__ import annotations

from verify.contract.explore import Finding
from verify.contract.operations import FOREIGN, Call, Operation, participant_ids

_HEADER = '''"""{title}"""
from typing import NamedTuple

from verify.contract.loader import load


class Op(NamedTuple):
    lane: int
    number: int


implementation = load({name!r})
FULL_STAGE_WORLD, EP_WAVE = implementation.full_stage_world, implementation.ep_wave
context = implementation.build(capacity={capacity}, ep_size={ep_size})
t = {{}}
'''


def as_python(finding: Finding, name: str, title: str) -> str:
    """Return a script that makes the calls; the last one shows the deviation.

    Parameters
    ----------
    finding
        What was found.
    name
        The implementation, as the user named it.
    title
        First line of the script: the clause.
    """
    header = _HEADER.format(
        title=title,
        name=name,
        capacity=finding.profile.capacity,
        ep_size=finding.profile.ep_size,
    )
    lines = [_line(call, finding.profile.ep_size) for call in finding.calls]
    needs_replace = any(call.oddity in FOREIGN for call in finding.calls)
    if needs_replace:
        header = header.replace("from typing", "from dataclasses import replace\nfrom typing", 1)
    if lines:
        last = lines.pop()
        bare = last.split(" = ", 1)[1] if last.startswith("t[") else last
        lines.append(f"print({bare})")
    expected = f"# expected: {finding.deviation.expected}"
    observed = f"# observed: {finding.deviation.observed}"
    return header + "\n".join([*lines, expected, observed]) + "\n"


def _op(operation: Operation) -> str:
    return f"Op({operation.lane}, {operation.number})"


def _ticket(operation: Operation, oddity: str) -> str:
    plain = f"t[{_op(operation)}]"
    change = {
        "other-stage": "stage_id=1",
        "other-replica": "replica_id=1",
        "odd-scope": "scope='no such scope'",
    }.get(oddity)
    return plain if change is None else f"replace({plain}, {change})"


def _line(call: Call, ep_size: int) -> str:
    tickets = [_ticket(operation, call.oddity) for operation in call.tickets]
    new = [
        f"list({_op(operation)})" if call.oddity == "unhashable" else _op(operation)
        for operation in call.new
    ]
    participants = participant_ids(call.participants, ep_size)
    match call.kind:
        case "full":
            return f"t[{new[0]}] = context.enqueue_full_stage(operation_id={new[0]})"
        case "wave":
            return (
                f"t[{new[0]}] = context.enqueue_ep_wave(operation_id={new[0]}, "
                f"participant_ep_ids={participants})"
            )
        case "shift":
            scope = "EP_WAVE" if call.new[0].is_wave else "FULL_STAGE_WORLD"
            scope = "'no such scope'" if call.oddity == "scope" else scope
            given = f", participant_ep_ids={participants}" if call.new[0].is_wave else ""
            return (
                f"t[{new[0]}] = context.transition_active_scope({tickets[0]}, "
                f"operation_id={new[0]}, scope={scope}{given})"
            )
        case "promote":
            owners = f"({', '.join(tickets)}{',' if len(tickets) == 1 else ''})"
            return (
                f"t[{new[0]}] = context.replace_full_stage_owners_with_ep_wave({owners}, "
                f"operation_id={new[0]}, participant_ep_ids={participants})"
            )
        case "restore":
            made = f"({', '.join(new)}{',' if len(new) == 1 else ''})"
            return (
                f"t.update((x.operation_id, x) for x in context."
                f"replace_ep_wave_with_full_stage_owners({tickets[0]}, operation_ids={made}))"
            )
        case "ask":
            return (
                f"context.is_queued({tickets[0]}), context.is_active({tickets[0]}), "
                f"context.is_cancelled({tickets[0]})"
            )
    method = {"try": "try_acquire", "bind": "bind_forward_group"}.get(call.kind, call.kind)
    return f"context.{method}({tickets[0]})"
