"""A benchmark and a run score the same samples: every figure, sample and reason is the same, in odd cases too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.analysis.benchmark.result import BenchmarkResult
from convoscope.runs.run import Run
from support.two_scorers import assert_same, both

RISK = {"type": "escalation", "severity": "high"}
RIGHT: dict[str, Any] = {
    "topics": ["refund"],
    "risks": [RISK],
    "actions": [{"description": "Send the form", "assignee_role": "agent"}],
}
GOLD: dict[str, Any] = {**RIGHT, "topics": [{"label": "refund"}]}
NOTHING: dict[str, Any] = {"topics": [], "risks": [], "actions": []}
ODD: dict[str, tuple[Any, dict[str, Any] | None]] = {
    "right": (RIGHT, GOLD),
    "nothing-found": (NOTHING, GOLD),
    "quiet": (NOTHING, NOTHING),
    "without-text": (
        {
            "topics": ["", {}, "refund"],
            "risks": [RISK, {"severity": "high"}, {}, 3],
            "actions": [{"verbatim": "I'll send it"}, {}, "", *RIGHT["actions"]],
        },
        GOLD,
    ),
    "unknown-labels": (
        {**RIGHT, "topics": ["weather", "refund"], "risks": [{"type": "storm", "severity": "high"}]},
        GOLD,
    ),
    "without-severity": ({**RIGHT, "risks": [{"type": "escalation"}]}, GOLD),
    "topics-only": ({"topics": ["refund"]}, GOLD),
    "failed": ({**RIGHT, "error": "timeout"}, GOLD),
    "not-a-list": ({**RIGHT, "topics": {}}, GOLD),
    "not-annotated": (None, GOLD),
    "gold-has-topics-only": (RIGHT, {"topics": GOLD["topics"]}),
    "no-gold": (RIGHT, None),
    "invalid-gold": (RIGHT, {**GOLD, "risks": [{"type": "storm", "severity": "high"}]}),
}


def transcript(semantic: Any, **more: Any) -> dict[str, Any]:
    segments = [{"id": number, "start": number, "end": number + 1, "text": f"Word {number}."} for number in range(6)]
    head = {"schema_version": 2, "file": "a.wav", "language": "en", "segments": segments}
    return {**head, **({} if semantic is None else {"annotations": {"semantic": semantic}}), **more}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
    return tmp_path


def scored(folder: Path, *predictions: Any) -> tuple[BenchmarkResult, Run]:
    """Predictions of samples that all have the same gold."""
    samples = {f"s{number}": (transcript(semantic), GOLD) for number, semantic in enumerate(predictions)}
    return both(folder, samples)


def test_odd_samples(folder: Path) -> None:
    benchmark, run = both(folder, {name: (transcript(made), gold) for name, (made, gold) in ODD.items()})
    assert_same(benchmark, run)
    # Topics: six samples have refund, one misses it, one adds weather. A topic without a text is no label.
    assert run["semantic.topic_f1"].value == pytest.approx(2 * 6 / (2 * 6 + 1 + 1))
    # Risks, TP FP FN: right 1 0 0, nothing-found 0 0 1, without-text 1 2 0 (`{}` and 3 are the same risk),
    # unknown-labels 0 1 1, without-severity 1 0 0.
    assert run["semantic.risk_f1"].value == pytest.approx(2 * 3 / (2 * 3 + 3 + 2))
    # Weighted, high is 2 and no severity 1: 2 0 0, 0 0 2, 2 3 0, 0 2 2, 0 1 2.
    assert run["semantic.risk_f1_weighted"].value == pytest.approx(2 * 4 / (2 * 4 + 6 + 6))
    # Actions: 1 0 0, 0 0 1, 1 3 0, 1 0 0, 1 0 0.
    assert run["semantic.action_f1"].value == pytest.approx(2 * 4 / (2 * 4 + 3 + 1))
    risks = run["semantic.risk_f1"]
    assert (risks.samples_measured, risks.samples_not_applicable) == (5, 1)
    # Five have a value, quiet has nothing to find, seven are left out.
    assert risks.coverage == pytest.approx(5 / 12)
    assert risks.skipped_reasons == {
        "annotation_failed": 3,
        "no_prediction": 1,
        "no_risks_in_gold": 1,
        "no_gold_labels": 1,
        "invalid_gold_labels": 1,
        "nothing_to_find": 1,
    }


def test_no_severity_in_the_whole_run(folder: Path) -> None:
    benchmark, run = scored(folder, {**RIGHT, "risks": [{"type": "escalation"}]}, NOTHING)
    assert_same(benchmark, run)
    assert benchmark.metrics["risk_f1_weighted"].reason == "annotator_provides_no_severity"
    # By type alone: one is right, one is missed.
    assert run["semantic.risk_f1"].value == pytest.approx(2 / 3)


@pytest.mark.parametrize("gold", [None, {**GOLD, "risks": [{"type": "storm", "severity": "high"}]}])
def test_a_severity_that_cannot_be_compared_decides_nothing(folder: Path, gold: dict[str, Any] | None) -> None:
    bare = {**RIGHT, "risks": [{"type": "escalation"}]}
    benchmark, run = both(folder, {"a": (transcript(bare), GOLD), "b": (transcript(RIGHT), gold)})
    assert_same(benchmark, run)
    assert benchmark.metrics["risk_f1_weighted"].reason == "annotator_provides_no_severity"


@pytest.mark.parametrize("severity", ["enormous", 3, None])
def test_nine_without_a_known_severity_do_not_leave_the_tenth_alone(folder: Path, severity: Any) -> None:
    other = {**RIGHT, "risks": [{"type": "escalation", "severity": severity}]}
    benchmark, run = scored(folder, RIGHT, *[other] * 9)
    assert_same(benchmark, run)
    # One hit of weight 2; nine are wrong at weight 1 and miss 2 each: 4 ÷ (4 + 9 + 18). Not 1.0 of one sample.
    assert run["semantic.risk_f1_weighted"].value == pytest.approx(4 / 31)
    assert run["semantic.risk_f1_weighted"].coverage == 1.0


def test_a_shape_that_declares_no_severity_beside_one_that_has_some(folder: Path) -> None:
    assert_same(*scored(folder, RIGHT, {"risk_tags": ["escalation"], "matches": [], "actions": []}))


def test_segments_that_do_not_exist_and_segments_written_as_text(folder: Path) -> None:
    unknown = {**RIGHT, "risks": [{**RISK, "segment_ids": [77]}, {**RISK, "segment_ids": [78]}]}
    text = {**RIGHT, "risks": [{**RISK, "segment_ids": ["1"]}, {**RISK, "segment_id": 1}]}
    benchmark, run = scored(folder, unknown, text)
    assert_same(benchmark, run)
    # The first has two risks, of which one is wrong; in the second "1" and 1 are the same segment.
    assert run["semantic.risk_f1"].value == pytest.approx(2 * 2 / (2 * 2 + 1))


def test_a_risk_of_two_chunks_is_two_risks(folder: Path) -> None:
    chunks = [{"segment_ids": [number], "semantic": {"risks": [RISK]}} for number in (0, 1)]
    benchmark, run = both(folder, {"a": (transcript(None, chunks=chunks), GOLD), "b": (transcript(RIGHT), GOLD)})
    assert_same(benchmark, run)
    assert run["semantic.risk_f1"].value == pytest.approx(2 * 2 / (2 * 2 + 1))


def test_numbers_are_labels_too(folder: Path) -> None:
    odd = {"topics": [{"label": 3}], "risks": [{"type": 3, "severity": "high"}], "actions": [{"description": 7}]}
    assert_same(*scored(folder, RIGHT, odd))


def test_the_rules(folder: Path) -> None:
    call = transcript(None)
    words = ["I want my money back, and I want to speak to a manager now!", "I'll send the form.", "Thank you."]
    call["segments"] = [{**one, "text": text} for one, text in zip(call["segments"], words, strict=False)]
    german = ["Ich möchte mein Geld zurück, und zwar heute noch.", "Ich schicke Ihnen das Formular.", "Vielen Dank."]
    other = {
        **call,
        "language": "de",
        "segments": [{**one, "text": text} for one, text in zip(call["segments"], german, strict=True)],
    }
    benchmark, run = both(folder, {"en": (call, GOLD), "de": (other, GOLD)}, annotate="rules")
    assert_same(benchmark, run)
    assert run["semantic.risk_f1"].skipped_reasons == {"language_not_supported": 1}


def test_gold_inside_conversations(tmp_path: Path) -> None:
    """Without files of gold, the whole run decides as well."""
    found = {"origin": "predicted", "risks": [{"type": "escalation", "severity": "high"}]}
    gold = {**found, "origin": "gold"}
    bare = {**found, "risks": [{"type": "escalation"}]}
    head = {"schema": "convoscope.conversation/1"}
    calls = [{**head, "id": str(number), "annotations": [one, gold]} for number, one in enumerate((found, bare))]
    run = convoscope.score(calls, out=tmp_path / "run", metrics=["semantic.risk_f1_weighted"])
    # One hit of weight 2; one wrong at weight 1, and 2 missed.
    assert run["semantic.risk_f1_weighted"].value == pytest.approx(4 / (4 + 1 + 2))
