"""Sets of cases for the before/after matrix, and what a case runs (issue 3).

The packaged set ``published`` is the published matrix; a set may also be a JSON file of the same
form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from frontier.batching import BatchingConfig
from frontier.clusters import FfnShape
from frontier.placement import parse_placement
from frontier.requests import poisson_times, uniform_requests
from frontier.rooms import ROOM_RULES
from frontier.standin import STAND_IN_RULES
from frontier.system import ConfigurationError, ServingSpec
from models.rules import admission_rule

SETS: Final = Path(__file__).parent / "sets"
UNCHANGED: Final = "unchanged"
LIVENESS: Final = "liveness"
TIMING: Final = "timing"
PATHS: Final = (UNCHANGED, LIVENESS, TIMING)


class CaseSetError(ValueError):
    """A set of cases that cannot be read; the message names the file and the field."""


@dataclass(frozen=True)
class Fixture:
    """Model and engine limits that several cases share.

    ``layers`` counts the layers of the whole model, by model kind.
    """

    layers: Mapping[str, int]
    batching: BatchingConfig


@dataclass(frozen=True)
class MatrixCase:
    """One case of a matrix: its inputs, how it is judged, and what was published of it.

    ``published`` keeps the fields of the file that are results, for comparison.
    """

    case_id: str
    group: str
    architecture: str
    mode: str
    model: str
    attn_dp: int
    pipeline_stages: int
    requests: int
    prefill_tokens: int
    decode_tokens: int
    arrival: str
    fixture: Fixture
    path: str
    inputs: Mapping[str, Any]
    published: Mapping[str, Any]

    def spec(
        self, rule: str, *, rooms: str = "by_phase", stand_in: str = "standard"
    ) -> ServingSpec:
        """Build the case's system under an admission rule.

        The published matrix ran with ``by_phase`` rooms and ``standard`` stand-ins.

        Raises
        ------
        ConfigurationError
            If the case's shape cannot be.
        """
        try:
            requests = uniform_requests(
                self.requests, self.prefill_tokens, self.decode_tokens, self._times()
            )
            return ServingSpec(
                architecture=self.architecture,
                lanes=self.attn_dp,
                stages=self.pipeline_stages,
                layers=self._layers_per_stage(),
                moe=self.model == "moe",
                requests=requests,
                admission=admission_rule(rule),
                stand_in=STAND_IN_RULES[stand_in],
                rooms=ROOM_RULES[rooms],
                batching=self.fixture.batching,
                placement=parse_placement(
                    self.inputs.get("placement", "round_robin"), self.attn_dp, self._seed
                ),
                burst=self.arrival == "burst" and self.mode == "offline",
                online_to_lane_0=bool(self.inputs.get("online_to_lane_0", False)),
                ffn=FfnShape(
                    **{
                        name: self.inputs[name]
                        for name in ("ep_size", "dense_layers")
                        if name in self.inputs
                    }
                ),
                micro_batches=self.inputs.get("micro_batches", 1),
            )
        except ConfigurationError:
            raise
        except ValueError as error:
            raise ConfigurationError(str(error)) from error

    @property
    def _seed(self) -> int:
        return int(self.inputs.get("seed", 0))

    def _times(self) -> tuple[int, ...] | None:
        kind, _, rest = self.arrival.partition(":")
        if kind == "burst":
            return None
        if kind == "poisson":
            return poisson_times(self.requests, float(rest), self._seed)
        raise ConfigurationError(
            f"arrival must be burst or poisson:RATE (requests per second), got {self.arrival!r}"
        )

    def _layers_per_stage(self) -> int:
        if self.model not in self.fixture.layers:
            raise ConfigurationError(f"model must be moe or dense, got {self.model!r}")
        layers, stages = self.fixture.layers[self.model], self.pipeline_stages
        if stages < 1 or layers % stages:
            raise ConfigurationError(
                f"a model of {layers} layers cannot be cut into {stages} equal pipeline stages"
            )
        return layers // stages


@dataclass(frozen=True)
class CaseSet:
    """A named set of cases."""

    name: str
    cases: tuple[MatrixCase, ...]

    def select(self, groups: tuple[str, ...], case_ids: tuple[str, ...]) -> tuple[MatrixCase, ...]:
        """Cases of the groups and ids, all where none are named; CaseSetError if none is left."""
        known_groups = {case.group for case in self.cases}
        known_ids = {case.case_id for case in self.cases}
        for given, known, what in ((groups, known_groups, "group"), (case_ids, known_ids, "case")):
            for name in given:
                if name not in known:
                    there = ", ".join(sorted(known))
                    raise CaseSetError(f"set {self.name} has no {what} {name!r}; it has: {there}")
        selected = tuple(
            case
            for case in self.cases
            if (not groups or case.group in groups) and (not case_ids or case.case_id in case_ids)
        )
        if not selected:
            raise CaseSetError(f"no case of set {self.name} is in these groups and of these ids")
        return selected


_INPUTS: Final[Mapping[str, type]] = {
    "case_id": str,
    "group": str,
    "architecture": str,
    "mode": str,
    "model": str,
    "attn_dp": int,
    "pipeline_stages": int,
    "requests": int,
    "prefill_tokens": int,
    "decode_tokens": int,
    "arrival": str,
}
_RESULTS: Final = (
    "outcome_strict_fifo",
    "outcome_ep_ordered",
    "totals",
    "first_stage0_start_s",
    "lane_overlap",
)


_CASE_ID: Final = re.compile(r"[A-Za-z0-9][\w.+=-]{0,127}", re.ASCII)
"""Ids name folders, so that they must not lead out of the matrix."""


def load_set(name: str) -> CaseSet:
    """Read a packaged set by name, or a set file by path.

    Raises
    ------
    CaseSetError
        If there is no such set, or it is not of the expected form.
    """
    path = Path(name) if name.endswith(".json") else SETS / f"{name}.json"
    if not path.is_file():
        packaged = ", ".join(sorted(p.stem for p in SETS.glob("*.json")))
        raise CaseSetError(f"no set {name!r}; packaged sets: {packaged}; or give a FILE.json")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CaseSetError(f"cannot read {path}: {error}") from None
    try:
        fixtures = {key: _fixture(value) for key, value in content["fixtures"].items()}
        cases = tuple(_case(value, fixtures, path) for value in content["cases"])
    except (KeyError, TypeError, AttributeError) as error:
        raise CaseSetError(f"{path} is no set of cases: {error!r}") from None
    if not cases:
        raise CaseSetError(f"{path} has no case")
    ids = [case.case_id for case in cases]
    if len(set(ids)) != len(ids):
        twice = sorted({case_id for case_id in ids if ids.count(case_id) > 1})
        raise CaseSetError(f"{path} has case ids more than once: {', '.join(twice)}")
    return CaseSet(path.stem, cases)


def _fixture(values: Mapping[str, Any]) -> Fixture:
    layers = values["layers"]
    return Fixture(
        layers if isinstance(layers, dict) else {"moe": layers, "dense": layers},
        BatchingConfig(
            values["batch_token_budget"],
            values["max_sequences_per_batch"],
            values["block_size"],
            values["num_blocks"],
            values["chunked_prefill"],
        ),
    )


def _case(values: Mapping[str, Any], fixtures: Mapping[str, Fixture], path: Path) -> MatrixCase:
    name = values.get("case_id", "a case without case_id")
    for field, kind in _INPUTS.items():
        if not isinstance(values.get(field), kind) or isinstance(values[field], bool):
            raise CaseSetError(
                f"{path}: {name}: {field} must be of type {kind.__name__}, "
                f"got {values.get(field)!r}"
            )
    if not _CASE_ID.fullmatch(name):
        raise CaseSetError(
            f"{path}: case_id must be letters, digits and any of _ . + = - after the first, at "
            f"most 128 in all, got {name!r}"
        )
    if values.get("fixture") not in fixtures:
        raise CaseSetError(
            f"{path}: {name}: fixture must be one of {', '.join(fixtures)}, "
            f"got {values.get('fixture')!r}"
        )
    if values.get("path") not in PATHS:
        raise CaseSetError(
            f"{path}: {name}: path must be one of {', '.join(PATHS)}, got {values.get('path')!r}"
        )
    return MatrixCase(
        **{field: values[field] for field in _INPUTS},
        fixture=fixtures[values["fixture"]],
        path=values["path"],
        inputs={key: value for key, value in values.items() if key not in _RESULTS},
        published={key: values[key] for key in _RESULTS if key in values},
    )


TIME_TOLERANCE_S: Final = 1e-6
FRACTION_TOLERANCE: Final = 1e-4


def published_differences(case: MatrixCase, rule: str, found: Mapping[str, Any]) -> list[str]:
    """Compare a result with what was published of its case; one line per difference.

    Times agree to 1e-6 s, fractions to 1e-4, all else exactly. A case or rule of which nothing
    was published has no differences.

    Parameters
    ----------
    found
        Fields of :meth:`models.serving.ServingRun.to_json`.
    """
    expected = case.published.get(f"outcome_{rule}")
    if expected is None:
        return []
    if found["outcome"] != expected:
        return [f"published outcome {expected}, found {found['outcome']}"]
    if expected != "success":
        return []
    pairs: list[tuple[str, Any, Any, float]] = [
        (name, value, found.get("requests_completed" if name == "requests" else name), 0.0)
        for name, value in case.published.get("totals", {}).items()
    ]
    for stage, overlap in case.published.get("lane_overlap", {}).get(rule, {}).items():
        for name, value in overlap.items():
            tolerance = {"peak_lanes": 0.0, "co_execution_fraction": FRACTION_TOLERANCE}
            ours = found["lane_overlap"].get(stage, {}).get(name)
            pairs.append(
                (f"stage {stage} {name}", value, ours, tolerance.get(name, TIME_TOLERANCE_S))
            )
    starts = found["first_start_s"].get("0", {})
    for lane, value in case.published.get("first_stage0_start_s", {}).get(rule, {}).items():
        pairs.append((f"first start of lane {lane}", value, starts.get(lane), TIME_TOLERANCE_S))
    return [
        f"published {name} {value}, found {ours}"
        for name, value, ours, tolerance in pairs
        if ours is None or abs(ours - value) > tolerance
    ]
