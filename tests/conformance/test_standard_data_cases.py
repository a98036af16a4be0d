"""Observed cases of a released scorer package: ours must agree where the case says `equal`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from convoscope.conversation import Conversation, Expected, Participant, Text, Utterance
from convoscope.metrics.answer import exact_match, f1
from convoscope.metrics.declaration import Metric
from convoscope.metrics.score import MEASURED

SCORERS: dict[str, Metric] = {"exact_match": exact_match, "f1": f1}


def answered(answer: str, truth: str) -> Conversation:
    return Conversation(
        id="case",
        participants=(Participant("assistant", "assistant"),),
        expected=Expected(ground_truth=truth),
        timeline=(Utterance(seq=0, speaker="assistant", intended=Text(answer)),),
    )


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_equal_case_is_equal(scorer: str, shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    cases = json.loads((shared("data/cases") / "standard-data.json").read_text())
    # Cases with parameters are of options that these metrics do not have.
    mine = [case for case in cases if case["scorer"] == scorer and case["role"] == "equal" and not case["params"]]
    for case in mine:
        (observation,) = SCORERS[scorer](answered(case["item"]["agent_response"], case["item"]["ground_truth"]))
        expected = case["expected"]["f1"] if isinstance(case["expected"], dict) else case["expected"]
        assert observation.status == MEASURED, case["id"]
        assert observation.value == pytest.approx(expected, abs=1e-9), case["id"]
    ran(f"standard-data {scorer}, equal", len(mine))
