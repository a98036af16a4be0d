"""Shapes of spans beyond the plain ones: logs, chains without calls, hidden content, checks, LiveKit, Logfire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolResult, Utterance
from convoscope.errors import ConvoscopeError
from support.logs import measured, read, talk, write_json, write_lines
from support.spans import START, model, otlp, says, span

KIND = "openinference.span.kind"
ASK, REPLY = says("user", "Is it open?"), says("assistant", "Until six.")
TALK = ["user: Is it open?", "assistant: Until six."]


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": name, "value": any_value(held)} for name, held in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(held) for held in value]}}
    return {"stringValue": value}


def log(name: str, body: Any, second: float, span_id: str = "s1", **attributes: Any) -> dict[str, Any]:
    return {
        "timeUnixNano": str(round((START + second) * 1e9)),
        "eventName": name,
        "body": any_value(body),
        "attributes": [{"key": key, "value": any_value(held)} for key, held in attributes.items()],
        "traceId": "t1",
        "spanId": span_id,
    }


def logs(*records: Any) -> dict[str, Any]:
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": list(records)}]}]}


def messages(side: str, *held: dict[str, Any]) -> dict[str, Any]:
    """Messages of OpenInference, one attribute for each value."""
    return {
        f"llm.{side}_messages.{number}.message.{name}": value
        for number, message in enumerate(held)
        for name, value in message.items()
    }


TWO = messages("input", {"role": "user", "content": "Is it open?"}) | messages(
    "output", {"role": "assistant", "content": "Until six."}
)


class TestLogs:
    EVENTS = (
        log("gen_ai.system.message", {"content": "Be brief."}, 0, **{"gen_ai.system": "x"}),
        log("gen_ai.user.message", {"content": "Is it open?"}, 0),
        log("gen_ai.choice", {"index": "0", "message": {"role": "assistant", "content": "Until six."}}, 2),
    )

    def test_messages_that_are_records_of_a_log(self, tmp_path: Path) -> None:
        conversation = read(write_json(tmp_path / "logs.json", logs(*self.EVENTS))).only
        assert talk(conversation) == TALK
        assert conversation.agent.instructions == "Be brief."

    def test_the_times_of_records_are_not_how_long_a_call_took(self, tmp_path: Path) -> None:
        assert measured(read(write_json(tmp_path / "logs.json", logs(*self.EVENTS))).only) == []

    def test_records_belong_to_their_span(self, tmp_path: Path) -> None:
        """The span has the tokens and the time, the log what was said; they may lie in two files."""
        held = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5}
        write_json(tmp_path / "logs.json", logs(*self.EVENTS))
        write_json(tmp_path / "spans.json", otlp(span("s1", 0, 3, attributes=held)))
        conversation = read(tmp_path).only
        assert talk(conversation) == TALK
        assert measured(conversation) == [{"prompt_tokens": 5, "duration": 3.0}]

    def test_a_record_with_all_messages(self, tmp_path: Path) -> None:
        held: dict[str, Any] = {
            "gen_ai.input.messages": [ASK],
            "gen_ai.output.messages": [REPLY],
            "gen_ai.conversation.id": "visit",
        }
        record = log("gen_ai.client.inference.operation.details", "", 0, **held)
        conversation = read(write_json(tmp_path / "logs.json", logs(record))).only
        assert (conversation.id, talk(conversation)) == ("visit", TALK)

    def test_records_as_a_console_prints_them(self, tmp_path: Path) -> None:
        bodies = {
            "gen_ai.user.message": {"content": "Is it open?"},
            "gen_ai.choice": {"message": {"role": "assistant", "content": "Until six."}},
        }
        lines = [
            {"body": body, "severity_number": 9, "attributes": {"gen_ai.system": "x", "event.name": name}}
            | {"timestamp": f"2026-03-02T08:00:0{at}Z", "trace_id": "0xaa", "span_id": "0xbb", "event_name": name}
            for at, (name, body) in enumerate(bodies.items())
        ]
        assert talk(read(write_lines(tmp_path / "logs.jsonl", *lines)).only) == TALK

    def test_an_evaluation_is_a_label(self, tmp_path: Path) -> None:
        named = {"gen_ai.evaluation.name": "relevance", "gen_ai.evaluation.explanation": "fine"}
        events = [
            {"name": "gen_ai.evaluation.result", "attributes": {**named, "gen_ai.evaluation.score.value": 0.5}},
            {"name": "gen_ai.evaluation.result", "attributes": {**named, "error.type": "timeout"}},
        ]
        conversation = read(write_json(tmp_path / "t.json", otlp(model("a", 0, 1, [ASK], REPLY, events=events)))).only
        (label,) = conversation.labels
        assert (label.name, label.value, label.rater_kind, label.notes) == ("relevance", 0.5, "external", "fine")


class TestNoCalls:
    """Traces in which no span is a call of a model: the first span says what was asked and answered."""

    @pytest.mark.parametrize(
        ("asked", "answer"),
        [
            ("Is it open?", "Until six."),
            ({"question": "Is it open?", "k": 3}, {"answer": "Until six."}),
            ({"input": {"messages": [["user", "Is it open?"]]}}, {"output": "Until six."}),
        ],
        ids=["text", "fields", "messages"],
    )
    def test_a_chain(self, tmp_path: Path, asked: Any, answer: Any) -> None:
        held = {KIND: "CHAIN", "input.value": asked, "output.value": answer}
        step = {KIND: "CHAIN", "input.value": "never said", "output.value": "nor this"}
        spans = [span("a", 0, 9, attributes=held), span("b", 1, 2, "a", attributes=step)]
        outcome = read(write_json(tmp_path / "t.json", otlp(*spans)))
        assert talk(outcome.only) == TALK
        assert measured(outcome.only) == []  # nine seconds are those of the chain
        assert outcome.report.inferred["talk_of_first_span"].count == 1

    def test_a_call_that_says_something_counts_alone(self, tmp_path: Path) -> None:
        held = {KIND: "CHAIN", "input.value": "A prompt of the program", "output.value": "x"}
        spans = [span("a", 0, 9, attributes=held), span("b", 1, 2, "a", attributes={KIND: "LLM", **TWO})]
        assert talk(read(write_json(tmp_path / "t.json", otlp(*spans))).only) == TALK

    def test_a_run_of_langsmith_whose_answer_is_the_whole_talk(self, tmp_path: Path) -> None:
        asked, answer = {"role": "user", "content": "Is it open?"}, {"role": "assistant", "content": "Until six."}
        run: dict[str, Any] = {"id": "r1", "trace_id": "r1", "run_type": "chain", "dotted_order": "1", "name": "agent"}
        run |= {"inputs": {"messages": [asked]}, "outputs": {"messages": [asked, answer]}}
        assert talk(read(write_json(tmp_path / "r.json", [run])).only) == TALK

    @pytest.mark.parametrize(
        "held",
        [
            {KIND: "EMBEDDING", "embedding.embeddings.0.embedding.text": "a text"},
            {"gen_ai.operation.name": "embeddings", "gen_ai.prompt.0.content": "a text"},
            {"logfire.msg": "x", "request_data": {"model": "e", "input": "a text"}},
            {"logfire.msg": "x", "request_data": {"model": "d", "prompt": "a cat"}, "response_data": {"images": []}},
            {"ai.operationId": "ai.embed", "ai.value": "a text"},
        ],
        ids=["openinference", "otel", "logfire", "pictures", "vercel"],
    )
    def test_vectors_and_pictures_are_no_talk(self, tmp_path: Path, held: dict[str, Any]) -> None:
        with pytest.raises(ConvoscopeError, match="none of its spans is a call of a model that answers"):
            read(write_json(tmp_path / "t.json", otlp(span("a", 0, 1, attributes=held))))

    def test_hidden_content_is_no_content(self, tmp_path: Path) -> None:
        held = {KIND: "LLM", "llm.model_name": "m", "llm.input_messages.0.message.role": "user"}
        held |= {"llm.input_messages.0.message.content": "__REDACTED__", "input.value": "__REDACTED__"}
        with pytest.raises(ConvoscopeError, match="switch on the capture"):
            read(write_json(tmp_path / "t.json", otlp(span("a", 0, 1, attributes=held))))


class TestOpenInference:
    def test_a_check_of_the_answer_is_no_talk_with_the_user(self, tmp_path: Path) -> None:
        judged = messages("input", {"role": "user", "content": "Right?"})
        spans = [
            span("a", 0, 1, attributes={KIND: "LLM", **TWO}),
            span("e", 2, 5, attributes={KIND: "EVALUATOR"}),
            span("j", 3, 4, "e", attributes={KIND: "LLM", **judged}),
        ]
        conversation = read(write_json(tmp_path / "t.json", otlp(*spans))).only
        assert talk(conversation) == [*TALK, "orchestrator: Right?"]

    def test_messages_as_texts_behind_their_roles(self, tmp_path: Path) -> None:
        """LlamaIndex."""
        held = {KIND: "LLM", "input.value": {"messages": ["system: Be brief.", "user: Is it open?"]}}
        held |= {"output.value": "assistant: Until six."}
        conversation = read(write_json(tmp_path / "t.json", otlp(span("a", 0, 1, attributes=held)))).only
        assert (talk(conversation), conversation.agent.instructions) == (TALK, "Be brief.")

    def test_a_request_to_bedrock(self, tmp_path: Path) -> None:
        asked = {"modelId": "m", "system": [{"text": "Be brief."}]}
        asked |= {"messages": [{"role": "user", "content": [{"text": "Is it open?"}]}]}
        answer: dict[str, Any] = {"output": {"message": {"role": "assistant", "content": [{"text": "Until six."}]}}}
        answer |= {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}
        held = {KIND: "LLM", "input.value": asked, "output.value": answer}
        conversation = read(write_json(tmp_path / "t.json", otlp(span("a", 0, 1, attributes=held)))).only
        assert (talk(conversation), conversation.agent.instructions) == (TALK, "Be brief.")
        assert measured(conversation)[0]["prompt_tokens"] == 3


def test_a_tool_whose_answer_says_that_it_failed(tmp_path: Path) -> None:
    """The Model Context Protocol."""
    held = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "hours", "gen_ai.tool.call.arguments": {}}
    held |= {"gen_ai.tool.call.result": {"isError": True, "content": [{"type": "text", "text": "closed"}]}}
    spans = [model("a", 0, 1, [ASK], REPLY), span("t", 2, 3, attributes=held)]
    conversation = read(write_json(tmp_path / "t.json", otlp(*spans))).only
    (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
    assert result.success is False


def test_threads_of_azure(tmp_path: Path) -> None:
    """Other operations hold messages in events, and the thread is the session."""

    def step(id: str, at: float, operation: str, event: str, body: Any) -> Any:
        attributes = {"gen_ai.operation.name": operation, "gen_ai.thread.id": "thread-1"}
        events = [{"name": event, "attributes": {"gen_ai.event.content": json.dumps(body)}}]
        return span(id, at, at + 1, trace=id * 8, attributes=attributes, events=events)

    asked = {"role": "user", "content": "Is it open?"}
    answer = {"role": "assistant", "content": {"text": {"value": "Until six."}}}
    spans = [
        step("a", 0, "create_message", "gen_ai.user.message", asked),
        step("b", 2, "process_thread_run", "gen_ai.assistant.message", answer),
    ]
    conversation = read(write_json(tmp_path / "t.json", otlp(*spans))).only
    assert (conversation.id, talk(conversation)) == ("thread-1", TALK)


def test_spans_of_livekit(tmp_path: Path) -> None:
    """What was heard, what the model answered, a tool that failed; the user interrupts the second answer."""
    turn = {"lk.speech_id": "s"}
    spans = [
        span("u", 0, 1, name="user_turn", attributes={"lk.user_transcript": "Is it open?"}),
        span("t1", 1, 4, name="agent_turn", attributes={**turn, "lk.interrupted": True}),
        model("l1", 1, 2, [ASK], REPLY, "t1", attributes={"lk.response.ttft": 0.5}),
        span("f", 2.2, 2.4, "t1", name="function_tool")
        | {
            "attributes": [
                {"key": "lk.function_tool.name", "value": {"stringValue": "hours"}},
                {"key": "lk.function_tool.args", "value": {"stringValue": "{}"}},
                {"key": "lk.function_tool.output", "value": {"stringValue": "no answer"}},
                {"key": "lk.function_tool.is_error", "value": {"boolValue": True}},
            ]
        },
    ]
    conversation = read(write_json(tmp_path / "t.json", otlp(*spans))).only
    assert talk(conversation) == [*TALK, "hours({})", '-> "no answer"']
    heard, answer = (event for event in conversation.timeline if isinstance(event, Utterance))
    assert heard.heard is not None
    assert answer.cut_off_by == "user"
    assert conversation.pipeline == "cascade"
    assert measured(conversation) == [{"ttft": 0.5, "duration": 1.0}]
    (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
    assert (result.success, result.error) == (False, "no answer")


class TestLogfire:
    EVENTS = (
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Is it open?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Until six."},
    )

    def reading(self, folder: Path, **held: Any) -> Any:
        attributes = {"logfire.msg": "x", **held}
        return read(write_json(folder / "t.json", otlp(span("a", 0, 8, attributes=attributes)))).only

    def test_the_messages_of_a_run_are_those_of_its_agent(self, tmp_path: Path) -> None:
        conversation = self.reading(tmp_path, agent_name="Desk", all_messages_events=list(self.EVENTS))
        assert talk(conversation) == ["user: Is it open?", "assistant:Desk: Until six."]
        assert measured(conversation) == []  # eight seconds are those of the run

    def test_all_messages_of_pydantic(self, tmp_path: Path) -> None:
        held = {"pydantic_ai.all_messages": [ASK, REPLY], "gen_ai.agent.name": "Desk"}
        assert talk(self.reading(tmp_path, **held)) == ["user: Is it open?", "assistant:Desk: Until six."]

    def test_a_completion_and_its_tools(self, tmp_path: Path) -> None:
        asked = {"model": "m", "prompt": "Is it open?", "tools": [{"type": "function", "function": {"name": "hours"}}]}
        answer = {"text": "Until six.", "usage": {"prompt_tokens": 4, "completion_tokens": 3}}
        conversation = self.reading(tmp_path, request_data=asked, response_data=answer)
        assert talk(conversation) == TALK
        assert [one.name for one in conversation.agent.tools or ()] == ["hours"]
        assert measured(conversation) == [{"prompt_tokens": 4, "completion_tokens": 3, "duration": 8.0}]


def test_spans_as_javascript_writes_them(tmp_path: Path) -> None:
    """The id of a span is in its own context; the outer call says what the inner ones say."""

    def step(id: str, parent: str, **attributes: Any) -> dict[str, Any]:
        above = {"parentSpanContext": {"spanId": parent}} if parent else {}
        context = {"_spanContext": {"traceId": "t1", "spanId": id}}
        return (
            {"name": id, "startTime": [START, 0], "endTime": [START + 1, 0], "attributes": attributes} | context | above
        )

    prompt = json.dumps([{"role": "user", "content": [{"type": "text", "text": "Is it open?"}]}])
    outer = {
        "ai.operationId": "ai.streamText",
        "ai.prompt": '{"prompt": "Is it open?"}',
        "ai.response.text": "Until six.",
    }
    inner = {"ai.operationId": "ai.streamText.doStream", "ai.prompt.messages": prompt, "ai.response.text": "Until six."}
    ran = {"ai.toolCall.name": "hours", "ai.toolCall.args": "{}", "ai.toolCall.result": '"9 to 6"'}
    spans = [step("a", "", **outer), step("b", "a", **inner), step("c", "a", **ran)]
    conversation = read(write_json(tmp_path / "t.json", spans)).only
    assert talk(conversation) == [TALK[0], "hours({})", TALK[1], '-> "9 to 6"']
