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
