"""Scenarios over a foreign context, for the pytest suite of the admission contract."""

from __future__ import annotations

from dataclasses import replace

from models.scenario import ScenarioError
from verify.cli.checking import check_scenario
from verify.cli.options import load_source
from verify.contract.errors import ContractInputError


def scenario_verdict(source: str, context: str) -> tuple[str, str]:
    """Check a catalogue case or scenario file over a context; return verdict and summary.

    Raises
    ------
    ContractInputError
        If there is no such scenario, or it cannot run over the context.
    """
    try:
        scenario = replace(load_source(source), context=context)
    except ScenarioError as error:
        raise ContractInputError(str(error)) from None
    result = check_scenario(scenario)
    data = result.to_json()
    found = f"{data['classification']} at depth {data['depth']}, " if data["violation"] else ""
    return result.verdict_word, f"{found}{data['states']} states, {data['transitions']} transitions"
