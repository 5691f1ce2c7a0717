"""The written contract: numbered clauses over PROTOCOL.md sections 2 and 3.

A clause is checked wherever a call sequence reaches it; one that a check never reached is
reported as such and never as kept. Points that the protocol page leaves open are no clauses: they
are listed in :data:`LATITUDES`, and an implementation's choice there is observed, not judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FIFO_RULES: Final = ("strict_fifo", "late_ticket")
PASSING_RULES: Final = ("lane_aware", "ep_ordered")
RULES: Final = ("strict_fifo", "lane_aware", "ep_ordered", "late_ticket")
"""Names of the admission rules of PROTOCOL.md section 3."""

_ENQUEUE: Final = ("enqueue_full_stage",)
_WAVE: Final = ("enqueue_ep_wave",)
_TRY: Final = ("enqueue_full_stage", "try_acquire")
_BIND: Final = (*_TRY, "bind_forward_group", "joinable_forward_group_id")
_PROMOTE: Final = (*_TRY, "replace_full_stage_owners_with_ep_wave")
_RESTORE: Final = (*_WAVE, "try_acquire", "replace_ep_wave_with_full_stage_owners")
_SHIFT: Final = (*_TRY, "transition_active_scope")


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence of the contract.

    Attributes
    ----------
    number
        1 for ``AC-01``.
    key
        Name by which the reference refers to the clause.
    group
        Subject: construction, ticket, admission, order, lifetime, group, scope, view, errors or
        liveness.
    text
        What an implementation must do.
    needs
        Members without which the clause is reported as missing; ``full_stage_capacity`` stands
        for the constructor's argument.
    rules
        Admission rules whose contract has the clause.
    """

    number: int
    key: str
    group: str
    text: str
    needs: tuple[str, ...] = ()
    rules: tuple[str, ...] = RULES

    @property
    def id(self) -> str:
        """``AC-`` and the number in two digits."""
        return f"AC-{self.number:02d}"

    @property
    def section(self) -> int:
        """Section of PROTOCOL.md that the clause is taken from."""
        return 3 if self.group == "order" else 2


def _clauses(*rows: tuple[str, str, str, tuple[str, ...]]) -> tuple[Clause, ...]:
    return tuple(Clause(number, *row) for number, row in enumerate(rows, start=1))


_COMMON: Final = _clauses(
    (
        "construct",
        "construction",
        "The constructor takes replica_id, stage_id, ep_size and full_stage_capacity by keyword, "
        "with a capacity of 1 unless given; the properties of these names show the values.",
        ("replica_id", "stage_id", "ep_size", "full_stage_capacity"),
    ),
    (
        "bad_id",
        "construction",
        "A replica_id or stage_id that is no integer, a boolean or negative gets ValueError.",
        (),
    ),
    ("bad_ep_size", "construction", "An ep_size below 1 gets ValueError.", ()),
    (
        "bad_capacity",
        "construction",
        "A full_stage_capacity below 1 gets ValueError.",
        ("full_stage_capacity",),
    ),
    (
        "mint_full",
        "ticket",
        "enqueue_full_stage mints a ticket with the replica, the stage, the operation id and the "
        "scope FULL_STAGE_WORLD.",
        _ENQUEUE,
    ),
    (
        "mint_wave",
        "ticket",
        "enqueue_ep_wave mints a ticket with the replica, the stage, the operation id, the scope "
        "EP_WAVE and the participants 0 ... ep_size - 1.",
        _WAVE,
    ),
    ("frozen", "ticket", "A ticket is frozen.", _ENQUEUE),
    (
        "seq",
        "ticket",
        "Each enqueued ticket has a higher admission_seq than those before it.",
        _ENQUEUE,
    ),
    (
        "fifo",
        "ticket",
        "A new ticket goes to the end of the ready FIFO; queued_tickets shows the FIFO from its "
        "head on.",
        (*_ENQUEUE, "queued_tickets"),
    ),
    (
        "one_of",
        "ticket",
        "A ticket is exactly one of queued, active, released (or replaced) and cancelled, and "
        "is_queued, is_active and is_cancelled say which.",
        (*_TRY, "is_active", "is_queued", "is_cancelled"),
    ),
    ("owns", "ticket", "owns says of a live ticket whether it is active.", (*_TRY, "owns")),
    (
        "owns_validates",
        "ticket",
        "owns validates its ticket: one of another context or of unknown scope gets ValueError.",
        (*_ENQUEUE, "owns"),
    ),
    (
        "never_raise",
        "ticket",
        "is_active, is_queued and is_cancelled never raise, not even on another context's ticket.",
        (*_ENQUEUE, "is_active", "is_queued", "is_cancelled"),
    ),
    (
        "admits",
        "admission",
        "try_acquire that returns True takes this very ticket, and no other, out of the FIFO and "
        "makes it active.",
        (*_TRY, "queued_tickets"),
    ),
    ("refusal_atomic", "admission", "try_acquire that returns False changes nothing.", _TRY),
    (
        "try_active",
        "admission",
        "try_acquire of a ticket that is already active returns False.",
        _TRY,
    ),
    (
        "head_admitted",
        "admission",
        "The FIFO head is admitted while nothing is active.",
        _TRY,
    ),
    ("wave_alone", "admission", "An EP wave is refused while anything is active.", (*_TRY, *_WAVE)),
    (
        "wave_excludes",
        "admission",
        "A full-stage ticket is refused while an EP wave is active.",
        (*_TRY, *_WAVE),
    ),
    (
        "capacity_full",
        "admission",
        "A full-stage ticket is refused while owners fill the capacity.",
        _TRY,
    ),
    (
        "capacity_free",
        "admission",
        "A full-stage ticket at the FIFO head is admitted while owners leave room in the "
        "capacity, no EP wave is active and no group is sealed.",
        (*_TRY, "full_stage_capacity"),
    ),
    (
        "sealed_refuses",
        "admission",
        "A full-stage ticket is refused while the forward group is sealed.",
        (*_BIND, "full_stage_capacity", "replace_full_stage_owners_with_ep_wave"),
    ),
    (
        "release",
        "lifetime",
        "release ends the active operation it names, and no other.",
        (*_TRY, "release"),
    ),
    (
        "cancel",
        "lifetime",
        "cancel withdraws the queued ticket it names, and no other, and remembers it as cancelled.",
        (*_ENQUEUE, "cancel", "is_cancelled"),
    ),
    (
        "id_free",
        "lifetime",
        "The id of an operation that has ended (released, cancelled or replaced) may be used "
        "again.",
        (*_TRY, "release", "cancel"),
    ),
    (
        "bind",
        "group",
        "The first active full-stage owner to bind opens the next group, whose id "
        "joinable_forward_group_id has just shown; others join it and get the same id.",
        _BIND,
    ),
    ("group_fresh", "group", "A group id is never used for a second group.", (*_BIND, "release")),
    (
        "joinable",
        "group",
        "joinable_forward_group_id is the bound group's id while the group is unsealed, else the "
        "next id.",
        _BIND,
    ),
    (
        "seal_promote",
        "group",
        "A bound group seals when its owners become an EP wave.",
        (*_BIND, "forward_group_sealed", "replace_full_stage_owners_with_ep_wave"),
    ),
    (
        "seal_shift",
        "group",
        "A bound group seals when its owner transitions scope.",
        (*_BIND, "forward_group_sealed", "transition_active_scope"),
    ),
    (
        "seal_stays",
        "group",
        "A sealed group stays sealed through the restore, until every owner has released.",
        (*_BIND, *_PROMOTE, *_RESTORE, "forward_group_sealed", "release"),
    ),
    (
        "unseal",
        "group",
        "When nothing is active any more, the forward group is unbound and unsealed.",
        (*_BIND, "forward_group_sealed", "release"),
    ),
    (
        "no_seal",
        "group",
        "Nothing else seals: without a bound group there is no seal, and admission, binding and "
        "queueing do not seal one.",
        (*_TRY, "forward_group_sealed"),
    ),
    (
        "shift",
        "scope",
        "transition_active_scope replaces one active owner's operation by the new one without "
        "releasing the stage.",
        _SHIFT,
    ),
    (
        "shift_alone",
        "scope",
        "Leaving full-stage scope while another full-stage owner is active gets ValueError.",
        (*_SHIFT, "full_stage_capacity"),
    ),
    (
        "promote",
        "scope",
        "replace_full_stage_owners_with_ep_wave turns exactly the given owners into one active "
        "EP wave.",
        _PROMOTE,
    ),
    (
        "restore",
        "scope",
        "replace_ep_wave_with_full_stage_owners turns the wave into one active full-stage owner "
        "per operation id.",
        _RESTORE,
    ),
    (
        "restore_capacity",
        "scope",
        "Restoring more owners than the capacity holds gets ValueError.",
        _RESTORE,
    ),
    (
        "idle",
        "view",
        "is_idle says whether nothing is active; then active_scope, active_operation_id and "
        "active_participant_ep_ids are empty.",
        ("is_idle", "active_scope", "active_operation_id", "active_participant_ep_ids"),
    ),
    (
        "view",
        "view",
        "The single-ticket view (active_*) shows the active EP wave, else the active owner of "
        "smallest admission_seq.",
        (*_TRY, "active_scope", "active_operation_id", "active_participant_ep_ids"),
    ),
    (
        "bad_operation",
        "errors",
        "An unhashable operation id, or one that is queued or active, gets ValueError, whichever "
        "method is to mint its ticket.",
        _TRY,
    ),
    (
        "bad_participants",
        "errors",
        "A participant set that is not exactly 0 ... ep_size - 1 in order gets ValueError.",
        _WAVE,
    ),
    (
        "bad_ticket",
        "errors",
        "A ticket of another context or of unknown scope gets ValueError from every method that "
        "uses it.",
        (*_TRY, "release", "cancel"),
    ),
    (
        "bad_try",
        "errors",
        "try_acquire of a ticket neither queued nor active gets ValueError.",
        _TRY,
    ),
    ("bad_release", "errors", "Releasing what is not active gets ValueError.", (*_TRY, "release")),
    (
        "bad_cancel",
        "errors",
        "Cancelling what is active, or not queued, gets ValueError.",
        (*_TRY, "cancel"),
    ),
    (
        "bad_shift",
        "errors",
        "Transitioning what is not active, or to an unknown scope, gets ValueError.",
        _SHIFT,
    ),
    (
        "bad_bind",
        "errors",
        "Binding without being an active full-stage owner gets ValueError.",
        (*_TRY, "bind_forward_group"),
    ),
    (
        "bad_promote",
        "errors",
        "Promoting no owner, a non-active owner, or while an EP wave is active gets ValueError.",
        _PROMOTE,
    ),
    (
        "bad_restore",
        "errors",
        "Restoring no or duplicate operation ids, or what is no active EP wave, gets ValueError.",
        _RESTORE,
    ),
    ("error_atomic", "errors", "A call that gets an error changes nothing.", _ENQUEUE),
    (
        "drains",
        "liveness",
        "Whatever is queued can be admitted after finitely many releases, and the context is "
        "idle once all of it has been released.",
        (*_TRY, "release"),
    ),
    (
        "no_stuck",
        "liveness",
        "No call sequence leaves a ticket that can neither be admitted nor cancelled.",
        (*_TRY, "cancel"),
    ),
)

_ORDER: Final = tuple(
    Clause(number, key, "order", text, needs, rules)
    for number, (key, text, needs, rules) in enumerate(
        (
            ("head_only", "Only the FIFO head is admitted.", _TRY, FIFO_RULES),
            (
                "wave_as_head",
                "An EP wave is admitted only as the FIFO head.",
                (*_TRY, *_WAVE),
                PASSING_RULES,
            ),
            (
                "wave_ahead",
                "A full-stage ticket waits for an EP wave queued ahead of it.",
                (*_TRY, *_WAVE),
                PASSING_RULES,
            ),
            (
                "idle_lane",
                "A full-stage ticket waits for an earlier full-stage ticket while that ticket's "
                "lane holds no active ticket.",
                _TRY,
                ("lane_aware",),
            ),
            (
                "busy_lane",
                "A full-stage ticket does not wait for an earlier full-stage ticket whose lane "
                "holds an active ticket.",
                (*_TRY, "full_stage_capacity"),
                ("lane_aware",),
            ),
            (
                "no_full_stage",
                "A full-stage ticket waits for no full-stage ticket ahead of it.",
                _TRY,
                ("ep_ordered",),
            ),
        ),
        start=len(_COMMON) + 1,
    )
)

CLAUSES: Final = _COMMON + _ORDER
"""Every clause, by number."""

CLAUSE_BY_ID: Final = {clause.id: clause for clause in CLAUSES}

CLAUSE: Final = {clause.key: clause for clause in CLAUSES}
"""Every clause, by the name that the reference uses."""


def clauses_of(rule: str) -> tuple[Clause, ...]:
    """Clauses of the contract under one admission rule."""
    return tuple(clause for clause in CLAUSES if rule in clause.rules)


LATITUDES: Final = {
    "owns_dead": "what owns gives for a ticket that is neither queued nor active",
    "asked_foreign": "whether is_active, is_queued or is_cancelled affirm another context's ticket",
    "bind_sealed": "bind_forward_group while the group is sealed",
    "own_id": "a replacement that reuses the id of the operation it replaces",
    "participants_full": "participants given for a transition to FULL_STAGE_WORLD",
    "second_wave": "the only full-stage owner leaves its scope while an EP wave is active",
    "repeated_owner": "a promotion that names an owner twice",
    "restore_beside": "a restore that passes the capacity only with the other owners' help",
    "seal": "whether a change of the stage's scope by operations outside the group seals it",
}
"""Points that PROTOCOL.md leaves open; an implementation's choice is observed, not judged."""
