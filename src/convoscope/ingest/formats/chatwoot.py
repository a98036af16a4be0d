"""Chatwoot messages: incoming, outgoing, and entries that are no dialogue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from convoscope.conversation import Outcome
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader, oldest_first
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_ROLES = {0: "user", 1: "assistant", "incoming": "user", "outgoing": "assistant"}
"""By `message_type`. The others are activities (2) and templates (3), which no one wrote in the talk."""

_KEPT = ("labels", "custom_attributes", "priority", "meta")
_CAPITAL = re.compile("[A-Z]")


class ChatwootReader(TalkReader):
    """Messages with a conversation and a message type."""

    name = "chatwoot"
    title = "Chatwoot messages"
    shown = frozenset({"message_type", "private"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if any({"message_type", "inbox_id", "content"} <= entry.keys() for entry in _messages(value)):
                return Detection(0.95, '"message_type" with "inbox_id"', "file")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        talks: dict[str, list[JsonObject]] = {}
        about = {as_text(value.get("id")): value for record in group.records for value in _conversations(record.value)}
        for value in (value for record in group.records for value in _messages(record.value)):
            if "message_type" in value:
                talks.setdefault(as_text(value.get("conversation_id")), []).append(value)
            else:
                notes.ignored("event_without_message", as_text(value.get("event"))[:80])
        for id, entries in talks.items():
            messages: list[TalkMessage] = []
            held = about.get(id, {})
            for at, value in oldest_first(entries, "created_at"):
                kind = value.get("message_type")
                role = _ROLES.get(kind) if isinstance(kind, int | str) else None
                marker = "private_note" if value.get("private") is True else "" if role else f"message_type_{kind}"
                if as_object(value.get("content_attributes")).get("deleted") is True:
                    marker = marker or "message_deleted"
                text = as_text(value.get("content"))
                if marker or role is None or not text.strip():
                    messages.append(_aside(value, at, marker or "message_without_text"))
                    continue
                sender = as_text(as_object(value.get("sender")).get("name"))
                plain = plain_messages({"role": role, "content": text, "id": value.get("id")})
                failed = {"status": "failed"} if value.get("status") == "failed" else {}  # written, and not delivered
                messages += [TalkMessage(plain=entry, at=at, name=sender, extras=failed) for entry in plain]
            yield LoggedTalk(
                id=id,
                messages=messages,
                labels=verdicts(self.name, _rating(entries)),
                outcome=Outcome(final_status=as_text(held.get("status"))),
                extras=filled({name: held.get(name) for name in _KEPT}),
                raw=[entries, held],
            )


def _rating(entries: list[JsonObject]) -> JsonObject:
    """What the customer answered to the survey, which is a message of its own."""
    for entry in entries:
        given = as_object(as_object(entry.get("content_attributes")).get("submitted_values"))
        answer = as_object(given.get("csat_survey_response"))
        if answer:
            return {"csat": as_number(answer.get("rating"))}
    return {}


def _aside(value: JsonObject, at: float | None, marker: str) -> TalkMessage:
    """An entry that the other side never saw, or that has no text."""
    return TalkMessage(plain={"role": "", **value}, at=at, marker=marker[:80])


def _conversations(value: object) -> list[JsonObject]:
    """What a list of conversations, or one, says of them, but for their messages."""
    record = as_object(value)
    inner = as_object(record.get("data")) or record
    listed = [*as_list(inner.get("payload")), inner]
    holders = [as_object(entry) for entry in listed if isinstance(as_object(entry).get("messages"), list)]
    return [{name: held for name, held in entry.items() if name != "messages"} for entry in holders]


def _messages(value: object) -> list[JsonObject]:
    """The messages of a list, a response of the API, a list of conversations, or a webhook."""
    record = as_object(value)
    inner = as_object(record.get("data")) or record
    listed = value if isinstance(value, list) else inner.get("payload", inner.get("messages", [record]))
    messages: list[JsonObject] = []
    for entry in map(as_object, as_list(listed)):
        nested = [as_object(message) for message in as_list(entry.get("messages"))]
        messages += nested or [_in_api_names(entry)]
    return messages


def _in_api_names(entry: JsonObject) -> JsonObject:
    """A message with the names of the API: webhooks nest the ids, the dashboard writes camelCase."""
    if "messageType" in entry:
        return {_CAPITAL.sub(lambda capital: f"_{capital[0].lower()}", name): held for name, held in entry.items()}
    if entry.get("event") in ("message_created", "message_updated"):
        ids = {f"{name}_id": as_object(entry.get(name)).get("id") for name in ("inbox", "conversation")}
        return {**filled(ids), **entry}
    return entry


READER = ChatwootReader()
