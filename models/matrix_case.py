"""One case of a matrix in a process of its own: ``python -m models.matrix_case SET CASE RULE``.

Prints one JSON object with the outcome and the metrics files (:mod:`verify.matrix.runner`).
"""

from __future__ import annotations

import json
import sys
from typing import Any

from frontier.durations import ConstantDurations, Recording
from frontier.durations_io import write_recording
from frontier.ledger import StageRow
from frontier.outcome import CONFIGURATION_REJECTION
from frontier.system import ConfigurationError
from models.matrix import MatrixCase, load_set
from models.serving import ServingRun


def run_case(case: MatrixCase, rule: str) -> dict[str, Any]:
    """Run a case under an admission rule; return ``outcome`` and ``files``."""
    try:
        spec = case.spec(rule)
        spec.require_valid()
    except ConfigurationError as rejection:
        rejected = {"kind": "configuration", "message": str(rejection)}
        return {"outcome": {"outcome": CONFIGURATION_REJECTION, "error": rejected}, "files": {}}
    rows: list[StageRow] = []
    times = Recording(ConstantDurations(spec.moe, spec.layers))
    run = ServingRun(spec, times, (rows.append,))
    run.run()
    result = run.to_json()
    state = {key: result.pop(key) for key in ("role", "stages", "wait_for", "explanation")}
    files = {
        **run.metrics_files(),
        "stages.jsonl": "".join(json.dumps(row.to_json()) + "\n" for row in rows),
        "components.jsonl": write_recording(times.rows),
    }
    if state["wait_for"] is not None:
        files["state.json"] = json.dumps(state, indent=1) + "\n"
    error = None if run.failure is None else {"kind": "core", "message": str(run.failure)}
    return {"outcome": {**result, "error": error}, "files": files}


def main(arguments: list[str]) -> None:
    """Run the case named by set, case id and rule."""
    name, case_id, rule = arguments
    (case,) = load_set(name).select((), (case_id,))
    json.dump(run_case(case, rule), sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
