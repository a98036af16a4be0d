"""Deepgram transcripts: utterances, or words with speakers and channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from convoscope.ingest.kits.segments import (
    SpokenText,
    Transcript,
    TranscriptReader,
    by_start,
    channel_turns,
    last_of_each,
)
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes


class DeepgramReader(TranscriptReader):
    """A response with channels and alternatives."""

    name = "deepgram"
    title = "Deepgram transcripts"
    shown = frozenset({"transcript", "text"})

    def detect(self, sample: Sample) -> Detection | None:
        for value in map(_response, sample.values):
            channels = as_list(as_object(value.get("results")).get("channels"))
            if any("alternatives" in as_object(channel) for channel in channels):
                return Detection(0.96, '"results" with channels and alternatives', "record")
            if _is_live(value) or _is_turn(value):
                return Detection(0.96, "results of a live stream", "file")
        return None

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        values = [_response(record.value) for record in group.records]
        if any(_is_live(value) or _is_turn(value) for value in values):
            yield _flux(values, notes) if any(map(_is_turn, values)) else _live(values, notes)
            return
        for value in values:
            results, metadata = as_object(value.get("results")), as_object(value.get("metadata"))
            channels = [as_object(channel) for channel in as_list(results.get("channels"))]
            utterances = [as_object(entry) for entry in as_list(results.get("utterances"))]
            # The words are in both: of utterances and channels only one is read.
            turns = [_spoken(entry, "transcript", len(channels)) for entry in utterances]
            words = [_words(number, channel, len(channels)) for number, channel in enumerate(channels)]
            yield Transcript(
                id=as_text(metadata.get("request_id")),
                turns=by_start(turns) or channel_turns(words),
                language=as_text(next(iter(channels), {}).get("detected_language")),
                duration=as_number(metadata.get("duration")),
                extras=filled({name: metadata.get(name) for name in ("created", "model_info", "channels")}),
                raw=value,
            )


def _response(value: Any) -> JsonObject:
    """A response; the SDK for JavaScript puts it beside an error."""
    record = as_object(value)
    inner = as_object(record.get("result"))
    return inner if "results" in inner else record


def _words(number: int, channel: JsonObject, channels: int) -> list[SpokenText]:
    """The words of a channel; without words its paragraphs, else its whole text."""
    best = as_object(next(iter(as_list(channel.get("alternatives"))), None))
    paragraphs = as_list(as_object(best.get("paragraphs")).get("paragraphs"))
    sentences = [
        {"speaker": as_object(paragraph).get("speaker"), **as_object(sentence)}
        for paragraph in paragraphs
        for sentence in as_list(as_object(paragraph).get("sentences"))
    ]
    for name, entries in (("word", as_list(best.get("words"))), ("text", sentences), ("transcript", [best])):
        spoken = [_spoken({"channel": number, **as_object(entry)}, name, channels) for entry in entries]
        if any(entry.text for entry in spoken):
            return spoken
    return []


def _is_live(value: JsonObject) -> bool:
    return value.get("type") == "Results" and "alternatives" in as_object(value.get("channel"))


def _live(values: list[JsonObject], notes: Notes) -> Transcript:
    """The final results of a stream; the others are said again, and left out."""
    channels: dict[int, list[SpokenText]] = {}
    ends: Counter[int] = Counter()
    for value in filter(_is_live, values):
        if value.get("is_final") is False:
            notes.ignored("partial_result")
            continue
        position = [index for index in as_list(value.get("channel_index")) if isinstance(index, int)]
        number, count = position if len(position) == 2 else (0, 1)
        words = _words(number, as_object(value.get("channel")), count)
        for word in words:
            word.part = str(ends[number])
        channels.setdefault(number, []).extend(words)
        ends[number] += value.get("speech_final") is True  # a pause, as the recogniser hears it
    ended = next((value for value in values if value.get("type") == "Metadata"), {})
    ids = [as_text(as_object(value.get("metadata")).get("request_id")) for value in values]
    return Transcript(
        id=next(filter(None, ids), as_text(ended.get("request_id"))),
        turns=channel_turns(list(channels.values())),
        duration=as_number(ended.get("duration")),
        raw=values,
    )


def _is_turn(value: JsonObject) -> bool:
    return value.get("type") == "TurnInfo" and "turn_index" in value


def _flux(values: list[JsonObject], notes: Notes) -> Transcript:
    """The last event of each turn (Flux): the others are the same turn as far as it was heard."""
    turns = last_of_each(filter(_is_turn, values), lambda value: as_text(value["turn_index"]), notes)
    spoken = [
        _spoken({**turn, "start": turn.get("audio_window_start"), "end": turn.get("audio_window_end")}, "transcript", 1)
        for turn in turns
    ]
    ids = [as_text(value.get("request_id")) for value in values]
    return Transcript(id=next(filter(None, ids), ""), turns=spoken, raw=values)


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
