"""Amazon Connect Contact Lens: analysed calls and chats."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Clock, Conversation, Outcome, Segment, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.kits.leftovers import with_leftovers
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.spans import seconds
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import note_unknown_speakers

_ROLES = {
    "AGENT": "assistant",
    "CUSTOMER": "user",
    "SYSTEM": "system",
    "CUSTOM_BOT": "assistant",
    "SUPERVISOR": "supervisor",
}
_SHOWN = frozenset({"Type", "ContentType"})
_KEPT = (
    "Channel",
    "ContactId",
    "Participants",
    "CustomerMetadata",
    "LanguageCode",
    "Categories",
    "ConversationCharacteristics",
)


class ContactLensReader(Reader):
    """The analysis of one contact."""

    name = "contact-lens"
    title = "Contact Lens"

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if isinstance(value.get("Transcript"), list) and isinstance(value.get("Participants"), list):
                return Detection(0.96, '"Transcript" with "Participants"', "record")
            if any("ParticipantRole" in as_object(entry.get("Transcript")) for entry in _segments(value)):
                return Detection(0.96, '"Segments" of a transcript', "record")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            value = as_object(record.value)
            yield with_leftovers(_conversation(value, group, notes), [value], notes, shown=_SHOWN)


def _conversation(value: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
    roles = {
        as_text(as_object(entry).get("ParticipantId")): _ROLES.get(
            as_text(as_object(entry).get("ParticipantRole")), "unknown"
        )
        for entry in as_list(value.get("Participants"))
        if as_object(entry).get("ParticipantId")  # results of Call Analytics name roles alone
    }
    is_call = as_text(value.get("Channel")).upper() == "VOICE"
    timeline = PlainTimeline(notes, "AbsoluteTime")
    spoken = [segment["Transcript"] for segment in _segments(value) if "Transcript" in segment]
    for entry in map(as_object, as_list(value.get("Transcript")) or spoken):
        _add(entry, roles, timeline, is_call=is_call)
    if not timeline.events:
        raise InputError("a contact without a transcript", field="Transcript")
    note_unknown_speakers(timeline)
    characteristics = as_object(value.get("ConversationCharacteristics"))
    metadata = as_object(value.get("CustomerMetadata"))
    ids = [as_text(id) for id in (metadata.get("ContactId"), value.get("ContactId"), value.get("JobName"))]
    has_audio = any(getattr(event, "segments", ()) for event in timeline.events)
    return Conversation(
        id=next(filter(None, ids), group.name),
        source=Source(format=ContactLensReader.name, files=group.file_names, record=group.name),
        pipeline="cascade" if is_call else "text",
        participants=timeline.participants,
        clocks=(*timeline.clocks, *((Clock(id="audio", kind="audio", source="offsets"),) if has_audio else ())),
        timeline=tuple(timeline.events),
        outcome=Outcome(duration=from_milliseconds(characteristics.get("TotalConversationDurationMillis"))),
        extras=filled({name: value.get(name) for name in _KEPT}),
    )


def _segments(value: JsonObject) -> list[JsonObject]:
    """The segments of an analysis in real time: each holds a transcript, or categories."""
    return [as_object(entry) for entry in as_list(value.get("Segments"))]


def _add(entry: JsonObject, roles: dict[str, str], timeline: PlainTimeline, *, is_call: bool) -> None:
    id, text = as_text(entry.get("ParticipantId")), as_text(entry.get("Content"))
    role = roles.get(id) or _ROLES.get(as_text(entry.get("ParticipantRole")), "unknown")
    at = timeline.at(seconds(entry, ("AbsoluteTime",)))
    if entry.get("Type") == "EVENT" or not text:
        timeline.notes.ignored("event_without_content", as_text(entry.get("ContentType")), timeline.seq)
        timeline.mark(as_text(entry.get("ContentType")) or "event", filled({"participant": role, **entry}), at)
        return
    if role == "system":
        timeline.mark("system_message", text, at, as_text(entry.get("Id")))
        return
    start, end = from_milliseconds(entry.get("BeginOffsetMillis")), from_milliseconds(entry.get("EndOffsetMillis"))
    segments = [Segment(start, end, "audio")] if start is not None and end is not None and end >= start else []
    words = Text(text, "Content")
    timeline.say(
        timeline.participant(role, as_text(entry.get("DisplayName"))),
        intended=None if is_call else words,
        spoken=words if is_call and role == "assistant" else None,
        heard=words if is_call and role != "assistant" else None,
        time=at,
        segments=segments,
        id=as_text(entry.get("Id")),
        extras=filled({"sentiment": entry.get("Sentiment"), "redaction": entry.get("Redaction")}),
    )


READER = ContactLensReader()
