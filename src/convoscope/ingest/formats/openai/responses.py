"""OpenAI Responses: input and output items with function calls and their outputs."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Text
from convoscope.ingest.control_text import without_control
from convoscope.ingest.formats.openai.content_blocks import MessageBlocks, has_blocks
from convoscope.ingest.formats.openai.messages import ENVELOPES, OpenAIReader, continued, one_by_one, with_reply
from convoscope.ingest.ids import CONVERSATION_IDS
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.record import (
    TIMES,
    JsonObject,
    answer_of,
    filled,
    is_role,
    take,
    take_content,
    take_role,
    take_text,
    take_time,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
ITEM_TYPES = frozenset({"message", "reasoning", *_CALLS, *_OUTPUTS})
_HOLDERS = ("input", "output", "data")
_USUAL_IN_ITEM = frozenset({"status", "content", "type", *TIMES, *CONVERSATION_IDS})


class OpenAIResponsesReader(OpenAIReader):
    """Lists of typed items."""

    name = "openai-responses"
    title = "OpenAI Responses items"
    entry = "item"
    field = "output"
    expects = '"input" and "output" with items such as {"type": "message", …}'
    stranger = "not_an_item"
    list_name = b'"input"'

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, list) and value and any(is_item(one) for one in value):
                return Detection(0.9, "each record is a list of Responses items")
            if isinstance(value, dict):
                if value.get("object") == "response":
                    return Detection(0.95, '"object" is "response"')
                if self.holds_entries(value):
                    return Detection(0.85, '"input" or "output" holds Responses items')
                if is_item(value):
                    return one_by_one(sample, "item")
        return None

    def stands_alone(self, value: Any) -> bool:
        return is_item(value)

    def is_entry(self, value: Any) -> bool:
        return isinstance(value, dict)

    def holds_entries(self, record: JsonObject) -> bool:
        for name in _HOLDERS:
            held = record.get(name)
            if isinstance(held, list) and any(is_item(one) or (name == "input" and _is_untyped(one)) for one in held):
                return True
        return any(isinstance(record.get(name), dict) and self.holds_entries(record[name]) for name in ENVELOPES)

    def take_entries(self, facts: JsonObject, notes: Notes) -> list[Any]:
        """What was sent and what came back, in that order."""
        entries: list[Any] = []
        if isinstance(facts.get("input"), str):
            entries.append({"type": "message", "role": "user", "content": facts.pop("input")})
        for name in _HOLDERS:
            if isinstance(facts.get(name), list):
                entries = continued(entries, facts.pop(name), notes)
        for name in ENVELOPES:
            if isinstance(facts.get(name), dict):
                entries = continued(entries, self.take_entries(facts[name], notes), notes)
        return with_reply(entries, facts, notes)

    def add(self, facts: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
        _add(facts, timeline, notes)


def is_item(value: Any) -> bool:
    """A typed item of the Responses API."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value["type"] in ITEM_TYPES and (value["type"] != "message" or is_role(value.get("role")))


def _is_untyped(value: Any) -> bool:
    """The Responses API takes messages without a type as input."""
    return isinstance(value, dict) and is_role(value.get("role")) and "content" in value


def _add(facts: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
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


def _say(facts: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
    facts.pop("type", None)
    role, time, id = take_role(facts, timeline), take_time(facts, timeline), take_text(facts, "id")
    if has_blocks(facts.get("content")):
        blocks = facts.pop("content")
        extras = timeline.unknown("item", filled(facts), _USUAL_IN_ITEM)
        MessageBlocks(timeline, role, "", time, id, extras).add(blocks)
        return
    content = take_content(facts, notes, timeline.seq)
    extras = filled({**facts, "content": content.parts})
    timeline.unknown("item", extras, _USUAL_IN_ITEM)
    speech = without_control(content.text, role)
    is_said = bool(speech.words.strip() or content.parts)
    if not (is_said or speech.control):
        timeline.set_message_aside(role, extras, time, id)
        return
    speaker = timeline.participant(role)
    if is_said:
        timeline.say(speaker, intended=Text(speech.words, "item.content"), time=time, id=id, extras=extras)
    timeline.control(speaker, speech.control, time)


def _call(facts: JsonObject, kind: str, timeline: TimelineBuilder) -> None:
    del facts["type"]
    time, id = take_time(facts, timeline), take_text(facts, "id")
    call_id, name = take_text(facts, "call_id") or id, take_text(facts, "name")
    arguments = facts.pop(_CALLS[kind], None)
    output = error = None
    if kind == "mcp_call":
        output, error = facts.pop("output", None), take(facts, "error", kind=(str, dict))
    extras = filled(facts)
    timeline.unknown("item", extras, _USUAL_IN_ITEM)
    timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
    if output is not None or error:
        answer = filled({"error": error, "output": output}) if error else output
        timeline.result(answer, call_id=call_id, name=name, time=time)


READER = OpenAIResponsesReader()
