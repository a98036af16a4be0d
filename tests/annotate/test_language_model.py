"""The annotator that asks a language model: what it is shown, what of its answer counts, long calls, bad servers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from convoscope.annotate import language_model
from convoscope.annotate.annotator import NO_WORDS, annotations_of, failure_of
from convoscope.annotate.language_model import LanguageModelAnnotator
from convoscope.conversation import Annotations, Conversation
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics import example
from convoscope.vocabulary import semantic_vocabulary
from support.command_line import convoscope
from support.judge_server import JudgeServer, empty, judge_server, not_json, status
from support.logs import write_json

CALL = example(
    "user: I want my money back, or I cancel today.",
    "assistant: I will send the refund form by tomorrow.",
    "user: Good.",
)
FOUND = {
    "topics": [{"label": "Refund", "evidence": "I want my money back", "segment_ids": [0], "confidence": 0.9}],
    "risks": [{"type": "churn_risk", "severity": "high", "evidence": "I cancel today", "segment_ids": [0]}],
    "actions": [
        {
            "description": "Send the refund form",
            "assignee_role": "agent",
            "verbatim": "I will send the refund form",
            "due": "by tomorrow",
            "segment_ids": [1],
        }
    ],
    "summary": "The customer wants money back; the agent sends a form.",
}
NOTHING = {"topics": [], "risks": [], "actions": [], "summary": ""}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("convoscope.judging.limits.LONGEST_WAIT", 0.01)
    with judge_server() as running:
        yield running


def annotated(judge: Any, conversation: Conversation = CALL) -> Annotations:
    annotator = LanguageModelAnnotator(Instrument(judge, JudgeSettings(use_cache=False)))
    try:
        return annotations_of(conversation, annotator)
    finally:
        annotator.close()


def test_what_is_found() -> None:
    found = annotated(lambda prompt, schema: FOUND)
    assert found.topics is not None
    assert found.risks is not None
    assert found.actions is not None
    [topic], [risk], [action] = found.topics, found.risks, found.actions
    assert (topic.label, topic.events, topic.span, topic.confidence) == ("refund", (0,), (0, 0), 0.9)
    assert (risk.type, risk.severity, risk.evidence, risk.speaker) == ("churn_risk", "high", "I cancel today", "user")
    assert (action.description, action.assignee_role, action.due) == ("Send the refund form", "agent", "by tomorrow")
    assert action.events == (1,)
    assert found.summary == FOUND["summary"]
    assert found.extraction == dict.fromkeys(("topics", "risks", "actions"), "success")


def test_nothing_found_is_not_a_failure() -> None:
    found = annotated(lambda prompt, schema: NOTHING)
    assert (found.topics, found.risks, found.actions) == ((), (), ())
    assert failure_of(found) is None


def test_the_question_carries_the_vocabulary_and_the_severities() -> None:
    prompts: list[str] = []

    def judge(prompt: str, schema: Mapping[str, Any]) -> Any:
        prompts.append(prompt)
        return NOTHING

    annotated(judge)
    [prompt] = prompts
    vocabulary = semantic_vocabulary()
    assert all(label in prompt for label in vocabulary.labels)
    for name, kind in vocabulary.risks.items():
        assert f"- {name}: {kind.description}; {', '.join(kind.severities)}" in prompt
    assert '[1] assistant: "I will send the refund form by tomorrow."' in prompt


@pytest.mark.parametrize("family", ["topics", "risks", "actions"])
def test_evidence_that_is_not_there_drops_a_finding(family: str) -> None:
    answer = json.loads(json.dumps(FOUND))
    answer[family][0]["verbatim" if family == "actions" else "evidence"] = "I love the moon"
    found = annotated(lambda prompt, schema: answer)
    assert getattr(found, family) == ()
    assert (found.extraction[family], found.extras["dropped"]) == ("partial", 1)


def test_words_outside_the_vocabulary() -> None:
    answer = json.loads(json.dumps(FOUND))
    quote = {"evidence": "I cancel today"}
    answer["risks"] = [
        {"type": "legal", "severity": "high", **quote},
        {"type": "other", "severity": "high", **quote},
        {"type": "competitor_mention", "severity": "critical", **quote},
    ]
    answer["actions"][0]["assignee_role"] = "manager"
    found = annotated(lambda prompt, schema: answer)
    # legal is compliance; other stays and is a false positive; a competitor cannot be critical.
    assert [(risk.type, risk.severity) for risk in found.risks or ()] == [
        ("compliance", "high"), ("other", ""), ("competitor_mention", ""),
    ]  # fmt: skip
    assert [action.assignee_role for action in found.actions or ()] == ["team"]


def test_a_long_call_is_asked_about_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "PART", 40)
    shown: list[str] = []

    def judge(prompt: str, schema: Mapping[str, Any]) -> Any:
        shown.append(prompt)
        if "cancel" not in prompt.partition("<data>")[2]:
            return {**NOTHING, "summary": "Part."}
        severity = "medium" if "maybe" in prompt.partition("<data>")[2] else "critical"
        risk = {"type": "churn_risk", "severity": severity, "evidence": "cancel"}
        topic = {"label": "refund", "evidence": "cancel"}
        return {**NOTHING, "risks": [risk], "topics": [topic], "summary": "Part."}

    lines = [
        f"user: {text}" for text in ("maybe I cancel it, aaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb", "now I cancel it all")
    ]
    found = annotated(judge, example(*lines))
    # 28 + 20 > 40: a; then 20 + 19 with b again is 39: b and c.
    assert ["part 1 of 2" in shown[0], "part 2 of 2" in shown[1]] == [True, True]
    assert [(risk.type, risk.severity, risk.events) for risk in found.risks or ()] == [
        ("churn_risk", "critical", (0, 2))
    ]
    assert [(topic.label, topic.span) for topic in found.topics or ()] == [("refund", (0, 2))]
    assert (found.summary, found.extras["parts"]) == ("Part. Part.", 2)


def test_one_part_that_fails_is_no_finding_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "PART", 20)
    found = annotated(lambda prompt, schema: NOTHING if "part 1" in prompt else "Sorry.")
    assert (found.topics, found.risks, found.actions) == (None, None, None)
    failure = failure_of(found)
    assert failure is not None
    assert failure.reason == "verdict_unusable"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("No risks.", "verdict_unusable"),
        ({"topics": []}, "verdict_unusable"),
        ({**FOUND, "risks": None}, "verdict_unusable"),
    ],
)
def test_an_unreadable_answer_is_null(server: JudgeServer, answer: Any, reason: str) -> None:
    server.answer = lambda prompt, schema: answer
    found = annotated(server.openai)
    assert (found.topics, found.risks, found.actions, found.summary) == (None, None, None, None)
    assert set(found.extraction.values()) == {"error"}
    assert found.extras["reason"] == "verdict_unusable"


@pytest.mark.parametrize("fails", [status(500), status(401), empty, not_json])
def test_a_server_that_fails_is_null(server: JudgeServer, fails: Any) -> None:
    server.always = fails
    found = annotated(server.openai)
    assert (found.topics, found.extras["reason"]) == (None, "judge_failed")


def test_no_words_no_question(server: JudgeServer) -> None:
    failure = failure_of(annotated(server.openai, Conversation(id="silent")))
    assert failure is not None
    assert failure.reason == NO_WORDS
    assert server.prompts == []


def test_a_benchmark_of_a_model(server: JudgeServer, tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks" / "datasets" / "semantic" / "calls"
    for sample in "ab":
        gold = {"schema_version": 1, "sample_id": sample, "dataset": "calls", "annotator": "human"}
        write_json(
            folder / "goldens" / f"{sample}_gold.json", {**gold, "topics": [{"label": "refund"}, {"label": "billing"}]}
        )
        (folder / "transcripts").mkdir(exist_ok=True)
    (folder / "transcripts" / "a.txt").write_text("Customer: I want my money back.\nAgent: Sure.\n")
    (folder / "transcripts" / "b.txt").write_text("Customer: Broken.\nAgent: I want my money back, too.\n")
    server.answer = lambda prompt, schema: (
        "no" if "Broken" in prompt else {**NOTHING, "topics": [{"label": "refund", "evidence": "my money back"}]}
    )
    run = ("benchmark", "run", "--dataset", "calls", "--model", server.openai, "--json")
    ended = convoscope(*run, cwd=tmp_path, CONVOSCOPE_BENCHMARKS=str(tmp_path / "benchmarks"))
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)["result"]
    # a: one of two topics; b failed, and is not "found nothing".
    assert (result["samples_evaluated"], result["samples_failed"]) == (1, 1)
    assert (result["metrics"]["topic_precision"]["value"], result["metrics"]["topic_recall"]["value"]) == (1.0, 0.5)
    assert [one["reason"] for one in result["failures"]] == ["verdict_unusable"]
    assert result["receipt"]["config"]["annotator"].startswith("judge/1:openai/tiny@")


def test_a_run_annotates_with_the_judge_that_is_named(server: JudgeServer, tmp_path: Path) -> None:
    server.answer = lambda prompt, schema: FOUND
    write_json(tmp_path / "call.json", {"messages": [
        {"role": "user", "content": "I want my money back, or I cancel today."},
        {"role": "assistant", "content": "I will send the refund form by tomorrow."},
    ]})  # fmt: skip
    run = ("score", "call.json", "--metrics", "topics_found,actions_found", "--annotate", "judge", "--out", "run")
    ended = convoscope(*run, cwd=tmp_path)
    assert ended.code == 2
    assert "--annotate judge: no judge is named" in ended.err
    assert server.prompts == []
    ended = convoscope(*run, "--judge", server.openai, "--dry-run", cwd=tmp_path)
    assert "also asks once for each conversation" in ended.out
    assert server.prompts == []
    ended = convoscope(*run, "--judge", server.openai, "--full", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert len(server.prompts) == 1
    rows = {line.split()[0]: line.split()[1] for line in ended.out.splitlines() if line.startswith("semantic.")}
    assert rows == {"semantic.topics_found": "1", "semantic.actions_found": "1"}
