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
    wrong: dict[int, str] = {}
    unseen: dict[int, str] = {}
    unrecorded: dict[int, str] = {}
    correct: list[int] = []
    runs = (("the real run", item.run), ("the simulated run", simulated))
    for request in range(item.size):
        missing = [name for name, run in runs if request not in run.placement]
        absent = [name for name, run in runs if not run.lanes_seen(request)]
        if missing:
            unrecorded[request] = " and ".join(missing)
        if absent:
            unseen[request] = " and ".join(absent)
        if missing or absent:
            continue
        contradiction = _contradiction(request, item.run, simulated)
        if contradiction:
            wrong[request] = contradiction
        else:
            correct.append(request)
    return Placement(item.size, item.number, tuple(correct), wrong, unseen, unrecorded)


def _contradiction(request: int, real: LaneRun, simulated: LaneRun) -> str:
    recorded = real.placement[request], simulated.placement[request]
    if recorded[0] != recorded[1]:
        return f"real lane {recorded[0]}, simulated lane {recorded[1]}"
    for name, run in (("real", real), ("simulated", simulated)):
        ran = run.lanes_seen(request)
        if ran != {recorded[0]}:
            lanes = ", ".join(map(str, sorted(ran)))
            return f"recorded on lane {recorded[0]}, its {name} forwards ran on lane {lanes}"
    return ""
