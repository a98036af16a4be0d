"""Contents of messages: blocks of Anthropic's Messages API, and streams of server-sent events joined to a message.

A block may be a tool's result in a message of the role `user`, though no person wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from convoscope.conversation import Text, Time
from convoscope.ingest.control_text import without_control
from convoscope.ingest.io.json import BadJson, decode, parsed
from convoscope.ingest.record import Fields, JsonObject, answer_of, as_list, as_object, filled, without_payload
from convoscope.ingest.timeline_builder import TimelineBuilder

_THOUGHTS = ("thinking", "redacted_thinking")
_PICTURES = ("image", "document")
_USUAL_IN_BLOCK = frozenset({"caller", "cache_control", "citations", "server_name", "content"})


def has_blocks(content: Any) -> bool:
    """Whether a content holds more than parts of one text: calls, results, thoughts."""
    return isinstance(content, list) and any(isinstance(part, dict) and _is_block(part.get("type")) for part in content)


def _is_block(kind: Any) -> bool:
    return isinstance(kind, str) and (kind.endswith(("tool_use", "tool_result")) or kind in _THOUGHTS)


class MessageBlocks:
    """Puts the blocks of one message into a timeline, in their order."""

    def __init__(
        self, timeline: TimelineBuilder, role: str, name: str, time: Time | None, id: str, extras: JsonObject
    ) -> None:
        self.timeline, self.notes, self.role, self.name = timeline, timeline.notes, role, name
        self.time = time
        self.once: JsonObject = {"id": id, "extras": extras}
        """What the first event gets that is made of the message."""
        self.texts: list[str] = []
        self.parts: list[Any] = []

    def add(self, content: Sequence[Any]) -> None:
        for part in content:
            block = Fields(part if isinstance(part, dict) else {"type": "text", "text": part}, "block", self.notes)
            block.usual = _USUAL_IN_BLOCK
            kind = block.get("type")
            if not _is_block(kind):
                self._text(block)
                continue
            self.say()
            if kind in _THOUGHTS:
                self.notes.ignored("thinking", "", self.timeline.seq)
                thought = without_payload(block, self.notes, self.timeline.seq)
                self.timeline.mark("reasoning", thought, self.time, self._take_once(keep_extras=True)["id"])
            elif str(kind).endswith("tool_use"):
                self._call(block)
            else:
                self._result(block)
        self.say()
        if self.once["extras"]:
            once = self._take_once()
            self.timeline.mark("message", once["extras"], self.time, once["id"])

    def say(self) -> None:
        """What was written since the last block of another kind is one utterance."""
        text, control = without_control("\n".join(self.texts), self.role)
        if text.strip() or self.parts:
            once = self._take_once()
            once["extras"] |= {"content": self.parts} if self.parts else {}
            # A speaker who says nothing takes no part: results alone are no speech.
            speaker = self.timeline.participant(self.role, self.name)
            intended = Text(text, "message.content") if text else None
            self.timeline.say(speaker, intended=intended, time=self.time, **once)
        if control:
            self.timeline.control(self.timeline.participant(self.role, self.name), control, self.time)
        self.texts, self.parts = [], []

    def _text(self, block: Fields) -> None:
        if block.get("type") in _PICTURES:
            self.notes.ignored(f"{block['type']}_not_read", "", self.timeline.seq)
        text = block.take("text", kind=str)
        if text is not None:
            self.texts.append(text)
            del block["type"]
        if filled(block):
            self.parts.append(without_payload(block, self.notes, self.timeline.seq))

    def _call(self, block: Fields) -> None:
        kind, arguments = block.pop("type"), block.pop("input", None)
        call_id, name = block.text("id"), block.text("name")
        once = self._take_once(block.rest(self.timeline.seq) | ({} if kind == "tool_use" else {"type": kind}))
        self.timeline.call(name, arguments, call_id=call_id, time=self.time, **once)

    def _result(self, block: Fields) -> None:
        timeline = self.timeline
        kind = block.pop("type")
        answer = answer_of(block.pop("content", None), self.notes, timeline.seq)
        call_id, failed = block.text("tool_use_id"), block.flag("is_error")
        once = self._take_once(block.rest(timeline.seq) | ({} if kind == "tool_result" else {"type": kind}))
        timeline.result(answer, call_id=call_id, time=self.time, **once)
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if failed is not None or code:
            unstated = code if isinstance(code, str) else str(answer)[:500]
            timeline.set_outcome(not (failed or code), error_if_unstated=unstated)

    def _take_once(self, extras: JsonObject | None = None, *, keep_extras: bool = False) -> JsonObject:
        once = {"id": self.once["id"], "extras": self.once["extras"] | (extras or {})}
        self.once = {"id": "", "extras": self.once["extras"] if keep_extras else {}}
        return once


_STARTS = ("event:", "data:")
_MAX_BLOCKS = 10_000


def is_stream(text: Any) -> bool:
    """Whether a text is written as server-sent events: its first lines are `event:` or `data:`."""
    return isinstance(text, str) and text.startswith(_STARTS) and ("data: {" in text or "data:{" in text)


def is_chunk_list(value: Any) -> bool:
    """Whether a list holds the chunks of one response."""
    return isinstance(value, list) and bool(value) and all(_is_chunk(one) for one in value)


def message_of(stream: Any) -> JsonObject | None:
    """The message that a stream, or a list of its chunks, makes; None where it cannot be read as one."""
    if isinstance(stream, str):
        stream = [parsed(line[5:].strip()) for line in stream.splitlines() if line.startswith("data:")]
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
