"""Amazon Connect Contact Lens: analysed calls and chats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from convoscope.conversation import Clock, Conversation, Outcome, Segment, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.call_exports import verdicts
from convoscope.ingest.io.json import parsed
from convoscope.ingest.kits.leftovers import with_leftovers
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.segments import last_of_each
from convoscope.ingest.kits.talks import oldest_first
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import note_unknown_speakers

_ROLES = {
    "AGENT": "assistant",
    "CUSTOMER": "user",
    "SYSTEM": "system",
    "CUSTOM_BOT": "assistant",
    "SUPERVISOR": "supervisor",
}
_ROLE, _OFFSET = "ParticipantRole", "BeginOffsetMillis"
_SHOWN = frozenset({"Type", "ContentType", "EventType", "IsPartial", "PartialContent"})
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
    """The analysis of one contact, or the events of its analysis in real time."""

    name = "contact-lens"
    title = "Contact Lens"
    unkeyed_record_is_conversation = True

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            entries = [as_object(entry) for entry in as_list(value.get("Transcript"))]
            if entries and (isinstance(value.get("Participants"), list) or _ROLE in entries[0]):
                return Detection(0.96, '"Transcript" with participants', "record")
            is_event = {"EventType", "ContactId", "Channel"} <= value.keys()
            if is_event or any(_ROLE in as_object(inner) for one in _segments(value) for inner in one.values()):
                return Detection(0.96, '"Segments" of a transcript', "key" if self.key(value) else "record")
            if _utterance(value):
                return Detection(0.96, "events of Call Analytics", "file")
        return None

    def key(self, value: Any) -> str | None:
        """The contact of an event in real time; a whole analysis is a conversation by itself."""
        record = as_object(value)
        is_event = "EventType" in record or "Segments" in record
        return (as_text(record.get("ContactId")) or None) if is_event else None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        values = [as_object(record.value) for record in group.records]
        if any(map(_utterance, values)):
            merged = {"Channel": "VOICE", "Transcript": _last(map(_utterance, values), notes)}
            yield with_leftovers(_conversation(merged, group, notes), values, notes, shown=_SHOWN)
            return
        # Events in real time repeat what the contact is; each adds segments to those before it.
        is_joined = all("EventType" in value or "Segments" in value for value in values)
        joined = {name: held for value in values for name, held in value.items() if name != "Segments"}
        segments = [segment for value in values for segment in _segments(value)]
        for value in [{**joined, "Segments": segments}] if is_joined else values:
            yield with_leftovers(_conversation(value, group, notes), [value], notes, shown=_SHOWN)


def _conversation(value: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
    roles = {
        as_text(entry.get("ParticipantId")): _ROLES.get(as_text(entry[_ROLE]), "unknown")
        for entry in map(as_object, as_list(value.get("Participants")))
        if entry.get("ParticipantId") and entry.get(_ROLE)  # chats name ids alone, Call Analytics roles alone
    }
    entries = [as_object(entry) for entry in as_list(value.get("Transcript"))] or _entries(_segments(value), notes)
    channel = as_text(value.get("Channel")).upper()
    is_call = channel == "VOICE" if channel else any(_OFFSET in entry for entry in entries)
    timeline = PlainTimeline(notes, "AbsoluteTime")
    for at, entry in oldest_first(map(_with_time, entries), "AbsoluteTime"):
        _add(entry, at, roles, timeline, is_call=is_call)
    if not timeline.events:
        raise InputError("a contact without a transcript", field="Transcript", hint="nothing was said in it")
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
        labels=verdicts(ContactLensReader.name, _sentiments(characteristics)),
        outcome=Outcome(duration=from_milliseconds(characteristics.get("TotalConversationDurationMillis"))),
        extras=filled({name: value.get(name) for name in _KEPT}),
    )


def _segments(value: JsonObject) -> list[JsonObject]:
    """The segments of an analysis in real time: each holds a transcript, an event, categories or a summary."""
    return [as_object(entry) for entry in as_list(value.get("Segments"))]


def _entries(segments: list[JsonObject], notes: Notes) -> list[JsonObject]:
    """What segments say, as entries of a transcript. An utterance is the beginning of a transcript that follows."""
    entries: list[JsonObject] = []
    for segment in segments:
        begun = as_object(segment.get("Utterance"))
        if begun:
            id, text = begun.get("TranscriptId") or begun.get("Id"), begun.get("PartialContent")
            entries.append({**begun, "Id": id, "Content": text, "IsPartial": True})
        for name in ("Transcript", "Event", "Attachments"):
            entry = as_object(segment.get(name))
            if entry:
                kind = {} if name == "Transcript" else {"Type": name.upper(), "ContentType": entry.get("EventType")}
                entries.append({**kind, **entry})
    return _last(entries, notes)


def _utterance(value: JsonObject) -> JsonObject:
    """An utterance of the stream of Call Analytics, in the names of a transcript."""
    inner = as_object(value.get("CallAnalyticsTranscriptResultStream")) or value
    event = as_object(inner.get("UtteranceEvent"))
    return {**event, "Id": event.get("UtteranceId"), "Content": event.get("Transcript")} if event else {}


def _last(entries: Iterable[JsonObject], notes: Notes) -> list[JsonObject]:
    return last_of_each(filter(None, entries), lambda entry: as_text(entry.get("Id")), notes, "IsPartial")


def _with_time(entry: JsonObject) -> JsonObject:
    """Answers of the API in real time nest the time."""
    time = as_object(entry.get("Time"))
    return {**entry, **time} if "AbsoluteTime" in time else entry


def _sentiments(characteristics: JsonObject) -> JsonObject:
    """The sentiment of each side over the whole contact, as the service scored it."""
    overall = as_object(as_object(characteristics.get("Sentiment")).get("OverallSentiment"))
    scores = as_object(overall.get("DetailsByParticipantRole")) or overall
    return {f"sentiment.{role}": as_number(score) for role, score in scores.items()}


def _text(entry: JsonObject) -> str:
    """What an entry says; of a choice that is shown, the words above it."""
    text = as_text(entry.get("Content"))
    if ".interactive" in as_text(entry.get("ContentType")):
        shown = as_object(as_object(parsed(text)).get("data"))
        titles = (as_object(shown.get(name)).get("title") for name in ("content", "replyMessage"))
        return next((title for title in titles if isinstance(title, str) and title), text)
    return text


def _add(
    entry: JsonObject, seconds: float | None, roles: dict[str, str], timeline: PlainTimeline, *, is_call: bool
) -> None:
    id, text = as_text(entry.get("ParticipantId")), _text(entry)
    role = roles.get(id) or _ROLES.get(as_text(entry.get(_ROLE)), "unknown")
    at = timeline.at(seconds)
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
        extras=filled(
            {
                "sentiment": entry.get("Sentiment"),
                "redaction": entry.get("Redaction"),
                "content": None if entry.get("Content") == text else entry.get("Content"),
            }
        ),
    )


READER = ContactLensReader()
