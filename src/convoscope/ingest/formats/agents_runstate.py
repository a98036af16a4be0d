"""Run states of the OpenAI Agents SDK: the input, and the items that agents generated."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_CALLS = {"program": "code", "tool_search_call": "arguments", "shell_call": "action", "apply_patch_call": "operation"}
_RESULTS = {"program_output": "result", "tool_search_output": "tools", "shell_call_output": "output"}


class RunStateReader(TalkReader):
    """A state with a version of its schema."""

    name = "agents-runstate"
    title = "OpenAI Agents run states"

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if "$schemaVersion" in value and "generated_items" in value and "original_input" in value:
                return Detection(0.96, '"$schemaVersion" with "generated_items"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            messages = [TalkMessage(plain=plain) for plain in plain_messages(value.get("original_input"))]
            called: set[str] = set()
            for item in map(as_object, as_list(value.get("generated_items")) or as_list(value.get("session_items"))):
                agent = as_text(as_object(item.get("agent")).get("name"))
                raw = _known(as_object(item.get("raw_item")))
                id = as_text(raw.get("call_id"))
                if item.get("type") == "tool_approval_item" and id in called:
                    notes.ignored("approval_of_call", id[:80])  # the call that waits is an item of its own
                    continue
                called.add(id)
                plain = plain_messages([raw], "assistant")
                if not plain:
                    notes.unknown(f"item.type={raw.get('type')}")
                messages += [
                    TalkMessage(plain=message, name=agent if message["role"] == "assistant" else "")
                    for message in plain
                ]
            yield LoggedTalk(
                id=as_text(value.get("conversation_id")),
                messages=messages,
                agent=as_text(as_object(value.get("current_agent")).get("name")),
                extras=filled({"schema": value.get("$schemaVersion"), "trace": value.get("trace")}),
                raw=value,
            )


def _known(raw: JsonObject) -> JsonObject:
    """Items of tools that the service runs, in the shape of function calls."""
    kind = as_text(raw.get("type"))
    if kind in _CALLS:
        return {
            "type": "function_call",
            "name": kind.removesuffix("_call"),
            "call_id": raw.get("call_id"),
            "arguments": raw.get(_CALLS[kind]),
        }
    if kind in _RESULTS:
        return {"type": "function_call_output", "call_id": raw.get("call_id"), "output": raw.get(_RESULTS[kind])}
    return raw


READER = RunStateReader()
