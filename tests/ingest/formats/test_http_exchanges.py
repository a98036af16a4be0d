"""HTTP exchanges with models: histories, streams, refusals, errors, and recordings of other things."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, Outcome, measured, read, talk, write, write_json

FOLDER = EXAMPLES / "http-exchanges"
HI = [{"role": "user", "content": "Hi"}]


def exchange(asked: Any, answer: Any, status: int = 200) -> dict[str, Any]:
    body = answer if isinstance(answer, str) else json.dumps(answer)
    request = {"method": "POST", "uri": "https://models.example/v1", "body": json.dumps(asked)}
    return {"request": request, "response": {"status": {"code": status}, "body": {"string": body}}}


def reading(folder: Path, *exchanges: Any) -> Outcome:
    return read(write_json(folder / "cassette.json", {"interactions": list(exchanges)}))


def stream(*chunks: Any) -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


def delta(**fields: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields}]}


class TestTheExamples:
    def test_a_har_of_two_exchanges_is_one_conversation(self) -> None:
        """The result of the tool has the role user in Anthropic's API: the user said one thing only."""
        conversation = read(FOLDER / "sauna.json").only
        assert talk(conversation) == [
            "user: Book the sauna at eight.",
            "assistant: One moment.",
            'book_sauna({"hour": 20})',
            '-> "the stove is being repaired"',
            "assistant: The stove is being repaired, so I cannot book it today.",
        ]
        assert [tool.name for tool in conversation.agent.tools or ()] == ["book_sauna"]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.success is False

    def test_tokens_and_times(self) -> None:
        assert measured(read(FOLDER / "sauna.json").only) == [
            {"prompt_tokens": 60, "completion_tokens": 20, "duration": pytest.approx(0.9)},
            {"prompt_tokens": 95, "completion_tokens": 17, "duration": pytest.approx(1.1)},
        ]

    def test_a_streamed_answer_in_a_cassette(self) -> None:
        """The last chunk has no choices, and the tokens."""
        conversation = read(FOLDER / "streamed.yaml").only
        assert talk(conversation) == ["user: Is the pool open?", "assistant: Yes, until nine."]
        assert measured(conversation) == [{"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17}]


class TestStreams:
    def test_a_refusal_is_said(self, tmp_path: Path) -> None:
        chunks = stream(delta(role="assistant", refusal="I cannot "), delta(refusal="help with that."))
        conversation = reading(tmp_path, exchange({"model": "m", "messages": HI}, chunks)).only
        assert talk(conversation) == ["user: Hi", "assistant: I cannot help with that."]

    def test_a_call_whose_arguments_break_off_is_kept(self, tmp_path: Path) -> None:
        first = {"index": 0, "id": "c1", "function": {"name": "find", "arguments": '{"wha'}}
        chunks = stream(
            delta(tool_calls=[first]), delta(tool_calls=[{"index": 0, "function": {"arguments": 't": "be'}}])
        )
        conversation = reading(tmp_path, exchange({"model": "m", "messages": HI}, chunks)).only
        assert talk(conversation) == ["user: Hi", 'find({"what": "be)']

    def test_chunks_of_gemini_are_joined(self, tmp_path: Path) -> None:
        def chunk(text: str) -> dict[str, Any]:
            return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]}

        asked = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        answer = "".join(f"data: {json.dumps(chunk(text))}\r\n\r\n" for text in ("Hel", "lo."))
        assert talk(reading(tmp_path, exchange(asked, answer)).only) == ["user: Hi", "assistant: Hello."]


def test_a_body_in_gzip_and_base64(tmp_path: Path) -> None:
    answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Hello."}}]}).encode()
    packed = exchange({"model": "m", "messages": HI}, "")
    packed["response"]["body"] = {"base64_string": base64.b64encode(gzip.compress(answer)).decode()}
    assert talk(reading(tmp_path, packed).only) == ["user: Hi", "assistant: Hello."]


def test_an_answer_with_an_error_is_no_answer(tmp_path: Path) -> None:
    failed = exchange({"model": "m", "messages": HI}, {"error": {"message": "overloaded"}}, 529)
    conversation = reading(tmp_path, failed).only
    assert talk(conversation) == ["user: Hi"]
    assert conversation.outcome.error == "HTTP status 529: overloaded"


def test_separate_talks_stay_apart(tmp_path: Path) -> None:
    def answered(text: str) -> dict[str, Any]:
        return {"choices": [{"message": {"role": "assistant", "content": text}}]}

    other = [{"role": "user", "content": "Good evening"}]
    outcome = reading(
        tmp_path,
        exchange({"model": "m", "messages": HI}, answered("Hello.")),
        exchange({"model": "m", "messages": other}, answered("Good evening.")),
    )
    assert sorted(map(talk, outcome.conversations)) == [
        ["user: Good evening", "assistant: Good evening."],
        ["user: Hi", "assistant: Hello."],
    ]


def test_a_recording_of_other_requests_is_not_claimed(tmp_path: Path) -> None:
    with pytest.raises(ConvoscopeError, match="unknown JSON format"):
        reading(tmp_path, exchange({"page": 1}, {"items": []}))


def test_a_cassette_that_is_no_yaml_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConvoscopeError):
        read(write(tmp_path / "cassette.yaml", "interactions:\n- request: {body: 'never closed\n"))
