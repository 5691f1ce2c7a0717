"""Everything that is told of one counterexample, computed once for all outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from frontier.events import Event
from models.counterexample import DRAINED, Counterexample
from models.instants import Instants, film
from models.lasso_story import STOPPED_RUN, Round, held_back, narrated_run
from models.lasso_story import tell as tell_lasso
from models.quiescent import Action, Handled, QuiescentModel
from models.schedule import (
    Played,
    encode_schedule,
    play_exactly,
    positions_of,
    schedule_to_json,
)
from models.story import MOST_STEPS, tell, tell_known
from models.subjects import stages_of, waits_of
from models.waits import CORE_ERROR
from models.wakeups import schedule_lines
from models.witness import (
    NoWitness,
    TimedSchedule,
    Witness,
    find_witness,
    witness_to_json,
)
from verify.path import PathError
from verify.story import Story
from verify.waitfor import WaitFor

STOPS = NoWitness(
    "any", ("events are pending for ever, but in the simulator every event falls due",)
)


@dataclass(frozen=True)
class Dossier:
    """A counterexample with its explanation, story and timed witness.

    ``lines`` are the explanation sentence by sentence. ``path`` is its encoded schedule, None if
    it has too many ties to encode; ``witness`` None for a run that holds an event back for ever,
    which the simulator never does; ``refused`` are the assumptions about times under which there
    is no witness, with their contradictions. ``recorded`` are the times of the run itself, where
    it was one. Of a lasso ``played`` ends after one round of its cycle.
    """

    example: Counterexample
    played: Played
    analysis: WaitFor
    lines: tuple[str, ...]
    path: str | None
    story: Story
    witness: Witness | None
    refused: tuple[NoWitness, ...]
    recorded: TimedSchedule | None = None

    @property
    def text(self) -> str:
        """The explanation as one paragraph."""
        return " ".join(self.lines)

    @property
    def timed(self) -> TimedSchedule | None:
        """The schedule with times: those of the run itself, else the computed ones."""
        if self.recorded is not None or self.witness is None:
            return self.recorded
        return self.witness.timed

    @property
    def goes_on(self) -> bool:
        """Whether events are left in the last state, so that waits in it may end."""
        return bool(self.played.run.pending) and self.played.run.failure is None

    @property
    def film(self) -> Instants:
        """Who does what from instant to instant."""
        example = self.example
        stops = example.classification == STOPPED_RUN
        repeats = 0 if stops else example.repeats or None
        return film(example.scenario, example.schedule, repeats, MOST_STEPS)

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Table of the stages in the last state."""
        return stages_of(self.played.run.system)

    @property
    def fate(self) -> str:
        """Where no continuation completes any more, in words; empty where that is no question."""
        on_the_way = self.example.violated.name not in (DRAINED, CORE_ERROR)
        if self.example.repeats or (on_the_way and self.story.no_return is None):
            return ""
        return self.story.fate

    def to_json(self) -> dict[str, Any]:
        """Return the dossier as plain JSON values, with the names that ``check`` uses."""
        example = self.example
        no_return = self.story.no_return
        schedule = schedule_to_json(example.schedule)
        stem = len(schedule) - example.repeats
        lasso = {"stem": schedule[:stem], "cycle": schedule[stem:]}
        return {
            "scenario": example.scenario.to_json(),
            "notes": list(example.scenario.context_notes),
            "verdict": "violated",
            "classification": example.classification,
            "violation": example.violated.name,
            "message": example.violated.message,
            "depth": stem,
            "ties": example.ties,
            "path": self.path,
            "schedule": schedule,
            "lasso": lasso if example.repeats else None,
            "fairness": example.fairness,
            "wait_for": self.analysis.to_json(),
            "stages": self.stages,
            "explanation": self.text,
            "fate": self.fate or None,
            "no_return": no_return
            and {
                "instant": no_return.step,
                "text": no_return.text,
                "healthy": [list(instant) for instant in no_return.healthy],
            },
            "instants_ns": self.recorded and list(self.recorded.instants),
            "witness": None if self.witness is None else witness_to_json(self.witness),
            "no_witness": [
                {"assumption": none.assumption, "contradiction": list(none.contradiction)}
                for none in self.refused
            ],
        }


def dossier_of(
    example: Counterexample,
    lines: tuple[str, ...] | None = None,
    recorded: TimedSchedule | None = None,
) -> Dossier:
    """Compute everything that is told of a counterexample.

    Parameters
    ----------
    example
        The counterexample.
    lines
        Its explanation, where one is known already.
    recorded
        Its times, where it is a run that had its own.

    Raises
    ------
    AssertionError
        If there is no timed witness even with a time of its own for every event, although every
        event falls due: the schedule would then be none of the simulator's.
    """
    scenario, schedule = example.scenario, example.schedule
    played = play_exactly(scenario, schedule)
    analysis = waits_of(played.run.system, played.run.pending)
    stops = example.classification == STOPPED_RUN
    if lines is None:
        told = example.repeats or stops
        message = example.violated.message
        lines = (
            _lasso_lines(example)
            if told
            else schedule_lines(scenario, schedule, example.classification, analysis, message)
        )
    witness, refused = (
        (None, (STOPS,)) if stops else find_witness(scenario, schedule, repeats=example.repeats)
    )
    if witness is None and example.fairness != "none":
        raise AssertionError(f"no times at all do this schedule: {refused}")
    story = tell_known(scenario, schedule, None) if example.repeats else tell(scenario, schedule)
    path = _path(example)
    return Dossier(example, played, analysis, lines, path, story, witness, refused, recorded)


def _lasso_lines(example: Counterexample) -> tuple[str, ...]:
    """Play a lasso, its cycle once, and tell what the cycle does."""
    scenario = example.scenario
    run, narrator = narrated_run(QuiescentModel(scenario.make_replica, scenario.ties))
    stem = len(example.schedule) - example.repeats
    handled: list[Handled] = []
    taken: list[Action] = []
    entry: tuple[Event, ...] = ()
    for number, instant in enumerate(example.schedule, start=1):
        if number == stem + 1:
            narrator.take()
            entry = tuple(run.pending)
        positions = positions_of(instant, run.pending, number)
        events = run.fire(positions)
        if number > stem:
            taken.append(positions)
            handled += events
    notes = tuple(note for _, note in narrator.take())
    played = Round(tuple(handled), notes, held_back(entry, taken))
    return tell_lasso(
        example.violated,
        example.classification,
        stem,
        example.repeats,
        (cast(Any, run.system), run.pending),
        played,
    )


def _path(example: Counterexample) -> str | None:
    try:
        return encode_schedule(example.scenario, example.schedule, example.repeats)
    except PathError:
        return None


def schedule_words(schedule: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Instants in words."""
    return tuple(" together with ".join(map(str, instant)) for instant in schedule)
