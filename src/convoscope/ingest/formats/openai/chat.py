"""OpenAI chat messages with tool calls: requests, completions, fine-tuning files, plain message lists."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Conversation, Text, Time
from convoscope.ingest.control_text import without_control
from convoscope.ingest.formats.openai.content import MessageBlocks, has_blocks, is_chunk_list, is_stream, message_of
from convoscope.ingest.formats.openai.messages import (
    ENVELOPES,
    UNREAD_STREAM,
    OpenAIReader,
    continued,
    one_by_one,
    with_reply,
)
from convoscope.ingest.formats.openai.responses import is_item
from convoscope.ingest.formats.openai.typed_chat import Chat, conversation_of
from convoscope.ingest.ids import CONVERSATION_IDS
from convoscope.ingest.reader import Detection, RawRecord, Sample
from convoscope.ingest.record import (
    TIMES,
    Fields,
    JsonObject,
    answer_of,
    as_list,
    as_object,
    filled,
    in_plain_names,
    is_role,
    speaker_field,
    take_content,
    take_role,
    take_time,
    without_payload,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_USUAL_IN_MESSAGE = frozenset(
    {"refusal", "audio", "annotations", "content", *TIMES, *CONVERSATION_IDS}
    | {"type", "model", "stop_reason", "stop_sequence", "usage", "container"}
)


class OpenAIChatReader(OpenAIReader):
    """Lists of messages with a role and content."""

    name = "openai-chat"
    title = "OpenAI chat messages"
    entry = "message"
    field = "messages"
    expects = '{"messages": [{"role": …, "content": …}]}'
    not_an_entry = "not_a_message"
    list_name = b'"messages"'
    typed: Any = Chat

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container == "text":
            lines = "\n".join(map(str, sample.values))
            readable = is_stream(lines) and message_of(lines) is not None
            return Detection(0.9, "server-sent events of one response", "file") if readable else None
        for value in sample.values:
            if isinstance(value, list) and value and all(self.is_single_entry(one) for one in value):
                return Detection(0.9, "each record is a list of messages with a role")
            if isinstance(value, dict):
                if self.holds_entries(value):
                    return Detection(0.9, '"messages" (or "choices") with a role')
                if self.is_single_entry(value):
                    claim = one_by_one(sample, "message")
                    # Under other names than the API's it may well be a record of another format.
                    return claim if is_role(value.get("role")) else claim._replace(confidence=claim.confidence / 2)
        if any(isinstance(value, dict) and value.get("messages") == [] for value in sample.values):
            return Detection(0.4, '"messages", which the first records leave empty')
        return None

    def is_single_entry(self, value: Any) -> bool:
        # Outside a list called messages, an item of the other shape looks alike.
        return self.is_entry(value) and not is_item(value)

    def is_entry(self, value: Any) -> bool:
        return isinstance(value, dict) and (is_role(value.get("role")) or bool(speaker_field(value)))

    def plain(self, entry: JsonObject, timeline: TimelineBuilder) -> JsonObject:
        return in_plain_names(entry, timeline)

    def holds_entries(self, record: JsonObject) -> bool:
        messages, choices = record.get("messages"), record.get("choices")
        if isinstance(messages, list) and any(self.is_entry(one) for one in messages):
            return True
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return self.is_entry(choices[0].get("message"))
        # What came back of the Messages API is a message itself.
        inner = [record[name] for name in ENVELOPES if isinstance(record.get(name), dict)]
        return any(self.holds_entries(one) or _is_answer(one) for one in inner)

    def take_entries(self, fields: Fields) -> list[Any]:
        """The history that was sent, then what the model answered."""
        notes = fields.notes
        entries = fields.take("messages", kind=list) or []
        choices = fields.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            first = dict(choices[0])
            if self.is_entry(first.get("message")):
                entries = [*entries, first.pop("message")]
            fields["choices"] = [first, *choices[1:]] if filled(first) or choices[1:] else []
            if choices[1:]:
                notes.ignored("choices_beyond_the_first", f"{len(choices) - 1} more")
        for name in ENVELOPES:
            inner = fields.get(name)
            if isinstance(inner, Fields) and self.holds_entries(inner):
                entries = continued(entries, self.take_entries(inner), notes)
            elif isinstance(inner, dict) and _is_answer(inner):
                entries = [*entries, fields.pop(name)]
            elif (stream := _stream_in(inner)) is not None:
                entries = [*entries, _streamed(stream, notes)]
                (inner if isinstance(inner, dict) else fields).pop("body" if isinstance(inner, dict) else name)
        return with_reply(entries, fields)

    def from_text(self, text: str, notes: Notes) -> Any:
        return _streamed(text, notes) if is_stream(text) else None

    def add(self, entry: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
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
        if role == "assistant" and is_stream(fields.get("content")):
            fields |= _streamed(fields.pop("content"), notes)
            del fields["role"]
            if has_blocks(fields["content"]):
                MessageBlocks(timeline, role, fields.text("name"), time, id, {}).add(fields["content"])
                return
        self._say(fields, role, time, id, timeline)

    def _say(self, fields: Fields, role: str, time: Time | None, id: str, timeline: TimelineBuilder) -> None:
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

    def build_typed(self, record: Chat, raw: RawRecord, notes: Notes) -> Conversation | None:
        return conversation_of(record, raw, notes, self.name)


def _is_answer(value: JsonObject) -> bool:
    return is_role(value.get("role")) and isinstance(value.get("content"), str | list)


def _stream_in(value: Any) -> Any:
    """The stream of events, or the chunks, that came back; None where it is something else."""
    body = value.get("body") if isinstance(value, dict) else value
    return body if is_stream(body) or is_chunk_list(body) else None


def _streamed(stream: Any, notes: Notes) -> JsonObject:
    """The message of a stream; where that cannot be read, a message that says so."""
    message = message_of(stream)
    if message is not None:
        notes.inferred("streamed_response_joined")
        return message
    return {"role": "assistant", "content": {UNREAD_STREAM: stream}}


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


READER = OpenAIChatReader()
