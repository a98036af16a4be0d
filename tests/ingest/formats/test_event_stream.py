"""Streams of server-sent events: the message that their chunks make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import ToolCall
from convoscope.errors import NothingReadable
from convoscope.ingest.kits.streams import is_stream, message_of

FORMATS = Path(__file__).parents[4] / "shared" / "data" / "formats"
STREAMS = [
    path for kind in ("openai-stream", "anthropic-stream") for path in sorted((FORMATS / kind).glob("*.sse.txt"))
]


def stream(*chunks: object) -> str:
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n"


def delta(**fields: object) -> dict[str, object]:
    return {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": fields}]}


def test_chunks_of_a_chat_completion() -> None:
    text = stream(delta(role="assistant", content=""), delta(content="On "), delta(content="Monday."))
    assert is_stream(text)
    assert message_of(text) == {"role": "assistant", "id": "chatcmpl-1", "content": "On Monday."}


def test_a_tool_call_in_pieces() -> None:
    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "find", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": part}} for part in ('{"a"', ": 1}")]
    message = message_of(stream(*(delta(tool_calls=[one]) for one in (first, *more))))
    assert message is not None
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"a": 1}'}}
    assert message["tool_calls"] == [call]


@pytest.mark.parametrize("text", ["data: {}\n", 'data: {"n": 1}\n\n', "data: {oops\n"])
def test_what_is_no_message(text: str) -> None:
    assert message_of(text) is None


@pytest.mark.skipif(not STREAMS, reason="the shared data is not there")
@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_streams_that_others_recorded(path: Path) -> None:
    """What a script of others counted in them: texts, refusals, and the arguments of calls."""
    facts = json.loads((path.parent / "facts.json").read_text())[path.name]
    words = facts.get("text") or facts.get("refusal") or facts.get("texts", {}).get("0", "")
    if not (words or facts.get("tool_calls") or facts.get("partial_json")):
        with pytest.raises(NothingReadable, match="has no message that can be read"):
            list(convoscope.read(path))
        return
    conversation = next(iter(convoscope.read(path)))
    assert "".join(one.meant() for one in conversation.utterances) == words
    calls = [(one.name, one.arguments) for one in conversation.timeline if isinstance(one, ToolCall)]
    wanted = [(name, json.loads(arguments)) for name, arguments in facts.get("tool_calls", {}).values()]
    if facts.get("partial_json"):
        wanted = [(calls[0][0], json.loads(facts["partial_json"]))]
    assert calls == wanted


def _events(*events: object) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def _chunk(delta: object, index: int = 0) -> object:
    return {"object": "chat.completion.chunk", "model": "m", "choices": [{"index": index, "delta": delta}]}


def test_twelve_blocks_stay_in_their_order(tmp_path: Path) -> None:
    starts = [
        {
            "type": "content_block_start",
            "index": n,
            "content_block": {"type": "tool_use", "id": f"t{n}", "name": f"f{n}"},
        }
        for n in range(12)
    ]
    path = tmp_path / "s.sse.txt"
    path.write_text(_events({"type": "message_start", "message": {"role": "assistant"}}, *starts))
    (only,) = convoscope.read(path)
    assert [one.name for one in only.timeline if isinstance(one, ToolCall)] == [f"f{n}" for n in range(12)]


def test_a_second_message_of_a_stream_does_not_replace_the_first() -> None:
    def said(text: str) -> list[object]:
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return [{"type": "message_start", "message": {"role": "assistant"}}, block, delta]

    message = message_of(_events(*said("Open at nine."), *said("Closed on Sunday.")))
    assert message is not None
    assert [block["text"] for block in message["content"]] == ["Open at nine.", "Closed on Sunday."]


def test_a_call_and_a_refusal_of_the_responses_api() -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "tide", "arguments": ""}
    message = message_of(
        _events(
            {"type": "response.created", "response": {"id": "r", "model": "m"}},
            {"type": "response.refusal.delta", "delta": "Not "},
            {"type": "response.refusal.delta", "delta": "that."},
            {"type": "response.output_item.added", "output_index": 1, "item": item},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"day":'},
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '"Mon"}'},
            {"type": "response.output_item.done", "output_index": 1, "item": {**item, "arguments": '{"day":"Mon"}'}},
        )
    )
    assert message is not None
    assert message["refusal"] == "Not that."
    (call,) = message["tool_calls"]
    assert (call["id"], call["function"]) == ("call_1", {"name": "tide", "arguments": '{"day":"Mon"}'})


def test_a_function_call_of_the_first_api_and_thoughts() -> None:
    message = message_of(
        _events(
            _chunk({"reasoning_content": "Which "}),
            _chunk({"reasoning_content": "day?"}),
            _chunk({"function_call": {"name": "tide", "arguments": ""}}),
            _chunk({"function_call": {"arguments": '{"day": 1}'}}),
        )
    )
    assert message is not None
    assert message["reasoning_content"] == "Which day?"
    assert message["tool_calls"][0]["function"] == {"name": "tide", "arguments": '{"day": 1}'}


def test_other_choices_and_errors_of_a_stream_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "s.sse.txt"
    path.write_text(_events(_chunk({"content": "Yes"}), _chunk({"content": "No"}, 1), {"error": {"message": "gone"}}))
    found = convoscope.read(path)
    (only,) = found
    assert [only.text(one) for one in only.utterances] == ["Yes"]
    assert found.report.ignored["choices_beyond_the_first"] == 1
    assert "stream_failed" in found.report.set_aside


def test_a_stream_that_is_only_an_error_has_no_message(tmp_path: Path) -> None:
    path = tmp_path / "s.sse.txt"
    path.write_text(_events({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}))
    with pytest.raises(NothingReadable, match="no message"):
        list(convoscope.read(path))


def test_the_start_of_a_block_that_comes_late_does_not_undo_its_words() -> None:
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    words = [{"type": "content_block_delta", "index": 0, "delta": {"text": text}} for text in ("At ", "nine.")]
    message = message_of(stream(words[0], start, words[1]))
    assert message is not None
    assert message["content"] == [{"type": "text", "text": "At nine."}]
