"""Spans of the Vercel AI SDK and of Logfire: an outer call and its inner ones, failed tools, no content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, measured, read, talk, write_json

WALKS = EXAMPLES / "vercel-ai" / "walks.json"
SEEDS = EXAMPLES / "logfire" / "seeds.json"


class TestVercel:
    def test_the_outer_call_says_nothing_again(self) -> None:
        conversation = read(WALKS).only
        assert conversation.id == "walk-5"
        assert talk(conversation) == [
            "user: A short walk near the lake, please. How is the weather?",
            'weather({"where": "lake"})',
            "-> null",
            "assistant: Take the reed path, four kilometres. I have no weather for the lake.",
        ]
        assert conversation.agent.instructions == "You plan walks."

    def test_times_are_pairs_of_seconds_and_nanoseconds(self) -> None:
        """From 0.1 to 0.9 seconds, and from 1.5 to 2.6."""
        assert [one["duration"] for one in measured(read(WALKS).only)] == [pytest.approx(0.8), pytest.approx(1.1)]

    def test_the_tool_failed(self) -> None:
        (result,) = (event for event in read(WALKS).only.timeline if isinstance(event, ToolResult))
        assert (result.name, result.success, result.error) == ("weather", False, "no station near the lake")

    def test_one_call_exported_in_two_traces(self, tmp_path: Path) -> None:
        call = next(span for span in json.loads(WALKS.read_text()) if span["name"] == "ai.generateText.doGenerate")
        copy = {**call, "traceId": "another", "spanId": "another"}
        outcome = read(write_json(tmp_path / "spans.json", [call, copy]))
        assert len(outcome.conversations) == 1
        assert outcome.report.ignored["call_logged_twice"] == 1

    def test_without_inputs_and_outputs_it_is_refused(self, tmp_path: Path) -> None:
        spans = json.loads(WALKS.read_text())
        for span in spans:
            kept = ("ai.operationId", "ai.model.id", "ai.usage.promptTokens")
            span["attributes"] = {name: value for name, value in span["attributes"].items() if name in kept}
        with pytest.raises(ConvoscopeError, match="calls of models without any message"):
            read(write_json(tmp_path / "spans.json", spans))


class TestLogfire:
    def test_request_and_response_data(self) -> None:
        conversation = read(SEEDS).only
        assert conversation.id == "visitor-9"
        assert talk(conversation) == [
            "user: Which beans can I sow in May?",
            'seeds({"kind": "bean", "month": 5})',
            '-> {"error": "drawer 5 is locked"}',
            "assistant: Runner beans, usually. I could not open our list for May.",
        ]
        assert conversation.agent.instructions == "You help in a seed library."

    def test_tokens(self) -> None:
        tokens = [(one["prompt_tokens"], one["completion_tokens"]) for one in measured(read(SEEDS).only)]
        assert tokens == [(29, 11), (50, 13)]

    def test_what_a_stream_came_to(self, tmp_path: Path) -> None:
        request: dict[str, Any] = {"model": "small", "messages": [{"role": "user", "content": "Hi"}]}
        span = {
            "name": "streaming response took 1s",
            "context": {"trace_id": 1, "span_id": 2},
            "start_time": 1_772_440_000 * 10**9,
            "end_time": 1_772_440_001 * 10**9,
            "attributes": {
                "logfire.msg": "streaming response took 1s",
                "request_data": json.dumps(request),
                "response_data": json.dumps({"combined_chunk_content": "Hello.", "chunk_count": 3}),
            },
        }
        assert talk(read(write_json(tmp_path / "spans.json", [span])).only) == ["user: Hi", "assistant: Hello."]
