"""Amazon Transcribe: jobs with items, speakers or channels, and events of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from convoscope.errors import InputError
from convoscope.ingest.kits.segments import (
    SpokenText,
    Transcript,
    TranscriptReader,
    by_start,
    channel_turns,
    last_of_each,
    turns_of,
)
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled, number_in
from convoscope.ingest.report import Notes

_HINT = "fetch that file, and read it"


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
            if _uri(value):
                return Detection(0.96, "a job of Amazon Transcribe", "record")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        values = [as_object(record.value) for record in group.records]
        streamed = [result for value in values for result in _streamed(value)]
        if streamed:
            yield _stream(streamed, values, notes)
            return
        for value in values:
            if _uri(value):
                notes.refuse(InputError(f"a job, whose transcript is another file: {_uri(value)[:200]}", hint=_HINT))
                continue
            results = as_object(value.get("results"))
            parts = _parts(results)
            words = [[_word(item, parts, channel) for item in items] for channel, items in _channels(results).items()]
            whole = [SpokenText(text=as_text(as_object(one).get("transcript"))) for one in results["transcripts"]]
            yield Transcript(
                id=as_text(value.get("jobName")),
                turns=channel_turns(words) or whole,
                language=as_text(results.get("language_code")),
                extras=filled({"status": value.get("status")}),
                raw=value,
            )


def _channels(results: JsonObject) -> dict[str, list[JsonObject]]:
    """The words of each channel: listed by channel, or with the label of one. Else all are of one channel."""
    channels: dict[str, list[JsonObject]] = {}
    for channel in map(as_object, as_list(as_object(results.get("channel_labels")).get("channels"))):
        channels[as_text(channel.get("channel_label"))] = [as_object(item) for item in as_list(channel.get("items"))]
    if not any(channels.values()):
        for item in map(as_object, as_list(results.get("items"))):
            channels.setdefault(as_text(item.get("channel_label")), []).append(item)
    return channels


class _Part(NamedTuple):
    """A segment of the transcript: its number, and who speaks."""

    number: str
    speaker: str


def _parts(results: JsonObject) -> dict[str, _Part]:
    """The segment of each word, by the start of the word, or by its id."""
    parts: dict[str, _Part] = {}
    for number, segment in enumerate(map(as_object, as_list(results.get("audio_segments")))):
        part = _Part(str(number), as_text(segment.get("speaker_label")))
        parts |= {f"#{id}": part for id in as_list(segment.get("items"))}
    labelled = as_list(as_object(results.get("speaker_labels")).get("segments"))
    for number, segment in enumerate(map(as_object, labelled)):
        part = _Part(f"speaker {number}", as_text(segment.get("speaker_label")))
        parts |= {as_text(as_object(item).get("start_time")): part for item in as_list(segment.get("items"))}
    return parts


def _word(item: JsonObject, parts: dict[str, _Part], channel: str) -> SpokenText:
    best = as_object(next(iter(as_list(item.get("alternatives"))), None))
    start = as_text(item.get("start_time"))
    part = parts.get(start) or parts.get(f"#{as_text(item.get('id'))}") or _Part("", "")
    return SpokenText(
        text=as_text(best.get("content")),
        speaker=channel or as_text(item.get("speaker_label")) or part.speaker,
        start=number_in(start),
        end=number_in(item.get("end_time")),
        confidence=number_in(best.get("confidence")),
        part=part.number,
        extras=item,
    )


def _uri(value: JsonObject) -> str:
    """Where the transcript is, of an answer that describes a job."""
    job = as_object(value.get("TranscriptionJob")) or as_object(value.get("CallAnalyticsJob"))
    transcript = as_object(job.get("Transcript"))
    uri = as_text(transcript.get("TranscriptFileUri")) or as_text(transcript.get("RedactedTranscriptFileUri"))
    return uri or ("not made yet" if job else "")


def _streamed(value: JsonObject) -> list[Any]:
    inner = as_object(value.get("TranscriptResultStream")) or value
    transcript = as_object(as_object(inner.get("TranscriptEvent")).get("Transcript")) or as_object(
        inner.get("Transcript")
    )
    listed = as_list((transcript or inner).get("Results")) or [inner]
    return [entry for entry in listed if "Alternatives" in as_object(entry)]


def _stream(results: list[Any], values: list[JsonObject], notes: Notes) -> Transcript:
    """The last result of each id: earlier ones are parts of it."""

    def id_of(result: JsonObject) -> str:
        return as_text(result.get("ResultId")) or f"{result.get('ChannelId')} {result.get('StartTime')}"

    last = last_of_each(map(as_object, results), id_of, notes, "IsPartial")
    turns = [turn for result in last for turn in _result_turns(result)]
    languages = [as_text(result.get("LanguageCode")) for result in last]
    language = languages[0] if len(set(languages)) == 1 else ""
    return Transcript(turns=by_start(turns), language=language, raw=values)


def _result_turns(result: JsonObject) -> list[SpokenText]:
    """One result is one turn, unless its words are of several speakers."""
    best = as_object(next(iter(as_list(result.get("Alternatives"))), None))
    channel = as_text(result.get("ChannelId"))
    words: list[SpokenText] = []
    for item in map(as_object, as_list(best.get("Items"))):
        label, is_word = as_text(item.get("Speaker")), item.get("Type") != "punctuation"
        words.append(
            SpokenText(
                text=as_text(item.get("Content")),
                speaker=channel or (f"spk_{label}" if label else ""),
                start=number_in(item.get("StartTime")) if is_word else None,
                end=number_in(item.get("EndTime")) if is_word else None,
                confidence=number_in(item.get("Confidence")),
                extras=item,
            )
        )
    speakers = {word.speaker for word in words if word.speaker}
    if len(speakers) > 1:
        return turns_of(words)
    return [
        SpokenText(
            text=as_text(best.get("Transcript")),
            speaker=channel or next(iter(speakers), ""),
            start=number_in(result.get("StartTime")),
            end=number_in(result.get("EndTime")),
            id=as_text(result.get("ResultId")),
            extras=filled({"words": best.get("Items"), "entities": best.get("Entities")}),
        )
    ]


READER = AWSTranscribeReader()
