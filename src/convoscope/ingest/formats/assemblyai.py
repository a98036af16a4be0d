"""AssemblyAI transcripts: utterances, or words with speakers; times are milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.errors import InputError
from convoscope.ingest.kits.segments import SpokenText, Transcript, TranscriptReader, by_start, last_of_each, turns_of
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes


class AssemblyAIReader(TranscriptReader):
    """A transcript with a status, words and an address of the sound."""

    name = "assemblyai"
    title = "AssemblyAI transcripts"
    shown = frozenset({"text", "status", "transcript"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if "acoustic_model" in value or ("audio_url" in value and "words" in value and "status" in value):
                return Detection(0.95, '"words" with a status and "audio_url"', "record")
            if _split(value) and "audio_duration" in value:
                return Detection(0.95, "sentences or paragraphs of a transcript", "record")
            if _streamed(value):
                return Detection(0.95, "turns of a stream", "file")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        values = [as_object(record.value) for record in group.records]
        if any(map(_streamed, values)):
            yield _stream(values, notes)
            return
        for value in values:
            if value.get("status") == "error":
                notes.refuse(InputError(f"the recogniser failed: {as_text(value.get('error'))[:200]}", field="status"))
                continue
            if value.get("status") in ("queued", "processing"):
                notes.refuse(InputError(f"the transcript is not finished: {value['status']}", field="status"))
                continue
            utterances = [_spoken(as_object(entry)) for entry in as_list(value.get("utterances")) or _split(value)]
            words = [_spoken(as_object(word)) for word in as_list(value.get("words"))]
            whole = [SpokenText(text=as_text(value.get("text")))] if value.get("text") else []
            yield Transcript(
                id=as_text(value.get("id")),
                turns=utterances or turns_of(words) or whole,
                language=as_text(value.get("language_code")),
                duration=as_number(value.get("audio_duration")),
                extras=filled({name: value.get(name) for name in ("audio_url", "confidence", "summary")}),
                raw=value,
            )


def _split(value: JsonObject) -> Sequence[Any]:
    """The transcript by sentences or paragraphs, which the service gives apart."""
    return as_list(value.get("sentences")) or as_list(value.get("paragraphs"))


def _streamed(value: JsonObject) -> str:
    """The turn that an event of a stream is of; "" for other events."""
    if value.get("type") == "Turn" and "turn_order" in value:
        return f"turn {as_text(value['turn_order'])}"
    is_old = value.get("message_type") in ("PartialTranscript", "FinalTranscript") and "audio_start" in value
    return f"since {as_text(value['audio_start'])}" if is_old else ""


def _stream(values: list[JsonObject], notes: Notes) -> Transcript:
    """The last event of each turn: the others are the same turn as far as it was heard."""
    spoken = []
    for turn in last_of_each(filter(_streamed, values), _streamed, notes):
        words = [as_object(word) for word in as_list(turn.get("words"))]
        sides = {"start": (words or [{}])[0].get("start"), "end": (words or [{}])[-1].get("end")}
        label = {"speaker": turn.get("speaker_label")}
        spoken.append(_spoken({**label, **sides, "text": turn.get("transcript"), **turn}))
    ids = [as_text(value.get("id")) or as_text(value.get("session_id")) for value in values]
    ends = [as_number(value.get("audio_duration_seconds")) for value in values]
    seconds = next((end for end in ends if end is not None), None)
    return Transcript(id=next(filter(None, ids), ""), turns=by_start(spoken), duration=seconds, raw=values)


def _spoken(value: JsonObject) -> SpokenText:
    label, channel = as_text(value.get("speaker")), as_text(value.get("channel"))
    return SpokenText(
        text=as_text(value.get("text")),
        # A letter or a number; or a name or a role, where the service was asked who speaks.
        speaker=f"Speaker {label}" if 0 < len(label) < 3 else label or (f"Channel {channel}" if channel else ""),
        start=from_milliseconds(value.get("start")),
        end=from_milliseconds(value.get("end")),
        confidence=as_number(value.get("confidence")),
        extras=filled({"words": value.get("words")}) or value,
    )


READER = AssemblyAIReader()
