"""OpenAI Responses: input and output items with function calls and their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convoscope.conversation import Conversation, Text
from convoscope.errors import InputError
from convoscope.ingest.building import Timeline
from convoscope.ingest.openai_record import CONVERSATION_IDS, content_of, first_of, id_of, put_together
from convoscope.ingest.reader import Detection, Group, Reader, Sample
from convoscope.ingest.report import Notes

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
ITEM_TYPES = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})
TIMES = ("timestamp", "created_at", "time", "ts")
_HOLDERS = ("input", "output", "data")
_ENVELOPES = ("request", "response", "body")
_KNOWN_IN_CALL = frozenset(
    {"type", "id", "call_id", "name", "arguments", "input", "output", "error", "status", *TIMES, *CONVERSATION_IDS}
)
_KNOWN_IN_MESSAGE = frozenset({"type", "role", "content", "id", "status", *TIMES, *CONVERSATION_IDS})


class OpenAIResponsesReader(Reader):
    """Lists of typed items."""

    name = "openai-responses"
    title = "OpenAI Responses items"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, list) and value and any(_is_item(one) for one in value):
                return Detection(0.9, "each record is a list of Responses items")
            if isinstance(value, dict):
                if value.get("object") == "response":
                    return Detection(0.95, '"object" is "response"')
                if _items_of(value):
                    return Detection(0.9, '"input" or "output" holds Responses items')
                if _is_item(value):
                    if first_of(value, CONVERSATION_IDS) is not None:
                        return Detection(0.8, "each record is an item with the id of its conversation", "key")
                    return Detection(0.7, "each record is a Responses item", "file")
        return None

    def key(self, value: Any) -> str | None:
        return id_of(value) if isinstance(value, dict) else None

    def build(self, group: Group, notes: Notes) -> Iterator[Conversation]:
        first = group.records[0].value
        if _is_item(first):
            items = [record.value for record in group.records]
            yield _conversation({}, items, group, notes, str(first_of(first, CONVERSATION_IDS) or group.name))
            return
        for record in group.records:
            value = record.value
            if isinstance(value, list):
                yield _conversation({}, value, group, notes, group.name)
            elif isinstance(value, dict) and (items := _items_of(value)):
                yield _conversation(value, items, group, notes, id_of(value) or group.name)
            else:
                hint = 'expected "input" and "output" with items such as {"type": "message", …}'
                raise InputError("no items here", field="output", hint=hint)


def _is_item(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ITEM_TYPES


def _items_of(record: Mapping[str, Any]) -> list[Any]:
    """What was sent and what came back, in that order."""
    held = {name: record.get(name) for name in _HOLDERS}
    found: list[Any] = []
    if any(isinstance(items, list) and any(_is_item(one) for one in items) for items in held.values()):
        if isinstance(held["input"], str):
            held["input"] = [{"type": "message", "role": "user", "content": held["input"]}]
        found = [item for items in held.values() if isinstance(items, list) for item in items]
    for name in _ENVELOPES:
        inner = record.get(name)
        if isinstance(inner, dict):
            found.extend(_items_of(inner))
    return found


def _beside_items(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without the items that were taken from it."""
    rest = {key: value for key, value in record.items() if key not in (*_HOLDERS, "instructions")}
    for name in _ENVELOPES:
        inner = record.get(name)
        if isinstance(inner, dict) and _items_of(inner):
            rest[name] = _beside_items(inner)
    return rest


def _conversation(
    record: Mapping[str, Any], items: Sequence[Any], group: Group, notes: Notes, name: str
) -> Conversation:
    timeline = Timeline(notes, "item.timestamp")
    instructions = [record["instructions"]] if isinstance(record.get("instructions"), str) else []
    for item in items:
        if not isinstance(item, dict):
            notes.ignored("not_an_item", repr(item)[:80])
        elif item.get("role") in ("system", "developer") and not timeline.events:
            instructions.append(content_of(item.get("content"), notes, timeline.seq).text)
        else:
            _add(item, timeline, notes)
    if not timeline.events and not instructions:
        raise InputError("has no item that can be read", field="output")
    return put_together(
        _beside_items(record),
        timeline=timeline,
        instructions="\n\n".join(instructions),
        id=name,
        format=OpenAIResponsesReader.name,
        group=group,
        notes=notes,
    )


def _add(item: Mapping[str, Any], timeline: Timeline, notes: Notes) -> None:
    kind = item.get("type") or "message"
    time = timeline.time(first_of(item, TIMES))
    id = str(item.get("id") or "")
    call_id = str(item.get("call_id") or id)
    if kind == "message" and isinstance(item.get("role"), str):
        _say(item, timeline, notes)
    elif kind in _CALLS:
        name = str(item.get("name") or "")
        extras = timeline.unknown("item", item, _KNOWN_IN_CALL)
        timeline.call(name, item.get(_CALLS[kind]), call_id=call_id, time=time, id=id, extras=extras)
        if kind == "mcp_call" and (item.get("output") is not None or item.get("error")):
            answer = {"error": item["error"]} if item.get("error") else item["output"]
            timeline.result(answer, call_id=call_id, name=name, time=time)
    elif kind in _OUTPUTS:
        output = item.get("output")
        answer = output if isinstance(output, str | dict) else content_of(output, notes, timeline.seq).text
        extras = timeline.unknown("item", item, _KNOWN_IN_CALL)
        timeline.result(answer, call_id=call_id, time=time, id=id, extras=extras)
    else:
        if kind != "reasoning":
            notes.unknown(f"item.type={kind}", timeline.seq)
        timeline.mark(str(kind), {key: value for key, value in item.items() if key != "type"}, time, id)


def _say(item: Mapping[str, Any], timeline: Timeline, notes: Notes) -> None:
    content = content_of(item.get("content"), notes, timeline.seq)
    extras = timeline.unknown("item", item, _KNOWN_IN_MESSAGE)
    if content.parts:
        extras["parts"] = content.parts
    role = "system" if item["role"] == "developer" else str(item["role"])
    timeline.say(
        timeline.participant(role),
        intended=Text(content.text, "item.content"),
        time=timeline.time(first_of(item, TIMES)),
        id=str(item.get("id") or ""),
        extras=extras,
    )


READER = OpenAIResponsesReader()
