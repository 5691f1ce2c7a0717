# ruff: noqa: E501 - source text of the core, as it stands there
"""The zoo: each mutant changes one place of one file under ``frontier/``.

``old`` must occur exactly once in the file, so that a mutant that no longer applies is an error.
``rule`` is the admission rule whose contract it is run under; ``equivalent`` argues why no layer
can tell the mutant from the original, and is empty for all others.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    rule: str = "ep_ordered"
    equivalent: str = ""

    @property
    def touches_context(self):
        return self.file in ("context.py", "admission.py", "tickets.py")


def _of(file, *rows):
    return [Mutant(name, file, old, new, **more) for name, old, new, more in rows]


_STRICT = {"rule": "strict_fifo"}
_LANE = {"rule": "lane_aware"}
_HOLD_CHECK = "if self._holds(ticket) or next(self._obstacles(ticket), None) is not None:"

CONTEXT = _of(
    "context.py",
    (
        "capacity off by one: one owner too many",
        "if owners >= self._capacity:",
        "if owners > self._capacity:",
        {},
    ),
    (
        "capacity off by one: one owner too few",
        "if owners >= self._capacity:",
        "if owners + 1 >= self._capacity:",
        {},
    ),
    ("capacity is never looked at", "if owners >= self._capacity:", "if False:", {}),
    (
        "a wave enters beside active owners",
        "elif self._active and ticket.scope == EP_WAVE:",
        "elif False:",
        {},
    ),
    ("an active wave keeps nobody out", "if self._wave is not None:\n            yield", "if False:\n            yield", {}),
    ("a sealed group keeps nobody out", "            if self._sealed:\n                yield", "            if False:\n                yield", {}),
    ("the rule is never asked", "        if behind:\n            yield", "        if False:\n            yield", {}),
    (
        "an active ticket is admitted again (scan runs off the end: ValueError)",
        _HOLD_CHECK,
        "if next(self._obstacles(ticket), None) is not None:",
        {},
    ),
    (
        "an active ticket answers True",
        _HOLD_CHECK + "\n            return False",
        "if self._holds(ticket):\n            return True\n"
        "        if next(self._obstacles(ticket), None) is not None:\n            return False",
        {},
    ),
    (
        "popleft of another ticket",
        "        self._queue.remove(ticket)\n        self._active[ticket.admission_seq] = ticket",
        "        self._queue.pop(0)\n        self._active[ticket.admission_seq] = ticket",
        {},
    ),
    (
        "an admitted ticket stays in the FIFO",
        "        self._queue.remove(ticket)\n        self._active[ticket.admission_seq] = ticket",
        "        self._active[ticket.admission_seq] = ticket",
        {},
    ),
    (
        "a refused ticket loses its place",
        _HOLD_CHECK + "\n            return False",
        "if self._holds(ticket):\n            return False\n"
        "        if next(self._obstacles(ticket), None) is not None:\n"
        "            self._queue.remove(ticket)\n            self._queue.append(ticket)\n"
        "            return False",
        {},
    ),
    (
        "a stale head is dropped without being cancelled",
        _HOLD_CHECK + "\n            return False",
        "if self._holds(ticket):\n            return False\n"
        "        if next(self._obstacles(ticket), None) is not None:\n"
        "            if self._queue[0] is not ticket and self._active:\n"
        "                self._queue.pop(0)\n"
        "            return False",
        _STRICT,
    ),
    (
        "an admitted wave is not noted",
        "        if ticket.scope == EP_WAVE:\n            self._wave = ticket\n        return True",
        "        return True",
        {},
    ),
    (
        "a new ticket goes to the front",
        "self._queue.append(ticket)",
        "self._queue.insert(0, ticket)",
        {},
    ),
    (
        "a sequence number is used twice",
        "        self._next_seq += 1\n",
        "        self._next_seq += 0\n",
        {},
    ),
    (
        "sequence numbers count down",
        "        self._next_seq += 1\n",
        "        self._next_seq -= 1\n",
        {},
    ),
    (
        "a duplicate operation id is accepted",
        "        if operation_id in self._live_operations:",
        "        if False:",
        {},
    ),
    (
        "an unhashable operation id raises TypeError",
        "        _require_hashable(\"operation_id\", operation_id)\n",
        "",
        {},
    ),
    (
        "a cancelled operation's id stays taken",
        "        self._queue.remove(ticket)\n        self._live_operations.discard(ticket.operation_id)",
        "        self._queue.remove(ticket)",
        {},
    ),
    (
        "a released operation's id stays taken",
        "        del self._active[ticket.admission_seq]\n        self._live_operations.discard(ticket.operation_id)",
        "        del self._active[ticket.admission_seq]",
        {},
    ),
    (
        "a cancelled ticket is forgotten",
        "        self._cancelled.add(ticket)\n",
        "",
        {},
    ),
    ("cancel leaves the ticket in the FIFO", "        self._queue.remove(ticket)\n        self._live_operations", "        self._live_operations", {}),
    (
        "cancel drops the head instead",
        "        self._queue.remove(ticket)\n        self._live_operations",
        "        self._queue.pop(0)\n        self._live_operations",
        {},
    ),
    (
        "cancel of an active ticket releases it",
        "            raise ValueError(f\"cannot cancel a ticket that is active: {ticket!r}\")",
        "            return self.release(ticket)",
        {},
    ),
    (
        "release of a queued ticket cancels it",
        "        self._require_active(ticket, \"release\")\n",
        "        self._validate(ticket)\n        if not self._holds(ticket):\n            return self.cancel(ticket)\n",
        {},
    ),
    (
        "seal not cleared",
        "            self._group = None\n            self._sealed = False\n\n    def _drop",
        "            self._group = None\n\n    def _drop",
        {},
    ),
    (
        "group not unbound when the last owner leaves",
        "            self._group = None\n            self._sealed = False\n\n    def _drop",
        "            self._sealed = False\n\n    def _drop",
        {},
    ),
    (
        "seal cleared by a partial release",
        "        self._drop(ticket)\n        if not self._active:",
        "        self._drop(ticket)\n        self._sealed = False\n        if not self._active:",
        {},
    ),
    (
        "any release unbinds the group",
        "        self._drop(ticket)\n        if not self._active:",
        "        self._drop(ticket)\n        self._group = None\n        if not self._active:",
        {},
    ),
    (
        "seal not set",
        "            self._sealed = True",
        "            self._sealed = False",
        {},
    ),
    (
        "seal without a bound group",
        "        if changes_scope and self._group is not None:",
        "        if changes_scope:",
        {},
    ),
    (
        "the restore unseals",
        "        return self._replace((wave_ticket,), operations, FULL_STAGE_WORLD, ())",
        "        made = self._replace((wave_ticket,), operations, FULL_STAGE_WORLD, ())\n"
        "        self._sealed = False\n        return made",
        {},
    ),
    (
        "binding seals",
        "            self._next_group += 1\n        return self._group",
        "            self._next_group += 1\n        else:\n            self._sealed = True\n"
        "        return self._group",
        {},
    ),
    ("group id reused", "            self._next_group += 1\n", "            self._next_group += 0\n", {}),
    (
        "each binder opens a group of its own",
        "        if self._group is None:\n            self._group = self._next_group",
        "        if True:\n            self._group = self._next_group",
        {},
    ),
    (
        "a wave may bind the group",
        "        if ticket.scope != FULL_STAGE_WORLD:\n            raise ValueError(f\"only a full-stage owner binds",
        "        if False:\n            raise ValueError(f\"only a full-stage owner binds",
        {},
    ),
    (
        "a queued ticket may bind the group",
        "        self._require_active(ticket, \"bind\")\n",
        "        self._validate(ticket)\n",
        {},
    ),
    (
        "joinable shows a sealed group",
        "        if self._group is not None and not self._sealed:",
        "        if self._group is not None:",
        {},
    ),
    (
        "joinable always shows the next id",
        "        if self._group is not None and not self._sealed:",
        "        if False:",
        {},
    ),
    (
        "an owner leaves full-stage scope beside others",
        "        if ticket.scope == FULL_STAGE_WORLD and scope != ticket.scope and len(self._active) > 1:",
        "        if False:",
        {},
    ),
    (
        "error after a partial change: a transition that fails has dropped the owner",
        "        self._require_active(ticket, \"transition\")\n",
        "        self._require_active(ticket, \"transition\")\n"
        "        if not isinstance(scope, str) or scope not in SCOPES:\n"
        "            self._drop(ticket)\n",
        {},
    ),
    (
        "error after a partial change: a failed enqueue takes the operation id",
        "        self._require_new_operation(operation_id)\n        participants = self._require_world(participant_ep_ids)\n        return self._enqueue",
        "        self._require_new_operation(operation_id)\n        self._live_operations.add(operation_id)\n"
        "        participants = self._require_world(participant_ep_ids)\n        return self._enqueue",
        {},
    ),
    (
        "error after a partial change: a failed promotion seals the group",
        "        if not owners:\n            raise ValueError(\"owner_tickets must name at least one owner, got none\")",
        "        if not owners:\n            self._sealed = self._group is not None\n"
        "            raise ValueError(\"owner_tickets must name at least one owner, got none\")",
        {},
    ),
    ("promotion of no owner is accepted silently", "        if not owners:\n            raise ValueError(\"owner_tickets must name at least one owner, got none\")", "        if not owners:\n            return None  # type: ignore[return-value]", {}),
    (
        "a queued ticket is promoted",
        "            self._require_active(owner, \"promote\")\n",
        "            self._validate(owner)\n",
        {},
    ),
    (
        "promotion beside an active wave",
        "        if self._wave is not None:\n            raise ValueError(f\"cannot promote",
        "        if False:\n            raise ValueError(f\"cannot promote",
        {},
    ),
    (
        "promotion leaves the first owner active",
        "        for ticket in old:\n            self._drop(ticket)",
        "        for ticket in old[1:] or old:\n            self._drop(ticket)",
        {},
    ),
    (
        "restore above the capacity",
        "        if len(self._active) - 1 + len(operations) > self._capacity:",
        "        if False:",
        {},
    ),
    (
        "restore below the capacity only",
        "        if len(self._active) - 1 + len(operations) > self._capacity:",
        "        if len(self._active) - 1 + len(operations) >= self._capacity + (self._capacity == 1):",
        {},
    ),
    (
        "restore of no owner is accepted",
        "            raise ValueError(\"operation_ids must name at least one operation, got none\")",
        "            pass",
        {},
    ),
    (
        "restore with a repeated operation id",
        "        if len(set(operations)) != len(operations):",
        "        if False:",
        {},
    ),
    (
        "the single-ticket view shows the latest owner",
        "        return self._active[min(self._active)] if self._active else None",
        "        return self._active[max(self._active)] if self._active else None",
        {},
    ),
    (
        "the single-ticket view shows the smallest number even beside a wave",
        "        if self._wave is not None:\n            return self._wave\n",
        "",
        {},
    ),
    ("idle while something is queued only", "        return not self._active\n", "        return not self._active and not self._queue\n", {}),
    (
        "a ticket of another stage is taken",
        "        if (ticket.replica_id, ticket.stage_id) != (self._replica_id, self._stage_id):",
        "        if ticket.replica_id != self._replica_id:",
        {
            "equivalent": "Tickets are compared as values: one of another stage equals no queued "
            "or active ticket, so the next check (neither queued nor active) raises ValueError "
            "all the same; only the words of the message differ."
        },
    ),
    (
        "tickets are matched by number alone",
        "        return self._active.get(ticket.admission_seq) == ticket",
        "        return ticket.admission_seq in self._active",
        {
            "equivalent": "No two live tickets of a context share a number, and every method that "
            "raises checks replica, stage and scope first. Only is_active of another context's "
            "ticket may answer True, which the protocol page leaves open."
        },
    ),
    (
        "owns does not validate",
        "        self._validate(ticket)\n        return self._holds(ticket)",
        "        return self._holds(ticket)",
        {},
    ),
    (
        "participants in any order",
        "        if given != self._world or any(type(i) is not int for i in given):",
        "        if set(given) != set(self._world) or len(given) != len(self._world):",
        {},
    ),
    (
        "a missing participant is accepted",
        "        if given != self._world or any(type(i) is not int for i in given):",
        "        if not set(given) <= set(self._world) or list(given) != sorted(given) or not given:",
        {},
    ),
    (
        "a boolean id is accepted",
        "    if isinstance(value, bool) or not isinstance(value, int) or value < least:",
        "    if not isinstance(value, int) or value < least:",
        {},
    ),
    (
        "a negative id is accepted",
        "    if isinstance(value, bool) or not isinstance(value, int) or value < least:",
        "    if isinstance(value, bool) or not isinstance(value, int) or value < min(least, 1) - 9:",
        {},
    ),
    (
        "capacity 0 is accepted",
        "_require_int(\"full_stage_capacity\", full_stage_capacity, 1)",
        "_require_int(\"full_stage_capacity\", full_stage_capacity, 0)",
        {},
    ),
    (
        "the participants are those given, not the world",
        "        return self._world\n",
        "        return given\n",
        {
            "equivalent": "The line is reached only when the given tuple equals the world, so "
            "both return equal tuples."
        },
    ),
)  # fmt: skip

RULES = _of(
    "admission.py",
    (
        "strict head for lane work",
        "        return tuple(t for t in ahead if t.scope == EP_WAVE)",
        "        return tuple(ahead)",
        {},
    ),
    (
        "wave overtaken by full-stage tickets",
        "        return tuple(t for t in ahead if t.scope == EP_WAVE)",
        "        return ()",
        {},
    ),
    (
        "a wave overtakes full-stage tickets",
        "        ahead = _ahead(ticket, queue)\n        if ticket.scope == EP_WAVE:\n            return tuple(ahead)\n        return tuple(t for t in ahead if t.scope == EP_WAVE)",
        "        ahead = _ahead(ticket, queue)\n        return tuple(t for t in ahead if t.scope == EP_WAVE)",
        {},
    ),
    (
        "strict FIFO admits the second ticket",
        "        return tuple(_ahead(ticket, queue))",
        "        return tuple(_ahead(ticket, queue)[1:])",
        _STRICT,
    ),
    (
        "strict FIFO admits anybody",
        "        return tuple(_ahead(ticket, queue))",
        "        return ()",
        _STRICT,
    ),
    (
        "lane-aware: waits for busy lanes instead of idle ones",
        "lane_of(t.operation_id) not in holding",
        "lane_of(t.operation_id) in holding",
        _LANE,
    ),
    (
        "lane-aware: a wave ahead is passed",
        "t for t in ahead if t.scope == EP_WAVE or lane_of(t.operation_id) not in holding",
        "t for t in ahead if t.scope != EP_WAVE and lane_of(t.operation_id) not in holding",
        _LANE,
    ),
    (
        "lane-aware: a wave passes tickets of busy lanes",
        "        ahead = _ahead(ticket, queue)\n        if ticket.scope == EP_WAVE:\n            return tuple(ahead)\n        holding",
        "        ahead = _ahead(ticket, queue)\n        holding",
        {
            **_LANE,
            "equivalent": "A wave is refused while anything is active, and with nothing active no "
            "lane holds a ticket, so every ticket ahead blocks it either way.",
        },
    ),
    (
        "late tickets are minted at arrival",
        "    ticket_at: Literal[\"arrival\", \"attempt\"] = \"attempt\"",
        "    ticket_at: Literal[\"arrival\", \"attempt\"] = \"arrival\"",
        {"rule": "late_ticket"},
    ),
)  # fmt: skip

LANES = _of(
    "replica.py",
    (
        "release without waking siblings",
        '        order = (lane, *(other for other in range(self.config.lanes) if other != lane))',
        '        order = (lane,)',
        {},
    ),
    (
        "release without waking the lane itself",
        '        order = (lane, *(other for other in range(self.config.lanes) if other != lane))',
        '        order = tuple(other for other in range(self.config.lanes) if other != lane)',
        {},
    ),
    (
        "siblings are woken before the lane itself",
        '        order = (lane, *(other for other in range(self.config.lanes) if other != lane))',
        '        order = (*(other for other in range(self.config.lanes) if other != lane), lane)',
        {},
    ),
    (
        "a busy lane presents its next batch",
        "        if scheduler.running is not None or not scheduler.queue:\n            return []\n        batch",
        "        if not scheduler.queue:\n            return []\n        batch",
        {},
    ),
    (
        "no group is bound",
        "        self.contexts[stage].bind_forward_group(self.tickets[stage][batch])\n",
        "",
        {},
    ),
    (
        "the lane stays busy after its stage",
        '        self.schedulers[stage][lane].running = None\n',
        '',
        {},
    ),
    (
        "the stage is not released",
        "        self.contexts[stage].release(self.tickets[stage].pop(batch))",
        "        self.tickets[stage].pop(batch)",
        {},
    ),
    (
        "one batch in flight too many",
        "        while self.in_flight[lane] < self.config.max_in_flight:",
        "        while self.in_flight[lane] <= self.config.max_in_flight:",
        {},
    ),
    (
        "the next stage is skipped",
        "        if stage + 1 < self.config.stages:\n            follow",
        "        if stage + 2 < self.config.stages:\n            follow",
        {},
    ),
    (
        "arrivals do not present",
        "        if scheduler.running is not None:\n            return []\n        return [Event(STAGE_SCHEDULE, event.lane, None, stage)]",
        "        return []",
        {},
    ),
    (
        "one layer too few",
        "        if layer + 1 < self.config.layers:",
        "        if layer + 2 < self.config.layers:",
        {},
    ),
    (
        "the batch's end does not schedule its lane",
        "        return [Event(LANE_SCHEDULE, event.lane)]\n\n    # ---------------------------------------------------------------- stages",
        "        return []\n\n    # ---------------------------------------------------------------- stages",
        {},
    ),
    (
        "a room counts as full with one lane missing",
        "        if len(room) < self.config.lanes:\n            return []",
        "        if len(room) < self.config.lanes - 1:\n            return []",
        {},
    ),
    (
        "a placeholder overwrites a real batch",
        "        if room is None or room.get(event.lane) is not None:",
        "        if room is None:",
        {
            "equivalent": "A stand-in is emitted only for a lane that is not busy at the stage, and "
            "is handled before time moves on; entering a room takes an attention, which is timed. "
            "So no real batch can have taken the place in between."
        },
    ),
    (
        "stand-ins dispatch at once",
        "        return stand_ins or self._dispatch_if_full(key, room)",
        "        return self._dispatch_if_full(key, room) or stand_ins",
        {},
    ),
    (
        "no stand-in is stored on attention's end",
        "                if absent not in room and allows(absent, scheduler, context):",
        "                if False:",
        {},
    ),
    (
        "a room stays open after its dispatch",
        "        del self.rooms[key]\n",
        "",
        {},
    ),
    (
        "joined placeholders are never withdrawn",
        "        if self.config.stand_in.withdraws_joined:",
        "        if False:",
        {},
    ),
    (
        "placeholders of idle lanes are withdrawn too",
        "                if schedulers[other].running is not None:\n                    del",
        "                if True:\n                    del",
        {},
    ),
) + _of(
    "standin.py",
    (
        "a sealed group allows no stand-in for queued work",
        "return scheduler.running is None and (not scheduler.queue or context.forward_group_sealed)",
        "return scheduler.running is None and not scheduler.queue",
        {},
    ),
    (
        "a busy lane gets a stand-in",
        "return scheduler.running is None and (not scheduler.queue or context.forward_group_sealed)",
        "return not scheduler.queue or context.forward_group_sealed",
        {},
    ),
    (
        "queued work never forbids a stand-in",
        "return scheduler.running is None and (not scheduler.queue or context.forward_group_sealed)",
        "return scheduler.running is None",
        {},
    ),
) + _of(
    "rooms.py",
    (
        "all layers share a room",
        "        return RoomKey(stage, layer)",
        "        return RoomKey(stage, 0)",
        {},
    ),
    (
        "rooms by phase do not tell phases apart",
        "        return RoomKey(stage, layer, batch.phase)",
        "        return RoomKey(stage, layer)",
        {},
    ),
) + _of(
    "lanes.py",
    (
        "the lane's latest batch runs first",
        '        self.running = self.take_head()\n        return self.running\n',
        '        self.running = self.queue.pop()\n        return self.running\n',
        {},
    ),
    (
        "the head runs and stays queued",
        '        self.running = self.take_head()\n        return self.running\n',
        '        self.running = self.queue[0]\n        return self.running\n',
        {},
    ),
) + _of(
    "ffn.py",
    (
        "only the sibling that acquired runs",
        "        if not (self.context.owns(ticket) or self.context.try_acquire(ticket)):",
        "        if not self.context.try_acquire(ticket):",
        {},
    ),
    (
        "the wave ends with its first child",
        "        return [] if waits_for else [Event(COMBINE_END",
        "        return [Event(COMBINE_END",
        {},
    ),
    (
        "one ticket is minted for a wave's every presentation",
        "        ticket = self.tickets.get(group)\n        if ticket is None:",
        "        ticket = None\n        if ticket is None:",
        {},
    ),
)  # fmt: skip

ZOO = (*CONTEXT, *RULES, *LANES)
