"""Streams of server-sent events, joined to the message that they make."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from convoscope.ingest.io.json import BadJson, decode, parsed
from convoscope.ingest.record import JsonObject, as_list, as_object, filled
from convoscope.ingest.report import Notes

UNREAD_STREAM = "streamed_response"
"""Names a stream of events in the content of a message, where it could not be read."""
_STARTS = ("event:", "data:")
_MAX_BLOCKS = 10_000


def is_stream(text: Any) -> bool:
    """Whether a text is written as server-sent events: its first lines are `event:` or `data:`."""
    return isinstance(text, str) and text.startswith(_STARTS) and ("data: {" in text or "data:{" in text)


def is_chunk_list(value: Any) -> bool:
    """Whether a list holds the chunks of one response."""
    return isinstance(value, list) and bool(value) and all(_is_chunk(one) for one in value)


def stream_events(text: str) -> list[Any]:
    """The data of server-sent events, as JSON values."""
    return [parsed(line[5:].strip()) for line in text.splitlines() if line.startswith("data:")]


def items_of(stream: str) -> list[Any]:
    """The items of a stream of the Responses API: messages, calls, thoughts; none where they did not come whole."""
    joined = _Joined()
    for chunk in stream_events(stream):
        if isinstance(chunk, dict):
            joined.take(chunk)
    return joined.whole_items()


def message_of(stream: Any) -> JsonObject | None:
    """The message that a stream, or a list of its chunks, makes; None where it cannot be read as one."""
    if isinstance(stream, str):
        stream = stream_events(stream)
    joined = _Joined()
    for chunk in stream:
        if isinstance(chunk, dict):
            joined.take(chunk)
    return joined.message()


def _is_chunk(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    choices = value.get("choices")
    is_delta = isinstance(choices, list) and all(isinstance(one, dict) and "delta" in one for one in choices)
    return (is_delta and value.get("object") == "chat.completion.chunk") or value.get("type") == "content_block_delta"


class _Joined:
    """What the chunks say so far, of whichever of three APIs: chat completions, Messages, Responses."""

    def __init__(self) -> None:
        self.fields: JsonObject = {}
        self.texts: list[str] = []
        self.refusals: list[str] = []
        self.calls: dict[Any, JsonObject] = {}
        self.blocks: dict[Any, JsonObject] = {}
        self.items: list[Any] = []
        """Of the Responses API, the items that are whole."""
        self.is_known = False
        """A chunk was met that is known."""

    def take(self, chunk: JsonObject) -> None:
        kind = chunk.get("type")
        self.is_known = self.is_known or kind in ("content_block_start", "message_delta") or bool(chunk.get("choices"))
        if isinstance(chunk.get("choices"), list):
            self._name(chunk)
            for choice in chunk["choices"]:
                if isinstance(choice, dict) and choice.get("index", 0) == 0 and isinstance(choice.get("delta"), dict):
                    self._delta(choice["delta"])
        elif kind == "message_start" and isinstance(chunk.get("message"), dict):
            self._name(chunk["message"])
        elif kind in ("content_block_start", "content_block_delta"):
            self._block(chunk)
        elif kind == "response.output_text.delta" and isinstance(chunk.get("delta"), str):
            self.texts.append(chunk["delta"])
        elif kind == "response.output_item.done" and isinstance(chunk.get("item"), dict):
            self.items.append(chunk["item"])
        elif kind in ("response.completed", "response.incomplete"):
            self.items = list(as_list(as_object(chunk.get("response")).get("output"))) or self.items

    def _name(self, chunk: JsonObject) -> None:
        self.fields |= {name: chunk[name] for name in ("id", "model") if isinstance(chunk.get(name), str)}

    def _delta(self, delta: JsonObject) -> None:
        for name, texts in (("content", self.texts), ("refusal", self.refusals)):
            if isinstance(delta.get(name), str):
                texts.append(delta[name])
        for call in as_list(delta.get("tool_calls")):
            if not isinstance(call, dict):
                continue
            held = self.calls.setdefault(call.get("index", 0), {"function": {"name": "", "arguments": ""}})
            held |= filled({name: call.get(name) for name in ("id", "type")})
            function = as_object(call.get("function"))
            for name in ("name", "arguments"):
                if isinstance(function.get(name), str):
                    held["function"][name] += function[name]

    def _block(self, chunk: JsonObject) -> None:
        if len(self.blocks) > _MAX_BLOCKS:
            return
        block = self.blocks.setdefault(chunk.get("index", 0), {"type": "text", "text": ""})
        if isinstance(chunk.get("content_block"), dict):
            block |= chunk["content_block"]
        for name, text in as_object(chunk.get("delta")).items():
            if name in ("text", "thinking", "partial_json") and isinstance(text, str):
                block[name] = f"{block.get(name) or ''}{text}"

    def whole_items(self) -> list[Any]:
        """The items of the Responses API, where each text that came in pieces came whole, too."""
        parts = [part for item in self.items for part in as_list(as_object(item).get("content"))]
        has_text = any(as_object(part).get("text") for part in parts)
        return self.items if has_text or not self.texts else []

    def message(self) -> JsonObject | None:
        content: Any = "".join(self.texts)
        if self.blocks:
            finished = [_finished(self.blocks[index]) for index in sorted(self.blocks, key=str)]
            content = [block for block in finished if block != {"type": "text", "text": ""}]
        spoken = filled(
            {"content": content, "refusal": "".join(self.refusals), "tool_calls": list(self.calls.values())}
        )
        is_message = spoken or self.is_known
        return {"role": "assistant", "content": None, **self.fields, **spoken} if is_message else None


def _finished(block: JsonObject) -> JsonObject:
    arguments = block.pop("partial_json", None)
    if isinstance(arguments, str) and arguments.strip():
        block["input"] = arguments
        with suppress(BadJson):
            block["input"] = decode(arguments.encode("utf-8", "replace")).value
    if block.get("type") != "text" and block.get("text") == "":
        del block["text"]
    return block


def streamed(stream: Any, notes: Notes) -> JsonObject:
    """The message of a stream; where that cannot be read, a message that says so."""
    message = message_of(stream)
    if message is not None:
        notes.inferred("streamed_response_joined")
        return message
    return {"role": "assistant", "content": {UNREAD_STREAM: stream}}
