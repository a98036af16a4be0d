"""OpenInference spans, and Pipecat's: kinds of spans, annotations, tables, what the recogniser heard."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from convoscope.conversation import Label, Retrieval, ToolResult, Utterance
from support.logs import EXAMPLES, measured, read, talk, write_json, write_lines
from support.spans import otlp, span

CLUB = EXAMPLES / "openinference" / "club.jsonl"
SHOP = EXAMPLES / "pipecat-spans" / "bicycle-shop.json"


def model(id: str, start: float, end: float, **attributes: Any) -> Any:
    kind = {"openinference.span.kind": "LLM", "llm.model_name": "small"}
    return span(
        id, start, end, attributes=kind | {name.replace("__", "."): value for name, value in attributes.items()}
    )


class TestTheExample:
    def test_what_was_said_and_called(self) -> None:
        conversation = read(CLUB).only
        assert conversation.id == "plot-14b"
        assert talk(conversation) == [
            "[Retrieval]",
            "user: When may I light a fire on my plot?",
            'fire_permit({"plot": "14b"})',
            '-> "permit office: timeout"',
            "assistant:Club agent: From October to March, after four. I could not check your permit.",
        ]
        assert conversation.agent.instructions == "You answer questions of members of the allotment club."

    def test_the_tool_failed(self) -> None:
        (result,) = (event for event in read(CLUB).only.timeline if isinstance(event, ToolResult))
        assert (result.success, result.error) == (False, "permit office: timeout")

    def test_the_retrieval(self) -> None:
        (found,) = (event for event in read(CLUB).only.timeline if isinstance(event, Retrieval))
        assert found.query == "fire on a plot"
        assert found.chunks == ("Rule 7: fires only from October to March, after four in the afternoon.",)

    def test_an_annotation_of_a_person_is_a_label(self) -> None:
        assert read(CLUB).only.labels == (
            Label(
                name="helpful",
                value=1.0,
                rater="human",
                rater_kind="human",
                notes="It says what it does not know.",
            ),
        )

    def test_tokens(self) -> None:
        tokens = [(one["prompt_tokens"], one["completion_tokens"]) for one in measured(read(CLUB).only)]
        assert tokens == [(52, 14), (81, 19)]


def test_the_text_of_an_agent_span_is_not_said_again(tmp_path: Path) -> None:
    """The input and output of the span at the top repeat what the model was sent and answered."""
    top = {"openinference.span.kind": "AGENT", "input.value": "Hi", "output.value": "Hello."}
    inner = {"openinference.span.kind": "LLM", "llm.model_name": "small"}
    inner |= {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi"}
    inner |= {"llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Hello."}
    spans = otlp(span("top", 0, 2, attributes=top), span("m", 0, 1, "top", attributes=inner))
    assert talk(read(write_json(tmp_path / "t.json", spans)).only) == ["user: Hi", "assistant: Hello."]


def test_some_instrumentations_fill_only_the_values(tmp_path: Path) -> None:
    asked = {"messages": [{"role": "user", "content": "Hi"}]}
    answered = {"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}
    spans = otlp(model("m", 0, 1, input__value=asked, output__value=answered))
    assert talk(read(write_json(tmp_path / "t.json", spans)).only) == ["user: Hi", "assistant: Hello."]


def test_an_external_annotation_with_a_word_for_a_score(tmp_path: Path) -> None:
    verdict = {"annotations.0.name": "tone", "annotations.0.label": "rude", "annotations.0.annotator_kind": "LLM"}
    spans = otlp(model("m", 0, 1, input__value="Hi", output__value="What?", **verdict))
    (label,) = read(write_json(tmp_path / "t.json", spans)).only.labels
    assert (label.name, label.value, label.rater_kind) == ("tone", "rude", "external")


def test_a_table_of_phoenix_has_a_column_for_each_attribute(tmp_path: Path) -> None:
    names = {
        "name": "ChatCompletion",
        "context.trace_id": "t1",
        "context.span_id": "s1",
        "start_time": "2026-03-02T08:26:40+00:00",
        "end_time": "2026-03-02T08:26:41+00:00",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.input_messages": '[{"message.role": "user", "message.content": "Hi"}]',
        "attributes.llm.output_messages": '[{"message.role": "assistant", "message.content": "Hello."}]',
    }
    with (tmp_path / "spans.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(names)
        table.writerow(names.values())
    assert talk(read(tmp_path / "spans.csv").only) == ["user: Hi", "assistant: Hello."]


class TestPipecat:
    def test_two_turns_are_two_traces_of_one_call(self) -> None:
        conversation = read(SHOP).only
        assert (conversation.id, conversation.pipeline) == ("call-bike-3", "cascade")
        assert talk(conversation) == [
            "user: hello is my bicycle ready",
            'find_job({"phone": "known"})',
            '-> {"job": 88, "state": "ready"}',
            "assistant: Yes, your bicycle is ready. You can fetch it until six.",
            "user: great thank you",
            "assistant: See you later.",
        ]

    def test_the_recogniser_heard_the_caller(self) -> None:
        """The model is sent the same words: they are not said twice, and stay what was heard."""
        users = [one for one in read(SHOP).only.utterances if one.speaker == "user"]
        assert [one.heard.text if one.heard else None for one in users] == [
            "hello is my bicycle ready",
            "great thank you",
        ]

    def test_only_the_answer_of_the_interrupted_turn_is_cut_off(self) -> None:
        replies = [one for one in read(SHOP).only.utterances if one.speaker == "assistant"]
        assert [one.cut_off_by for one in replies] == ["user", ""]

    def test_the_time_to_the_first_token(self) -> None:
        assert [one["ttft"] for one in measured(read(SHOP).only) if "ttft" in one] == [0.41, 0.38, 0.3]


def test_json_lines_of_a_console_exporter_in_any_order(tmp_path: Path) -> None:
    import json

    rows = [json.loads(line) for line in CLUB.read_text().splitlines()]
    turned = read(write_lines(tmp_path / "spans.jsonl", *reversed(rows))).only
    assert talk(turned) == talk(read(CLUB).only)
    assert any(isinstance(event, Utterance) for event in turned.timeline)
