"""AssemblyAI transcripts: utterances, or words with speakers; times are milliseconds."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.errors import InputError
from convoscope.ingest.kits.segments import SpokenText, Transcript, TranscriptReader, turns_of
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes


class AssemblyAIReader(TranscriptReader):
    """A transcript with a status, words and an address of the sound."""

    name = "assemblyai"
    title = "AssemblyAI transcripts"
    shown = frozenset({"text", "status"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            if "acoustic_model" in value or ("audio_url" in value and "words" in value and "status" in value):
                return Detection(0.95, '"words" with a status and "audio_url"', "record")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        for record in group.records:
            value = as_object(record.value)
            if value.get("status") == "error":
                notes.refuse(InputError(f"the recogniser failed: {as_text(value.get('error'))[:200]}", field="status"))
                continue
            if value.get("status") in ("queued", "processing"):
                notes.refuse(InputError(f"the transcript is not finished: {value['status']}", field="status"))
                continue
            utterances = [_spoken(as_object(entry)) for entry in as_list(value.get("utterances"))]
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


def _spoken(value: JsonObject) -> SpokenText:
    label, channel = as_text(value.get("speaker")), as_text(value.get("channel"))
    return SpokenText(
        text=as_text(value.get("text")),
        speaker=f"Speaker {label}" if label else f"Channel {channel}" if channel else "",
        start=from_milliseconds(value.get("start")),
        end=from_milliseconds(value.get("end")),
        confidence=as_number(value.get("confidence")),
        extras=filled({"words": value.get("words")}) or value,
    )


READER = AssemblyAIReader()
