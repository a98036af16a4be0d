"""Rasa: trackers, and events of a conversation with its slots, intents and actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.ingest.kits.shapes import embedded, plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_SAYS = "utter_"
"""How the names of actions begin that only say a text; an event of the bot has the text."""
_QUIET = ("action_listen", "action_session_start", "action_unlikely_intent")
_KINDS = frozenset(
    {"user", "bot", "action", "slot", "agent", "session_started", "session_ended", "restart", "active_loop", "form"}
    | {"followup", "undo", "rewind", "pause", "resume", "reminder", "cancel_reminder", "export", "entities", "stack"}
    | {"user_featurization", "action_execution_rejected", "loop_interrupted", "flow_started", "flow_completed"}
)
_SIGNS = {"user": frozenset({"text", "parse_data"}), "action": frozenset({"name", "policy"})}
"""Fields by which an event alone is known: other programs write events of users and actions, too."""
_SPEAKERS = {"user": "user", "bot": "assistant", "agent": "assistant"}
"""An `agent` is a person who took over."""
_UNDERSTOOD = ("intent", "entities", "commands")


class RasaReader(TalkReader):
    """Trackers with events, or the events alone: as a list, from a broker, or as rows of a tracker store."""

    name = "rasa"
    title = "Rasa trackers"
    shown = frozenset({"event", "type_name"})
    no_messages = "has events, and nothing was said or done"
    unkeyed_record_is_conversation = True

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if _trackers(value):
                return Detection(0.96, '"events" of a tracker', "record")
            if _event(value) and "sender_id" in value:
                return Detection(0.95, "events of trackers", "key")
            if _SIGNS.get(as_text(value.get("event")), frozenset({""})) <= value.keys():
                return Detection(0.95, "events of a tracker", "file")
        return None

    def key(self, value: Any) -> str | None:
        return as_text(as_object(value).get("sender_id")) or None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        values = [as_object(record.value) for record in group.records]
        if any(map(_event, values)):
            id = next(filter(None, map(self.key, values)), "")
            yield LoggedTalk(id=id, messages=_messages(list(map(_event, values))), raw=values)
            return
        for value in values:
            for sender, tracker in _trackers(value) or [("", value)]:
                slots = filled(as_object(tracker.get("slots")))
                loop = tracker.get("active_loop") or tracker.get("active_form")
                yield LoggedTalk(
                    id=as_text(tracker.get("sender_id")) or sender,
                    messages=_messages(as_list(tracker.get("events"))),
                    extras=filled({"slots": slots, "active_loop": loop}),
                    raw=tracker,
                )


def _trackers(value: JsonObject) -> list[tuple[str, JsonObject]]:
    """The tracker of a record, or several by sender."""
    members = [("", value), *value.items()]
    return [(name, tracker) for name, tracker in members if any(map(_event, as_list(as_object(tracker).get("events"))))]


def _event(value: Any) -> JsonObject:
    """An event; of a row of a tracker store, the one in `data`. {} for anything else."""
    record = as_object(value)
    if "type_name" in record:
        record = {"timestamp": record.get("timestamp"), **as_object(embedded(record.get("data")))}
    return record if as_text(record.get("event")) in _KINDS else {}


def _messages(events: Sequence[Any]) -> list[TalkMessage]:
    messages: list[TalkMessage] = []
    for event in map(as_object, events):
        kind, at, name = as_text(event.get("event")), seconds(event, ("timestamp",)), as_text(event.get("name"))
        plain = []
        if kind in _SPEAKERS:
            plain = plain_messages({"role": _SPEAKERS[kind], "content": as_text(event.get("text"))})
        elif kind == "action" and name and name not in _QUIET:
            block: JsonObject = {"type": "tool_use", "name": name, "input": {}}
            if name.startswith(_SAYS):
                block = {"type": "response", "name": name}
            plain = plain_messages({"role": "assistant", "content": [block]})
        understood = as_object(event.get("parse_data"))
        extras = filled({field: understood.get(field) for field in _UNDERSTOOD} | {"data": event.get("data")})
        person = "human agent" if kind == "agent" else ""
        messages += [TalkMessage(plain=entry, at=at, name=person, extras=extras) for entry in plain]
        if not plain:
            messages.append(TalkMessage(plain={"role": "", **event}, at=at, marker=f"event_{kind}"))
    return messages


READER = RasaReader()
