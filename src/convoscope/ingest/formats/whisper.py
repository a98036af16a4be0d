"""Transcripts of Whisper, WhisperX, whisper-timestamped and slower-whisper: segments with times and words.

Annotations that are written into a transcript become predicted annotations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from convoscope.conversation import (
    Action,
    Annotations,
    Clock,
    Conversation,
    Outcome,
    Risk,
    Segment,
    Source,
    Text,
    Topic,
    Utterance,
)
from convoscope.conversation.annotations import FAMILIES, TOPICS
from convoscope.errors import InputError
from convoscope.ingest.annotation_shapes import (
    NAMES,
    AnnotationPart,
    annotation_parts,
    is_absent,
    misfit,
    one_shape,
    segment_ids,
    statuses,
)
from convoscope.ingest.formats.whisper_shapes import in_segments, is_row, is_segment, of_rows
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import Fields, as_list, as_number, as_text, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import UNKNOWN, role_of, speaker
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions

_Finding = TypeVar("_Finding", Topic, Risk, Action)


def _take_annotations(transcript: Fields, segments: Mapping[str, int], notes: Notes) -> tuple[Annotations, ...]:
    """The annotations, taken out of a transcript; what cannot be read stays where it was."""
    kept: list[Annotations] = []
    unread = []
    holder = transcript.get("annotations")
    for part in annotation_parts(holder, transcript.get("chunks")):
        if isinstance(part.value, dict):
            kept.append(_Shape(part, segments, notes).annotations())
        else:
            notes.set_aside("annotation_is_no_object", str(part.value)[:60])
            unread.append(part.value)
    makers = dict.fromkeys((one.annotator, one.model) for one in kept)
    if len(makers) > 1:
        names = ", ".join(model or annotator for annotator, model in makers)
        notes.inferred("first_annotator_is_scored", names[:60])
    if isinstance(holder, dict) and "semantic" in holder:
        transcript["annotations"] = filled({**holder, "semantic": unread})
    return tuple(kept)


class _Shape:
    """One annotation of any shape, being read."""

    def __init__(self, part: AnnotationPart, segments: Mapping[str, int], notes: Notes) -> None:
        self.fields = Fields(one_shape(part.value), "annotation", notes)
        self.segments = segments
        self.notes = notes
        self.whole = tuple(part.segment_ids)

    def annotations(self) -> Annotations:
        fields = self.fields
        status = statuses(fields)
        builders = {"topics": self._topic, "risks": self._risk, "actions": self._action}
        # Findings of a family that failed stay where they were.
        families: dict[str, Any] = {
            name: None if is_absent(name, status) else self._family(name, builders[name]) for name in FAMILIES
        }
        if field := misfit(fields):
            self.notes.set_aside("findings_are_no_list", field)
        elif status:
            fields.pop("extraction_status", None)
        return Annotations(
            origin="predicted",
            summary=fields.take("summary", kind=str),
            annotator=fields.text("annotator", "provider") or "unnamed",
            model=fields.text("model"),
            annotated_at=fields.text("generated_at", "annotated_at"),
            extraction=status,
            extras=filled(fields),
            **families,
        )

    def _family(self, name: str, build: Callable[[str, Fields], _Finding]) -> tuple[_Finding, ...] | None:
        held = self.fields.get(name)
        if not isinstance(held, list):
            return None
        del self.fields[name]
        findings, unread = list[_Finding](), list[Any]()
        for entry in held:
            fields = Fields({"label": entry} if isinstance(entry, str) else entry, name, self.notes)
            text = fields.text(*NAMES[name])
            if not text:
                self.notes.set_aside("unreadable_finding", f"{name}: {str(entry)[:60]}")
            # A risk or an action without a text was predicted too, and is wrong; a topic without one is no label.
            if text or name != TOPICS:
                findings.append(build(text, fields))
            if not text and (name == TOPICS or not isinstance(entry, dict)):
                unread.append(entry)
        if unread:
            self.fields[f"unread_{name}"] = unread
        return tuple(findings)

    def _topic(self, label: str, fields: Fields) -> Topic:
        span = fields.get("span")
        seqs = self._seqs(span) if isinstance(span, list) and len(span) == 2 else ()
        in_order = len(seqs) == 2 and seqs[0] <= seqs[1]
        if in_order:
            del fields["span"]
        return Topic(label=label, span=(seqs[0], seqs[1]) if in_order else None, **self._common(fields))

    def _risk(self, type: str, fields: Fields) -> Risk:
        severity, speaker = fields.text("severity"), fields.text("speaker_id", "speaker")
        return Risk(type=type, severity=severity, speaker=speaker, **self._common(fields))

    def _action(self, text: str, fields: Fields) -> Action:
        return Action(
            description=text,
            verbatim=fields.text("verbatim"),
            assignee=fields.text("assignee", "speaker_id"),
            assignee_role=fields.text("assignee_role"),
            due=fields.text("due", "deadline"),
            priority=fields.text("priority"),
            status=fields.text("status"),
            **self._common(fields),
        )

    def _common(self, fields: Fields) -> dict[str, Any]:
        """What every finding has; to be taken last, because the rest goes to `extras`."""
        ids = segment_ids(fields)
        events = self._seqs(ids) or self._seqs(self.whole)
        fields.pop("segment_id", None)
        # Two findings that differ in nothing but segments that do not exist are two.
        fields["segment_ids"] = [id for id in ids if as_text(id) not in self.segments]
        return {
            "events": events,
            "confidence": fields.number("confidence"),
            "evidence": fields.text("evidence"),
            "notes": fields.text("notes"),
            "extras": filled(fields),
        }

    def _seqs(self, ids: Iterable[Any]) -> tuple[int, ...]:
        """The utterances of these segments; an id that no segment has is noted."""
        seqs = dict[int, None]()
        for id in ids:
            seq = self.segments.get(as_text(id)) if as_text(id) else None
            if seq is None:
                self.notes.set_aside("finding_without_segment", str(id)[:60])
            else:
                seqs[seq] = None
        return tuple(seqs)


_CLOCK = Clock(id="audio", kind="audio", source="times of the segments")
_IDS = ("sample_id", "meeting_id", "conversation_id", "call_id", "id")
_SIGNS = ("language", "text", "word_segments", "schema_version", "annotations", "speakers")
_USUAL = frozenset(
    {"schema_version", "file", "file_name", "meta", "speakers", "turns", "chunks", "speaker_stats", "text", "duration"}
    | {"task", "language", "annotations", "language_probs", "systeminfo", "model", "params", "usage", "service"}
    | {"x_groq", "words"}
)
_USUAL_OF_SEGMENT = frozenset(
    {"seek", "tokens", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob", "words", "tone"}
    | {"audio_state", "speaker", "label", "channel", "type", "id"}
)
_HINT = 'expected {"language": …, "segments": [{"start": …, "end": …, "text": …, "speaker": …}]}'


class WhisperReader(Reader):
    """A transcript is an object with `segments`; a list of segments, also of speakers without words, is one too."""

    name = "whisper"
    title = "Whisper-style transcripts"

    def detect(self, sample: Sample) -> Detection | None:
        values = [value for value in sample.values if isinstance(value, dict)]
        if sample.container == "table":
            are_rows = ".tsv" in sample.path.name and bool(values) and all(map(is_row, values))
            return Detection(0.85, "rows with start, end and text", "file") if are_rows else None
        for value in values:
            if in_segments(value) is not None:
                sure = any(name in value for name in _SIGNS)
                return Detection(0.95 if sure else 0.85, '"segments" is a list with start, end and text')
        if sample.container == "array" and values and all(map(is_segment, values)):
            return Detection(0.85, "a list of segments with start and end", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        first = group.records[0].value
        if not isinstance(first, dict) or is_segment(first) or is_row(first):
            values = [one.value for one in group.records]
            whole = of_rows(values) if is_row(first) and ".tsv" in group.path.name else {"segments": values}
            yield self._conversation(whole, group, group.records[0], notes)
            return
        for record in group.records:
            yield self._conversation(in_segments(record.value) or record.value, group, record, notes)

    def _conversation(self, value: Any, group: RecordGroup, record: Record, notes: Notes) -> Conversation:
        transcript = Fields(value, "transcript", notes, _USUAL)
        language = transcript.text("language")
        timeline = _Timeline(notes, language, _labels(transcript))
        timeline.read(transcript)
        if not timeline.builder.participants:
            raise InputError("has no segment with words or times", field="segments", hint=_HINT)
        _drop_copies(transcript, timeline)
        annotations = _take_annotations(transcript, timeline.segments, notes)
        dims = dimensions(transcript, transcript.get("meta"))
        extras = Fields(transcript.rest(), "transcript", notes)
        return Conversation(
            id=extras.text(*_IDS) or group.name,
            dimensions=dims,
            source=Source(format=self.name, files=group.file_names, record=str(record.number)),
            participants=timeline.builder.participants,
            clocks=(_CLOCK,) if any(event.time for event in timeline.events) else (),
            timeline=tuple(timeline.events),
            annotations=annotations,
            outcome=Outcome(duration=as_number(transcript.get("duration"))),
            extras=dict(extras) | ({"language": language} if language else {}),
        )


def _labels(transcript: Fields) -> dict[str, str]:
    """What the list of speakers says of each: its role, or a name, by id."""
    labels = dict[str, str]()
    for entry in as_list(transcript.get("speakers")):
        about = Fields(entry, "speaker", transcript.notes)
        id, label = about.text("id"), about.text("role", "label", "name")
        if id and label:
            labels[id] = label
    return labels


class _Timeline:
    """The utterances of the segments so far."""

    def __init__(self, notes: Notes, language: str, labels: Mapping[str, str]) -> None:
        self.notes = notes
        self.builder = TimelineBuilder(notes)
        self.events = self.builder.events
        self.language = language
        self.labels = labels
        self.segments: dict[str, int] = {}
        """The utterances by the id of their segment."""

    def read(self, transcript: Fields) -> None:
        segments = transcript.get("segments")
        if not isinstance(segments, list):
            if segments is not None:
                self.notes.set_aside("segments_are_no_list", type(segments).__name__)
            if (text := as_text(transcript.get("text")).strip()) != "":
                self.notes.inferred("text_without_segments")
                self.builder.say(self.builder.participant(UNKNOWN), heard=Text(text, "whisper", None, self.language))
            return
        del transcript["segments"]
        for index, segment in enumerate(segments):
            if isinstance(segment, dict):
                self._add(Fields(segment, "segment", self.notes, _USUAL_OF_SEGMENT), index)
            else:
                where = f"segments[{index}]: {str(segment)[:60]}"
                self.notes.set_aside("segment_is_no_object", where, self.builder.seq)

    def _add(self, fields: Fields, index: int) -> None:
        seq = self.builder.seq
        id, text, times = fields.text("id"), self._take_text(fields), self._take_times(fields)
        if text is None and times is None:
            self.notes.set_aside("segment_without_words_and_times", f"segments[{index}]", seq)
            self.builder.mark("segment_without_words_and_times", dict(fields))
            return
        self.segments.setdefault(id or str(index), seq)
        self.builder.say(
            self._speaker(fields), heard=text, id=id, segments=[times] if times else (), extras=fields.rest()
        )

    def _take_text(self, fields: Fields) -> Text | None:
        text = fields.take("text", kind=str)
        if text is not None and text.strip():
            return Text(text.strip(), "whisper", fields.number("confidence"), self.language)
        if fields.get("text") not in (None, ""):
            self.notes.set_aside("text_is_no_text", str(fields["text"])[:60], self.builder.seq)
        return None

    def _take_times(self, fields: Fields) -> Segment | None:
        start, end = as_number(fields.get("start")), as_number(fields.get("end"))
        if start is None or end is None or end < start or start < 0:
            self.notes.set_aside("segment_without_times", f"{fields.get('start')!r} to {fields.get('end')!r}"[:80])
            return None
        del fields["start"], fields["end"]
        return Segment(start, end, _CLOCK.id)

    def _speaker(self, fields: Fields) -> str:
        """The speaker, from an id or an object with one. The list of speakers, or else the id itself, has the role."""
        held = fields.get("speaker")
        if isinstance(held, dict):
            about = Fields(held, "speaker", self.notes)
            id = about.text("id", "label", "name")
            if id:
                fields["speaker"] = filled(about)
        else:
            id = fields.text("speaker", "speaker_id")
        if not id:
            if held is not None:
                self.notes.set_aside("unreadable_speaker", str(held)[:60], self.builder.seq)
            return self.builder.participant(UNKNOWN)
        label = self.labels.get(id, "")
        if label and role_of(label) != UNKNOWN:
            self.builder.infer_once(f"speaker_is_{role_of(label)}", f"{id}: {label}")
            return self.builder.participant(role_of(label), id)
        return speaker(self.builder, id)


def _drop_copies(transcript: Fields, timeline: _Timeline) -> None:
    """`text` and `word_segments` repeat what the segments say."""
    spoken = "".join("".join(event.received().split()) for event in timeline.events if isinstance(event, Utterance))
    text = transcript.get("text")
    if isinstance(text, str) and "".join(text.split()) == spoken:
        del transcript["text"]
    repeated = as_list(transcript.get("word_segments"))
    words = [word for event in timeline.events for word in as_list(event.extras.get("words"))]
    if repeated and list(repeated) == words:
        del transcript["word_segments"]
        transcript.notes.ignored("repeated_words", f"{len(repeated)} in word_segments")


READER = WhisperReader()
