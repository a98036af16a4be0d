"""Transcripts as Whisper, WhisperX, whisper-timestamped and slower-whisper write them: segments with times and words.

What was found in a transcript, and written into it, becomes predicted annotations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Clock, Conversation, Segment, Source, Text, Time, Utterance
from convoscope.errors import InputError
from convoscope.ingest.formats.whisper.annotations import SegmentPlaces, read_annotations
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import (
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    leftovers,
    take,
    take_text,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import UNKNOWN, role_of, speaker
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions

_CLOCK = Clock(id="audio", kind="audio", source="times of the segments")
_IDS = ("sample_id", "meeting_id", "conversation_id", "call_id", "id")
_SIGNS = ("language", "text", "word_segments", "schema_version", "annotations", "speakers")
_USUAL = frozenset({"schema_version", "file", "file_name", "meta", "speakers", "turns", "chunks", "speaker_stats"}) | {
    "text",
    "duration",
    "task",
    "language",
    "annotations",
    "language_probs",
}
_USUAL_OF_SEGMENT = frozenset(
    {"seek", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"}
) | {
    "words",
    "tone",
    "audio_state",
    "speaker",
    "label",
    "channel",
}
_HINT = 'expected {"language": …, "segments": [{"start": …, "end": …, "text": …, "speaker": …}]}'


class WhisperReader(Reader):
    """A transcript is an object with `segments`; a list of segments, also of speakers without words, is one too."""

    name = "whisper"
    title = "Whisper-style transcripts"

    def detect(self, sample: Sample) -> Detection | None:
        values = [value for value in sample.values if isinstance(value, dict)]
        for value in values:
            if _are_segments(value.get("segments")):
                sure = any(name in value for name in _SIGNS)
                return Detection(0.95 if sure else 0.85, '"segments" is a list with start, end and text')
        if sample.container == "array" and values and all(map(_is_segment, values)):
            return Detection(0.85, "a list of segments with start and end", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        first = group.records[0].value
        if not isinstance(first, dict) or "segments" not in first:
            yield self._conversation({"segments": [one.value for one in group.records]}, group, group.records[0], notes)
            return
        for record in group.records:
            yield self._conversation(record.value, group, record, notes)

    def _conversation(self, value: Any, group: RecordGroup, record: Record, notes: Notes) -> Conversation:
        facts = dict(as_object(value))
        language = take_text(facts, "language")
        timeline = _Timeline(notes, language, _labels(facts))
        timeline.read(facts)
        if not timeline.builder.participants:
            raise InputError("has no segment with words or times", field="segments", hint=_HINT)
        _drop_copies(facts, timeline, notes)
        annotations = read_annotations(facts, timeline.segments, notes)
        extras = leftovers(facts, _USUAL, "transcript", notes)
        return Conversation(
            id=take_text(extras, *_IDS) or group.name,
            dimensions=dimensions(facts, facts.get("meta")),
            source=Source(format=self.name, files=group.file_names, record=str(record.number)),
            participants=timeline.builder.participants,
            clocks=(_CLOCK,) if any(event.time for event in timeline.events) else (),
            timeline=tuple(timeline.events),
            annotations=annotations,
            extras={**extras, "language": language} if language else extras,
        )


def _is_segment(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and as_number(value.get("start")) is not None
        and as_number(value.get("end")) is not None
        and (isinstance(value.get("text"), str) or isinstance(value.get("speaker"), str | dict))
    )


def _are_segments(value: Any) -> bool:
    return isinstance(value, list) and any(map(_is_segment, value))


def _labels(facts: JsonObject) -> dict[str, str]:
    """What the list of speakers says of each: its role, or a name, by id."""
    labels = dict[str, str]()
    for entry in as_list(facts.get("speakers")):
        about = as_object(entry)
        for name in ("role", "label", "name"):
            if (id := as_text(about.get("id"))) and (label := as_text(about.get(name))):
                labels[id] = label
                break
    return labels


class _Words(NamedTuple):
    text: Text | None
    times: tuple[float, float] | None


class _Timeline:
    """The utterances of the segments so far."""

    def __init__(self, notes: Notes, language: str, labels: Mapping[str, str]) -> None:
        self.notes = notes
        self.builder = TimelineBuilder(notes)
        self.events = self.builder.events
        self.language = language
        self.labels = labels
        self.segments = SegmentPlaces()

    def read(self, facts: JsonObject) -> None:
        segments = facts.get("segments")
        if not isinstance(segments, list):
            if segments is not None:
                self.notes.set_aside("segments_are_no_list", type(segments).__name__)
            if (text := as_text(facts.get("text")).strip()) != "":
                self.notes.inferred("text_without_segments")
                self.builder.say(self.builder.participant(UNKNOWN), heard=Text(text, "whisper", None, self.language))
            return
        del facts["segments"]
        for place, segment in enumerate(segments):
            if isinstance(segment, dict):
                self._add(dict(segment), place)
            else:
                self.notes.set_aside(
                    "segment_is_no_object", f"segments[{place}]: {str(segment)[:60]}", self.builder.seq
                )

    def _add(self, facts: JsonObject, place: int) -> None:
        seq = self.builder.seq
        id = take_text(facts, "id") if not isinstance(facts.get("id"), bool) else ""
        words = self._words(facts)
        if words.text is None and words.times is None:
            self.notes.set_aside("segment_without_words_and_times", f"segments[{place}]", seq)
            self.builder.mark("segment_without_words_and_times", facts)
            return
        who = self._speaker(facts)
        self.segments.add(id or str(place), seq)
        self.events.append(
            Utterance(
                seq=seq,
                speaker=who,
                heard=words.text,
                id=id,
                time=None if words.times is None else Time(words.times[0], _CLOCK.id, words.times[1]),
                segments=() if words.times is None else (Segment(*words.times, _CLOCK.id),),
                extras=leftovers(facts, _USUAL_OF_SEGMENT, "segment", self.notes),
            )
        )

    def _words(self, facts: JsonObject) -> _Words:
        raw = take(facts, "text")
        text = None
        if raw is not None and raw.strip():
            confidence = as_number(facts.get("confidence"))
            if confidence is not None:
                del facts["confidence"]
            text = Text(raw.strip(), "whisper", confidence, self.language)
        elif facts.get("text") not in (None, ""):
            self.notes.set_aside("text_is_no_text", str(facts["text"])[:60], self.builder.seq)
        start, end = as_number(facts.get("start")), as_number(facts.get("end"))
        if start is None or end is None or end < start or start < 0:
            self.notes.set_aside("segment_without_times", f"{facts.get('start')!r} to {facts.get('end')!r}"[:80])
            return _Words(text, None)
        del facts["start"], facts["end"]
        return _Words(text, (start, end))

    def _speaker(self, facts: JsonObject) -> str:
        """Who speaks: an id, or an object with one. The list of speakers, or else the id itself, tells the role."""
        held = facts.get("speaker")
        if isinstance(held, dict):
            about = dict(held)
            id = take_text(about, "id", "label", "name")
            if id:
                facts.pop("speaker")
                if filled(about):
                    facts["speaker"] = filled(about)
        else:
            id = take_text(facts, "speaker", "speaker_id")
        if not id:
            if held is not None:
                self.notes.set_aside("unreadable_speaker", str(held)[:60], self.builder.seq)
            return self.builder.participant(UNKNOWN)
        label = self.labels.get(id, "")
        if label and role_of(label) != UNKNOWN:
            self.builder.infer_once(f"speaker_is_{role_of(label)}", f"{id}: {label}")
            return self.builder.participant(role_of(label), id)
        return speaker(self.builder, id)


def _drop_copies(facts: JsonObject, timeline: _Timeline, notes: Notes) -> None:
    """`text` and `word_segments` say once more what the segments say."""
    spoken = "".join("".join(event.received().split()) for event in timeline.events if isinstance(event, Utterance))
    text = facts.get("text")
    if isinstance(text, str) and "".join(text.split()) == spoken:
        del facts["text"]
    repeated: Sequence[Any] = as_list(facts.get("word_segments"))
    words = [one for event in timeline.events for one in as_list(event.extras.get("words"))]
    if repeated and list(repeated) == words:
        del facts["word_segments"]
        notes.ignored("repeated_words", f"{len(repeated)} in word_segments")


READER = WhisperReader()
