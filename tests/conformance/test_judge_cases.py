"""The 44 observed cases of a released scorer package that are about judges: our verdict on each, and why.

`docs/guides/judge-cases.md` has the table. After a change, `python tests/conformance/test_judge_cases.py` writes it.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.judging.answers import UnusableAnswer, read_answer
from convoscope.metrics.declaration import Metric
from convoscope.metrics.item_fields import first_absent
from convoscope.metrics.registry import known
from convoscope.scoring.evaluate import observe
from convoscope.statistics import panels
from convoscope.views.items import cases as cases_of
from convoscope.views.standard_data.canonical import to_conversation
from convoscope.views.standard_data.tidy import tidy

Case = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "judge-cases.md"

UNUSABLE = "unmeasured: verdict_unusable"
OFF = "unmeasured: not_on_scale"
PROSE = "a number in prose is not an answer: the judge is asked once more for JSON"
NOTHING = "there is no answer, and −1 is not a score"
AGREE = "the same"
COMPUTED = "computed, without a judge; the field is named"
ALLOWED = "a number in quotes is a number"

OURS: dict[str, tuple[str, str]] = {
    "judge_reply.agent-001": ("8, passes", AGREE),
    "judge_reply.agent-002": ("7.5, passes", "the same: a fence is fine"),
    "judge_reply.agent-004": (UNUSABLE, "the other program reads the 10 of “9 out of 10”; " + PROSE),
    "judge_reply.agent-005": (UNUSABLE, NOTHING),
    "judge_reply.agent-007": ("8, passes", ALLOWED),
    "judge_reply.agent-008": (OFF, "85 is not from 1 to 10"),
    "judge_reply.agent-009": (UNUSABLE, NOTHING),
    "judge_reply.agent-010": (UNUSABLE, NOTHING),
    "judge_reply.agent-012": ("6.99, fails", AGREE),
    "judge_reply.agent-014": (OFF, "−1 is not from 1 to 10, and must not be averaged in"),
    "judge_reply.agent-015": (OFF, NOTHING),
    "judge_reply.conversational-002": ("7.5, passes", "the same: a fence is fine"),
    "judge_reply.conversational-003": (UNUSABLE, PROSE),
    "judge_reply.conversational-005": (UNUSABLE, NOTHING),
    "judge_reply.conversational-009": (UNUSABLE, "85 is off the scale as well; " + PROSE),
    "judge_reply.conversational-010": (UNUSABLE, "single quotes are not JSON; the judge is asked once more"),
    "judge_reply.g_eval-002": (UNUSABLE, "the other program reads the 5 of 4/5; " + PROSE),
    "judge_reply.g_eval-004": (UNUSABLE, PROSE),
    "judge_reply.g_eval-005": (UNUSABLE, "the other program reads the 5 of “4 of 5”; " + PROSE),
    "judge_reply.g_eval-007": (UNUSABLE, "the other program cuts 9 to 5; " + PROSE),
    "judge_reply.g_eval-008": (UNUSABLE, "the other program lifts 0 to 1; " + PROSE),
    "judge_reply.g_eval-009": (UNUSABLE, "the other program loses the minus; " + PROSE),
    "parse_claims-001": (UNUSABLE, "claims are asked for as a JSON list, so that no line has to be guessed"),
    "parse_claims-003": (
        UNUSABLE,
        "the other program keeps a number from 11 on; claims are asked for as a JSON list",
    ),
    "parse_claims-005": (UNUSABLE, "claims are asked for as a JSON list"),
    # 1 − 0.5 ÷ √(1 ÷ 3): the sample deviation of 1, 0.5 and 0 by the largest that three judges can have
    "panel_judge.aggregate-002": ("0.5, consensus 0.134", "we divide by the largest deviation of so many judges"),
    # 1 − (0.2 ÷ √2) ÷ √(1 ÷ 2) = 1 − 0.2
    "panel_judge.aggregate-008": ("0.6, consensus 0.8", "we divide by the largest deviation of so many judges"),
    "panel_judge.aggregate-009": ("0.8, consensus 0.8", "we divide by the largest deviation of so many judges"),
    "panel_judge.aggregate-010": ("0.5, consensus 0", AGREE),
    "panel_judge.aggregate-011": ("unmeasured: too_few_judges", "one judge is no panel, and agrees with no other"),
    "panel_judge.one_judge-001": ("1", AGREE),
    "panel_judge.one_judge-003": (OFF, "a judge that failed is not a judge that says 0"),
    "panel_judge.one_judge-005": (UNUSABLE, "a judge that failed is not a judge that says 0"),
    "panel_judge.one_judge-006": ("0.75", AGREE),
    "tool_correctness_scorer-001": (
        "unmeasured: no_expected_tool_call",
        "computed, without a judge; the field is named",
    ),
    "tool_correctness_scorer-002": ("unmeasured: tool_calls_unknown", "computed, without a judge; the field is named"),
    "tool_correctness_scorer-003": ("0", "an empty list is known: the expected call was not made"),
    "parameter_correctness_scorer-001": (
        "unmeasured: no_parameters_passed",
        "computed, without a judge; the first absent field is named",
    ),
    "parameter_correctness_scorer-002": (
        "0",
        "computed, without a judge: the call has no result, so it did not succeed",
    ),
    "task_progression_scorer-002": ("unmeasured: no_agent_role", "an empty text is not a role"),
    "goal_achievement_scorer-001": ("unmeasured: no_agent_exit", "nothing says whether the agent is done"),
    "goal_achievement_scorer-002": ("unmeasured: no_trace", "the same in our words: there is nothing to look at"),
    "goal_achievement_scorer-003": ("asks the judge: 8.2, passes", "“yes” is true"),
    "goal_achievement_scorer-004": ("unmeasured: no_agent_exit", "“done” is neither true nor false"),
}
"""Our verdict on each case, and why it is or is not the observed one."""


def score_schema(low: float, high: float, kind: str = "number") -> dict[str, Any]:
    score = {"type": kind, "minimum": low, "maximum": high}
    return {"type": "object", "properties": {"score": score, "reasoning": {"type": "string"}}, "required": ["score"]}


CLAIMS = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "object"}}},
    "required": ["items"],
}


def read(reply: str, schema: dict[str, Any]) -> float | str:
    try:
        return float(read_answer(reply, schema)["score"])
    except UnusableAnswer as unusable:
        return f"unmeasured: {unusable.reason}"


def passed(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}, {'passes' if value >= 7 else 'fails'}"


def of_ten(case: Case) -> str:
    return passed(read(case["item"]["reply"], score_schema(1, 10)))


def of_range(case: Case) -> str:
    low, high = case["params"]["score_range"]
    value = read(case["item"]["reply"], score_schema(low, high))
    return value if isinstance(value, str) else f"{(value - low) / (high - low):g}"


def of_claims(case: Case) -> str:
    try:
        return str(read_answer(case["item"]["reply"], CLAIMS)["items"])
    except UnusableAnswer as unusable:
        return f"unmeasured: {unusable.reason}"


def of_one_judge(case: Case) -> str:
    value = read(case["item"]["reply"], score_schema(1, 5, "integer"))
    return value if isinstance(value, str) else f"{(value - 1) / 4:g}"


def of_panel(case: Case) -> str:
    params = case["params"]
    voices = {str(number): float(score) for number, score in enumerate(case["item"]["judge_scores"])}
    weights = {str(number): float(weight) for number, weight in enumerate(params["weights"])}
    rule = panels.PanelRule(aggregation=params["method"], weights=weights)
    verdict = panels.panel_verdict(voices, rule, panels.Marks(0.0, 1.0, params["threshold"]))
    if verdict.score is None:
        return f"unmeasured: {verdict.reason}"
    return f"{verdict.score:g}, consensus {round(verdict.consensus, 3):g}"


def of_tools(case: Case) -> str:
    declared = known(f"tools.{case['scorer'].removesuffix('_scorer')}")
    assert isinstance(declared, Metric)
    (one,) = observe(declared, to_conversation([tidy(case["item"])], id=case["id"]))
    return f"{one.value:g}" if one.value is not None else f"{one.status}: {one.reason}"


NEEDED = {
    "task_progression_scorer": ("agent_task", "agent_role", "system_prompt", "agent_response"),
    "goal_achievement_scorer": ("agent_exit", "trace"),
}
"""What is decided before a judge is asked."""


def of_needs(case: Case) -> str:
    (one,) = cases_of(to_conversation([tidy(case["item"])], id=case["id"]))
    absent = first_absent(one, NEEDED[case["scorer"]])
    if absent:
        return f"unmeasured: no_{absent}"
    return f"asks the judge: {passed(read(case['params']['judge_reply'], score_schema(1, 10)))}"


VERDICTS: dict[str, Callable[[Case], str]] = {
    "judge_reply.agent": of_ten,
    "judge_reply.conversational": of_ten,
    "judge_reply.g_eval": of_range,
    "parse_claims": of_claims,
    "panel_judge.aggregate": of_panel,
    "panel_judge.one_judge": of_one_judge,
    "tool_correctness_scorer": of_tools,
    "parameter_correctness_scorer": of_tools,
    "task_progression_scorer": of_needs,
    "goal_achievement_scorer": of_needs,
}
"""How our verdict on a case comes about, by its scorer."""


def judge_cases(folder: Path) -> list[Case]:
    every: list[Case] = json.loads((folder / "standard-data.json").read_text())
    return [case for case in every if case["role"] == "judges"]


def observed_in(case: Case) -> str:
    expected = case["expected"]
    expected = expected[0] if isinstance(expected, list) and expected and isinstance(expected[0], dict) else expected
    if not isinstance(expected, dict):
        return f"{expected:g}" if isinstance(expected, float) else json.dumps(expected)
    score = f"{expected['score']:g}"
    if "consensus" in expected:
        return f"{score}, consensus {round(expected['consensus'], 3):g}"
    return f"{score}, {'passes' if expected['passed'] else 'fails'}"


def given(case: Case) -> str:
    """What the case is about, on one line."""
    item = case["item"]
    if "reply" in item:
        return re.sub(r"\s+", " ", item["reply"]) or "(empty)"
    if "judge_scores" in item:
        return f"{case['params']['method']} of {item['judge_scores']}"
    return re.sub(r"\s+", " ", json.dumps(item))


def table(cases: list[Case]) -> str:
    lines = ["| case | given | observed | ours | why |", "|---|---|---|---|---|"]
    for case in cases:
        ours, why = OURS[case["id"]]
        shown = given(case).replace("|", "\\|").replace("`", "'")
        lines.append(f"| {case['id']} | `{shown}` | {observed_in(case)} | {ours} | {why} |")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def all_cases(shared: Callable[[str], Path]) -> list[Case]:
    return judge_cases(shared("data/cases"))


def test_there_is_a_verdict_on_each_case(all_cases: list[Case], ran: Callable[[str, int], None]) -> None:
    assert sorted(case["id"] for case in all_cases) == sorted(OURS)
    assert len(all_cases) == 44
    ran("standard-data, judges", len(all_cases))


@pytest.mark.parametrize("name", sorted(OURS))
def test_our_verdict(name: str, all_cases: list[Case]) -> None:
    case = next(case for case in all_cases if case["id"] == name)
    verdict, why = OURS[name]
    assert VERDICTS[case["scorer"]](case) == verdict, why
    if why.startswith(AGREE) and not case["scorer"].startswith("goal"):
        assert observed_in(case).removesuffix(", passes").removesuffix(", fails") == verdict.removesuffix(
            ", passes"
        ).removesuffix(", fails")


def test_no_number_of_ours_comes_from_a_case_without_an_answer(all_cases: list[Case]) -> None:
    """The other program has a number for each of these: −1, 0, or one that was fished from prose."""
    numbers = [case["id"] for case in all_cases if case["defect"] and re.match(r"[\d.]+$", OURS[case["id"]][0])]
    assert numbers == []


def by_the_definition(method: str, scores: list[float], weights: list[float], threshold: float) -> float:
    """A panel's score straight from its definition (judged, 4.1), without our code."""
    passed = sum(score >= threshold for score in scores)
    weighted = sum(score * weight for score, weight in zip(scores, weights, strict=True)) / (sum(weights) or 1)
    return {
        "mean": statistics.mean(scores),
        "median": statistics.median(scores),
        "weighted_mean": weighted if sum(weights) else statistics.mean(scores),
        "majority_vote": float(passed > len(scores) / 2),
        "consensus": min(scores) if passed == len(scores) else 0.0,
        "min": min(scores),
        "max": max(scores),
    }[method]


def test_where_the_arithmetic_of_a_panel_is_correct_ours_is_the_same(all_cases: list[Case]) -> None:
    """Which cases are correct is decided by rule: two judges or more (three for a vote), and the defined score."""
    right = 0
    for case in (case for case in all_cases if case["scorer"] == "panel_judge.aggregate"):
        params, scores = case["params"], [float(score) for score in case["item"]["judge_scores"]]
        method = params["method"]
        defined = by_the_definition(method, scores, params["weights"], params["threshold"])
        is_correct = len(scores) >= (3 if method == "majority_vote" else 2)
        is_correct = is_correct and case["expected"]["score"] == pytest.approx(defined)
        voices = {str(number): score for number, score in enumerate(scores)}
        weights = {str(number): float(weight) for number, weight in enumerate(params["weights"])}
        rule = panels.PanelRule(aggregation=method, weights=weights)
        verdict = panels.panel_verdict(voices, rule, panels.Marks(0.0, 1.0, params["threshold"]))
        assert (verdict.score is not None) == is_correct
        right += is_correct
        if not is_correct:
            continue
        assert verdict.score == pytest.approx(case["expected"]["score"])
        # The widest that n judges can be apart is half of them at 0 and half at 1.
        half = len(scores) // 2
        widest = statistics.stdev([0.0] * half + [1.0] * (len(scores) - half))
        assert verdict.consensus == pytest.approx(1 - statistics.stdev(scores) / widest)
        if widest == pytest.approx(0.5):
            assert verdict.consensus == pytest.approx(case["expected"]["consensus"])
    # Median, min, max, and weights that are all 0. The fifth has one judge.
    assert right == 4


def test_the_page_has_the_table(all_cases: list[Case]) -> None:
    assert table(all_cases) in PAGE.read_text(), "python tests/conformance/test_judge_cases.py writes it"


if __name__ == "__main__":
    folder = Path(os.environ.get("CONVOSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
    text = PAGE.read_text()
    head, _, rest = text.partition("| case |")
    tail = rest.partition("\n\n")[2]
    PAGE.write_text(f"{head}{table(judge_cases(folder / 'data' / 'cases'))}\n" + (f"\n{tail}" if tail else ""))
