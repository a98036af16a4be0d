"""The published cases of a panel: the scores are ours, too, where their arithmetic is right; the others say why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.judging.answers import UnusableAnswer, read_answer
from convoscope.statistics.panels import Marks, PanelRule, panel_verdict

_NORMALISED = "we divide by the largest deviation that so many judges can have, and not by 0.5"
_DIFFERENT: dict[str, tuple[float | None, float | None, str]] = {
    "panel_judge.aggregate-002": (0.5, 1 - 0.5 / (1 / 3) ** 0.5, _NORMALISED),
    "panel_judge.aggregate-008": (0.6, 0.8, _NORMALISED),
    "panel_judge.aggregate-009": (0.8, 0.8, _NORMALISED),
    "panel_judge.aggregate-011": (None, None, "one judge is no panel, and agrees with no other"),
}
"""Our score and consensus, and why they are not the published ones."""
_SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["score"],
}


Case = dict[str, Any]


@pytest.fixture(scope="module")
def cases(shared: Callable[[str], Path]) -> list[Case]:
    every: list[Case] = json.loads((shared("data/cases") / "standard-data.json").read_text())
    return [case for case in every if case["scorer"].startswith("panel_judge.")]


def test_every_aggregation(cases: list[Case], ran: Callable[[str, int], None]) -> None:
    those = [case for case in cases if case["scorer"] == "panel_judge.aggregate"]
    for case in those:
        expected, (scores, given) = case["expected"], (case["item"]["judge_scores"], case["params"])
        voices = {f"p/{number}": float(score) for number, score in enumerate(scores)}
        rule = PanelRule(aggregation=given["method"], weights=dict(zip(voices, given["weights"], strict=True)))
        verdict = panel_verdict(voices, rule, Marks(0.0, 1.0, given["threshold"]))
        score, consensus, _ = _DIFFERENT.get(case["id"], (expected["score"], expected["consensus"], ""))
        assert score in (None, expected["score"])
        assert verdict.score == (None if score is None else pytest.approx(score)), case["id"]
        assert verdict.consensus == (None if consensus is None else pytest.approx(consensus)), case["id"]
    ran("standard-data panel, aggregations", len(those))


def test_every_reply_of_one_judge(cases: list[Case], ran: Callable[[str, int], None]) -> None:
    """A rating from 1 to 5 is (r − 1) ÷ 4. What is no such rating is no verdict, where the published score is 0."""
    those = [case for case in cases if case["scorer"] == "panel_judge.one_judge"]
    for case in those:
        try:
            score = (read_answer(case["item"]["reply"], _SCHEMA)["score"] - 1) / 4
        except UnusableAnswer:
            assert case["defect"], case["id"]
        else:
            assert score == case["expected"], case["id"]
    ran("standard-data panel, one judge", len(those))
