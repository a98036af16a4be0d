"""The annotator that asks a language model: what it is shown, what of its answer counts, long calls, bad servers."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from convoscope import score
from convoscope.analysis.targets import run_checks
from convoscope.annotate import language_model
from convoscope.annotate.annotator import NO_WORDS, annotations_of, failure_of, in_order
from convoscope.annotate.language_model import LanguageModelAnnotator
from convoscope.conversation import Annotations, Conversation, to_json
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics import example
from convoscope.runs.ranking import rank
from convoscope.runs.run import Run
from convoscope.vocabulary import semantic_vocabulary
from support.command_line import Ended, convoscope
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
    # It is not known what there was to find: null, not "nothing". The others are whole.
    assert getattr(found, family) is None
    assert found.extraction == {**dict.fromkeys(("topics", "risks", "actions"), "success"), family: "error"}
    assert found.extras["dropped"] == 1
    answer[family].append(FOUND[family][0])
    found = annotated(lambda prompt, schema: answer)
    assert len(getattr(found, family)) == 1
    assert (found.extraction[family], found.extras["dropped"]) == ("partial", 1)


def test_evidence_of_a_few_letters_drops_a_finding() -> None:
    """`re` is in Where, and `is` in any sentence: a grave risk cannot rest on them."""
    answer = {
        **NOTHING,
        "topics": [{"label": "billing", "evidence": "light switch"}],
        "risks": [{"type": "churn_risk", "severity": "critical", "evidence": "re"}],
        "actions": [action("Look for it", "is")],
    }
    found = annotated(lambda prompt, schema: answer, example("user: Where is the light switch?"))
    assert [topic.evidence for topic in found.topics or ()] == ["light switch"]
    assert (found.risks, found.actions) == (None, None)
    assert found.extras["dropped"] == 2


def test_findings_that_all_quote_nothing_are_no_answer() -> None:
    answer = json.loads(json.dumps(FOUND))
    for family in ("topics", "risks", "actions"):
        answer[family][0]["verbatim" if family == "actions" else "evidence"] = ""
    found = annotated(lambda prompt, schema: answer)
    assert (found.topics, found.risks, found.actions) == (None, None, None)
    failure = failure_of(found)
    assert failure is not None
    assert failure.reason == "evidence_not_found"


def action(description: str, verbatim: str = "I will send the refund form", role: str = "agent") -> dict[str, Any]:
    return {"description": description, "assignee_role": role, "verbatim": verbatim}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        # One sentence may hold two promises.
        ([action("Send the form"), action("Call back")], ["Send the form", "Call back"]),
        # The same promise said twice is one; of another side it is another.
        ([action("Send the form"), action("send the form.")], ["Send the form"]),
        ([action("Send the form"), action("Send the form", "by tomorrow")], ["Send the form"]),
        ([action("Call back"), action("Call back", "Good", role="customer")], ["Call back", "Call back"]),
        ([action("Send the form"), action(" ")], ["Send the form"]),
    ],
)
def test_two_promises_of_one_sentence(given: list[dict[str, Any]], kept: list[str]) -> None:
    found = annotated(lambda prompt, schema: {**NOTHING, "actions": given})
    assert [one.description for one in found.actions or ()] == kept


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        (["Send the form"], ["Mail the form"], ["Send the form"]),
        (["Send the form"], ["Mail the form", "Call back"], ["Mail the form", "Call back"]),
        (["Send the form", "Call back"], ["Mail it"], ["Send the form", "Call back"]),
        ([], ["Send the form"], ["Send the form"]),
    ],
)
def test_a_sentence_in_two_parts_is_one(
    monkeypatch: pytest.MonkeyPatch, first: list[str], second: list[str], kept: list[str]
) -> None:
    """The parts are a, b and b, c: both show b, and each has its own words for what is promised in it."""
    monkeypatch.setattr(language_model, "PART", 40)
    monkeypatch.setattr(language_model, "CONTEXT", 1)

    def judge(prompt: str, schema: Mapping[str, Any]) -> Any:
        names = first if "part 1 of 2" in prompt else second
        return {**NOTHING, "actions": [action(name, "I send and I call") for name in names]}

    talk = example("user: aaaaaaaaaaaaaaaaaaaa", "assistant: I send and I call", "user: cccccccccccccccccccc")
    # 20 + 17 characters, then 17 + 20.
    found = annotated(judge, talk)
    assert found.extras["parts"] == 2
    assert [one.description for one in found.actions or ()] == kept


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
    there, invented = ({"label": "refund", "evidence": words} for words in ("my money back", "on the moon"))
    server.answer = lambda prompt, schema: "no" if "Broken" in prompt else {**NOTHING, "topics": [there, invented]}
    run = ("benchmark", "run", "--dataset", "calls", "--model", server.openai, "--max-concurrency", "1", "--json")
    ended = convoscope(*run, cwd=tmp_path, CONVOSCOPE_BENCHMARKS=str(tmp_path / "benchmarks"))
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)["result"]
    # a: one of two topics; b failed, and is not "found nothing".
    assert (result["samples_evaluated"], result["samples_failed"]) == (1, 1)
    assert (result["metrics"]["topic_precision"]["value"], result["metrics"]["topic_recall"]["value"]) == (1.0, 0.5)
    assert [one["reason"] for one in result["failures"]] == ["verdict_unusable"]
    assert result["receipt"]["semantic_backend"] == "judge"
    # The server says 100 and 20 for each answer: one to a, two to b, which was asked again.
    words = "the model took 300 tokens in and 60 out for 2 transcripts, 1 of them without a usable answer"
    assert result["notes"] == [words, "1 finding of 1 transcript left out: what they quote is not in the transcript"]
    assert result["coverage"]["samples_partial"] == 1
    assert result["receipt"]["config"]["annotator"].startswith("judge/3:openai/tiny@")


def test_a_benchmark_of_a_model_that_invents_its_quotes(server: JudgeServer, tmp_path: Path) -> None:
    """All findings are dropped: the sample failed, and does not count as one in which nothing was found."""
    folder = tmp_path / "benchmarks" / "datasets" / "semantic" / "calls"
    gold = {"schema_version": 1, "sample_id": "a", "dataset": "calls", "annotator": "human"}
    write_json(
        folder / "goldens" / "a_gold.json", {**gold, "topics": [{"label": "refund"}], "risks": [], "actions": []}
    )
    (folder / "transcripts").mkdir()
    (folder / "transcripts" / "a.txt").write_text("Customer: I want my money back.\nAgent: Sure.\n")
    server.answer = lambda prompt, schema: {**NOTHING, "topics": [{"label": "refund", "evidence": ""}]}
    run = ("benchmark", "run", "--dataset", "calls", "--model", server.openai, "--json")
    ended = convoscope(*run, cwd=tmp_path, CONVOSCOPE_BENCHMARKS=str(tmp_path / "benchmarks"))
    result = json.loads(ended.out)["result"]
    assert (result["samples_evaluated"], result["samples_failed"]) == (0, 1)
    figure = result["metrics"]["topic_f1"]
    assert (figure["value"], figure["reason"]) == (None, "annotation_failed")
    assert result["failures"][0]["detail"] == "an error at topics"
    assert result["sample_results"][0]["predicted_topics"] is None
    # Of risks, which it looked for and did not find, there are none in gold either.
    assert result["metrics"]["risk_f1"]["reason"] == "nothing_to_find"


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
    assert "This would ask 1 question;" in ended.out
    assert "annotate   1 question of all these, to find topics, risks and actions" in ended.out
    assert server.prompts == []
    ended = convoscope(*run, "--judge", server.openai, "--full", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert len(server.prompts) == 1
    figures = Run.open(tmp_path / "run").summary.metrics
    assert {one.key: one.value for one in figures} == {"semantic.topics_found": 1, "semantic.actions_found": 1}


@pytest.mark.parametrize(("most", "is_alone"), [("200", False), ("1", True)])
def test_several_calls_are_asked_about_at_once(server: JudgeServer, tmp_path: Path, most: str, is_alone: bool) -> None:
    """As many as the judge allows; findings stay with their call, and no more calls are asked about than wanted."""
    calls = [example(f"user: This is about number {100 + at}.", id=f"call-{at:02}") for at in range(12)]
    (tmp_path / "calls.jsonl").write_bytes(b"".join(to_json(call) + b"\n" for call in calls))
    server.seconds = 0.05

    def about(prompt: str, schema: Any) -> Any:
        [number] = re.findall(r"number (1\d\d)", prompt)
        return {**NOTHING, "topics": [{"label": f"topic_{number}", "evidence": f"number {number}"}]}

    server.answer = about
    run = ("score", "calls.jsonl", "--metrics", "topics_found", "--annotate", "judge", "--judge", server.openai)
    ended = convoscope(*run, "--workers", "1", "--max-concurrency", most, "--limit", "11", "--out", "run", cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert (server.most_in_flight == 1) == is_alone
    held = Run.open(tmp_path / "run").conversations()
    found = {one.id: [topic.label for topic in one.annotations[0].topics or ()] for one in held}
    assert found == {f"call-{at:02}": [f"topic_{100 + at}"] for at in range(11)}
    assert len(server.prompts) == 11


def test_workers_share_the_limit_of_the_judge(server: JudgeServer, tmp_path: Path) -> None:
    """Two workers with two partitions or more: of 4 questions at a time each has 2."""
    server.answer, server.seconds = (lambda prompt, schema: NOTHING), 0.4
    folder = tmp_path / "calls"
    folder.mkdir()
    for at in range(12):
        (folder / f"call-{at:02}.json").write_bytes(to_json(example(f"user: Number {at}.", id=f"call-{at:02}")))
    score(
        [folder],
        metrics="topics_found",
        annotate="judge",
        judge=server.openai,
        max_concurrency=4,
        workers=2,
        part_bytes=1000,
        out=tmp_path / "run",
    )
    assert len(server.prompts) == 12
    assert 2 <= server.most_in_flight <= 4


def test_who_closes_it_waits_for_no_answer(server: JudgeServer) -> None:
    is_over = Event()

    async def never(_: Any) -> None:
        while not is_over.is_set():
            await asyncio.sleep(0.02)

    server.always = never
    annotator = LanguageModelAnnotator(Instrument(server.openai, JudgeSettings(use_cache=False)))
    made = in_order(annotator, lambda call: annotations_of(call, annotator), [CALL] * 3)
    asking = Thread(target=lambda: list(made), daemon=True)
    asking.start()
    while not server.prompts:
        time.sleep(0.01)
    annotator.close()
    asking.join(20)
    assert not asking.is_alive()
    is_over.set()


UNOWNED = {**NOTHING, "topics": FOUND["topics"], "actions": [action("Look into it", "It will be looked into", role="")]}


def unowned_promises(folder: Path) -> Path:
    """Three chats, each with a promise of which it is not said who keeps it."""
    for id in "abc":
        write_json(folder / "chats" / f"{id}.json", {"id": id, "messages": [
            {"role": "user", "content": f"I want my money back for order {id}."},
            {"role": "assistant", "content": "It will be looked into."},
        ]})  # fmt: skip
    return folder / "chats"


def scored(server: JudgeServer, folder: Path, *more: str) -> Ended:
    """A run of the chats with the target that no promise is without an owner."""
    server.answer = lambda prompt, schema: UNOWNED
    target = ("--metrics", "semantic,agent", "--target", "semantic.unowned_actions <= 0")
    run = ("score", "chats", "--annotate", "judge", "--judge", server.openai, "--out", "run")
    return convoscope(*run, *target, *more, cwd=folder)


def test_what_a_model_finds_decides_nothing(server: JudgeServer, tmp_path: Path) -> None:
    unowned_promises(tmp_path)
    ended = scored(server, tmp_path)
    assert ended.code == 3, ended.err
    assert "undetermined: ≤ 0, not calibrated" in ended.out
    words = " ".join(ended.out.split())
    assert "3 figures of what openai/tiny found, not calibrated: gold labels beside the logs compare" in words
    assert "Found by openai/tiny, not calibrated." in words
    assert not [line for line in ended.out.splitlines() if line.startswith("rough")]
    run = Run.open(tmp_path / "run")
    # The judge is the model with the digests that the receipt names.
    model, _, digests = run.receipt.config["annotate"].partition(":")[2].rpartition("@")
    judge = f"{model}+annotator@{digests}"
    by_model = {one.key: one.value for one in run.summary.metrics if one.judge == judge}
    assert by_model == {"semantic.topics_found": 1, "semantic.actions_found": 1, "semantic.unowned_actions": 1}
    [check] = run_checks(run)
    assert check.verdict.outcome == "undetermined"
    assert check.verdict.reason == f"the judge {judge} is not calibrated (--trust-judge decides it anyway)"
    # Nothing else is wrong with them, so none is rougher than another.
    assert rank(run).behind.tolist() == [0, 0, 0]


def test_a_model_that_is_trusted_decides(server: JudgeServer, tmp_path: Path) -> None:
    unowned_promises(tmp_path)
    ended = scored(server, tmp_path, "--trust-judge")
    assert ended.code == 1, ended.err
    assert "missed, no interval: ≤ 0, not calibrated" in ended.out
    assert [line.split()[0] for line in ended.out.splitlines() if "misses its target" in line] == ["rough"] * 3


def test_gold_labels_are_people_and_decide(server: JudgeServer, tmp_path: Path) -> None:
    """Each chat has the topic refund, which is found, and billing, which is not: F1 is 2 · 3 ÷ (2 · 3 + 0 + 3)."""
    chats = unowned_promises(tmp_path)
    for id in "abc":
        gold = {"schema_version": 1, "sample_id": id, "dataset": "chats", "annotator": "human"}
        write_json(chats / f"{id}_gold.json", {**gold, "topics": [{"label": "refund"}, {"label": "billing"}]})
    ended = scored(server, tmp_path, "--target", "semantic.topic_f1 >= 0.9")
    assert ended.code == 1, ended.err
    checks = {check.figure.key: check for check in run_checks(Run.open(tmp_path / "run"))}
    assert checks["semantic.topic_f1"].figure.value == pytest.approx(2 / 3)
    assert checks["semantic.topic_f1"].label == "missed"
    assert checks["semantic.unowned_actions"].label == "undetermined"


def test_the_questions_of_the_annotator_are_counted(server: JudgeServer, tmp_path: Path) -> None:
    """A long call has a question for each part, and all of them are in the cache the next time."""
    chats = unowned_promises(tmp_path)
    long = [{"role": role, "content": "word " * 1400} for role in ("user", "assistant", "user")]
    write_json(chats / "d.json", {"id": "d", "messages": long})
    server.answer = lambda prompt, schema: NOTHING
    run = ("score", "chats", "--annotate", "judge", "--judge", server.openai, "--metrics", "topics_found")
    ended = convoscope(*run, "--dry-run", "--json", cwd=tmp_path)
    # 7,000 characters a message, at most 12,000 a part: three parts, and one for each of the other chats.
    forecast = json.loads(ended.out)
    assert (forecast["questions"], forecast["to_ask"]) == (6, 6)
    assert [(one["metric"], one["conversations"]) for one in forecast["metrics"]] == [("--annotate judge", 4)]
    assert convoscope(*run, "--out", "run", cwd=tmp_path).code == 0
    assert len(server.prompts) == 6
    assert "0 questions (6 more in the cache)" in convoscope(*run, "--out", "again", cwd=tmp_path).err
