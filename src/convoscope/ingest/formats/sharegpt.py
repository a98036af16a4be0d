"""ShareGPT conversations: turns with `from` and `value`, as training sets hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.ingest.kits.shapes import UNKNOWN_ROLE, embedded, plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, empty_message
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
            if {"role", "content"} <= first.keys() and isinstance(value.get("conversations"), list):
                return Detection(0.9, '"conversations" with "role" and "content"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            value = as_object(record.value)
            messages: list[TalkMessage] = []
            for turn in map(as_object, _turns(value)):
                if "from" not in turn and "value" not in turn:
                    messages += [TalkMessage(plain=entry) for entry in plain_messages(turn)] or [empty_message(turn)]
                    continue
                sender, held = as_text(turn.get("from")).lower(), turn.get("value")
                text = as_text(held)
                if held is not None and not isinstance(held, str):
                    notes.set_aside("value_not_text", str(held)[:80])
                role = _ROLES.get(sender, sender) or UNKNOWN_ROLE
                content: Any = [_call(text)] if sender == "function_call" else _blocks(text, role)
                plain = plain_messages({"role": role, "content": content})
                messages += [TalkMessage(plain=entry) for entry in plain] or [empty_message(turn)]
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


def _blocks(text: str, role: str) -> Any:
    """A text, and calls and answers that are marked in it, as Hermes and its like write them."""
    if role == "tool":
        answers = [embedded(piece) for is_inside, piece in _marked(text, "tool_response") if is_inside]
        return (answers[0] if len(answers) == 1 else answers) if answers else text
    if role != "assistant":
        return text
    return [_call(piece) if is_inside else piece for is_inside, piece in _marked(text, "tool_call")]


def _marked(text: str, tag: str) -> Iterator[tuple[bool, str]]:
    """The pieces of a text, and whether each is between the marks; a mark that is not closed is text."""
    before, *rest = text.split(f"<{tag}>")
    for piece in rest:
        inside, closing, after = piece.partition(f"</{tag}>")
        if not closing:
            before = f"{before}<{tag}>{piece}"
            continue
        if before.strip():
            yield False, before
        yield True, inside.strip()
        before = after
    if before.strip():
        yield False, before


def _call(text: str) -> JsonObject:
    """A call that is written as JSON in the text of a turn."""
    held = as_object(embedded(text))
    return {"type": "tool_use", "name": held.get("name", ""), "input": held.get("arguments", text)}


READER = ShareGPTReader()
