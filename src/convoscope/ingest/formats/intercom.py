"""Intercom conversations: the first message and the parts that followed; notes and changes are not said."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Label, Outcome
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_ROLES = {
    "user": "user",
    "lead": "user",
    "contact": "user",
    "admin": "assistant",
    "bot": "assistant",
    "team": "assistant",
}
_SPOKEN = ("comment", "open", "close", "assignment", "quick_reply", "away_mode_assignment")
"""Parts that may carry a message; of the others a body is a note for colleagues."""
_PARTS = ("conversation_parts", "ticket_parts")
_FIRST = ("user_message", "admin_message")
_DEEPEST = 20
_BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|h\d|tr)>", re.IGNORECASE)
_TAG = re.compile(r"<[^>]{0,2000}>")


class IntercomReader(TalkReader):
    """Objects of the type `conversation`."""

    name = "intercom"
    title = "Intercom conversations"
    shown = frozenset({"part_type"})
    is_rewritten = True

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if any(map(_is_conversation, _conversations(value))):
                return Detection(0.95, '"source" with "conversation_parts"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            for value in _conversations(record.value):
                if not any(name in value for name in (*_PARTS, "body")):
                    notes.set_aside("parts_not_listed", as_text(value.get("id")))
                yield _talk(_in_text(value))


def _conversations(value: object) -> list[JsonObject]:
    record = as_object(value)
    inner = as_object(as_object(record.get("data")).get("item"))
    listed = [as_object(entry) for entry in as_list(record.get("conversations", record.get("data")))]
    return listed or ([inner] if inner else [record])


def _is_conversation(entry: JsonObject) -> bool:
    parts = [as_object(entry.get(name)) for name in _PARTS]
    if any(name in part for name, part in zip(_PARTS, parts, strict=True)):
        return True
    is_whole = isinstance(entry.get("source"), dict) and (entry.get("type") == "conversation" or _PARTS[0] in entry)
    return is_whole or (entry.get("type") in _FIRST and {"body", "conversation_id"} <= entry.keys())


def _in_text(value: Any, depth: int = 0) -> Any:
    """A conversation with its bodies as text, not HTML."""
    if isinstance(value, list) and depth < _DEEPEST:
        return [_in_text(entry, depth + 1) for entry in value]
    if not isinstance(value, dict) or depth >= _DEEPEST:
        return value
    return {
        name: text_of_html(inner) if name == "body" and isinstance(inner, str) else _in_text(inner, depth + 1)
        for name, inner in value.items()
    }


def _talk(value: JsonObject) -> LoggedTalk:
    source = as_object(value.get("source"))
    if value.get("type") in _FIRST:  # the answer to a message that begins a conversation
        author = {"type": as_text(value["type"]).removesuffix("_message")}
        source, value = {**value, "author": author}, {**value, "id": value.get("conversation_id")}
    parts = [part for name in _PARTS for part in as_list(as_object(value.get(name)).get(name))]
    messages = _messages(source, {"created_at": value.get("created_at")})
    for part in map(as_object, parts):
        kind = as_text(part.get("part_type"))
        written = _messages(part, part) if kind in _SPOKEN else []
        at = seconds(part, ("created_at",))
        messages += written or [TalkMessage(plain={"role": "", **part}, at=at, marker=f"part_{kind}")]
    state = as_text(value.get("state")) or as_text(value.get("ticket_state"))
    given, agent = as_object(value.get("conversation_rating")), as_object(value.get("ai_agent"))
    labels: tuple[Label, ...] = verdicts(
        "intercom",
        {
            "rating": given.get("rating"),
            "ai_agent_rating": agent.get("rating"),
            "ai_agent_resolution": agent.get("resolution_state") or None,
        },
    )
    return LoggedTalk(
        id=as_text(value.get("id")),
        messages=messages,
        labels=labels,
        outcome=Outcome(final_status=state),
        extras=filled({name: value.get(name) for name in ("title", "custom_attributes", "tags", "priority")}),
        raw=value,
    )


def _messages(value: JsonObject, timed: JsonObject) -> list[TalkMessage]:
    author = as_object(value.get("author"))
    role, name = _ROLES.get(as_text(author.get("type")), "unknown"), as_text(author.get("name"))
    text = as_text(value.get("body"))
    if value.get("redacted") is True:  # a note that the text was deleted is in its place
        return [TalkMessage(plain={"role": "", **value}, at=seconds(timed, ("created_at",)), marker="part_redacted")]
    plain = plain_messages({"role": role, "content": text, "id": as_text(value.get("id"))}) if text else []
    return [TalkMessage(plain=entry, at=seconds(timed, ("created_at",)), name=name) for entry in plain]


def text_of_html(body: str) -> str:
    """The text of a message that is written in HTML."""
    lines = html.unescape(_TAG.sub("", _BREAK.sub("\n", body))).split("\n")
    return "\n".join(line.strip() for line in lines if line.strip())


READER = IntercomReader()
