"""Observed cases of a released scorer package, replayed through items as they come.

Where a case says `equal`, ours gives the same. Where it says `differ`, ours gives what stands below, and why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics.answer.text import (
    accuracy,
    accuracy_choice,
    accuracy_metric,
    exact_match_metric,
    f1_metric,
    multi_pattern_accuracy_metric,
)
from convoscope.metrics.declaration import Metric
from convoscope.scores.observation import MEASURED, Observation
from convoscope.scoring.evaluate import observe
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.tidy import tidy
from support.shared_data import content_hash

Case = dict[str, Any]

CHOSEN: dict[str, tuple[float | str, str]] = {
    "exact_match-010": ("not_applicable: empty_ground_truth", "an empty truth states nothing that could be matched"),
    "exact_match-011": ("not_applicable: empty_ground_truth", "nor can an answer be wrong against it"),
    "exact_match-013": ("unmeasured: no_ground_truth", "without a truth nothing was compared: null, the field named"),
    "exact_match-014": ("unmeasured: no_agent_response", "without an answer nothing was compared either"),
    "exact_match-015": (0.0, "a list is kept as its JSON text, with a warning; that text is not the truth"),
    "exact_match-016": (1.0, "numbers are read as text: 42 is 42"),
    "exact_match-017": (1.0, "é is é, composed or not"),
    "exact_match-018": (1.0, "where case does not count, STRASSE is straße"),
    "accuracy-012": (1.0, "a text is equal to itself; Madrid is no choice d"),
    "accuracy-013": (1.0, "a text is equal to itself; Canada is no choice a"),
    "accuracy-022": (0.0, "an answer without words is a wrong answer, and measured as one"),
    "accuracy-024": ("unmeasured: no_ground_truth", "without a truth nothing was compared"),
    "accuracy-026": (0.0, "the letter stands for the truth only in the variant @choice, where it is 1"),
    "accuracy-030": (1.0, "E is a letter like A to D"),
    "accuracy-032": (0.0, "the pattern finds an empty answer, which is wrong and no crash"),
    "accuracy-034": (1.0, "the truth stands in the answer, whatever its alphabet"),
    "accuracy-035": (1.0, "the answer contains the truth"),
    "accuracy-038": (1.0, "the truth stands in the answer; @choice reads the negation as well"),
    "multi_pattern_accuracy-003": (1.0, "the whole answer is a candidate"),
    "multi_pattern_accuracy-009": (1.0, "declared choices are used"),
    "multi_pattern_accuracy-010": ("not_applicable: empty_ground_truth", "an empty truth states nothing"),
    "multi_pattern_accuracy-013": ("error: bad_pattern", "a pattern that is none is reported, and stops nothing"),
    "f1-005": (0.0, "the same: no word is shared where case counts"),
    "f1-008": ("not_applicable: empty_ground_truth", "a truth without words states nothing"),
    "f1-019": (1.0, "é is é, composed or not, and its accent belongs to it"),
    "f1-021": (0.0, "3.14 is one word, and neither 3 nor 14"),
    "f1-023": (1.0, "STRASSE is straße in capitals"),
    # 10 words answered, 4 in the truth, 4 shared: 2·4 ÷ 14; "cancel" stands twice in the answer, once in the truth
    "f1-025": (8 / 14, "a word that is said twice counts twice"),
    "f1-026": (1.0, "1,000 is 1000"),
    "f1-028": (1.0, "a list is kept as its JSON text, whose only word is the truth"),
}
CHOICE: dict[str, float | str] = {
    "accuracy-001": 1.0,
    "accuracy-002": 1.0,
    "accuracy-003": 1.0,
    "accuracy-005": 1.0,
    "accuracy-006": 1.0,
    "accuracy-008": 1.0,
    "accuracy-009": "not_applicable: not_multiple_choice",  # 42 is no letter
    "accuracy-012": "not_applicable: not_multiple_choice",
    "accuracy-022": 0.0,
    "accuracy-026": 1.0,
    "accuracy-027": 1.0,  # the truth is the text of choice B: no index is needed
    "accuracy-028": 0.0,  # D of two choices is none of them
    "accuracy-030": 1.0,
    "accuracy-033": 1.0,
    "accuracy-035": "not_applicable: not_multiple_choice",
    "accuracy-038": 1.0,  # A is ruled out
}
"""What the variant @choice gives for the same items."""


LOOKED_AT = {
    "exact_match-010": "589d08aceb55",
    "exact_match-011": "fee084ba0b07",
    "exact_match-013": "c3bf207eefe4",
    "exact_match-014": "871f730a7616",
    "exact_match-015": "84179d840073",
    "exact_match-016": "2761a10a64ec",
    "exact_match-017": "d9eff8c49485",
    "exact_match-018": "6639e4a5be15",
    "accuracy-012": "52fd63ea8e03",
    "accuracy-013": "1e3d5b586cdb",
    "accuracy-022": "b164c589a1a7",
    "accuracy-024": "e74869cfa495",
    "accuracy-026": "ad58e4272ef2",
    "accuracy-030": "1fdb05045c95",
    "accuracy-032": "fd03a2903471",
    "accuracy-034": "0ef4d70fd355",
    "accuracy-035": "2d3e80fd751f",
    "accuracy-038": "49ca01def223",
    "multi_pattern_accuracy-003": "52fd63ea8e03",
    "multi_pattern_accuracy-009": "85874d1c3c68",
    "multi_pattern_accuracy-010": "e12e2970fade",
    "multi_pattern_accuracy-013": "fb64a7620c7c",
    "f1-005": "a8163a835fee",
    "f1-008": "e12e2970fade",
    "f1-019": "d9eff8c49485",
    "f1-021": "0988b44c15a7",
    "f1-023": "3fd4d1cf7d0d",
    "f1-025": "2d3e80fd751f",
    "f1-026": "d5daf4b23570",
    "f1-028": "86ea9372b0c5",
    "accuracy-001": "914eeac2f428",
    "accuracy-002": "09694c64b705",
    "accuracy-003": "d613a67e5d2f",
    "accuracy-005": "3515312ff612",
    "accuracy-006": "366fb16937db",
    "accuracy-008": "58db7b6fd52b",
    "accuracy-009": "ca14227973bd",
    "accuracy-027": "b5a8886a11cf",
    "accuracy-028": "0f307b82507d",
    "accuracy-033": "d12dca37545e",
}
"""The items and options of the cases above."""


def _accuracy(params: dict[str, Any]) -> Metric:
    if params.get("extract_answer") is False:  # the whole answer, whatever its case: that is exact_match
        return exact_match_metric("whole", case_sensitive=False)
    return accuracy_metric("case")


OPTIONS: dict[str, dict[str, str]] = {
    "exact_match": {
        "strip_whitespace": "strip",
        "normalize_whitespace": "collapse",
        "collapse_whitespace": "collapse",
        "case_sensitive": "case_sensitive",
    },
    "f1": {"case_sensitive": "case_sensitive", "tokenize": "tokenize"},
    "multi_pattern_accuracy": {"choices": "choices", "case_sensitive": "case_sensitive"},
}
SCORERS: dict[str, Callable[[dict[str, Any]], Metric]] = {
    "exact_match": lambda params: exact_match_metric("case", **_options("exact_match", params)),
    "accuracy": _accuracy,
    "multi_pattern_accuracy": lambda params: multi_pattern_accuracy_metric(
        "case", **_options("multi_pattern_accuracy", params)
    ),
    "f1": lambda params: f1_metric("case", **_options("f1", params)),
}
# These options an item can bring itself.
IN_CONTEXT = ("answer_pattern", "patterns")


def _options(scorer: str, params: dict[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in params.items() if name not in IN_CONTEXT}
    # Their `tokenize` is a switch. Ours is a way to cut: it is on, in the usual way.
    if given.get("tokenize") is True:
        del given["tokenize"]
    return {OPTIONS[scorer][name]: value for name, value in given.items()}


def is_ours(case: Case) -> bool:
    """Whether we have every option of a case."""
    given = {name: value for name, value in (case.get("params") or {}).items() if name not in IN_CONTEXT}
    known = OPTIONS.get(case["scorer"], {"extract_answer": ""})
    return given.keys() <= known.keys() and given.get("tokenize") is not False


def conversation_of(case: Case) -> Conversation:
    item = dict(case["item"])
    params = case.get("params") or {}
    brought = {name: params[name] for name in IN_CONTEXT if name in params}
    if brought:
        item["context"] = {**(item.get("context") or {}), **brought}
    return to_conversation([tidy(item)], id=case["id"])


def observed(case: Case, metric: Metric | None = None) -> Observation:
    (observation,) = observe(metric or SCORERS[case["scorer"]](case.get("params") or {}), conversation_of(case))
    return observation


def said(observation: Observation) -> float | str:
    return observation.value if observation.value is not None else f"{observation.status}: {observation.reason}"


@pytest.fixture(scope="module")
def all_cases(shared: Callable[[str], Path]) -> list[Case]:
    cases: list[Case] = json.loads((shared("data/cases") / "standard-data.json").read_text())
    return [case for case in cases if case["scorer"] not in SCORERS or is_ours(case)]


def is_looked_at(case: Case) -> bool:
    """Whether it is the case whose verdict stands above; another one may have its id."""
    return LOOKED_AT.get(case["id"]) == content_hash([case["item"], case.get("params") or {}])


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_equal_case_is_equal(scorer: str, all_cases: list[Case], ran: Callable[[str, int], None]) -> None:
    mine = [case for case in all_cases if case["scorer"] == scorer and case["role"] == "equal"]
    for case in mine:
        observation, expected = observed(case), case["expected"]
        assert observation.status == MEASURED, case["id"]
        value = expected["f1"] if isinstance(expected, dict) else expected
        assert observation.value == pytest.approx(value, abs=1e-9), case["id"]
        if isinstance(expected, dict):
            assert observation.details is not None
            assert observation.details["precision"] == pytest.approx(expected["precision"], abs=1e-9), case["id"]
            assert observation.details["recall"] == pytest.approx(expected["recall"], abs=1e-9), case["id"]
    ran(f"standard-data {scorer}, equal", len(mine))


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_every_differing_case_is_as_we_chose(
    scorer: str, all_cases: list[Case], ran: Callable[[str, int], None]
) -> None:
    mine = [case for case in all_cases if case["scorer"] == scorer and case["role"] == "differ"]
    for case in mine:
        observation = observed(case)
        if case["id"] in CHOSEN and is_looked_at(case):
            value, why = CHOSEN[case["id"]]
            assert said(observation) == (pytest.approx(value) if isinstance(value, float) else value), (
                f"{case['id']}: {why}"
            )
        elif observation.value is not None:
            assert 0 <= observation.value <= 1, case["id"]
        else:
            assert observation.reason, case["id"]
    ran(f"standard-data {scorer}, differing", len(mine))


def test_what_choice_reads_in_the_same_items(all_cases: list[Case], ran: Callable[[str, int], None]) -> None:
    mine = [case for case in all_cases if case["id"] in CHOICE and is_looked_at(case)]
    for case in mine:
        assert said(observed(case, accuracy_choice)) == CHOICE[case["id"]], case["id"]
    ran("standard-data accuracy, as choices", len(mine))


EXAMPLE = {
    "agent_task": "How do I cancel my subscription?",
    "agent_response": "You can cancel your subscription from Settings > Billing > Cancel plan.",
    "ground_truth": "Settings > Billing > Cancel plan",
}


def test_the_example_item_of_the_schema_gets_full_marks_for_accuracy() -> None:
    (observation,) = observe(accuracy, to_conversation([tidy(EXAMPLE)], id="example"))
    assert observation.value == 1.0
    assert accuracy.ten is not None
    assert accuracy.ten.score(observation.value) == 10.0
    assert accuracy.ten.passes_at == 7.0
