"""Liveness by the letter: every pending event fires, every single ticket is admitted (issue 7).

The checker condenses fairness to "the oldest event fires again and again" and starvation to "the
lane is admitted there again". Here each pending event is followed by itself until it fires, each
ticket until it is admitted, and strong fairness is decided by trying which admissions are offered
only finitely often. Slow, and independent of marks, labels, masks and Streett components.
"""

from copy import deepcopy
from itertools import product

import networkx as nx

from frontier.closed import renumbered
from frontier.events import (
    ATTENTION_DONE,
    BATCH_END,
    CHILD_DONE,
    COMBINE_END,
    ENVIRONMENT,
    STAGE_END,
    STAGE_SCHEDULE,
    WAVE_END,
)
from models.groups import GroupScenario
from models.quiescent import QuiescentModel, QuiescentRun

_RUNS = (ATTENTION_DONE, CHILD_DONE, STAGE_END)


class TooLargeError(Exception):
    """More states than were asked for."""


class Edge:
    """One transition: what survives where, and what happened."""

    def __init__(self, source, target, moved, fired, log, name):
        self.source, self.target = source, target
        self.moved = moved  # position of a surviving pending event -> its position afterwards
        self.fired = fired
        self.log = log  # ("admitted", lane, stage, batch), ("ended", lane), ("could", lane, stage)
        self.name = name  # batch before -> batch after


class Literal:
    """The graph of a scenario, with the fate of every event and ticket on every transition."""

    def __init__(self, scenario, most):
        self.groups = isinstance(scenario, GroupScenario)
        self.closed = scenario.endless
        self.log = []
        model = QuiescentModel(scenario.make_replica, scenario.ties)
        self.states = list(model.initial_states())
        index = {self.states[0]: 0}
        self.edges = []
        run = QuiescentRun(scenario.make_replica(), (self._observe,))
        for source, state in enumerate(self.states):
            if source > most:
                raise TooLargeError
            out = []
            for action in model.actions(state):
                run.restore(state)
                self.log = []
                run.fire(action)
                target = run.state()
                if target not in index:
                    index[target] = len(self.states)
                    self.states.append(target)
                timed = [i for i, e in enumerate(state.pending) if e.kind not in ENVIRONMENT]
                stays = [i for i in timed if i not in action]
                moved = {before: after for after, before in enumerate(stays)}
                name = self._names(run)
                out.append(Edge(source, index[target], moved, set(action), self.log, name))
            self.edges.append(out)

    def _names(self, run):
        if not self.closed:
            return lambda batch: batch
        _, _, name = renumbered(run.system.snapshot(), tuple(run.pending))
        return (lambda batch: batch) if name is None else name.__getitem__

    def _observe(self, system, event, follow):
        if self.groups:
            if event.kind in (COMBINE_END, STAGE_END):
                self.log += [("ended", i) for i in system.schedulers_of(event.batch)]
            if event.kind == COMBINE_END:
                self.log.append(("wave_ended", 0))
            if event.kind == STAGE_SCHEDULE and follow and follow[0].kind in _RUNS:
                self.log.append(("admitted", event.lane, 0, follow[0].batch))
            return
        if event.kind == BATCH_END:
            self.log.append(("ended", event.lane))
        if event.kind == WAVE_END:
            self.log.append(("wave_ended", event.stage))
        if event.kind == STAGE_SCHEDULE and follow and follow[0].kind in _RUNS:
            self.log.append(("admitted", event.lane, event.stage, follow[0].batch))
        if event.stage >= 0:
            self._offers(system, event.stage)

    def _offers(self, system, stage):
        """Who would be admitted now, by asking a copy of the context."""
        for lane, scheduler in enumerate(system.schedulers[stage]):
            if scheduler.running is None and scheduler.queue:
                context, tickets = deepcopy((system.contexts[stage], system.tickets[stage]))
                ticket = tickets.get(scheduler.queue[0])
                if ticket is not None and context.try_acquire(ticket):
                    self.log.append(("could", lane, stage))

    # ---------------------------------------------------------------- what a state owes

    def queued(self, state):
        """(lane, stage, batch) of every queued batch."""
        system = state.system
        if self.groups:
            return [(i, 0, b) for i, (_, q) in enumerate(system.schedulers) for b in q]
        return [
            (lane, stage, batch)
            for stage, own in enumerate(system.stages)
            for lane, (_, queue) in enumerate(own.lanes)
            for batch in queue
        ]

    def in_flight(self, state, lane):
        system = state.system
        if self.groups:
            running, queue = system.schedulers[lane]
            return bool(queue) or running is not None
        return system.in_flight[lane] > 0

    def in_wave(self, state, stage):
        system = state.system
        context = system.context if self.groups else system.stages[stage].context
        return any(scope == "ep_wave" for scope, _ in context.active)

    # ---------------------------------------------------------------- verdicts

    def progress(self, lane, fairness):
        """Whether a fair run leaves a lane with work without an end of a batch."""
        nodes = [i for i, s in enumerate(self.states) if self.in_flight(s, lane)]

        def follow(node):
            for edge in self.edges[node]:
                if ("ended", lane) not in edge.log and self.in_flight(
                    self.states[edge.target], lane
                ):
                    yield edge, edge.target

        return self._avoidable(nodes, follow, lambda node: node, fairness)

    def partial_deadlock(self, lane, fairness):
        """Whether a fair run goes on for ever where no way leads to an end of the lane's batch."""
        flies = [self.in_flight(state, lane) for state in self.states]
        ways = nx.DiGraph()
        ways.add_nodes_from([*range(len(self.states)), "served"])
        for edge in (edge for out in self.edges for edge in out):
            served = ("ended", lane) in edge.log or not flies[edge.target]
            ways.add_edge(edge.source, "served" if served else edge.target)
        rescued = nx.ancestors(ways, "served")
        lost = [i for i, flying in enumerate(flies) if flying and i not in rescued]
        goes_on = [i for i in lost if self.edges[i]]

        def follow(node):
            return ((e, e.target) for e in self.edges[node] if self.edges[e.target])

        return self._avoidable(goes_on, follow, lambda node: node, fairness)

    def wave(self, stage, fairness):
        """Whether a fair run leaves a dispatched wave for ever."""
        nodes = [i for i, s in enumerate(self.states) if self.in_wave(s, stage)]

        def follow(node):
            for edge in self.edges[node]:
                if ("wave_ended", stage) not in edge.log:
                    yield edge, edge.target

        return self._avoidable(nodes, follow, lambda node: node, fairness)

    def starvation(self, lane, stage, fairness):
        """Whether a fair run leaves some one ticket of a lane at a stage queued for ever."""
        nodes = [
            (i, batch)
            for i, s in enumerate(self.states)
            for own, at, batch in self.queued(s)
            if (own, at) == (lane, stage)
        ]

        def follow(node):
            for edge in self.edges[node[0]]:
                if ("admitted", lane, stage, node[1]) in edge.log:
                    continue
                batch = edge.name(node[1])
                if (lane, stage, batch) in self.queued(self.states[edge.target]):
                    yield edge, (edge.target, batch)

        return self._avoidable(nodes, follow, lambda node: node[0], fairness)

    def _avoidable(self, nodes, follow, state, fairness):
        """Whether some fair run goes on among these nodes for ever, or ends in one."""
        if fairness == "none":
            return bool(nodes)
        if any(not self.edges[state(node)] for node in nodes):
            return True
        graph = nx.MultiDiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(
            (node, target, {"edge": edge}) for node in nodes for edge, target in follow(node)
        )
        if fairness == "weak":
            return self._has_fair_run(graph, state, ())
        offers = {(o[1], o[2]) for _, _, e in graph.edges(data="edge") for o in e.log
                  if o[0] == "could"}  # fmt: skip
        for choice in product((False, True), repeat=len(offers)):
            ceases = {pair for pair, finite in zip(sorted(offers), choice, strict=True) if finite}
            left = graph.copy()
            left.remove_edges_from(
                [
                    (a, b, k)
                    for a, b, k, e in graph.edges(keys=True, data="edge")
                    if any(("could", *pair) in e.log for pair in ceases)
                ]
            )
            if self._has_fair_run(left, state, sorted(offers - ceases)):
                return True
        return False

    def _has_fair_run(self, graph, state, taken):
        """Whether some strongly connected part can be gone round with every event fired.

        An event that from some node on can fire nowhere in the part rules the node out; the rest
        is searched again.
        """
        parts = [graph.subgraph(c).copy() for c in nx.strongly_connected_components(graph)]
        while parts:
            part = parts.pop()
            if not part.number_of_edges():
                continue
            hopeless = self._hopeless(part, state)
            if hopeless:
                part.remove_nodes_from(hopeless)
                found = nx.strongly_connected_components(part)
                parts += [part.subgraph(c).copy() for c in found]
                continue
            logs = [e.log for _, _, e in part.edges(data="edge")]
            if all(any(_admits(log, pair) for log in logs) for pair in taken):
                return True
        return False

    def _hopeless(self, part, state):
        """Nodes with a pending event that fires on no way through the part."""
        waiting = {
            (node, at)
            for node in part
            for at, event in enumerate(self.states[state(node)].pending)
            if event.kind not in ENVIRONMENT
        }
        moves = nx.DiGraph()
        moves.add_nodes_from(waiting)
        for a, b, edge in part.edges(data="edge"):
            for at in edge.fired:
                if (a, at) in waiting:
                    moves.add_edge((a, at), "fired")
            moves.add_edges_from(((a, p), (b, q)) for p, q in edge.moved.items())
        able = nx.ancestors(moves, "fired") if "fired" in moves else set()
        return {node for node, at in waiting if (node, at) not in able}


def _admits(log, pair):
    return any(entry[0] == "admitted" and entry[1:3] == pair for entry in log)
