"""What an annotator provides is decided over the whole run: a gate cannot be passed with the samples that suit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from convoscope.analysis.benchmark.gate import check_targets, compare
from convoscope.analysis.benchmark.result import BenchmarkRequest, BenchmarkResult
from convoscope.analysis.benchmark.run import run_benchmark
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
    assert run(staged, answer, answer, threshold=0.6).metrics["action_accuracy_any"].value == 1


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
        from convoscope.analysis.benchmark.labels import TranscriptFolder
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

        dataset, request = find_dataset("semantic", "d"), BenchmarkRequest("semantic", "d")
        result = score_semantic(request, dataset, dataset.samples, TranscriptFolder(calls, Broken()))
        assert [(one.sample_id, one.reason) for one in result.failures] == [("s4", "annotation_failed")]
        assert result.samples_failed == 1
        assert "ZeroDivisionError: oops" in result.failures[0].detail

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


GOLDENS = "datasets/semantic/d/goldens"


class TestGoldThatIsNotThere:
    def test_a_sample_without_gold_is_skipped_and_lowers_the_coverage(self, staged: Path) -> None:
        for number in range(5, 10):
            (staged / GOLDENS / f"s{number}_gold.json").unlink()
        (staged / GOLDENS / "s4_gold.json").unlink()
        split = {"test": [f"s{number}" for number in range(5)]}
        write_json(staged / "datasets/semantic/d/dataset.json", {"splits": split})
        result = run(staged, PERFECT, split="test")
        topic = result.metrics["topic_f1"]
        assert (topic.value, topic.coverage, topic.samples_measured, topic.samples_skipped) == (1, 4 / 5, 4, 1)
        assert topic.skipped_reasons == {"no_gold_labels": 1}
        assert (result.samples_evaluated, result.samples_failed, result.samples_skipped) == (4, 0, 1)
        last = result.sample_results[-1]
        assert (last.sample_id, last.skipped, last.topic_f1) == ("s4", "no_gold_labels", None)
        assert last.reasons == dict.fromkeys(FAMILIES, "no_gold_labels")
        assert check_targets(result).outcome == "undetermined"

    def test_so_is_one_that_only_has_a_prediction_or_a_transcript(self, staged: Path) -> None:
        for number in range(4, 10):
            (staged / GOLDENS / f"s{number}_gold.json").unlink()
        write(staged / "predictions" / "notes.json", '{"made": "by hand"}')  # no prediction of anything
        write_json(staged / "datasets/semantic/d/transcripts/t.json", {"segments": [{"id": 0, "text": "hello"}]})
        result = run(staged, PERFECT)  # predictions of s0 to s9
        assert result.coverage["samples_total"] == 11
        assert result.coverage["gold_label_coverage"] == 4 / 11
        assert result.metrics["topic_f1"].coverage == 4 / 11
        assert [one.sample_id for one in result.sample_results if one.skipped] == [
            *(f"s{n}" for n in range(4, 10)),
            "t",
        ]

    def test_damaged_gold_passes_no_gate(self, staged: Path) -> None:
        for number in range(1, 10):
            path = staged / GOLDENS / f"s{number}_gold.json"
            path.write_bytes(path.read_bytes()[:40])
        result = run(staged, PERFECT)
        assert (result.samples_evaluated, result.samples_skipped) == (1, 9)
        assert result.metrics["topic_f1"].value == 1
        gate = check_targets(result)
        assert gate.outcome == "undetermined"
        assert gate.reason.startswith("9 of 10 samples")

    def test_a_target_that_is_missed_is_missed_whatever_was_skipped(self, staged: Path) -> None:
        (staged / GOLDENS / "s9_gold.json").unlink()
        write_json(staged / "datasets/semantic/d/dataset.json", {"splits": {"test": [f"s{n}" for n in range(10)]}})
        wrong = {**PERFECT, "topics": ["billing"]}
        assert check_targets(run(staged, wrong, wrong, split="test")).outcome == "failed"

    def test_a_result_names_no_folder(self, staged: Path) -> None:
        (staged / GOLDENS / "s9_gold.json").unlink()
        (staged / GOLDENS / "s8_gold.json").write_text("{")
        write_json(staged / "datasets/semantic/d/dataset.json", {"splits": {"test": [f"s{n}" for n in range(10)]}})
        run(staged, PERFECT)
        (staged / "predictions" / "s7.json").unlink()
        write(staged / "predictions" / "s6.json", "{")
        request = BenchmarkRequest("semantic", "d", predictions=staged / "predictions", split="test")
        result = run_benchmark(request)
        assert len(result.failures) == 4
        assert str(staged) not in msgspec.json.encode(result).decode()
        by_rules = run_benchmark(BenchmarkRequest("semantic", "d", transcripts=staged / "predictions", split="test"))
        assert str(staged) not in msgspec.json.encode(by_rules).decode()


def test_where_a_risk_is_cannot_be_wrong_where_nobody_says(staged: Path) -> None:
    located = {**PERFECT, "risks": [{**RISK, "segment_ids": [3]}]}
    for number in range(10):
        path = staged / GOLDENS / f"s{number}_gold.json"
        gold = msgspec.json.decode(path.read_bytes())
        write_json(path, {**gold, "risks": located["risks"]})
    silent = run(staged, PERFECT).metrics["risk_segment_overlap"]
    assert (silent.value, silent.reason) == (None, "annotator_provides_no_segments")
    assert run(staged, located, located).metrics["risk_segment_overlap"].value == 1
    # One of ten risks says where it is: the annotator can, and did not in nine.
    assert run(staged, PERFECT, located).metrics["risk_segment_overlap"].value == 0.1
    elsewhere = {**PERFECT, "risks": [{**RISK, "segment_ids": [4]}]}
    assert run(staged, elsewhere, elsewhere).metrics["risk_segment_overlap"].value == 0


def test_there_is_something_to_find_where_a_failed_sample_has_it(staged: Path) -> None:
    path = staged / GOLDENS / "s9_gold.json"
    write_json(path, {**msgspec.json.decode(path.read_bytes()), "risks": [{**RISK, "severity": "medium"}]})
    run(staged, PERFECT)
    (staged / "predictions" / "s9.json").unlink()
    result = run_benchmark(BenchmarkRequest("semantic", "d", predictions=staged / "predictions"))
    medium, low = result.metrics["risk_f1_medium"], result.metrics["risk_f1_low"]
    assert (medium.value, medium.reason) == (None, "no_prediction")
    assert (low.value, low.reason) == (None, "nothing_to_find")
