"""Rasa trackers: the events of a conversation with its slots, intents and actions."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.kits.talks import LoggedTalk, TalkMessage, TalkReader
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

_SAYS = "utter_"
"""How the names of actions begin that only say a text; an event of the bot has the text."""
_QUIET = ("action_listen", "action_session_start", "action_unlikely_intent")


class RasaReader(TalkReader):
    """A tracker with a sender and events."""

    name = "rasa"
    title = "Rasa trackers"
    shown = frozenset({"event"})
    no_messages = "has events, and nothing was said or done"

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            events = [as_object(event) for event in as_list(value.get("events"))]
            if "sender_id" in value and any(isinstance(event.get("event"), str) for event in events):
                return Detection(0.96, '"sender_id" with "events"', "record")
        return None

    def talks(self, group: RecordGroup, notes: Notes) -> Iterator[LoggedTalk]:
        del notes
        for record in group.records:
            value = as_object(record.value)
            messages: list[TalkMessage] = []
            for event in map(as_object, as_list(value.get("events"))):
                kind, at = event.get("event"), seconds(event, ("timestamp",))
                plain = []
                if kind in ("user", "bot"):
                    plain = plain_messages({"role": kind, "content": as_text(event.get("text"))})
                elif kind == "action" and as_text(event.get("name")) not in _QUIET:
                    block: JsonObject = {"type": "tool_use", "name": event.get("name"), "input": {}}
                    if as_text(event.get("name")).startswith(_SAYS):
                        block = {"type": "response", "name": event.get("name")}
                    plain = plain_messages({"role": "assistant", "content": [block]})
                messages += [TalkMessage(plain=entry, at=at) for entry in plain]
                if not plain:
                    messages.append(TalkMessage(plain={"role": "", **event}, at=at, marker=f"event_{as_text(kind)}"))
            slots = filled(as_object(value.get("slots")))
            yield LoggedTalk(
                id=as_text(value.get("sender_id")),
                messages=messages,
                extras=filled({"slots": slots, "active_loop": value.get("active_loop")}),
                raw=value,
            )


READER = RasaReader()
