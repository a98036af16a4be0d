"""Cases of the semantic benchmark, replayed on the plain scorer: equal to `spec_reference`, whatever their number."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.benchmark.gate import better_of, regression
from convoscope.analysis.benchmark.result import MetricResult
from convoscope.metrics.declaration import Better
from convoscope.metrics.semantic.samples import (
    PlainRisk,
    action_counts,
    precision,
    recall,
    risk_counts,
    topic_counts,
)
from convoscope.scores.observation import Counts
from convoscope.text.folding import description_similarity, plain_description
from convoscope.vocabulary import semantic_vocabulary


@pytest.fixture(scope="module")
def cases(shared: Callable[[str], Path]) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(shared("data/cases/semantic.json").read_text())
    return defaultdict(list, loaded)


def figures(counts: Counts | None) -> dict[str, Any] | None:
    if counts is None:
        return None
    return {**counts._asdict(), "precision": precision(counts), "recall": recall(counts), "f1": counts.f1}


def topics(predicted: list[str] | None, gold: list[str] | None) -> Any:
    return None if gold is None else figures(topic_counts(predicted or [], gold))


def plain(risks: list[dict[str, Any]] | None) -> list[PlainRisk]:
    listed = [one if isinstance(one, dict) else {"type": one} for one in risks or []]
    return [PlainRisk(one.get("type") or "", one.get("severity") or "", one.get("segment_id")) for one in listed]


def risks(predicted: list[Any] | None, gold: list[Any] | None, provides_severity: bool) -> Any:
    if gold is None:
        return None
    weights = semantic_vocabulary().weights
    counts = risk_counts(plain(predicted), plain(gold), weights, provides_severity=provides_severity)
    return {
        "overall": figures(counts.overall),
        "by_severity": {severity: figures(one) for severity, one in counts.by_severity.items()},
        "weighted": figures(counts.weighted),
    }


def actions(predicted: list[Any] | None, gold: list[Any] | None, threshold: float) -> Any:
    if gold is None:
        return None
    counts = action_counts(
        [one.get("text") or "" for one in predicted or []], [one.get("text") or "" for one in gold], threshold
    ).counts
    return {
        "matched": counts.tp,
        "predicted": counts.tp + counts.fp,
        "gold": counts.tp + counts.fn,
        "accuracy": recall(counts),
        "precision": precision(counts),
        "f1": counts.f1,
    }


def score(predicted: dict[str, Any], gold: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    provides_severity = params.get("annotator_provides_severity", True)
    threshold = params.get("similarity_threshold", 0.8)
    return {
        "topic": topics(predicted.get("topics"), gold.get("topics")),
        "risk": risks(predicted.get("risks"), gold.get("risks"), provides_severity),
        "action": actions(predicted.get("actions"), gold.get("actions"), threshold),
    }


def test_every_case_is_equal_to_its_reference(cases: dict[str, Any], ran: Callable[[str, int], None]) -> None:
    wrong: list[str] = []
    replayed = 0
    for case in cases["cases"]:
        scored = score(case.get("predicted") or {}, case.get("gold") or {}, case.get("params") or {})
        for family, reference in (case.get("spec_reference") or {}).items():
            if family not in scored:
                continue
            replayed += 1
            if scored[family] != reference:
                wrong.append(f"{case['id']} {family}: {scored[family]} is not {reference}")
    assert not wrong, "\n".join(wrong)
    ran("semantic cases", replayed)


def test_texts_are_normalised_as_the_specification_says(cases: dict[str, Any], ran: Callable[[str, int], None]) -> None:
    for case in cases["normalize_cases"]:
        assert plain_description(case["text"] or "") == (case["spec_reference"] or ""), case["text"]
    ran("normalised descriptions", len(cases["normalize_cases"]))


def test_similarities_are_those_of_levenshtein(cases: dict[str, Any], ran: Callable[[str, int], None]) -> None:
    for case in cases["similarity_cases"]:
        # These compare the texts as they stand.
        pair = case["predicted"] or "", case["gold"] or ""
        if case["levenshtein_similarity"] is None:
            continue
        assert description_similarity(*pair) == pytest.approx(case["levenshtein_similarity"], abs=1e-15)
    ran("similarities", len(cases["similarity_cases"]))


def figure(value: float | None, better: Better) -> MetricResult:
    reason = "unmeasured" if value is None else None
    return MetricResult(value=value, reason=reason, better=better, coverage=1.0, samples_measured=1, samples_skipped=0)


def test_the_gate_decides_as_recommended(cases: dict[str, Any], ran: Callable[[str, int], None]) -> None:
    for case in cases["baseline_cases"]:
        higher = better_of(case["metric"]) == "higher"
        assert higher == case.get("higher_is_better", higher), case["metric"]
        now, before = (figure(case[name], better_of(case["metric"])) for name in ("current", "baseline"))
        check = regression(case["metric"], now, before, case["threshold"])
        # What was not measured, now or then, is not passed.
        is_measured = None not in (case["current"], case["baseline"])
        assert check.outcome == (
            "passed" if case["recommended_pass"] else "failed" if is_measured else "undetermined"
        ), case
    ran("baselines", len(cases["baseline_cases"]))
