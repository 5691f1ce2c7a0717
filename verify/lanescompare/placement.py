"""The placement check: whether every request ran where its record says, in both runs alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from verify.lanescompare.runs import LaneRun
from verify.lanescompare.trace import Round


@dataclass(frozen=True)
class Placement:
    """The placement check of one round.

    Parameters
    ----------
    burst, round : int
        Which round.
    correct : tuple of int
        Requests recorded and run on the same single lane in the real and the simulated run.
    wrong : mapping of int to str
        Request to the contradiction found.
    unseen : mapping of int to str
        Request without any forward, to the run it is unseen in; never *correct*.
    unrecorded : mapping of int to str
        Request without a placement record, to the run that lacks it.
    """

    burst: int
    round: int
    correct: tuple[int, ...]
    wrong: Mapping[int, str]
    unseen: Mapping[int, str]
    unrecorded: Mapping[int, str]

    @property
    def holds(self) -> bool:
        """Whether every request of the burst is placed correctly."""
        return not (self.wrong or self.unseen or self.unrecorded)


def check_placement(item: Round, simulated: LaneRun) -> Placement:
    """Check where every request of a round was placed and ran, against the simulated run."""
    runs = {"real": item.run, "simulated": simulated}
    seen = {name: run.lanes_seen() for name, run in runs.items()}
    wrong: dict[int, str] = {}
    unseen: dict[int, str] = {}
    unrecorded: dict[int, str] = {}
    correct: list[int] = []
    for request in range(item.size):
        missing = [name for name, run in runs.items() if request not in run.placement]
        absent = [name for name, lanes in seen.items() if request not in lanes]
        if missing:
            unrecorded[request] = _runs(missing)
        if absent:
            unseen[request] = _runs(absent)
        if missing or absent:
            continue
        recorded = {name: run.placement[request] for name, run in runs.items()}
        contradiction = _contradiction(recorded, {name: seen[name][request] for name in runs})
        if contradiction:
            wrong[request] = contradiction
        else:
            correct.append(request)
    return Placement(item.size, item.number, tuple(correct), wrong, unseen, unrecorded)


def _runs(names: list[str]) -> str:
    return " and ".join(f"the {name} run" for name in names)


def _contradiction(recorded: Mapping[str, int], ran: Mapping[str, set[int]]) -> str:
    """Say how the recorded lane and the lanes that ran a request disagree; empty if they agree."""
    if len(set(recorded.values())) > 1:
        return ", ".join(f"{name} lane {lane}" for name, lane in recorded.items())
    for name, lanes in ran.items():
        if lanes != {recorded[name]}:
            where = ", ".join(map(str, sorted(lanes)))
            return f"recorded on lane {recorded[name]}, its {name} forwards ran on lane {where}"
    return ""
