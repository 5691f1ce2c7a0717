"""Everything that is told of one counterexample, computed once for all outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from models.counterexample import Counterexample
from models.explanation import after_instants, explanation_lines
from models.lasso_story import Round, lasso_lines, narrated_run
from models.quiescent import Handled, QuiescentModel
from models.scenario import Scenario
from models.schedule import (
    Played,
    encode_schedule,
    play_exactly,
    positions_of,
    schedule_to_json,
)
from models.story import tell
from models.subjects import stages_of, waits_of
from models.witness import NoWitness, Witness, find_witness, witness_to_json
from verify.path import PathError
from verify.story import Story
from verify.waitfor import WaitFor


@dataclass(frozen=True)
class Dossier:
    """A counterexample with its explanation, story and timed witness.

    ``lines`` are the explanation sentence by sentence. ``path`` is its encoded schedule, None if
    it has too many ties to encode; ``story`` None where steps are not told (a stage fed by
    groups); ``refused`` are the assumptions about times under which there is no witness, with
    their contradictions. Of a lasso ``played`` ends after one round of its cycle.
    """

    example: Counterexample
    played: Played
    analysis: WaitFor
    lines: tuple[str, ...]
    path: str | None
    story: Story | None
    witness: Witness
    refused: tuple[NoWitness, ...]

    @property
    def text(self) -> str:
        """The explanation as one paragraph."""
        return " ".join(self.lines)

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Table of the stages in the last state."""
        return stages_of(self.played.run.system)

    @property
    def fate(self) -> str:
        """Where no continuation completes any more, in words; empty where that is no question."""
        return "" if self.story is None or self.example.repeats else self.story.fate

    def to_json(self) -> dict[str, Any]:
        """Return the dossier as plain JSON values, with the names that ``check`` uses."""
        example = self.example
        no_return = None if self.story is None else self.story.no_return
        schedule = schedule_to_json(example.schedule)
        stem = len(schedule) - example.repeats
        lasso = {"stem": schedule[:stem], "cycle": schedule[stem:]}
        return {
            "scenario": example.scenario.to_json(),
            "verdict": "violated",
            "classification": example.classification,
            "violation": example.violated.name,
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
            "witness": witness_to_json(self.witness),
            "no_witness": [
                {"assumption": none.assumption, "contradiction": list(none.contradiction)}
                for none in self.refused
            ],
        }


def dossier_of(example: Counterexample) -> Dossier:
    """Compute everything that is told of a counterexample.

    Raises
    ------
    AssertionError
        If there is no timed witness even with a time of its own for every event: the schedule
        would then be none of the simulator's.
    """
    scenario, schedule = example.scenario, example.schedule
    played = play_exactly(scenario, schedule)
    analysis = waits_of(played.run.system, played.run.pending)
    lines = _lasso_lines(example) if example.repeats else _lines(example, analysis)
    witness, refused = find_witness(scenario, schedule, repeats=example.repeats)
    if witness is None:
        raise AssertionError(f"no times at all do this schedule: {refused}")
    story = tell(scenario, schedule) if isinstance(scenario, Scenario) else None
    return Dossier(example, played, analysis, lines, _path(example), story, witness, refused)


def _lines(example: Counterexample, analysis: WaitFor) -> tuple[str, ...]:
    when = after_instants(len(example.schedule))
    return explanation_lines(example.classification, analysis, when, example.violated.message)


def _lasso_lines(example: Counterexample) -> tuple[str, ...]:
    """Play a lasso, its cycle once, and tell what the cycle does."""
    scenario = example.scenario
    run, narrator = narrated_run(QuiescentModel(scenario.make_replica, scenario.ties))
    stem = len(example.schedule) - example.repeats
    handled: list[Handled] = []
    for number, instant in enumerate(example.schedule, start=1):
        events = run.fire(positions_of(instant, run.pending, number))
        if number > stem:
            handled += events
        else:
            narrator.take()
    notes = tuple(note for _, note in narrator.take())
    return lasso_lines(
        example.violated,
        example.classification,
        stem,
        example.repeats,
        (run.system, run.pending),
        Round(tuple(handled), notes),
        fair=example.fairness != "none",
    )


def _path(example: Counterexample) -> str | None:
    try:
        return encode_schedule(example.scenario, example.schedule, example.repeats)
    except PathError:
        return None


def schedule_words(schedule: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Instants in words."""
    return tuple(" together with ".join(map(str, instant)) for instant in schedule)
