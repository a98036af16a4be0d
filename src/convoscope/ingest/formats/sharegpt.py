"""ShareGPT conversations: turns with `from` and `value`, as training sets hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.ingest.kits.shapes import UNKNOWN_ROLE, embedded, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_ROLES = {
    "human": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "observation": "tool",
    "function_response": "tool",
    "function_call": "assistant",
}


_TURNS = ("conversations", "conversation", "items")
"""Where the turns are; the oldest exports call them items."""


class ShareGPTReader(TalkReader):
    """Records with a list of conversations, which are turns."""

    name = "sharegpt"
    title = "ShareGPT conversations"
    shown = frozenset({"from"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            first = as_object(next(iter(_turns(value)), None))
            if {"from", "value"} <= first.keys():
                return Detection(0.95, '"conversations" with "from" and "value"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            messages: list[TalkMessage] = []
            for turn in map(as_object, _turns(value)):
                sender = as_text(turn.get("from")).lower()
                text = as_text(turn.get("value"))
                if sender == "function_call":
                    call = as_object(_call(text))
                    messages += [
                        TalkMessage(plain=entry) for entry in plain_messages({"role": "assistant", "content": [call]})
                    ]
                    continue
                plain = plain_messages({"role": _ROLES.get(sender, sender) or UNKNOWN_ROLE, "content": text})
                if not plain and text.strip():
                    notes.set_aside("role_unknown", repr(sender[:80]))
                messages += [TalkMessage(plain=entry) for entry in plain]
            kept = {name: held for name, held in value.items() if name not in ("id", "system", "tools", *_TURNS)}
            yield LoggedTalk(
                id=as_text(value.get("id")),
                messages=messages,
                instructions=as_text(value.get("system")),
                model=as_text(value.get("model")),
                tools=as_list(embedded(value.get("tools"))) or None,
                extras=filled(kept),
                raw=value,
            )


def _turns(value: JsonObject) -> Sequence[Any]:
    return as_list(next((value[name] for name in _TURNS if name in value), None))


def _call(text: str) -> object:
    """A call that is written as JSON in the text of a turn."""
    held = as_object(embedded(text))
    return {"type": "tool_use", "name": held.get("name", ""), "input": held.get("arguments", text)}


READER = ShareGPTReader()
