"""Run states of the OpenAI Agents SDK: the input, and the items that agents generated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.exchanges import TOKENS, numbers_in
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_CALLS = {"program": "code", "tool_search_call": "arguments", "shell_call": "action", "apply_patch_call": "operation"}
_RESULTS = {"program_output": "result", "tool_search_output": "tools", "shell_call_output": "output"}


_INPUT, _ITEMS = {"original_input", "originalInput"}, {"generated_items", "generatedItems"}
_USUAL = ("mcp_approval_request", "mcp_approval_response", "mcp_list_tools", "compaction")
"""Items that say nothing: they are markers."""


class RunStateReader(TalkReader):
    """A state with a version of its schema."""

    name = "agents-runstate"
    title = "OpenAI Agents run states"

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if "$schemaVersion" in value and (_INPUT & value.keys()) and (_ITEMS & value.keys()):
                return Detection(0.96, '"$schemaVersion" with generated items', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            given = value.get("original_input", value.get("originalInput"))
            messages = [TalkMessage(plain=plain) for plain in plain_messages(given)]
            called, tokens = set[str](), _tokens(value)
            names = ("generated_items", "generatedItems", "session_items")
            listed: list[Any] = next((value[name] for name in names if as_list(value.get(name))), [])
            for item in map(as_object, listed):
                agent = as_text(as_object(item.get("agent")).get("name"))
                raw = _known(as_object(item.get("raw_item", item.get("rawItem"))))
                id = as_text(raw.get("call_id"))
                if item.get("type") == "tool_approval_item" and id in called:
                    notes.ignored("approval_of_call", id[:80])  # the call that waits is an item of its own
                    continue
                called.add(id)
                plain = plain_messages([raw], "assistant")
                if raw.get("type") in _USUAL:
                    messages.append(TalkMessage(plain=raw, marker=raw["type"]))
                elif not plain:
                    notes.unknown(f"item.type={raw.get('type')}")
                messages += [
                    TalkMessage(plain=message, name=agent if message["role"] == "assistant" else "")
                    for message in plain
                ]
                if plain and (usage := tokens.pop(_id(raw), None)):
                    messages[-1].usage = usage
            yield LoggedTalk(
                id=as_text(value.get("conversation_id")),
                messages=messages,
                agent=as_text(as_object(value.get("current_agent", value.get("currentAgent"))).get("name")),
                extras=filled({"schema": value.get("$schemaVersion"), "trace": value.get("trace")}),
                raw=value,
            )


def _id(item: JsonObject) -> str:
    return as_text(item.get("id")) or as_text(item.get("call_id", item.get("callId")))


def _tokens(state: JsonObject) -> dict[str, JsonObject]:
    """What the answers of the model cost in tokens, by the last item of each answer."""
    answers = [as_object(one) for one in as_list(state.get("model_responses", state.get("modelResponses")))]
    last = [_id(as_object((as_list(answer.get("output")) or [None])[-1])) for answer in answers]
    usage = [numbers_in(as_object(answer.get("usage")), TOKENS) for answer in answers]
    return {id: one for id, one in zip(last, usage, strict=True) if id and one}


def _known(raw: JsonObject) -> JsonObject:
    """Items of tools that the service runs, and of the SDK for JavaScript, in the shape of function calls."""
    kind = as_text(raw.get("type"))
    if "callId" in raw:
        raw = {**raw, "call_id": raw["callId"]}
    if kind == "function_call_result":
        return {**raw, "type": "function_call_output"}
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
