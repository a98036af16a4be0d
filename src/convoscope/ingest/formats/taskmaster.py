"""Taskmaster dialogues (1 to 4): utterances with a speaker; of the third and fourth, calls of an API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.shapes import UNKNOWN_ROLE, embedded, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, empty_message
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes


class TaskmasterReader(TalkReader):
    """Dialogues with a conversation id and utterances."""

    name = "taskmaster"
    title = "Taskmaster dialogues"
    shown = frozenset({"index", "context", "name", "speaker"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            first = as_object(next(iter(as_list(value.get("utterances"))), None))
            if "conversation_id" in value and {"index", "speaker", "text"} <= first.keys():
                return Detection(0.96, '"utterances" with index, speaker and text', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        for record in group.records:
            value = as_object(record.value)
            messages: list[TalkMessage] = []
            for utterance in map(as_object, as_list(value.get("utterances"))):
                role = as_text(utterance.get("speaker")).lower() or UNKNOWN_ROLE
                spoken = {"role": role, "content": as_text(utterance.get("text"))}
                marked = filled({"segments": utterance.get("segments")})
                words = [TalkMessage(plain=plain, extras=marked) for plain in plain_messages(spoken)]
                called = [TalkMessage(plain=plain) for plain in _api(utterance)]
                words = words or [empty_message(utterance)]
                # What the assistant says rests on the calls; what the user says leads to them.
                messages += [*called, *words] if role in ("assistant", "system") else [*words, *called]
            kept = ("instruction_id", "scenario", "vertical", "instructions")
            yield LoggedTalk(
                id=as_text(value.get("conversation_id")),
                messages=messages,
                dimensions=filled({"domain": as_text(value.get("vertical"))}),
                extras=filled({name: value.get(name) for name in kept}),
                raw=value,
            )


def _api(utterance: JsonObject) -> Iterator[JsonObject]:
    """The calls that an utterance led to, and their answers: the context numbers them."""
    calls: dict[str, JsonObject] = {}
    for annotation in map(as_object, as_list(utterance.get("annotations"))):
        number = as_text(annotation.get("context")).rpartition("_")[2]
        if annotation.get("name") in ("api_call", "request", "response"):
            calls.setdefault(number, {})[str(annotation["name"])] = annotation.get("value")
    for number, call in calls.items():
        use = {"type": "tool_use", "id": number, "name": call.get("api_call"), "input": call.get("request")}
        yield from plain_messages({"role": "assistant", "content": [use]})
        if "response" in call:
            result = {"type": "tool_result", "tool_use_id": number, "content": embedded(call["response"])}
            yield from plain_messages({"role": "tool", "content": [result]})
    for position, api in enumerate(map(as_object, as_list(utterance.get("apis")))):
        id = f"{as_text(utterance.get('index'))}-{position}"
        use = {"type": "tool_use", "id": id, "name": api.get("name"), "input": _named(api.get("args"), "arg")}
        yield from plain_messages({"role": "assistant", "content": [use]})
        if "response" in api:
            result = {"type": "tool_result", "tool_use_id": id, "content": _named(api["response"], "response")}
            yield from plain_messages({"role": "tool", "content": [result]})


def _named(pairs: Any, kind: str) -> Any:
    """The values of a call of the third set by their names; other values stay as they are."""
    entries = [as_object(pair) for pair in as_list(pairs)]
    if not all(f"{kind}_name" in entry for entry in entries):
        return pairs
    named: dict[str, list[Any]] = {}
    for entry in entries:
        name, value = as_text(entry[f"{kind}_name"]), entry.get(f"{kind}_value")
        named.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in named.items()}


READER = TaskmasterReader()
