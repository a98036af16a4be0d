"""OpenAI chat messages with tool calls: requests, completions, fine-tuning files, plain message lists."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Conversation
from convoscope.ingest.formats.openai.messages import (
    ENVELOPES,
    OpenAIReader,
    continued,
    one_by_one,
    with_reply,
)
from convoscope.ingest.formats.openai.responses import is_item
from convoscope.ingest.formats.openai.typed_chat import Chat, conversation_of
from convoscope.ingest.kits.messages import add_message
from convoscope.ingest.kits.streams import is_chunk_list, is_stream, message_of, stream_events, streamed
from convoscope.ingest.reader import Detection, RawRecord, Sample
from convoscope.ingest.record import (
    Fields,
    JsonObject,
    as_object,
    filled,
    in_plain_names,
    is_role,
    speaker_field,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder


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
                entries = [*entries, streamed(stream, notes)]
                (inner if isinstance(inner, dict) else fields).pop("body" if isinstance(inner, dict) else name)
        return with_reply(entries, fields)

    def from_text(self, text: str, notes: Notes) -> Any:
        if not is_stream(text):
            return None
        created = next((event["created"] for event in map(as_object, stream_events(text)) if "created" in event), None)
        return streamed(text, notes) | filled({"created": created})

    def add(self, entry: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
        del notes
        add_message(entry, timeline)

    def build_typed(self, record: Chat, raw: RawRecord, notes: Notes) -> Conversation | None:
        return conversation_of(record, raw, notes, self.name)


def _is_answer(value: JsonObject) -> bool:
    return is_role(value.get("role")) and isinstance(value.get("content"), str | list)


def _stream_in(value: Any) -> Any:
    """The stream of events, or the chunks, that came back; None where it is something else."""
    body = value.get("body") if isinstance(value, dict) else value
    return body if is_stream(body) or is_chunk_list(body) else None


READER = OpenAIChatReader()
