"""What a broken stage of queued EP waves is told to be, on doctored states, in words."""

from models.group_invariants import group_invariants
from models.groups import GroupScenario
from models.quiescent import QuiescentModel

SCENARIO = GroupScenario.of({"groups": "e,d"})
"""One producer: an expert group, then a dense one; two EP lanes."""


def stage():
    """Return the state in which group 0 runs as a wave and group 1 waits."""
    model = QuiescentModel(SCENARIO.make_replica, ties=False)
    (state,) = model.initial_states()
    for _ in range(2):
        arrival = next(i for i, e in enumerate(state.pending) if e.kind == "group")
        state = model.step(state, (arrival,))
    return state


def doctored(**context):
    """Return the state with another context, or with other schedulers."""
    state = stage()
    schedulers = context.pop("schedulers", state.system.schedulers)
    system = state.system._replace(
        context=state.system.context._replace(**context), schedulers=schedulers
    )
    return state._replace(system=system)


def verdicts(state):
    found = {p.name: p.violation(state, False) for p in group_invariants(SCENARIO.config)}
    return {name: message for name, message in found.items() if message}


def test_the_stage_itself_breaks_nothing():
    context = stage().system.context
    assert [operation.title for _, operation in context.active] == ["expert group 0"]
    assert [operation.title for _, operation in context.queued] == ["dense group 1"]
    assert verdicts(stage()) == {}


def test_each_message_names_groups_and_schedulers():
    context, schedulers = stage().system.context, stage().system.schedulers
    (wave, dense) = (context.active[0], context.queued[0])
    idle = (None, ())
    assert verdicts(doctored(active=(wave, dense), queued=())) == {
        "ownership_exclusive": "the stage is held at once by dense group 1, expert group 0"
    }
    assert verdicts(doctored(active=()))["runs_what_it_holds"] == (
        "expert group 0 runs without a ticket"
    )
    assert verdicts(doctored(queued=())) == {
        "ticket_in_one_place": "dense group 1 waits without a ticket"
    }
    moved = ((wave[1], (dense[1],)), schedulers[1], idle)
    assert verdicts(doctored(schedulers=moved)) == {
        "ticket_in_one_place": "the ticket of dense group 1 is queued for full-stage scheduler, "
        "but it waits in the heap of EP lane 0"
    }
    gone = (*schedulers[:2], idle)
    assert verdicts(doctored(schedulers=gone))["orphan_ticket"] == (
        "a ticket is left of dense group 1, which is gone: nobody will use it"
    )
