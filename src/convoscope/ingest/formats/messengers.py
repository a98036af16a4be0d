"""Exports of messengers: Telegram, Facebook. They name people, not roles: who is the agent has to be said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.shapes import UNKNOWN_ROLE
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, oldest_first
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import role_of

_DEEPEST = 20


class TelegramReader(TalkReader):
    """A chat, or an export of many."""

    name = "telegram"
    title = "Telegram exports"
    shown = frozenset({"id"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            for chat in _chats(value):
                first = as_object(next(iter(as_list(chat.get("messages"))), None))
                if {"type", "date"} <= first.keys() and ("from_id" in first or "actor_id" in first):
                    return Detection(0.95, '"messages" with "from_id" and "date"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        for record in group.records:
            for chat in _chats(record.value):
                messages: list[TalkMessage] = []
                for value in map(as_object, as_list(chat.get("messages"))):
                    at, kind = seconds(value, ("date_unixtime", "date")), as_text(value.get("type"))
                    written = _message(as_text(value.get("from")), _text(value.get("text")), at, value.get("id"))
                    if written and isinstance(value.get("text"), list):
                        written[0].extras = {"text": value["text"]}
                    if kind == "message" and written:
                        messages += written
                    else:
                        marker = "message_without_text" if kind == "message" else f"entry_{kind}"
                        messages.append(TalkMessage(plain={"role": "", **value}, at=at, marker=marker))
                yield LoggedTalk(
                    id=as_text(chat.get("id")),
                    messages=known_roles(messages),
                    extras=filled({"name": chat.get("name")}),
                    raw=chat,
                )


class FacebookReader(TalkReader):
    """A thread of Messenger or Instagram, newest first."""

    name = "facebook"
    title = "Facebook Messenger exports"
    is_rewritten = True

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            first = as_object(next(iter(as_list(value.get("messages"))), None))
            if {"sender_name", "timestamp_ms"} <= first.keys():
                return Detection(0.96, '"messages" with "sender_name" and "timestamp_ms"', "record")
            if {"senderName", "timestamp", "isUnsent"} <= first.keys():
                return Detection(0.96, '"messages" with "senderName" and "isUnsent"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        for record in group.records:
            thread = as_object(_repaired(record.value, notes))
            messages: list[TalkMessage] = []
            # Chats that are encrypted end to end are exported in other names.
            for at, value in oldest_first(as_list(thread.get("messages")), "timestamp_ms", "timestamp"):
                name = as_text(value.get("sender_name")) or as_text(value.get("senderName"))
                text = as_text(value.get("content")) or as_text(value.get("text"))
                is_gone = value.get("is_unsent") is True or value.get("isUnsent") is True
                # The export says so in the language of who asked for it; only the English words are known here.
                is_said = not is_gone and text != f"{name} sent an attachment."
                marker = "message_deleted" if is_gone else "message_without_text"
                aside = TalkMessage(plain={"role": "", **value}, at=at, marker=marker)
                messages += (is_said and _message(name, text, at)) or [aside]
            yield LoggedTalk(
                id=as_text(thread.get("thread_path")) or as_text(thread.get("threadName")),
                messages=known_roles(messages),
                extras=filled({"title": thread.get("title")}),
                raw=thread,
            )


def _chats(value: Any) -> list[JsonObject]:
    record = as_object(value)
    listed = as_list(as_object(record.get("chats")).get("list"))
    return [as_object(chat) for chat in listed] or [record]


def _message(name: str, text: str, at: float | None, id: Any = None) -> list[TalkMessage]:
    if not text.strip():
        return []
    role = role_of(name) if name else UNKNOWN_ROLE
    plain = {"role": role, "name": name, "content": [{"type": "text", "text": text}], **filled({"id": as_text(id)})}
    return [TalkMessage(plain=plain, at=at)]


def known_roles(messages: list[TalkMessage]) -> list[TalkMessage]:
    """Messages with the roles that the names say, where they name both an agent and a user; else with unknown roles."""
    written = [message for message in messages if not message.marker]
    if not {"user", "assistant"} <= {message.plain["role"] for message in written}:
        for message in written:
            message.plain["role"] = UNKNOWN_ROLE
    return messages


def _text(value: Any) -> str:
    """A text, or a list of texts and marked parts."""
    if isinstance(value, list):
        return "".join(part if isinstance(part, str) else as_text(as_object(part).get("text")) for part in value)
    return as_text(value)


def _repaired(text: Any, notes: Notes, depth: int = 0) -> Any:
    """The texts of a value. Facebook writes the bytes of UTF-8 as if they were Latin-1."""
    if isinstance(text, dict) and depth < _DEEPEST:
        return {name: _repaired(inner, notes, depth + 1) for name, inner in text.items()}
    if isinstance(text, list) and depth < _DEEPEST:
        return [_repaired(inner, notes, depth + 1) for inner in text]
    if not isinstance(text, str) or text.isascii():
        return text
    try:
        repaired = text.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        return text
    notes.repaired("encoding")
    return repaired


TELEGRAM = TelegramReader()
FACEBOOK = FacebookReader()
