"""OpenAI chat messages with tool calls: requests, completions, fine-tuning files, plain message lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.conversation import Conversation, Text
from convoscope.errors import InputError
from convoscope.ingest.building import Timeline
from convoscope.ingest.openai_record import (
    CONVERSATION_IDS,
    ENVELOPES,
    TIMES,
    Facts,
    answer_of,
    conversation_id,
    copied,
    filled,
    is_role,
    put_together,
    take,
    take_content,
    take_role,
    take_text,
    take_time,
    without_payload,
)
from convoscope.ingest.openai_responses import is_item
from convoscope.ingest.reader import Detection, Group, Reader, Sample
from convoscope.ingest.report import Notes

_USUAL_IN_MESSAGE = frozenset({"refusal", "audio", "annotations", "content", *TIMES, *CONVERSATION_IDS})
_USUAL_IN_CALL = frozenset({"type", "index"})


class OpenAIChatReader(Reader):
    """Lists of messages with a role and content."""

    name = "openai-chat"
    title = "OpenAI chat messages"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, list) and value and all(_stands_alone(one) for one in value):
                return Detection(0.9, "each record is a list of messages with a role")
            if isinstance(value, dict):
                if _holds_messages(value):
                    return Detection(0.9, '"messages" (or "choices") with a role')
                if _stands_alone(value):
                    return _message_by_message(value)
        return None

    def key(self, value: Any) -> str | None:
        return conversation_id(value) if isinstance(value, dict) else None

    def build(self, group: Group, notes: Notes) -> Iterator[Conversation]:
        records = [record for record in group.records if _stands_alone(record.value)]
        if records:
            messages = [(record.number, record.value) for record in group.records]
            yield _conversation({}, messages, group, notes, conversation_id(records[0].value) or group.name)
            return
        for record in group.records:
            value = record.value
            if isinstance(value, list):
                yield _conversation({}, [(record.number, one) for one in value], group, notes, group.name)
            elif isinstance(value, dict) and _holds_messages(value):
                facts = copied(value)
                messages = [(record.number, one) for one in _take_messages(facts, notes)]
                yield _conversation(facts, messages, group, notes, group.name)
            else:
                raise InputError(
                    "no messages here", field="messages", hint='expected {"messages": [{"role": …, "content": …}]}'
                )


def _message_by_message(value: Facts) -> Detection:
    if conversation_id(value) is not None:
        return Detection(0.8, "each record is a message with the id of its conversation", "key")
    return Detection(0.7, "each record is a message", "file")


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and is_role(value.get("role"))


def _stands_alone(value: Any) -> bool:
    """A message that is nobody's item: outside a list called messages, the other shape looks alike."""
    return _is_message(value) and not is_item(value)


def _holds_messages(record: Facts) -> bool:
    messages, choices = record.get("messages"), record.get("choices")
    if isinstance(messages, list) and any(_is_message(one) for one in messages):
        return True
    if (
        isinstance(choices, list)
        and choices
        and isinstance(choices[0], dict)
        and _is_message(choices[0].get("message"))
    ):
        return True
    return any(isinstance(record.get(name), dict) and _holds_messages(record[name]) for name in ENVELOPES)


def _take_messages(facts: Facts, notes: Notes) -> list[Any]:
    """The messages of a record: the history that was sent, then what the model answered."""
    messages = facts.get("messages")
    found = facts.pop("messages") if isinstance(messages, list) else []
    choices = facts.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        first = dict(choices[0])
        if _is_message(first.get("message")):
            found = [*found, first.pop("message")]
        facts["choices"] = [first, *choices[1:]] if filled(first) or choices[1:] else []
        if choices[1:]:
            notes.ignored("choices_beyond_the_first", f"{len(choices) - 1} more")
    for name in ENVELOPES:
        inner = facts.get(name)
        if isinstance(inner, dict) and _holds_messages(inner):
            found = [*found, *_take_messages(inner, notes)]
    return found


def _conversation(
    facts: Facts, messages: Sequence[tuple[int, Any]], group: Group, notes: Notes, name: str
) -> Conversation:
    timeline = Timeline(notes, "message.timestamp")
    instructions: list[str] = []
    beside: list[Facts] = []
    by_line = not facts and len(group.records) > 1
    for number, message in messages:
        notes.line = number if by_line else notes.line
        if not _is_message(message):
            notes.ignored("not_a_message", repr(message)[:80], timeline.seq)
            timeline.mark("not_a_message", message)
        elif message["role"] in ("system", "developer") and not timeline.events:
            rest = dict(message)
            del rest["role"]
            content = take_content(rest, notes, 0)
            instructions.append(content.text)
            beside.append(filled({**rest, "content": content.parts}))
        else:
            _add(dict(message), timeline, notes)
    if not timeline.participants and not instructions:
        raise InputError("has no message that can be read", field="messages")
    if any(beside):
        facts["system_messages"] = beside
    return put_together(
        facts,
        timeline=timeline,
        instructions="\n\n".join(instructions),
        name=name,
        format=OpenAIChatReader.name,
        group=group,
        notes=notes,
    )


def _add(facts: Facts, timeline: Timeline, notes: Notes) -> None:
    role = take_role(facts, timeline)
    time = take_time(facts, timeline)
    id = take_text(facts, "id")
    if role == "tool":
        answer = answer_of(facts.pop("content", None), notes, timeline.seq)
        call_id, name = take_text(facts, "tool_call_id"), take_text(facts, "name")
        extras = timeline.unknown("message", filled(facts), _USUAL_IN_MESSAGE)
        timeline.result(answer, call_id=call_id, name=name, time=time, id=id, extras=extras)
        return
    content = take_content(facts, notes, timeline.seq)
    said = content.text or take(facts, "refusal") or ""
    played = _take_transcript(facts, notes, timeline.seq)
    calls = _take_calls(facts)
    speaker = timeline.participant(role, take_text(facts, "name"))
    extras = filled({**facts, "content": content.parts})
    timeline.unknown("message", extras, _USUAL_IN_MESSAGE)
    if said or played or content.parts or not calls:
        timeline.say(
            speaker,
            intended=Text(said, "message.content") if said or played is None else None,
            spoken=None if played is None else Text(played, "message.audio.transcript"),
            time=time,
            id=id,
            extras=extras,
        )
        extras, id = {}, ""
    for call in calls:
        function = take(call, "function", "custom", kind=dict) or {}
        rest = dict(function)
        arguments = rest.pop("arguments", rest.pop("input", None))
        name, call_id = take_text(rest, "name"), take_text(call, "id")
        more = {key: value for key, value in {**call, **rest}.items() if key not in _USUAL_IN_CALL}
        timeline.unknown("tool_call", more, _USUAL_IN_CALL)
        timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras={**extras, **more})
        extras, id = {}, ""


def _take_transcript(facts: Facts, notes: Notes, seq: int) -> str | None:
    audio = facts.get("audio")
    if not isinstance(audio, dict):
        return None
    rest = dict(audio)
    played = take(rest, "transcript")
    facts["audio"] = without_payload(rest, notes, seq)
    return None if played is None else str(played)


def _take_calls(facts: Facts) -> list[Facts]:
    """The tool calls of a message, of either generation; what is not shaped like one stays where it is."""
    calls: list[Facts] = []
    listed = facts.get("tool_calls")
    if isinstance(listed, list) and all(_is_call(one) for one in listed):
        calls = [dict(one) for one in facts.pop("tool_calls")]
    if isinstance(facts.get("function_call"), dict):
        calls.append({"function": facts.pop("function_call")})
    return calls


def _is_call(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("function") or value.get("custom"), dict)


READER = OpenAIChatReader()
