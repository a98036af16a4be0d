"""Messages of OpenAI's and Anthropic's shapes: putting one into a timeline, and what one says.

A block may be a tool's result in a message of the role `user`, though no person wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from convoscope.conversation import Text, Time, Tool
from convoscope.ingest.control_text import without_control
from convoscope.ingest.ids import CONVERSATION_IDS
from convoscope.ingest.kits.shapes import has_tools_of_interface, plain_messages
from convoscope.ingest.kits.streams import is_stream, streamed
from convoscope.ingest.record import (
    ROLES,
    TEXT_FIELDS,
    TIMES,
    Fields,
    JsonObject,
    answer_of,
    as_list,
    as_object,
    filled,
    speaker_field,
    take_content,
    take_role,
    take_time,
    without_payload,
)
from convoscope.ingest.report import Notes
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
        call_id, name, failed = block.text("tool_use_id"), block.text("name"), block.flag("is_error")
        once = self._take_once(block.rest(timeline.seq) | ({} if kind == "tool_result" else {"type": kind}))
        timeline.result(answer, call_id=call_id, name=name, time=self.time, **once)
        code = answer.get("error_code") if isinstance(answer, dict) else None
        if failed is not None or code:
            unstated = code if isinstance(code, str) else str(answer)[:500]
            timeline.set_outcome(not (failed or code), error_if_unstated=unstated)

    def _take_once(self, extras: JsonObject | None = None, *, keep_extras: bool = False) -> JsonObject:
        once = {"id": self.once["id"], "extras": self.once["extras"] | (extras or {})}
        self.once = {"id": "", "extras": self.once["extras"] if keep_extras else {}}
        return once


_USUAL_IN_MESSAGE = frozenset(
    {"refusal", "audio", "annotations", "content", *TIMES, *CONVERSATION_IDS}
    | {"type", "model", "stop_reason", "stop_sequence", "usage", "container"}
)


def add_message(entry: JsonObject, timeline: TimelineBuilder) -> None:
    """Put a message of OpenAI's or Anthropic's shape into a timeline: what it says, calls, answers."""
    notes = timeline.notes
    fields = Fields(entry, "message", notes, _USUAL_IN_MESSAGE)
    role, time, id = take_role(fields, timeline), take_time(fields, timeline), fields.text("id")
    if role == "tool":
        answer = answer_of(fields.pop("content", None), notes, timeline.seq)
        call_id, name = fields.text("tool_call_id"), fields.text("name")
        timeline.result(answer, call_id=call_id, name=name, time=time, id=id, extras=fields.rest(timeline.seq))
        return
    if has_blocks(fields.get("content")):
        blocks, name = fields.pop("content"), fields.text("name")
        fields.pop("type", None)
        MessageBlocks(timeline, role, name, time, id, fields.rest(timeline.seq)).add(blocks)
        return
    if has_tools_of_interface(fields.get("parts")):
        name, parts = fields.text("name"), fields.pop("parts")
        for again in ("content", "toolInvocations"):
            fields.pop(again, None)
        blocks = [block for plain in plain_messages({"role": role, "parts": parts}) for block in plain["content"]]
        MessageBlocks(timeline, role, name, time, id, fields.rest(timeline.seq)).add(blocks)
        return
    if role == "assistant" and is_stream(fields.get("content")):
        fields |= streamed(fields.pop("content"), notes)
        del fields["role"]
        if has_blocks(fields["content"]):
            MessageBlocks(timeline, role, fields.text("name"), time, id, {}).add(fields["content"])
            return
    _say(fields, role, time, id, timeline)


def _say(fields: Fields, role: str, time: Time | None, id: str, timeline: TimelineBuilder) -> None:
    content = take_content(fields, fields.notes, timeline.seq)
    text = content.text or fields.take("refusal", kind=str) or ""
    played = _take_transcript(fields, timeline.seq)
    calls = _take_calls(fields)
    speech, control = without_control(text, role)
    name = fields.text("name")
    if content.parts:
        fields["content"] = content.parts
    extras = fields.rest(timeline.seq)
    is_said = bool(speech.strip() or played or content.parts)
    if not (is_said or calls or control):
        timeline.set_message_aside(role, extras | filled({"name": name}), time, id)
        return
    speaker = timeline.participant(role, name)
    if is_said:
        intended = Text(speech, "message.content") if speech or played is None else None
        spoken = None if played is None else Text(played, "message.audio.transcript")
        timeline.say(speaker, intended=intended, spoken=spoken, time=time, id=id, extras=extras)
        extras, id = {}, ""
    timeline.control(speaker, control, time)
    for call in calls:
        function = call.object("function", "custom")
        arguments = function.pop("arguments", function.pop("input", None))
        name, call_id = function.text("name"), call.text("id")
        more = {key: value for key, value in {**call, **function}.items() if key not in ("type", "index")}
        for key in more:
            fields.notes.unknown(f"tool_call.{key}", timeline.seq)
        extras |= more
        timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
        extras, id = {}, ""


def _take_transcript(fields: Fields, seq: int) -> str | None:
    audio = fields.get("audio")
    if not isinstance(audio, dict):
        return None
    unread = Fields(audio, "audio", fields.notes)
    played: str | None = unread.take("transcript", kind=str)
    fields["audio"] = without_payload(unread, fields.notes, seq)
    return played


def _take_calls(fields: Fields) -> list[Fields]:
    """The tool calls of a message, of either generation; what is not shaped like one stays where it is."""
    calls: list[Any] = []
    listed = fields.get("tool_calls")
    objects = [as_object(call) for call in as_list(listed)]
    if isinstance(listed, list) and all(isinstance(one.get("function") or one.get("custom"), dict) for one in objects):
        calls = [*fields.pop("tool_calls")]
    if isinstance(fields.get("function_call"), dict):
        calls.append({"function": fields.pop("function_call")})
    return [Fields(call, "tool_call", fields.notes) for call in calls]


_CALL_FIELDS = ("name", "arguments", "input", "call_id", "tool_call_id", "tool_use_id", "output", "refusal", "text")
_AGENT_ITEMS = ("function_call", "custom_tool_call", "mcp_call")
_encode = msgspec.json.Encoder(order="deterministic").encode


def message_signature(message: Any) -> int:
    """A hash of who says what, calls what, or answers what; ids, times and counts of a message do not matter."""
    if not isinstance(message, dict):
        return hash(_canonical(message))
    calls, function = message.get("tool_calls"), message.get("function_call")
    rest = filled({name: message.get(name) for name in _CALL_FIELDS if name != "text"})
    if isinstance(calls, list):
        functions = [as_object(call).get("function") for call in calls]
        rest["tool_calls"] = [
            [call.get("id"), one.get("name"), one.get("arguments")] if isinstance(one, dict) else call
            for call, one in zip(calls, functions, strict=True)
        ]
    if isinstance(function, dict):
        rest["function_call"] = function
    return hash((role_of(message), _content(message), _canonical(rest)))


def role_of(message: JsonObject) -> str:
    """Whose message or item it is; "" where the role is unknown."""
    if message.get("type") in _AGENT_ITEMS:
        return "assistant"
    field = speaker_field(message) or "role"
    return ROLES.get(str(message.get(field)).strip().casefold(), "")


def _content(message: JsonObject) -> str:
    content = message.get("content")
    if content is None:
        content = next((message[name] for name in TEXT_FIELDS if isinstance(message.get(name), str)), "")
    if isinstance(content, str):
        return " ".join(content.split())
    if not isinstance(content, list):
        return _canonical(content)
    parts: list[Any] = []
    for part in content:
        # Without what an API adds to it on the way back.
        fields = filled({name: part.get(name) for name in (*_CALL_FIELDS, "content")}) if isinstance(part, dict) else {}
        parts.append(fields["text"] if set(fields) == {"text"} else fields or part)
    return "\n".join(part if isinstance(part, str) else _canonical(part) for part in parts).strip()


def _canonical(value: Any) -> str:
    return _encode(value).decode()


def read_tools(tools: Sequence[Any]) -> tuple[Tool, ...]:
    """The tools that an agent had."""
    return tuple(_tool(tool) if isinstance(tool, dict) else Tool(name=str(tool)) for tool in tools)


def _tool(tool: JsonObject) -> Tool:
    fields = Fields(tool, "tool", Notes())
    kind = fields.text("type")
    fields |= fields.take("function", kind=dict) or {}
    return Tool(
        name=fields.text("name") or kind,
        description=fields.text("description"),
        arguments_schema=fields.take("parameters", "input_schema", kind=dict),
        kind="" if kind == "function" else kind,
        extras=filled(fields),
    )
