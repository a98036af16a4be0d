"""Streams of server-sent events, joined to the message that they make."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from convoscope.ingest.io.json import BadJson, decode, parsed
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

UNREAD_STREAM = "streamed_response"
"""Names a stream of events in the content of a message, where it could not be read."""
_STARTS = ("event:", "data:")
_MAX_BLOCKS = 10_000
_KNOWN = ("message_start", "content_block_start", "message_delta", "error", "response.created", "response.failed")
"""Events that only a response of a model has, also one without content."""


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
    items: list[Any] = []
    came_in_pieces = False
    for chunk in map(as_object, stream_events(stream)):
        came_in_pieces = came_in_pieces or chunk.get("type") == "response.output_text.delta"
        if chunk.get("type") == "response.output_item.done" and isinstance(chunk.get("item"), dict):
            items.append(chunk["item"])
        elif chunk.get("type") in ("response.completed", "response.incomplete"):
            items = list(as_list(as_object(chunk.get("response")).get("output"))) or items
    parts = [as_object(part) for item in items for part in as_list(as_object(item).get("content"))]
    return items if not came_in_pieces or any(part.get("text") for part in parts) else []


def message_of(stream: Any) -> JsonObject | None:
    """The message that a stream, or a list of its chunks, makes; None where it cannot be read as one."""
    if isinstance(stream, str):
        stream = stream_events(stream)
    return _joined(stream).message()


def _joined(stream: Any) -> _Joined:
    joined = _Joined()
    for chunk in stream:
        if isinstance(chunk, dict):
            joined.take(chunk)
    return joined


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
        self.thoughts: list[str] = []
        self.blocks: dict[tuple[int, int], JsonObject] = {}
        """By the number of the message in the stream, and the index of the block in it."""
        self.items: dict[int, JsonObject] = {}
        """Calls of functions of the Responses API, by their index in the output."""
        self.others: set[int] = set()
        """Choices beyond the first."""
        self.errors: list[str] = []
        self.messages = 0
        self.is_known = False
        """A chunk was met that is known."""

    def take(self, chunk: JsonObject) -> None:
        kind = chunk.get("type")
        self.is_known = self.is_known or kind in _KNOWN or bool(chunk.get("choices"))
        failed = chunk.get("error") or as_object(chunk.get("response")).get("error")
        if failed:
            self.errors.append(as_text(as_object(failed).get("message")) or str(failed))
        if isinstance(chunk.get("choices"), list):
            self._name(chunk)
            for choice in map(as_object, chunk["choices"]):
                if choice.get("index", 0) == 0:
                    self._delta(as_object(choice.get("delta")))
                else:
                    self.others.add(_index(choice, "index"))
        elif kind == "message_start" and isinstance(chunk.get("message"), dict):
            self.messages += 1
            self._name(chunk["message"])
        elif kind in ("content_block_start", "content_block_delta"):
            self._block(chunk)
        elif isinstance(kind, str) and kind.startswith("response."):
            self._response(kind, chunk)

    def _response(self, kind: str, chunk: JsonObject) -> None:
        """An event of the Responses API. An item that is done repeats what its deltas said."""
        self._name(as_object(chunk.get("response")))
        texts = {
            "response.output_text.delta": self.texts,
            "response.refusal.delta": self.refusals,
            "response.reasoning_summary_text.delta": self.thoughts,
            "response.reasoning_text.delta": self.thoughts,
        }.get(kind)
        if texts is not None and isinstance(chunk.get("delta"), str):
            texts.append(chunk["delta"])
        item = as_object(chunk.get("item"))
        if item.get("type") in ("function_call", "custom_tool_call"):
            self.items[_index(chunk, "output_index")] = item
        elif kind == "response.function_call_arguments.delta" and isinstance(chunk.get("delta"), str):
            held = self.items.setdefault(_index(chunk, "output_index"), {})
            held["arguments"] = f"{held.get('arguments') or ''}{chunk['delta']}"

    def _name(self, chunk: JsonObject) -> None:
        self.fields |= {name: chunk[name] for name in ("id", "model") if isinstance(chunk.get(name), str)}

    def _delta(self, delta: JsonObject) -> None:
        named = {"content": self.texts, "refusal": self.refusals, "reasoning_content": self.thoughts}
        for name, texts in named.items():
            if isinstance(delta.get(name), str):
                texts.append(delta[name])
        calls = [*as_list(delta.get("tool_calls"))]
        if isinstance(delta.get("function_call"), dict):  # before there were several
            calls.append({"function": delta["function_call"]})
        for call in calls:
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
        block = self.blocks.setdefault((self.messages, _index(chunk, "index")), {"type": "text", "text": ""})
        if isinstance(chunk.get("content_block"), dict):
            # A start that comes late does not undo what was said.
            block |= {name: inner for name, inner in chunk["content_block"].items() if inner != "" or name not in block}
        for name, text in as_object(chunk.get("delta")).items():
            if name in ("text", "thinking", "partial_json") and isinstance(text, str):
                block[name] = f"{block.get(name) or ''}{text}"

    def message(self) -> JsonObject | None:
        content: Any = "".join(self.texts)
        if self.blocks:
            finished = [_finished(self.blocks[index]) for index in sorted(self.blocks)]
            content = [block for block in finished if block != {"type": "text", "text": ""}]
        items = [_call_of(self.items[index]) for index in sorted(self.items)]
        spoken = filled(
            {
                "content": content,
                "refusal": "".join(self.refusals),
                "tool_calls": [*self.calls.values(), *items],
                "reasoning_content": "".join(self.thoughts),
            }
        )
        is_message = spoken or self.is_known
        return {"role": "assistant", "content": None, **self.fields, **spoken} if is_message else None


def _index(chunk: JsonObject, name: str) -> int:
    index = chunk.get(name)
    return index if isinstance(index, int) else 0


def _call_of(item: JsonObject) -> JsonObject:
    """A call of the Responses API, as the chat API writes it."""
    arguments = item.get("arguments", item.get("input", ""))
    return {
        "id": item.get("call_id") or item.get("id"),
        "type": "function",
        "function": {"name": item.get("name", ""), "arguments": arguments},
    }


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
    joined = _joined(stream_events(stream) if isinstance(stream, str) else stream)
    message = joined.message()
    if message is not None:
        notes.inferred("streamed_response_joined")
        if joined.others:
            notes.ignored("choices_beyond_the_first", f"{len(joined.others)} more", count=len(joined.others))
        for error in joined.errors:
            notes.set_aside("stream_failed", error[:200])
        return message
    return {"role": "assistant", "content": {UNREAD_STREAM: stream}}
