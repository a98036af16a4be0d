"""Shapes in which frameworks write the same talk: parts as text, events of spans, answers without a role."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.logs import read, write_json, write_lines

import convoscope
from convoscope.conversation import ComponentMetric, Conversation, ToolResult, Utterance
from convoscope.errors import ConvoscopeError
from convoscope.ingest.kits.exchanges import response_messages, usage_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import spans_in

START = 1_760_000_000


def blocks(value: Any, role: str = "assistant") -> list[tuple[str, Any]]:
    """Each block: its type, and what it says, calls or answers."""
    names = ("text", "name", "tool_use_id", "thinking")
    return [
        (block["type"], next(block[name] for name in names if name in block))
        for message in plain_messages(value, role)
        for block in message["content"]
    ]


def said(conversation: Conversation) -> list[str]:
    return [
        f"{conversation.roles[event.speaker]}: {event.meant()}"
        for event in conversation.timeline
        if isinstance(event, Utterance)
    ]


def outcomes(conversation: Conversation) -> list[tuple[str, bool | None]]:
    return [(result.name, result.success) for result in conversation.timeline if isinstance(result, ToolResult)]


def tokens(conversation: Conversation) -> list[dict[str, Any]]:
    metrics = (event.values for event in conversation.timeline if isinstance(event, ComponentMetric))
    return [{name: value for name, value in values.items() if name != "duration"} for values in metrics]


def span(number: int, attributes: dict[str, Any], *events: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "traceId": "ab" * 16,
        "spanId": f"{number:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str((START + 2 * number) * 10**9),
        "endTimeUnixNano": str((START + 2 * number + 1) * 10**9),
        "attributes": attributes,
        "events": [{"name": name, "attributes": held} for name, held in events],
        **more,
    }


def observed(path: Path, given: Any, answer: Any) -> Conversation:
    observation = {"id": "o", "traceId": "t", "type": "GENERATION", "name": "llm", "startTime": "2026-03-02T08:00:00Z"}
    whole = {"trace": {"id": "t"}, "observations": [observation | {"input": given, "output": answer}]}
    return read(write_json(path / "trace.json", whole)).only


def recorded(path: Path, *exchanges: tuple[str, Any, Any]) -> convoscope.Reading:
    interactions = [
        {
            "request": {"uri": f"https://api.example.org/v1/{where}", "body": json.dumps(asked)},
            "response": {"status": {"code": 200}, "body": {"string": json.dumps(answer)}},
        }
        for where, asked, answer in exchanges
    ]
    return convoscope.read(write_json(path / "tape.json", {"interactions": interactions, "version": 1}))


def stream(*events: dict[str, Any]) -> str:
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


CALL = {"type": "function_call", "id": "fc", "call_id": "c", "name": "lamp", "arguments": "{}"}
TEXT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is on."}]}

HAYSTACK = [{"text": "It is on."}, {"tool_call": {"tool_name": "lamp", "arguments": {}}}]


class TestParts:
    def test_parts_that_are_written_as_text(self) -> None:
        parts = [{"text": "I look."}, {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]
        message = {"role": "assistant", "content": json.dumps(parts)}
        assert blocks(message) == [
            ("text", "I look."),
            ("tool_use", "look"),
        ]

    def test_json_that_a_user_writes_stays_text(self) -> None:
        for text in ('[{"id": 1}]', '[{"text": "a", "line": 4}]', "[{no JSON"):
            assert blocks({"role": "user", "content": text}) == [("text", text)]

    def test_a_refusal_and_the_words_of_sound(self) -> None:
        parts = [{"type": "refusal", "refusal": "No."}, {"type": "output_audio", "transcript": "Well."}]
        assert blocks({"role": "assistant", "content": parts}) == [("text", "No."), ("text", "Well.")]

    def test_tools_of_the_service(self) -> None:
        items = [{"type": "computer_call", "id": "x", "call_id": "c", "action": {"type": "click"}}]
        items += [{"type": "image_generation_call", "id": "i"}, {"type": "computer_call_output", "call_id": "c"}]
        found = [block for message in plain_messages(items) for block in message["content"]]
        assert [(block.get("name"), block.get("id")) for block in found[:2]] == [
            ("computer", "c"),
            ("image_generation", "i"),
        ]
        assert found[2]["tool_use_id"] == "c"

    def test_a_search_of_the_service_that_failed(self) -> None:
        error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        part = {"type": "web_search_tool_result", "tool_use_id": "s", "content": error}
        ((result,),) = [message["content"] for message in plain_messages({"role": "assistant", "content": [part]})]
        assert (result["type"], result["tool_use_id"], result["is_error"]) == ("tool_result", "s", True)


class TestStreams:
    def test_a_stream_of_responses_with_a_call(self) -> None:
        body = stream({"type": "response.output_item.done", "item": CALL}, {"type": "response.completed"})
        assert blocks_of(body) == [("tool_use", "lamp")]

    def test_a_stream_that_ends_before_the_whole_text_keeps_the_pieces(self) -> None:
        pieces = [{"type": "response.output_text.delta", "delta": text} for text in ("It is", " on.")]
        assert blocks_of(stream(*pieces)) == [("text", "It is on.")]
        whole = {"type": "response.output_item.done", "item": TEXT}
        assert blocks_of(stream(*pieces, whole)) == [("text", "It is on.")]

    def test_tokens_that_come_in_two_events(self) -> None:
        start = {"type": "message_start", "message": {"usage": {"input_tokens": 11, "output_tokens": 1}}}
        body = stream(start, {"type": "message_delta", "usage": {"output_tokens": 6}})
        assert usage_in(body) == {"prompt_tokens": 11, "completion_tokens": 6}


def blocks_of(body: str) -> list[tuple[str, Any]]:
    return [
        (block["type"], block.get("text") or block.get("name"))
        for message in response_messages(body)
        for block in message["content"]
    ]


class TestExchanges:
    def test_vectors_are_no_talk(self, tmp_path: Path) -> None:
        vectors = ("embeddings", {"model": "e", "input": "some text"}, {"data": []})
        with pytest.raises(ConvoscopeError, match="vectors"):
            list(recorded(tmp_path, vectors))
        asked = {"model": "g", "messages": [{"role": "user", "content": "Open?"}]}
        reading = recorded(tmp_path, vectors, ("chat/completions", asked, {"choices": [{"message": TEXT}]}))
        assert [said(one) for one in reading] == [["user: Open?", "assistant: It is on."]]
        assert reading.report.ignored["trace_of_something_else"] == 1

    def test_a_request_that_goes_on_from_a_response(self, tmp_path: Path) -> None:
        result = {"type": "function_call_output", "call_id": "c", "output": "ok"}
        reading = recorded(
            tmp_path,
            ("responses", {"model": "g", "input": "Lamp!"}, {"id": "r1", "output": [CALL]}),
            ("responses", {"model": "g", "previous_response_id": "r1", "input": [result]}, {"output": [TEXT]}),
        )
        (one,) = list(reading)
        assert said(one) == ["user: Lamp!", "assistant: It is on."]
        assert [name for name, _ in outcomes(one)] == ["lamp"]


class TestSpans:
    def test_events_whose_body_is_an_attribute(self, tmp_path: Path) -> None:
        """Semantic Kernel."""
        asked = {"gen_ai.event.content": json.dumps({"role": "user", "content": "My bike?"})}
        answer = {"gen_ai.event.content": json.dumps({"message": {"role": "assistant", "content": "In the shed."}})}
        events = ("gen_ai.user.message", asked), ("gen_ai.choice", answer)
        one = read(write_json(tmp_path / "s.json", [span(1, {"gen_ai.operation.name": "chat"}, *events)])).only
        assert said(one) == ["user: My bike?", "assistant: In the shed."]

    def test_messages_and_tools_in_events(self, tmp_path: Path) -> None:
        """Strands: parts as text; what a tool was given and gave are events of its span."""
        question = ("gen_ai.user.message", {"content": '[{"text": "Rain?"}]'})
        call = json.dumps([{"toolUse": {"toolUseId": "t", "name": "sky", "input": {}}}])
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sky", "gen_ai.tool.call.id": "t"}
        spans = [
            span(1, {"gen_ai.operation.name": "chat"}, question, ("gen_ai.choice", {"message": call})),
            span(2, tool, ("gen_ai.tool.message", {"content": "{}"}), ("gen_ai.choice", {"message": "wet"})),
        ]
        one = read(write_json(tmp_path / "s.json", spans)).only
        assert said(one) == ["user: Rain?"]
        assert [call.name for call in one.tool_calls] == ["sky"]
        assert [event.result for event in one.timeline if isinstance(event, ToolResult)] == ["wet"]

    def test_a_tool_that_names_no_operation_and_failed(self, tmp_path: Path) -> None:
        failed = {"status": {"code": 2, "message": "no dice"}}
        tool = {"gen_ai.tool.name": "roll", "gen_ai.tool.call.id": "c", "tool_arguments": "{}"}
        asked = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "user", "content": "Roll"}]'}
        one = read(write_json(tmp_path / "s.json", [span(1, asked), span(2, tool, **failed)])).only
        assert outcomes(one) == [("roll", False)]

    def test_thoughts_are_no_speech(self, tmp_path: Path) -> None:
        held = {"llm.request.type": "chat", "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "How many?"}
        held |= {"gen_ai.completion.0.role": "thinking", "gen_ai.completion.0.content": "I count."}
        held |= {"gen_ai.completion.1.role": "assistant", "gen_ai.completion.1.content": "Three."}
        one = read(write_json(tmp_path / "s.json", [span(1, held)])).only
        assert said(one) == ["user: How many?", "assistant: Three."]

    def test_functions_and_sound_of_openinference(self, tmp_path: Path) -> None:
        heard, answer = "llm.input_messages.0.message", "llm.output_messages.0.message"
        held = {"openinference.span.kind": "LLM", f"{heard}.role": "user", f"{answer}.role": "assistant"}
        held |= {f"{heard}.contents.0.message_content.type": "audio"}
        held |= {f"{heard}.contents.0.message_content.audio.transcript": "Rain?"}
        held |= {f"{answer}.function_call_name": "sky", f"{answer}.function_call_arguments_json": '{"a": 1}'}
        one = read(write_json(tmp_path / "s.json", [span(1, held)])).only
        assert said(one) == ["user: Rain?"]
        assert [(call.name, call.arguments) for call in one.tool_calls] == [("sky", {"a": 1})]

    def test_values_that_are_a_request_and_a_response(self, tmp_path: Path) -> None:
        held = {"openinference.span.kind": "LLM", "output.value": json.dumps({"output": [CALL]})}
        held |= {"input.value": json.dumps({"model": "g", "input": "Lamp!", "instructions": "Be brief."})}
        one = read(write_json(tmp_path / "s.json", [span(1, held)])).only
        assert (said(one), one.agent.instructions) == (["user: Lamp!"], "Be brief.")
        assert [call.name for call in one.tool_calls] == ["lamp"]

    def test_an_event_with_all_messages(self, tmp_path: Path) -> None:
        sides = {"gen_ai.input.messages": [("user", "Hi")], "gen_ai.output.messages": [("assistant", "Hello.")]}
        held = {
            name: json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in talk])
            for name, talk in sides.items()
        }
        event = ("gen_ai.client.inference.operation.details", held)
        one = read(write_json(tmp_path / "s.json", [span(1, {"gen_ai.operation.name": "chat"}, event)])).only
        assert said(one) == ["user: Hi", "assistant: Hello."]

    def test_whole_numbers_of_a_span_are_nanoseconds(self) -> None:
        held = {"context": {"trace_id": 1, "span_id": 1}, "attributes": {}}
        (one,) = spans_in(held | {"start_time": 1_000_000_000, "end_time": 3_000_000_000})
        assert (one.start, one.end) == (1.0, 3.0)

    def test_tokens_in_the_response_of_logfire(self, tmp_path: Path) -> None:
        answer = {"message": {"role": "assistant", "content": "Hello."}, "usage": {"input_tokens": 2}}
        asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        held = {"logfire.msg": "x", "request_data": json.dumps(asked), "response_data": json.dumps(answer)}
        assert tokens(read(write_json(tmp_path / "s.json", [span(1, held)])).only) == [{"prompt_tokens": 2}]

    def test_the_first_names_of_vercel(self, tmp_path: Path) -> None:
        held = {"ai.operationId": "ai.generateText", "ai.prompt": '{"system": "Be kind.", "prompt": "Hi"}'}
        held |= {"ai.result.text": "Hello.", "ai.response.msToFirstChunk": 250}
        one = read(write_json(tmp_path / "s.json", [span(1, held)])).only
        assert (said(one), one.agent.instructions) == (["user: Hi", "assistant: Hello."], "Be kind.")
        assert tokens(one) == [{"ttft": 0.25}]


class TestAnswers:
    @pytest.mark.parametrize(
        "answer",
        [
            {"object": "response", "output": [CALL, TEXT]},
            {"text": "It is on.", "toolCalls": [{"toolCallId": "c", "toolName": "lamp", "args": {}}]},
            {
                "replies": [
                    {"role": "assistant", "content": [{"text": "It is on."}, {"tool_call": {"tool_name": "lamp"}}]}
                ]
            },
            {"candidates": [{"content": {"parts": [{"text": "It is on."}, {"functionCall": {"name": "lamp"}}]}}]},
            {"message": '[{"text": "It is on."}, {"toolUse": {"name": "lamp"}}]', "finish_reason": "end_turn"},
        ],
        ids=["responses", "mastra", "haystack", "gemini", "strands"],
    )
    def test_answers_of_frameworks(self, tmp_path: Path, answer: Any) -> None:
        one = observed(tmp_path, [{"role": "user", "content": "Lamp!"}], answer)
        assert said(one) == ["user: Lamp!", "assistant: It is on."]
        assert [call.name for call in one.tool_calls] == ["lamp"]

    def test_a_text_that_became_a_vector_is_no_talk(self, tmp_path: Path) -> None:
        kinds = [("EMBEDDING", "some text", [0.1]), ("GENERATION", "Hi", "Hello.")]
        observations = [
            {"id": kind, "traceId": "t", "type": kind, "startTime": "2026-03-02T08:00:00Z", "input": a, "output": b}
            for kind, a, b in kinds
        ]
        whole = {"trace": {"id": "t"}, "observations": observations}
        assert said(read(write_json(tmp_path / "t.json", whole)).only) == ["user: Hi", "assistant: Hello."]

    def test_runs_of_langchain(self, tmp_path: Path) -> None:
        """The message counts the tokens; the tool's answer is a message that says that it failed."""
        answer = {"content": "", "type": "ai", "tool_calls": [{"name": "tram", "args": {}, "id": "c"}]}
        answer["usage_metadata"] = {"input_tokens": 7, "output_tokens": 2}
        result = {"content": "late", "type": "tool", "tool_call_id": "c", "status": "error"}
        asked = {"messages": [[{"type": "human", "content": "Tram?"}]]}
        runs = [
            {"run_type": "llm", "inputs": asked, "outputs": {"generations": [[{"message": answer}]]}},
            {"run_type": "tool", "name": "tram", "inputs": {"input": "{}"}, "outputs": {"output": result}},
        ]
        whole = [{"id": str(at), "trace_id": "t", "dotted_order": str(at), **run} for at, run in enumerate(runs)]
        one = read(write_json(tmp_path / "runs.json", whole)).only
        assert tokens(one) == [{"prompt_tokens": 7, "completion_tokens": 2}]
        assert outcomes(one) == [("tram", False)]


class TestSessions:
    def test_a_call_that_waits_for_approval_is_one_call(self, tmp_path: Path) -> None:
        items = [{"type": kind, "raw_item": CALL} for kind in ("tool_call_item", "tool_approval_item")]
        state = {"$schemaVersion": "1.9", "original_input": "Lamp!", "generated_items": items}
        assert len(read(write_json(tmp_path / "state.json", state)).only.tool_calls) == 1

    def test_pieces_of_an_event_of_adk(self, tmp_path: Path) -> None:
        content = {"role": "model", "parts": [{"text": "Hello"}]}
        events = [
            {"author": "user", "content": {"role": "user", "parts": [{"text": "Hi"}]}},
            {"author": "root", "partial": True, "content": {"role": "model", "parts": [{"text": "Hel"}]}},
            {"author": "root", "content": content, "usage_metadata": {"prompt_token_count": 3}},
            {"author": "root", "error_code": "OVERLOADED"},
        ]
        one = read(write_json(tmp_path / "s.json", {"id": "s", "app_name": "a", "events": events})).only
        assert said(one) == ["user: Hi", "assistant: Hello"]
        assert (tokens(one), one.outcome.error) == ([{"prompt_tokens": 3}], "OVERLOADED")

    def test_lines_of_one_answer_count_its_tokens_once(self, tmp_path: Path) -> None:
        parts = [{"type": "text", "text": "Ok."}, {"type": "tool_use", "id": "c", "name": "ls", "input": {}}]
        answer = {"id": "m", "role": "assistant", "usage": {"input_tokens": 10, "output_tokens": 5}}
        lines = [{"type": "user", "message": {"role": "user", "content": "Fix"}}]
        lines += [{"type": "user", "isMeta": True, "message": {"role": "user", "content": "Caveat"}}]
        lines += [{"type": "assistant", "message": answer | {"content": [part]}} for part in parts]
        one = read(write_lines(tmp_path / "s.jsonl", *({**line, "sessionId": "s"} for line in lines))).only
        assert said(one) == ["user: Fix", "assistant: Ok."]
        assert tokens(one) == [{"prompt_tokens": 10, "completion_tokens": 5}]

    def test_a_realtime_session_with_a_tool_of_the_service(self, tmp_path: Path) -> None:
        call = {"id": "m", "type": "mcp_call", "name": "book", "arguments": "{}", "error": {"message": "500"}}
        usage = {"input_tokens": 5, "output_tokens": 6}
        events = [
            {"type": "session.created", "session": {"id": "s"}},
            {"type": "conversation.item.added", "item": {"id": "u", "type": "message", "role": "user"}},
            {"type": "conversation.item.input_audio_transcription.delta", "item_id": "u", "delta": "Book it"},
            {"type": "response.output_item.done", "item": call},
            {"type": "response.done", "response": {"output": [], "usage": usage}},
        ]
        one = read(write_lines(tmp_path / "s.jsonl", *events)).only
        assert (said(one), outcomes(one)) == (["user: Book it"], [("book", False)])
        assert tokens(one) == [{"prompt_tokens": 5, "completion_tokens": 6}]

    def test_a_live_session_that_answers_in_text(self, tmp_path: Path) -> None:
        turn = {"turns": [{"role": "user", "parts": [{"text": "Hi"}]}], "turnComplete": True}
        pieces = [{"serverContent": {"modelTurn": {"parts": [{"text": text}]}}} for text in ("Hel", "lo")]
        events = [{"setup": {"model": "models/g"}}, {"clientContent": turn}, *pieces]
        assert said(read(write_lines(tmp_path / "s.jsonl", *events)).only) == ["user: Hi", "assistant: Hello"]

    def test_a_sample_of_inspect_that_failed_at_once(self, tmp_path: Path) -> None:
        sample = {"id": 1, "epoch": 1, "input": "Sum?", "messages": [], "output": {"choices": []}}
        sample |= {"error": {"message": "dead"}, "scores": {"a": {"value": float("nan")}}}
        log = {"status": "error", "eval": {"task": "t", "model": "m"}, "samples": [sample]}
        outcome = read(write_json(tmp_path / "log.json", log))
        assert (said(outcome.only), outcome.only.outcome.error) == (["user: Sum?"], "dead")
        assert (outcome.only.labels, list(outcome.report.set_aside)) == ((), ["score_without_value"])
