"""`convoscope benchmark`: real folders of gold and predictions, real processes, and what comes out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command_line import convoscope
from support.logs import write_json

FAILED, BAD_USAGE, UNDETERMINED = 1, 2, 3


def gold(sample: str, **families: Any) -> dict[str, Any]:
    return {"schema_version": 1, "sample_id": sample, "dataset": "calls", "annotator": "human", **families}


@pytest.fixture
def staged(tmp_path: Path) -> Path:
    """Four samples: a is found in part, b has nothing to find, c has no prediction, d has gold that is wrong."""
    goldens = tmp_path / "benchmarks" / "datasets" / "semantic" / "calls" / "goldens"
    risk = {"type": "escalation", "severity": "high", "segment_ids": [1]}
    action = {"description": "Send pricing proposal", "assignee_role": "agent"}
    write_json(
        goldens / "a_gold.json",
        gold("a", topics=[{"label": "pricing"}, {"label": "refund"}], risks=[risk], actions=[action]),
    )
    write_json(goldens / "b_gold.json", gold("b", topics=[], risks=[], actions=[]))
    write_json(goldens / "c_gold.json", gold("c", topics=[{"label": "refund"}], risks=[], actions=[]))
    write_json(goldens / "d_gold.json", gold("d", topics=[{"label": "weather"}]))
    write_json(goldens.parent / "dataset.json", {"splits": {"test": ["a", "b", "c", "d"], "dev": ["b"]}})
    predicted = {
        "model": "m1",
        "topics": [{"label": "Pricing"}, "weather"],
        "risks": [{"type": "escalation", "severity": "low", "segment_id": 1}],
        "actions": [{"description": "send the pricing proposal", "assignee_role": "team"}],
    }
    write_json(tmp_path / "predictions" / "a.json", {"segments": [], "annotations": {"semantic": predicted}})
    write_json(tmp_path / "predictions" / "b.json", {"topics": [], "risks": [], "actions": []})
    write_json(tmp_path / "predictions" / "d.json", {"topics": []})
    return tmp_path


def run(staged: Path, *arguments: object, **environment: str) -> Any:
    return convoscope(
        "benchmark", *arguments, cwd=staged, **{"CONVOSCOPE_BENCHMARKS": str(staged / "benchmarks"), **environment}
    )


def scored(staged: Path, *arguments: object) -> dict[str, Any]:
    ended = run(staged, "run", "--dataset", "calls", "--predictions", "predictions", "--output", "out.json", *arguments)
    assert ended.code == 0, ended.err
    result: dict[str, Any] = json.loads((staged / "out.json").read_text())
    return result


def test_the_result_is_as_the_seed_shows_it(staged: Path) -> None:
    result = scored(staged, "--track", "semantic", "--mode", "tags", "--split", "test")
    assert [result[name] for name in ("track", "mode", "dataset", "split", "valid")] == [
        "semantic", "tags", "calls", "test", True,
    ]  # fmt: skip
    # 4 = a and b evaluated, c failed (no prediction), d skipped (its gold is wrong).
    assert (result["samples_evaluated"], result["samples_failed"], result["samples_skipped"]) == (2, 1, 1)
    assert {one["sample_id"]: one["reason"] for one in result["failures"]} == {
        "c": "no_prediction",
        "d": "invalid_gold_labels",
    }
    coverage = result["coverage"]
    assert (coverage["samples_total"], coverage["samples_with_gold_labels"]) == (4, 3)
    assert coverage["gold_label_coverage"] == 0.75
    assert (coverage["samples_with_topics"], coverage["samples_with_risks"]) == (2, 1)


def test_every_figure_by_hand(staged: Path) -> None:
    metrics = scored(staged)["metrics"]
    # a: pricing is right, weather wrong, refund missed: P = R = F1 = 1/2. b adds nothing.
    topic = metrics["topic_f1"]
    assert [topic[name] for name in ("value", "tp", "fp", "fn")] == [0.5, 1, 1, 1]
    assert metrics["topic_precision"]["value"] == metrics["topic_recall"]["value"] == 0.5
    # Of a, c and d, a was measured; b has nothing to find; the gold of d cannot be used. c failed: had it found
    # nothing, F1 = 2 ÷ (2 + 1 + 1 + 1).
    assert (topic["samples_measured"], topic["samples_skipped"], topic["samples_not_applicable"]) == (1, 3, 1)
    assert topic["coverage"] == 1 / 3
    assert topic["worst_case"] == 0.4
    assert metrics["risk_f1"]["value"] == 1
    assert metrics["risk_f1_weighted"]["value"] == 0  # low (0.5) is wrong, high (2) missed
    assert metrics["risk_f1_weighted_type_only"]["value"] == 1
    assert (metrics["risk_f1_high"]["value"], metrics["risk_f1_low"]["value"]) == (0, 0)
    assert (metrics["risk_f1_critical"]["value"], metrics["risk_f1_critical"]["reason"]) == (None, "nothing_to_find")
    assert metrics["risk_segment_overlap"]["value"] == 1
    # "send the pricing proposal" has 25 letters, 4 of them too many: 1 − 4/25 = 0.84.
    assert metrics["action_accuracy"]["value"] == metrics["action_f1"]["value"] == 1
    assert metrics["assignee_accuracy"]["value"] == 0


def test_the_sweep_and_the_samples(staged: Path) -> None:
    result = scored(staged)
    assert result["sweep"]["0.8"]["action_f1"] == 1
    assert result["sweep"]["0.9"]["action_f1"] == 0
    assert result["out_of_vocabulary"] == {"topic weather": 1}
    sample = result["sample_results"][0]
    assert sample["predicted_topics"] == ["pricing", "weather"]
    assert sample["risk_matches"] == [{"predicted": "escalation:low", "gold": "escalation:high", "match": True}]
    assert sample["action_matches"][0]["similarity"] == 0.84
    assert result["sample_results"][2]["failed"].startswith("no_prediction")


def test_the_receipt_changes_with_every_setting(staged: Path) -> None:
    receipt = scored(staged)["receipt"]
    assert (receipt["semantic_model"], receipt["semantic_backend"]) == ("m1", "predictions")
    assert receipt["tool_version"]
    hashes = {receipt["config_hash"]}
    for other in (("--threshold", 0.9), ("--limit", 2), ("--split", "test"), ("--min-confidence", 0.5)):
        hashes.add(scored(staged, *other)["receipt"]["config_hash"])
    assert len(hashes) == 5
    assert all(len(one) == len("sha256:") + 64 for one in hashes)
    write_json(staged / "predictions" / "b.json", {"topics": ["refund"], "risks": [], "actions": []})
    again = scored(staged)["receipt"]
    assert again["config_hash"] == receipt["config_hash"]
    assert again["gold_hash"] == receipt["gold_hash"]
    assert again["predictions_hash"] != receipt["predictions_hash"]


def test_the_gate_needs_more_than_no_samples(staged: Path) -> None:
    arguments = ("run", "--dataset", "calls", "--predictions", "predictions", "--gate")
    assert run(staged, *arguments).code == FAILED
    ended = run(staged, *arguments, "--split", "dev")
    assert ended.code == UNDETERMINED
    assert "nothing_to_find" in ended.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--dataset", "ami"), "not staged"),
        (("--dataset", "calls", "--limit", "0"), "at least 1"),
        (("--dataset", "calls", "--split", "train"), "test, dev"),
        (("--dataset", "calls", "--track", "asr", "--mode", "summary"), "--mode summary is of the track semantic"),
        (("--dataset", "calls", "--threshold", "0"), "--threshold"),
        (("--dataset", "calls", "--track", "emotion"), "semantic, asr"),
        (("--dataset", "calls", "--mode", "vibes"), "tags, summary"),
        (("--dataset", "calls", "--predictions", "gone"), "no such folder"),
        ((), "--dataset"),
    ],
)
def test_what_cannot_be_run_is_explained(staged: Path, arguments: tuple[str, ...], words: str) -> None:
    given = arguments if "--predictions" in arguments else (*arguments, "--predictions", "predictions")
    ended = run(staged, "run", *given)
    assert ended.code == BAD_USAGE
    assert words in ended.err


def test_the_default_model_comes_from_the_environment(staged: Path) -> None:
    ended = run(staged, "run", "--dataset", "calls", CONVOSCOPE_SEMANTIC_MODEL="qwen")
    assert ended.code == BAD_USAGE
    assert "CONVOSCOPE_SEMANTIC_MODEL" in ended.err
    ended = run(staged, "run", "--dataset", "calls", "--model", "gpt")
    assert ended.code == BAD_USAGE
    assert "a language model: --model openai:gpt or --model anthropic:gpt; without one: rules" in ended.err


def test_summaries_are_unmeasured(staged: Path) -> None:
    result = scored(staged, "--mode", "summary")
    assert {one["value"] for one in result["metrics"].values()} == {None}
    assert {one["reason"] for one in result["metrics"].values()} == {"no_judge"}
    said = run(staged, "run", "--dataset", "calls", "--mode", "summary").out
    assert said.endswith("next  --judge openai:MODEL names who rates the summaries\n")


def test_precision_and_recall_by_severity(staged: Path) -> None:
    metrics = scored(staged)["metrics"]
    # Gold has one risk of high severity; one of low severity was predicted. High: none of 0 predicted, 0 of 1 found.
    assert (metrics["risk_recall_high"]["value"], metrics["risk_precision_high"]["reason"]) == (
        0.0,
        "nothing_predicted",
    )
    # Low: 0 of 1 predicted is right, and there is nothing to find.
    assert (metrics["risk_precision_low"]["value"], metrics["risk_recall_low"]["reason"]) == (0.0, "nothing_in_gold")


def test_figures_are_also_in_the_shape_of_the_seed(staged: Path) -> None:
    result = scored(staged)
    assert result["aggregate_metrics"].keys() == result["metrics"].keys()
    for name, figure in result["aggregate_metrics"].items():
        assert list(figure) == ["value", "reason", "coverage", "samples_measured", "samples_skipped"]
        assert figure == {key: result["metrics"][name][key] for key in figure}


def test_variables_of_slower_whisper_are_honoured_or_named(staged: Path) -> None:
    listed = convoscope("benchmark", "datasets", cwd=staged, SLOWER_WHISPER_BENCHMARKS=str(staged / "benchmarks"))
    assert "calls" in listed.out
    ended = run(
        staged, "run", "--dataset", "calls", "--predictions", "predictions",
        SLOWER_WHISPER_SEMANTIC_MODEL="qwen2.5-7b", SLOWER_WHISPER_BENCHMARKS="elsewhere",
    )  # fmt: skip
    assert ended.code == 0
    assert "warning: SLOWER_WHISPER_SEMANTIC_MODEL is not used: name the model with --model" in ended.err
    assert "warning: SLOWER_WHISPER_BENCHMARKS is not used: CONVOSCOPE_BENCHMARKS is set" in ended.err


def test_results_are_compared_and_invalidated(staged: Path) -> None:
    write_json(staged / "predictions" / "c.json", {"topics": ["refund"], "risks": [], "actions": []})
    for name in ("one.json", "two.json"):
        run(staged, "run", "--dataset", "calls", "--predictions", "predictions", "-o", name)
    assert run(staged, "compare", "one.json", "two.json").code == 0
    assert run(staged, "compare", "one.json", "gone.json").code == BAD_USAGE
    assert run(staged, "invalidate", "two.json", "--reason", "no gold", "--superseded-by", "run-x").code == 0
    assert run(staged, "invalidate", "two.json", "--reason", "wrong gold").code == 0
    kept = json.loads((staged / "two.json").read_text())
    assert (kept["valid"], kept["invalid_reason"], kept["superseded_by"]) == (False, "wrong gold", "run-x")
    assert kept["invalidated_at"].endswith("Z")
    (before,) = kept["invalidated_before"]
    assert (before["reason"], before["superseded_by"]) == ("no gold", "run-x")
    ended = run(staged, "compare", "one.json", "two.json")
    assert ended.code == UNDETERMINED
    assert "wrong gold" in ended.out


def test_gold_is_validated(staged: Path) -> None:
    goldens = staged / "benchmarks" / "datasets" / "semantic" / "calls" / "goldens"
    ended = run(staged, "validate-gold", goldens)
    assert ended.code == FAILED
    assert "d_gold.json: $.topics[0].label: 'weather' is not in the vocabulary; allowed: account_access" in ended.out
    assert "4 gold label files, 1 error" in ended.out
    assert run(staged, "validate-gold", goldens / "a_gold.json").code == 0
    write_json(goldens.parent / "transcripts" / "a.json", {"segments": [{"id": 0, "text": "Hello"}]})
    ended = run(staged, "validate-gold", goldens / "a_gold.json", "--json")
    assert ended.code == FAILED
    assert json.loads(ended.out)["errors"][0]["path"] == "$.risks[0].segment_ids[0]"


def test_gold_of_the_published_shape_is_converted(staged: Path) -> None:
    theirs = {"schema_version": 1, "meeting_id": "m", "topics": [{"label": "login"}], "risks": [], "actions": []}
    write_json(staged / "theirs" / "m.json", theirs)
    ended = run(staged, "convert-gold", "theirs", "goldens", "--dataset", "published")
    assert ended.code == 0, ended.out
    assert json.loads((staged / "goldens" / "m_gold.json").read_text())["topics"] == [{"label": "account_access"}]


def test_topics_outside_the_vocabulary_are_left_out_where_that_is_wanted(staged: Path) -> None:
    theirs = {"meeting_id": "m", "topics": [{"label": "weather"}, {"label": "refund"}]}
    write_json(staged / "theirs" / "m.json", theirs)
    arguments = ("convert-gold", "theirs", "goldens", "--dataset", "published")
    assert run(staged, *arguments).code == FAILED
    assert run(staged, *arguments, "--leave-out-unknown").code == 0
    kept = json.loads((staged / "goldens" / "m_gold.json").read_text())
    assert [one["label"] for one in kept["topics"]] == ["refund"]
    assert "weather" in kept["notes"]


def test_what_conversion_loses_is_told(staged: Path) -> None:
    action = {"text": "Call back", "speaker_id": "spk_0", "priority": 1}
    write_json(staged / "theirs" / "m.json", {"meeting_id": "m", "actions": [action], "summary": "A call."})
    ended = run(staged, "convert-gold", "theirs", "goldens", "--dataset", "published")
    assert ended.code == 0
    for words in ("'summary'", "$.actions[0].speaker_id: 'spk_0' names no role", "$.actions[0].priority"):
        assert f"theirs/m.json: left out: the field {words}" in ended.out or f"left out: {words}" in ended.out


@pytest.mark.parametrize("ids", [["a/b", "c/b"], ["a\0"], ["a", "a"], [".."], [" "]])
def test_nothing_is_written_over_by_conversion(staged: Path, ids: list[str]) -> None:
    for number, id in enumerate(ids):
        write_json(staged / "theirs" / f"{number}.json", {"meeting_id": id, "topics": []})
    ended = run(staged, "convert-gold", "theirs", "new", "--dataset", "published")
    assert ended.code == BAD_USAGE
    assert ".json $.meeting_id: " in ended.err
    assert not (staged / "new").exists()


def test_nothing_is_made_of_a_source_that_is_not_there(staged: Path) -> None:
    assert run(staged, "convert-gold", "nowhere", "new", "--dataset", "published").code == BAD_USAGE
    assert not (staged / "new").exists()


def test_data_sets_are_listed(staged: Path) -> None:
    ended = run(staged, "datasets")
    assert ended.code == 0
    assert "test 4, dev 1" in ended.out
    assert "not staged: ami" in ended.out


@pytest.mark.parametrize("text", ["[]", "{", '{"annotations": {"semantic": []}}', '{"annotations": []}', "null"])
def test_a_prediction_that_cannot_be_read_is_a_failed_sample(staged: Path, text: str) -> None:
    (staged / "predictions" / "a.json").write_text(text)
    result = scored(staged)
    assert "a" in {one["sample_id"] for one in result["failures"]}
    assert result["metrics"]["topic_f1"]["value"] is None


def test_an_error_of_the_annotator_is_a_failed_sample(staged: Path) -> None:
    broken = {"topics": [], "risks": [], "actions": [], "extraction_status": {"topics": "error", "risks": "success"}}
    write_json(staged / "predictions" / "a.json", broken)
    result = scored(staged)
    assert {one["sample_id"]: one["reason"] for one in result["failures"]}["a"] == "annotation_failed"
    reasons = result["metrics"]["topic_f1"]["skipped_reasons"]
    assert reasons == {"annotation_failed": 1, "invalid_gold_labels": 1, "no_prediction": 1}
    assert result["metrics"]["risk_f1"]["value"] == 0


def test_shapes_without_severity_are_not_weighed(staged: Path) -> None:
    (staged / "predictions" / "b.json").unlink()
    keywords = {"risk_tags": ["escalation"], "matches": [{"risk": "escalation", "keyword": "x", "segment_id": 1}]}
    write_json(staged / "predictions" / "a.json", {"annotations": {"semantic": {**keywords, "actions": []}}})
    metrics = scored(staged)["metrics"]
    assert metrics["risk_f1"]["value"] == 1
    assert metrics["risk_f1_weighted"]["skipped_reasons"]["annotator_provides_no_severity"] == 1
    assert metrics["topic_f1"]["skipped_reasons"]["annotator_provides_no_topics"] == 1
    adapters = {"normalized": {"topics": ["pricing"], "risk_tags": ["escalation"], "action_items": []}}
    write_json(staged / "predictions" / "a.json", {"annotations": {"semantic": adapters}})
    metrics = scored(staged)["metrics"]
    assert (metrics["topic_precision"]["value"], metrics["risk_f1_high"]["value"]) == (1, None)


class TestDataSets:
    def test_a_broken_one_stops_only_itself(self, staged: Path) -> None:
        folder = staged / "benchmarks" / "datasets" / "semantic" / "broken"
        write_json(folder / "goldens" / "a_gold.json", gold("a"))
        (folder / "dataset.json").write_text("{")
        listed = run(staged, "datasets")
        assert listed.code == 0
        assert "cannot be used" in listed.out
        assert "test 4, dev 1" in listed.out
        assert run(staged, "run", "--dataset", "calls", "--predictions", "predictions").code == 0
        ended = run(staged, "run", "--dataset", "broken", "--predictions", "predictions")
        assert ended.code == BAD_USAGE
        assert "broken/dataset.json" in ended.err

    @pytest.mark.parametrize(
        ("samples", "words"),
        [
            (["a", "b", "a"], "more than once: 'a'"),
            (["a\0"], "cannot be the name"),
            (["../a"], "cannot"),
        ],
    )
    def test_a_split_names_each_sample_once_and_by_a_name(self, staged: Path, samples: list[str], words: str) -> None:
        place = staged / "benchmarks" / "datasets" / "semantic" / "calls" / "dataset.json"
        write_json(place, {"splits": {"test": samples}})
        ended = run(staged, "run", "--dataset", "calls", "--predictions", "predictions")
        assert ended.code == BAD_USAGE
        assert f"{place} $.splits.test: " in ended.err
        assert words in ended.err

    def test_a_folder_that_is_not_there_is_told(self, staged: Path) -> None:
        ended = run(staged, "datasets", CONVOSCOPE_BENCHMARKS=str(staged / "nowhere"))
        assert ended.code == BAD_USAGE
        assert "CONVOSCOPE_BENCHMARKS: there is no folder" in ended.err


def test_partial_predictions_are_counted(staged: Path) -> None:
    write_json(
        staged / "predictions" / "b.json",
        {"topics": [], "risks": [], "actions": [], "extraction_status": {"topics": "partial"}},
    )
    result = scored(staged)
    assert result["coverage"]["samples_partial"] == 1
    assert result["notes"] == ["1 prediction marked as partial: findings are missing"]
    assert (
        "1 prediction marked as partial" in run(staged, "run", "--dataset", "calls", "--predictions", "predictions").out
    )
