"""OpenAI Responses: input and output items with function calls and their outputs."""

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
    search,
    take,
    take_content,
    take_role,
    take_text,
    take_time,
)
from convoscope.ingest.reader import Detection, Group, Reader, Sample
from convoscope.ingest.report import Notes

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
ITEM_TYPES = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})
_HOLDERS = ("input", "output", "data")
_USUAL_IN_ITEM = frozenset({"status", "content", "type", *TIMES, *CONVERSATION_IDS})


class OpenAIResponsesReader(Reader):
    """Lists of typed items."""

    name = "openai-responses"
    title = "OpenAI Responses items"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, list) and value and any(is_item(one) for one in value):
                return Detection(0.9, "each record is a list of Responses items")
            if isinstance(value, dict):
                if value.get("object") == "response":
                    return Detection(0.95, '"object" is "response"')
                if _holds_items(value):
                    return Detection(0.85, '"input" or "output" holds Responses items')
                if is_item(value):
                    if conversation_id(value) is not None:
                        return Detection(0.8, "each record is an item with the id of its conversation", "key")
                    return Detection(0.7, "each record is a Responses item", "file")
        return None

    def key(self, value: Any) -> str | None:
        return conversation_id(value) if isinstance(value, dict) else None

    def build(self, group: Group, notes: Notes) -> Iterator[Conversation]:
        records = [record for record in group.records if is_item(record.value)]
        if records:
            items = [(record.number, record.value) for record in group.records]
            yield _conversation({}, items, group, notes, conversation_id(records[0].value) or group.name)
            return
        for record in group.records:
            value = record.value
            if isinstance(value, list):
                yield _conversation({}, [(record.number, one) for one in value], group, notes, group.name)
            elif isinstance(value, dict) and _holds_items(value):
                facts = copied(value)
                items = [(record.number, one) for one in _take_items(facts)]
                yield _conversation(facts, items, group, notes, group.name)
            else:
                hint = 'expected "input" and "output" with items such as {"type": "message", …}'
                raise InputError("no items here", field="output", hint=hint)


def is_item(value: Any) -> bool:
    """A typed item of the Responses API."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value["type"] in ITEM_TYPES and (value["type"] != "message" or is_role(value.get("role")))


def _holds_items(record: Facts) -> bool:
    for name in _HOLDERS:
        held = record.get(name)
        if isinstance(held, list) and any(is_item(one) or (name == "input" and _is_untyped(one)) for one in held):
            return True
    return any(isinstance(record.get(name), dict) and _holds_items(record[name]) for name in ENVELOPES)


def _is_untyped(value: Any) -> bool:
    """The Responses API takes messages without a type as input."""
    return isinstance(value, dict) and is_role(value.get("role")) and "content" in value


def _take_items(facts: Facts) -> list[Any]:
    """What was sent and what came back, in that order."""
    found: list[Any] = []
    if isinstance(facts.get("input"), str):
        found.append({"type": "message", "role": "user", "content": facts.pop("input")})
    for name in _HOLDERS:
        if isinstance(facts.get(name), list):
            found.extend(facts.pop(name))
    for name in ENVELOPES:
        if isinstance(facts.get(name), dict):
            found.extend(_take_items(facts[name]))
    return found


def _conversation(
    facts: Facts, items: Sequence[tuple[int, Any]], group: Group, notes: Notes, name: str
) -> Conversation:
    timeline = Timeline(notes, "item.timestamp")
    told = search(facts, "instructions")
    instructions = [told] if told else []
    beside: list[Facts] = []
    by_line = not facts and len(group.records) > 1
    for number, item in items:
        notes.line = number if by_line else notes.line
        if not isinstance(item, dict):
            notes.ignored("not_an_item", repr(item)[:80], timeline.seq)
            timeline.mark("not_an_item", item)
        elif item.get("role") in ("system", "developer") and not timeline.events:
            rest = {key: value for key, value in item.items() if key not in ("role", "type")}
            content = take_content(rest, notes, 0)
            instructions.append(content.text)
            beside.append(filled({**rest, "content": content.parts}))
        else:
            _add(dict(item), timeline, notes)
    if not timeline.events and not instructions:
        raise InputError("has no item that can be read", field="output")
    if any(beside):
        facts["system_messages"] = beside
    return put_together(
        facts,
        timeline=timeline,
        instructions="\n\n".join(instructions),
        name=name,
        format=OpenAIResponsesReader.name,
        group=group,
        notes=notes,
    )


def _add(facts: Facts, timeline: Timeline, notes: Notes) -> None:
    kind = facts.get("type") or "message"
    if kind == "message" and is_role(facts.get("role")):
        _say(facts, timeline, notes)
    elif isinstance(kind, str) and kind in _CALLS:
        _call(facts, kind, timeline)
    elif kind in _OUTPUTS:
        del facts["type"]
        time, id = take_time(facts, timeline), take_text(facts, "id")
        call_id, name = take_text(facts, "call_id"), take_text(facts, "name")
        answer = answer_of(facts.pop("output", None), notes, timeline.seq)
        extras = timeline.unknown("item", filled(facts), _USUAL_IN_ITEM)
        timeline.result(answer, call_id=call_id or id, name=name, time=time, id=id, extras=extras)
    else:
        if kind != "reasoning":
            notes.unknown(f"item.type={kind}", timeline.seq)
        time, id = take_time(facts, timeline), take_text(facts, "id")
        facts.pop("type", None)
        timeline.mark(str(kind), facts, time, id)


def _say(facts: Facts, timeline: Timeline, notes: Notes) -> None:
    facts.pop("type", None)
    role, time, id = take_role(facts, timeline), take_time(facts, timeline), take_text(facts, "id")
    content = take_content(facts, notes, timeline.seq)
    extras = filled({**facts, "content": content.parts})
    timeline.unknown("item", extras, _USUAL_IN_ITEM)
    speaker = timeline.participant(role)
    timeline.say(speaker, intended=Text(content.text, "item.content"), time=time, id=id, extras=extras)


def _call(facts: Facts, kind: str, timeline: Timeline) -> None:
    del facts["type"]
    time, id = take_time(facts, timeline), take_text(facts, "id")
    call_id, name = take_text(facts, "call_id") or id, take_text(facts, "name")
    arguments = facts.pop(_CALLS[kind], None)
    output, error = None, None
    if kind == "mcp_call":
        output, error = facts.pop("output", None), take(facts, "error", kind=(str, dict))
    extras = filled(facts)
    timeline.unknown("item", extras, _USUAL_IN_ITEM)
    timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
    if output is not None or error:
        timeline.result({"error": error} if error else output, call_id=call_id, name=name, time=time)


READER = OpenAIResponsesReader()
