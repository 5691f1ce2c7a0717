"""Everything that is told of one counterexample, computed once for all outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.explanation import after_instants, explain
from models.scenario import Scenario
from models.schedule import Played, Schedule, encode_schedule, play_exactly, schedule_to_json
from models.shrinking import Counterexample, signature_of
from models.story import tell
from models.view import describe_stages
from models.witness import NoWitness, Witness, find_witness, witness_to_json
from verify.path import PathError
from verify.story import Story
from verify.waitfor import WaitFor


@dataclass(frozen=True)
class Dossier:
    """A counterexample with its explanation, story and timed witness.

    ``path`` is its encoded schedule, None if it has too many ties to encode;
    ``refused`` are the assumptions about times under which there is no witness, with their
    contradictions.
    """

    example: Counterexample
    played: Played
    analysis: WaitFor
    text: str
    path: str | None
    story: Story
    witness: Witness
    refused: tuple[NoWitness, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the dossier as plain JSON values, with the names that ``check`` uses."""
        example = self.example
        no_return = self.story.no_return
        return {
            "scenario": example.scenario.to_json(),
            "verdict": "violated",
            "classification": example.classification,
            "depth": len(example.schedule),
            "ties": example.ties,
            "path": self.path,
            "schedule": schedule_to_json(example.schedule),
            "wait_for": self.analysis.to_json(),
            "stages": describe_stages(self.played.replica),
            "explanation": self.text,
            "fate": self.story.fate,
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


def violation_message(played: Played) -> str:
    """Say what is wrong with the last state, in words."""
    return str(played.run.failure or "no event is left, but work is unfinished")


def dossier_of(
    scenario: Scenario, schedule: Schedule, classification: str, text: str | None = None
) -> Dossier:
    """Compute everything that is told of a schedule that ends in a violation.

    Parameters
    ----------
    scenario, schedule
        The counterexample.
    classification
        Class of its violation.
    text
        Its explanation, where one is known already.

    Raises
    ------
    AssertionError
        If there is no timed witness even with a time of its own for every event: the schedule
        would then be none of the simulator's.
    """
    played = play_exactly(scenario, schedule)
    analysis = played.analysis()
    example = Counterexample(scenario, schedule, classification, signature_of(analysis))
    if text is None:
        when = after_instants(len(schedule))
        text = explain(classification, analysis, when, violation_message(played))
    witness, refused = find_witness(scenario, schedule)
    if witness is None:
        raise AssertionError(f"no times at all do this schedule: {refused}")
    story = tell(scenario, schedule)
    return Dossier(example, played, analysis, text, _path(example), story, witness, refused)


def dossier_of_example(example: Counterexample) -> Dossier:
    """Compute everything that is told of a counterexample."""
    return dossier_of(example.scenario, example.schedule, example.classification)


def _path(example: Counterexample) -> str | None:
    try:
        return encode_schedule(example.scenario, example.schedule)
    except PathError:
        return None
