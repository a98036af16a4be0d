"""Amazon Transcribe: jobs with items, speakers or channels, and events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.segments import SpokenText, Transcript, TranscriptReader, by_start, turns_of
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled, number_in
from convoscope.ingest.report import Notes


class AWSTranscribeReader(TranscriptReader):
    """The result of a job, or the results of a stream."""

    name = "aws-transcribe"
    title = "Amazon Transcribe"
    shown = frozenset({"transcript", "Transcript"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(as_object, sample.values):
            results = as_object(value.get("results"))
            if isinstance(results.get("transcripts"), list) and isinstance(results.get("items"), list):
                return Detection(0.96, '"results" with transcripts and items', "record")
            if _streamed(value):
                return Detection(0.96, "events of a transcript stream", "file")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        values = [as_object(record.value) for record in group.records]
        streamed = [result for value in values for result in _streamed(value)]
        if streamed:
            yield _stream(streamed, values, notes)
            return
        for value in values:
            results = as_object(value.get("results"))
            speakers = _speakers(results)
            turns: list[SpokenText] = []
            channels = as_list(as_object(results.get("channel_labels")).get("channels"))
            for channel in map(as_object, channels or [results]):
                label = as_text(channel.get("channel_label"))
                turns += turns_of(_word(as_object(item), speakers, label) for item in as_list(channel.get("items")))
            yield Transcript(
                id=as_text(value.get("jobName")),
                turns=by_start(turns),
                language=as_text(results.get("language_code")),
                extras=filled({"status": value.get("status")}),
                raw=value,
            )


def _word(item: JsonObject, speakers: dict[str, str], channel: str) -> SpokenText:
    best = as_object(next(iter(as_list(item.get("alternatives"))), None))
    start = as_text(item.get("start_time"))
    return SpokenText(
        text=as_text(best.get("content")),
        speaker=channel or as_text(item.get("speaker_label")) or speakers.get(start, ""),
        start=number_in(start),
        end=number_in(item.get("end_time")),
        confidence=number_in(best.get("confidence")),
        extras=item,
    )


def _speakers(results: JsonObject) -> dict[str, str]:
    """The speaker of a word by its start, where the words do not say it themselves."""
    segments = as_list(as_object(results.get("speaker_labels")).get("segments"))
    return {
        as_text(as_object(item).get("start_time")): as_text(as_object(segment).get("speaker_label"))
        for segment in segments
        for item in as_list(as_object(segment).get("items"))
    }


def _streamed(value: JsonObject) -> list[Any]:
    inner = as_object(value.get("TranscriptResultStream")) or value
    transcript = as_object(as_object(inner.get("TranscriptEvent")).get("Transcript")) or as_object(
        inner.get("Transcript")
    )
    return [entry for entry in as_list(transcript.get("Results")) if "Alternatives" in as_object(entry)]


def _stream(results: list[Any], values: list[JsonObject], notes: Notes) -> Transcript:
    """The final results of a stream; partial ones are said again, and left out."""
    turns: list[SpokenText] = []
    for result in map(as_object, results):
        if result.get("IsPartial") is True:
            notes.ignored("partial_result")
            continue
        best = as_object(next(iter(as_list(result.get("Alternatives"))), None))
        label = as_text(as_object(next(iter(as_list(best.get("Items"))), None)).get("Speaker"))
        turns.append(
            SpokenText(
                text=as_text(best.get("Transcript")),
                speaker=as_text(result.get("ChannelId")) or (f"spk_{label}" if label else ""),
                start=number_in(result.get("StartTime")),
                end=number_in(result.get("EndTime")),
                id=as_text(result.get("ResultId")),
                extras=filled({"words": best.get("Items"), "entities": best.get("Entities")}),
            )
        )
    return Transcript(turns=turns, raw=values)


READER = AWSTranscribeReader()
