"""OpenAI chat messages with tool calls: requests, completions, fine-tuning files, plain message lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convoscope.conversation import Conversation, Text
from convoscope.errors import InputError
from convoscope.ingest.building import Timeline
from convoscope.ingest.openai_record import CONVERSATION_IDS, content_of, first_of, id_of, put_together
from convoscope.ingest.reader import Detection, Group, Reader, Sample
from convoscope.ingest.report import Notes

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
TIMES = ("timestamp", "created_at", "created", "time", "ts")

_KNOWN_IN_MESSAGE = frozenset(
    {"role", "content", "name", "id", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"}
    | {*TIMES, *CONVERSATION_IDS}
)
_KNOWN_IN_CALL = frozenset({"id", "type", "index", "function", "custom"})
_ENVELOPES = ("request", "response", "body", "input", "output")


class OpenAIChatReader(Reader):
    """Lists of messages with a role and content."""

    name = "openai-chat"
    title = "OpenAI chat messages"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, list) and value and all(_is_message(one) for one in value):
                return Detection(0.9, "each record is a list of messages with a role")
            if isinstance(value, dict):
                if _messages_of(value):
                    return Detection(0.9, '"messages" (or "choices") with a role')
                if _is_message(value):
                    return _message_by_message(value, sample)
        return None

    def key(self, value: Any) -> str | None:
        return id_of(value) if isinstance(value, dict) else None

    def build(self, group: Group, notes: Notes) -> Iterator[Conversation]:
        first = group.records[0].value
        if isinstance(first, dict) and _is_message(first):
            messages = []
            for record in group.records:
                if _is_message(record.value):
                    messages.append(record.value)
                else:
                    notes.line = record.number
                    notes.ignored("not_a_message")
            yield _conversation({}, messages, group, notes, id_of(first) or group.name)
            return
        for record in group.records:
            value = record.value
            if isinstance(value, list):
                yield _conversation({}, value, group, notes, group.name)
            elif isinstance(value, dict) and (messages := _messages_of(value)):
                yield _conversation(value, messages, group, notes, id_of(value) or group.name)
            else:
                raise InputError(
                    "no messages here", field="messages", hint='expected {"messages": [{"role": …, "content": …}]}'
                )


def _message_by_message(value: dict[str, Any], sample: Sample) -> Detection:
    if id_of(value) is not None and first_of(value, CONVERSATION_IDS) is not None:
        return Detection(0.8, "each record is a message with the id of its conversation", "key")
    return Detection(0.7, f"each {'line' if sample.container == 'lines' else 'record'} is a message", "file")


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("role") in ROLES and "type" not in value


def _messages_of(record: Mapping[str, Any]) -> list[Any]:
    """The messages of a record: the history that was sent, then what the model answered."""
    messages = record.get("messages")
    found = list(messages) if isinstance(messages, list) and any(_is_message(one) for one in messages) else []
    choices = record.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        answer = choices[0].get("message")
        if _is_message(answer):
            found.append(answer)
    for name in _ENVELOPES:
        inner = record.get(name)
        if isinstance(inner, dict):
            found.extend(_messages_of(inner))
    return found


def _beside_messages(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without the messages that were taken from it."""
    rest = {key: value for key, value in record.items() if key not in ("messages", "choices")}
    choices = record.get("choices")
    if isinstance(choices, list):
        first = {key: value for key, value in choices[0].items() if key != "message"} if choices else {}
        rest["choices"] = [first, *choices[1:]]
    for name in _ENVELOPES:
        inner = record.get(name)
        if isinstance(inner, dict) and _messages_of(inner):
            rest[name] = _beside_messages(inner)
    return rest


def _conversation(
    record: Mapping[str, Any], messages: Sequence[Any], group: Group, notes: Notes, name: str
) -> Conversation:
    timeline = Timeline(notes, "message.timestamp")
    instructions: list[str] = []
    for message in messages:
        if not _is_message(message):
            notes.ignored("not_a_message", repr(message)[:80])
        elif message["role"] in ("system", "developer") and not timeline.events:
            instructions.append(content_of(message.get("content"), notes, timeline.seq).text)
        else:
            _add(message, timeline, notes)
    if not timeline.events and not instructions:
        raise InputError("has no message that can be read", field="messages")
    choices = record.get("choices")
    if isinstance(choices, list) and len(choices) > 1:
        notes.ignored("choices_beyond_the_first", f"{len(choices) - 1} more")
    return put_together(
        _beside_messages(record),
        timeline=timeline,
        instructions="\n\n".join(instructions),
        id=name,
        format=OpenAIChatReader.name,
        group=group,
        notes=notes,
    )


def _add(message: Mapping[str, Any], timeline: Timeline, notes: Notes) -> None:
    role = message["role"]
    time = timeline.time(first_of(message, TIMES))
    id = str(message.get("id") or "")
    if role in ("tool", "function"):
        answer = content_of(message.get("content"), notes, timeline.seq).text
        call_id = str(message.get("tool_call_id") or "")
        extras = timeline.unknown("message", message, _KNOWN_IN_MESSAGE)
        name = str(message.get("name") or "")
        timeline.result(answer, call_id=call_id, name=name, time=time, id=id, extras=extras)
        return
    content = content_of(message.get("content"), notes, timeline.seq)
    extras = timeline.unknown("message", message, _KNOWN_IN_MESSAGE)
    if content.parts:
        extras["parts"] = content.parts
    audio = message.get("audio")
    played = audio.get("transcript") if isinstance(audio, dict) else None
    said = content.text or str(message.get("refusal") or "")
    calls = list(_calls_of(message))
    if said or played or extras or not calls:
        timeline.say(
            timeline.participant(_role(role), str(message.get("name") or "")),
            intended=Text(said, "message.content") if said or not played else None,
            spoken=Text(played, "message.audio.transcript") if isinstance(played, str) else None,
            time=time,
            id=id,
            extras=extras,
        )
    for call in calls:
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments", function.get("input"))
        name = str(function.get("name") or "")
        extras = timeline.unknown("tool_call", call, _KNOWN_IN_CALL)
        timeline.call(name, arguments, call_id=str(call.get("id") or ""), time=time, extras=extras)


def _calls_of(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        yield from (call for call in calls if isinstance(call, dict))
    if isinstance(message.get("function_call"), dict):
        yield {"function": message["function_call"]}


def _role(role: str) -> str:
    return "system" if role == "developer" else role


READER = OpenAIChatReader()
