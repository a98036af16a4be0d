"""What an annotator provides is decided over the whole run: a gate cannot be passed with the samples that suit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.benchmark.gate import check_targets, compare
from convoscope.analysis.benchmark.result import BenchmarkResult
from convoscope.analysis.benchmark.run import BenchmarkRequest, run_benchmark
from convoscope.analysis.benchmark.semantic import SemanticSettings
from support.logs import write, write_json

RISK = {"type": "escalation", "severity": "high"}
PERFECT: dict[str, Any] = {"topics": ["refund"], "risks": [RISK], "actions": [{"description": "Send the form"}]}
FAMILIES = ("topics", "risks", "actions")


@pytest.fixture
def staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten samples with the same gold."""
    monkeypatch.setenv("CONVOSCOPE_BENCHMARKS", str(tmp_path))
    for number in range(10):
        gold = {**PERFECT, "topics": [{"label": "refund"}]}
        head = {"schema_version": 1, "sample_id": f"s{number}", "dataset": "d", "annotator": "human"}
        write_json(tmp_path / "datasets" / "semantic" / "d" / "goldens" / f"s{number}_gold.json", {**head, **gold})
    return tmp_path


def run(staged: Path, nine: dict[str, Any], first: dict[str, Any] = PERFECT, **other: Any) -> BenchmarkResult:
    """The first sample is answered in one way, nine in another."""
    for number in range(10):
        semantic = nine if number else first
        write_json(staged / "predictions" / f"s{number}.json", {"annotations": {"semantic": semantic}})
    return run_benchmark(BenchmarkRequest("semantic", "d", predictions=staged / "predictions", **other))


def test_all_perfect_is_passed(staged: Path) -> None:
    assert check_targets(run(staged, PERFECT)).outcome == "passed"


@pytest.mark.parametrize(
    "nine",
    [
        dict.fromkeys(FAMILIES),
        {"annotator": "x"},
        {**PERFECT, "extraction_status": dict.fromkeys(FAMILIES, "skipped")},
        {**PERFECT, "topics": {"label": "refund"}},
        {**PERFECT, "risks": "escalation"},
        {**PERFECT, "actions": 3},
        {"normalized": {"topics": "refund", "risk_tags": [], "action_items": []}},
        {"normalized": "refund"},
        {"risk_tags": "escalation", "actions": []},
        {"risk_tags": [], "matches": {}, "actions": []},
    ],
)
def test_nine_of_ten_without_findings_are_failed_samples(staged: Path, nine: dict[str, Any]) -> None:
    complete = run(staged, PERFECT)
    result = run(staged, nine)
    assert (result.samples_evaluated, result.samples_failed) == (1, 9)
    assert check_targets(result).outcome == "undetermined"
    assert compare(result, complete, 0.1).outcome == "undetermined"
    # One of ten topics was found: F1 would be 2 ÷ (2 + 9), recall 1 ÷ 10; what is right stays right.
    assert result.metrics["topic_f1"].worst_case == 2 / 11
    assert result.metrics["action_accuracy"].worst_case == result.metrics["action_accuracy_any"].worst_case == 0.1
    assert result.metrics["topic_f1_macro"].worst_case == 0.1
    assert result.metrics["topic_precision"].worst_case == 1
    assert result.metrics["topic_f1"].coverage == 0.1


def test_a_family_that_no_sample_has_is_not_provided(staged: Path) -> None:
    without = {"risks": [RISK], "actions": []}
    result = run(staged, without, without)
    assert result.samples_failed == 0
    assert result.metrics["topic_f1"].reason == "annotator_provides_no_topics"
    assert check_targets(result).outcome == "failed"  # no action is found


def test_the_families_that_fail_are_all_named(staged: Path) -> None:
    broken = {**PERFECT, "actions": None, "extraction_status": {"topics": "error", "risks": "failed"}}
    (failure, *_) = run(staged, broken).failures
    assert failure.reason == "annotation_failed"
    assert failure.detail == "an error at topics, risks; no actions, which other samples have"


@pytest.mark.parametrize("severity", [None, "", "severe", 3])
def test_a_severity_that_is_missing_in_nine_is_wrong_in_nine(staged: Path, severity: object) -> None:
    nine = {**PERFECT, "risks": [{"type": "escalation", "severity": severity}]}
    result = run(staged, nine)
    weighted = result.metrics["risk_f1_weighted"]
    # Right: one at weight 2. Wrong: nine at weight 1. Missed: nine at weight 2. 2·2 ÷ (2·2 + 9 + 18) = 4/31.
    assert (weighted.tp, weighted.fp, weighted.fn, weighted.value) == (2, 9, 18, 4 / 31)
    assert weighted.coverage == 1
    assert check_targets(result).outcome == "failed"


@pytest.mark.parametrize("risk", [{"type": "escalation"}, {"type": "escalation", "severity": "severe"}])
def test_without_any_severity_nothing_is_weighed(staged: Path, risk: dict[str, str]) -> None:
    answer = {**PERFECT, "risks": [risk]}
    result = run(staged, answer, answer)
    assert result.metrics["risk_f1_weighted"].reason == "annotator_provides_no_severity"
    assert check_targets(result).outcome == "undetermined"


def test_who_finds_no_risk_at_all_has_a_real_zero(staged: Path) -> None:
    silent = {**PERFECT, "risks": []}
    assert run(staged, silent, silent).metrics["risk_f1_weighted"].value == 0


def test_shapes_that_have_no_severity_beside_one_that_has(staged: Path) -> None:
    result = run(staged, {"risk_tags": ["escalation"], "actions": PERFECT["actions"]})
    assert result.metrics["risk_f1_weighted"].value == 4 / 31


def test_the_threshold_holds_for_any_wording_too(staged: Path) -> None:
    # "send form" and "send the form" are 1 − 4/13 = 0.69 alike.
    answer = {**PERFECT, "actions": [{"description": "x", "verbatim": "send form"}]}
    assert run(staged, answer, answer).metrics["action_accuracy_any"].value == 0
    loose = SemanticSettings(threshold=0.6)
    assert run(staged, answer, answer, settings=loose).metrics["action_accuracy_any"].value == 1


def test_of_several_annotators_the_first_is_scored_or_the_one_that_is_named(staged: Path) -> None:
    both = [{"annotator": "llm", "model": "m1", **PERFECT}, {"annotator": "llm", "model": "m2", "topics": []}]
    for number in range(10):
        write_json(staged / "predictions" / f"s{number}.json", {"annotations": {"semantic": both}})
    request = BenchmarkRequest("semantic", "d", predictions=staged / "predictions")
    first = run_benchmark(request)
    assert (first.receipt.semantic_model, first.metrics["topic_f1"].value) == ("m1", 1)
    assert first.notes == ["10 predictions are of several annotators: the first was scored; --model names another"]
    second = run_benchmark(request._replace(model="m2"))
    assert (second.receipt.semantic_model, second.metrics["topic_f1"].value) == ("m2", 0)


def test_the_model_names_who_made_predictions(staged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(staged, PERFECT).receipt.semantic_model == "unnamed"
    assert run(staged, PERFECT, model="qwen2.5-7b").receipt.semantic_model == "qwen2.5-7b"
    monkeypatch.setenv("CONVOSCOPE_SEMANTIC_MODEL", "qwen")
    assert run(staged, PERFECT).receipt.semantic_model == "qwen"
    named = {**PERFECT, "model": "m1"}
    assert run(staged, named, named).receipt.semantic_model == "m1"
    other = run(staged, named, named, model="m2").receipt
    assert (other.semantic_model, other.config["makers"]) == ("m2", ["m1"])


def test_a_byte_order_mark_changes_nothing(staged: Path) -> None:
    run(staged, PERFECT)
    for place in (*staged.rglob("*_gold.json"), *(staged / "predictions").iterdir()):
        place.write_bytes(b"\xef\xbb\xbf" + place.read_bytes())
    result = run_benchmark(BenchmarkRequest("semantic", "d", predictions=staged / "predictions"))
    assert (result.samples_evaluated, result.samples_failed, result.samples_skipped) == (10, 0, 0)


class TestTranscripts:
    """Predictions that an annotator makes."""

    @pytest.fixture
    def calls(self, staged: Path) -> Path:
        for number in range(10):
            words = "Agent: Hello, how can I help?\nCustomer: I want a refund.\nAgent: I will send the form.\n"
            write(staged / "transcripts" / f"s{number}.txt", words)
        return staged / "transcripts"

    def test_the_receipt_has_each_transcript(self, calls: Path) -> None:
        request = BenchmarkRequest("semantic", "d", transcripts=calls)
        before = run_benchmark(request).receipt.predictions_hash
        assert run_benchmark(request).receipt.predictions_hash == before
        write(calls / "s3.txt", "Agent: Hello.\nCustomer: I want to speak to a manager.\n")
        assert run_benchmark(request).receipt.predictions_hash != before

    def test_a_language_that_the_rules_do_not_know_is_its_own_reason(self, calls: Path) -> None:
        german = "Agent: Guten Tag, wie kann ich Ihnen helfen?\nCustomer: Ich möchte mein Geld zurück.\n"
        write(calls / "s1.txt", german * 3)
        (calls / "s2.txt").unlink()
        result = run_benchmark(BenchmarkRequest("semantic", "d", transcripts=calls))
        reasons = {one.sample_id: one.reason for one in result.failures}
        assert reasons == {"s1": "language_not_supported", "s2": "no_prediction"}
        assert result.metrics["topic_f1"].skipped_reasons == {"language_not_supported": 1, "no_prediction": 1}

    def test_an_annotator_that_raises_fails_one_sample(self, calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from convoscope.analysis.benchmark.datasets import find_dataset
        from convoscope.analysis.benchmark.run import TranscriptFolder
        from convoscope.analysis.benchmark.semantic import score_semantic
        from convoscope.annotate.annotator import annotator_named
        from convoscope.conversation import Annotations, Conversation

        rules = annotator_named("rules")

        class Broken:
            name = "broken"
            provides = rules.provides
            identity = "broken/1"

            def annotate(self, conversation: Conversation) -> Annotations:
                if conversation.source.files[0].endswith("s4.txt"):
                    raise ZeroDivisionError("oops")
                return rules.annotate(conversation)

        settings = SemanticSettings()
        dataset = find_dataset("semantic", "d")
        scored = score_semantic(dataset, dataset.samples, TranscriptFolder(calls, Broken(), settings), settings)
        assert [(one.sample_id, one.reason) for one in scored.failed] == [("s4", "annotation_failed")]
        assert "ZeroDivisionError: oops" in scored.failed[0].detail

    def test_gold_that_cites_a_segment_that_is_not_there_is_skipped(self, calls: Path, staged: Path) -> None:
        gold = {"schema_version": 1, "sample_id": "s5", "dataset": "d", "annotator": "human"}
        place = staged / "datasets" / "semantic" / "d" / "goldens" / "s5_gold.json"
        write_json(place, {**gold, "risks": [{**RISK, "segment_ids": [2]}]})
        request = BenchmarkRequest("semantic", "d", transcripts=calls)
        assert run_benchmark(request).samples_skipped == 0  # three segments, 0 to 2
        write_json(place, {**gold, "risks": [{**RISK, "segment_ids": [3]}]})
        (failure,) = run_benchmark(request).failures
        assert failure.reason == "invalid_gold_labels"
        assert "segment 3 is not in the transcript; allowed: 0 to 2" in failure.detail
