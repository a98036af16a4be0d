"""OpenAI Responses: input and output items with function calls and their outputs."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Text, Time
from convoscope.ingest.control_text import without_control
from convoscope.ingest.formats.openai.messages import ENVELOPES, OpenAIReader, continued, one_by_one, with_reply
from convoscope.ingest.ids import CONVERSATION_IDS
from convoscope.ingest.kits.messages import MessageBlocks, has_blocks
from convoscope.ingest.kits.shapes import HOSTED_INPUTS, HOSTED_RESULTS, hosted_input
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.record import (
    TIMES,
    Fields,
    JsonObject,
    answer_of,
    filled,
    is_role,
    take_content,
    take_role,
    take_time,
    without_payload,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
ITEM_TYPES = frozenset({"message", "reasoning", *_CALLS, "function_call_output", "custom_tool_call_output"})
_HOLDERS = ("input", "output", "data")
_USUAL_IN_ITEM = frozenset({"status", "content", "type", *TIMES, *CONVERSATION_IDS})


class OpenAIResponsesReader(OpenAIReader):
    """Lists of typed items."""

    name = "openai-responses"
    title = "OpenAI Responses items"
    entry = "item"
    field = "output"
    expects = '"input" and "output" with items such as {"type": "message", …}'
    not_an_entry = "not_an_item"
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

    def is_single_entry(self, value: Any) -> bool:
        return is_item(value)

    def is_entry(self, value: Any) -> bool:
        return isinstance(value, dict)

    def holds_entries(self, record: JsonObject) -> bool:
        for name in _HOLDERS:
            held = record.get(name)
            if isinstance(held, list) and any(is_item(one) or (name == "input" and _is_untyped(one)) for one in held):
                return True
        return any(isinstance(record.get(name), dict) and self.holds_entries(record[name]) for name in ENVELOPES)

    def take_entries(self, fields: Fields) -> list[Any]:
        """What was sent and what came back, in that order."""
        entries: list[Any] = []
        if isinstance(fields.get("input"), str):
            entries.append({"type": "message", "role": "user", "content": fields.pop("input")})
        for name in _HOLDERS:
            if isinstance(fields.get(name), list):
                entries = continued(entries, fields.pop(name), fields.notes)
        for name in ENVELOPES:
            if isinstance(fields.get(name), Fields):
                entries = continued(entries, self.take_entries(fields[name]), fields.notes)
        return with_reply(entries, fields)

    def add(self, entry: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
        fields = Fields(entry, "item", notes, _USUAL_IN_ITEM)
        kind = fields.get("type") or "message"
        if kind == "message" and is_role(fields.get("role")):
            _say(fields, timeline, notes)
            return
        time, id = take_time(fields, timeline), fields.text("id")
        fields.pop("type", None)
        if isinstance(kind, str) and kind in _CALLS:
            _call(fields, kind, time, id, timeline)
        elif isinstance(kind, str) and kind.endswith("_call"):
            _hosted(fields, kind, time, id, timeline)
        elif isinstance(kind, str) and kind.endswith("_call_output"):
            call_id, name = fields.text("call_id") or id, fields.text("name")
            answer = answer_of(fields.pop("output", None), notes, timeline.seq)
            timeline.result(answer, call_id=call_id, name=name, time=time, id=id, extras=fields.rest(timeline.seq))
        else:
            if kind != "reasoning":
                notes.unknown(f"item.type={kind}", timeline.seq)
            timeline.mark(str(kind), dict(fields), time, id)


def is_item(value: Any) -> bool:
    """A typed item of the Responses API."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value["type"] in ITEM_TYPES and (value["type"] != "message" or is_role(value.get("role")))


def _is_untyped(value: Any) -> bool:
    """The Responses API takes messages without a type as input."""
    return isinstance(value, dict) and is_role(value.get("role")) and "content" in value


def _say(fields: Fields, timeline: TimelineBuilder, notes: Notes) -> None:
    fields.pop("type", None)
    role, time, id = take_role(fields, timeline), take_time(fields, timeline), fields.text("id")
    if has_blocks(fields.get("content")):
        blocks = fields.pop("content")
        MessageBlocks(timeline, role, "", time, id, fields.rest(timeline.seq)).add(blocks)
        return
    content = take_content(fields, notes, timeline.seq)
    fields["content"] = content.parts
    extras = fields.rest(timeline.seq)
    speech, control = without_control(content.text, role)
    is_said = bool(speech.strip() or content.parts)
    if not (is_said or control):
        timeline.set_message_aside(role, extras, time, id)
        return
    speaker = timeline.participant(role)
    if is_said:
        timeline.say(speaker, intended=Text(speech, "item.content"), time=time, id=id, extras=extras)
    timeline.control(speaker, control, time)


def _hosted(fields: Fields, kind: str, time: Time | None, id: str, timeline: TimelineBuilder) -> None:
    """A tool that the service knows: what is asked depends on the tool, and it may come with its result."""
    name, call_id = kind.removesuffix("_call"), fields.text("call_id") or id
    arguments, answer = hosted_input(fields), fields.take(*HOSTED_RESULTS)
    fields.take(*HOSTED_INPUTS)
    if answer is not None:
        answer = without_payload(answer, fields.notes, timeline.seq)
    timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=fields.rest(timeline.seq))
    if answer is not None:
        timeline.result(answer, call_id=call_id, name=name, time=time)


def _call(fields: Fields, kind: str, time: Time | None, id: str, timeline: TimelineBuilder) -> None:
    call_id, name = fields.text("call_id") or id, fields.text("name")
    arguments = fields.pop(_CALLS[kind], None)
    output = error = None
    if kind == "mcp_call":
        output, error = fields.pop("output", None), fields.take("error", kind=(str, dict))
    timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=fields.rest(timeline.seq))
    if output is not None or error:
        answer = filled({"error": error, "output": output}) if error else output
        timeline.result(answer, call_id=call_id, name=name, time=time)


READER = OpenAIResponsesReader()
