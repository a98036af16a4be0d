"""Deepgram transcripts: utterances, or words with speakers and channels."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.ingest.kits.segments import SpokenText, Transcript, TranscriptReader, by_start, turns_of
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes


class DeepgramReader(TranscriptReader):
    """A response with channels and alternatives."""

    name = "deepgram"
    title = "Deepgram transcripts"
    shown = frozenset({"transcript", "text"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            channels = as_list(as_object(value.get("results")).get("channels"))
            if any("alternatives" in as_object(channel) for channel in channels):
                return Detection(0.96, '"results" with channels and alternatives', "record")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        del notes
        for record in group.records:
            value = as_object(record.value)
            results, metadata = as_object(value.get("results")), as_object(value.get("metadata"))
            channels = [as_object(channel) for channel in as_list(results.get("channels"))]
            utterances = [as_object(entry) for entry in as_list(results.get("utterances"))]
            # The words are in both: of utterances and channels only one is read.
            turns = [_spoken(entry, "transcript", len(channels)) for entry in utterances] or _turns(channels)
            yield Transcript(
                id=as_text(metadata.get("request_id")),
                turns=by_start(turns),
                language=as_text(next(iter(channels), {}).get("detected_language")),
                duration=as_number(metadata.get("duration")),
                extras=filled({name: metadata.get(name) for name in ("created", "model_info", "channels")}),
                raw=value,
            )


def _turns(channels: list[JsonObject]) -> list[SpokenText]:
    turns: list[SpokenText] = []
    for number, channel in enumerate(channels):
        best = as_object(next(iter(as_list(channel.get("alternatives"))), None))
        words = [
            _spoken({"channel": number, **as_object(word)}, "word", len(channels))
            for word in as_list(best.get("words"))
        ]
        turns += turns_of(words)
    return turns


def _spoken(value: JsonObject, text: str, channels: int) -> SpokenText:
    label, channel = as_text(value.get("speaker")), as_text(value.get("channel"))
    return SpokenText(
        text=as_text(value.get("punctuated_word")) or as_text(value.get(text)),
        speaker=f"Channel {channel}" if channels > 1 and channel else f"Speaker {label}" if label else "",
        start=as_number(value.get("start")),
        end=as_number(value.get("end")),
        confidence=as_number(value.get("confidence")),
        id=as_text(value.get("id")),
        extras={"words": value.get("words")} if text == "transcript" else value,
    )


READER = DeepgramReader()
