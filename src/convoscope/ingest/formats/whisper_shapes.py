"""Transcripts of programs around Whisper in the shape of Whisper: `{"segments": [{"start", "end", "text"}]}`.

whisper.cpp writes milliseconds, Hugging Face a pair of times, the API of OpenAI may write words alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convoscope.ingest.kits.segments import SpokenText, turns_of
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.speaker_labels import clock_seconds

_HOLDERS = ("result", "transcription", "transcript", "output", "data")
"""Where services hold a transcript, beside the state of a job."""
_DEEPEST = 3
_ROW = frozenset({"start", "end", "text"})


def is_segment(value: Any) -> bool:
    """A segment has a start and an end, and words or a speaker."""
    return (
        isinstance(value, dict)
        and as_number(value.get("start")) is not None
        and as_number(value.get("end")) is not None
        and (isinstance(value.get("text"), str) or isinstance(value.get("speaker"), str | dict))
    )


def in_segments(value: Any, depth: int = 0) -> JsonObject | None:
    """The transcript with `segments`; None where the value is no transcript that is known."""
    record = as_object(value)
    if is_segment(record):
        return None
    if any(map(is_segment, as_list(record.get("segments")))):
        return record
    written = [as_object(entry) for entry in as_list(record.get("transcription"))]
    if any("offsets" in entry or "timestamps" in entry for entry in written):
        return _whisper_cpp(record, written)
    for name in ("speakers", "chunks"):
        paired = [as_object(entry) for entry in as_list(record.get(name))]
        if paired and all(_is_pair(entry.get("timestamp")) and isinstance(entry.get("text"), str) for entry in paired):
            return _hugging_face(record, paired, name)
    if isinstance(record.get("text"), str) and any(map(_is_word, as_list(record.get("words")))):
        return _of_words(record)
    for name in _HOLDERS:
        is_held = isinstance(record.get(name), dict) and depth < _DEEPEST
        inner = in_segments(record[name], depth + 1) if is_held else None
        if inner is not None:
            around = {key: held for key, held in record.items() if key != name}
            return {**inner, **filled({"service": around})}
    return None


def _whisper_cpp(record: JsonObject, written: Sequence[JsonObject]) -> JsonObject:
    segments = []
    for entry in written:
        offsets, stamps = as_object(entry.get("offsets")), as_object(entry.get("timestamps"))
        start, end = (
            from_milliseconds(offsets.get(side)) if side in offsets else _clock(stamps.get(side))
            for side in ("from", "to")
        )
        rest = {name: held for name, held in entry.items() if name not in ("offsets", "timestamps")}
        segments.append({**rest, "start": start, "end": end})
    language = as_object(record.get("result")).get("language") or as_object(record.get("params")).get("language")
    rest = {name: held for name, held in record.items() if name not in ("transcription", "result")}
    return {**rest, **filled({"language": language}), "segments": segments}


def _clock(text: Any) -> float | None:
    try:
        return clock_seconds(as_text(text))
    except ValueError:
        return None


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and as_number(value[0]) is not None


def _hugging_face(record: JsonObject, paired: Sequence[JsonObject], name: str) -> JsonObject:
    """Chunks with `timestamp: [start, end]`. Sound that breaks off inside a word has no end."""
    segments = [
        {**{key: held for key, held in entry.items() if key != "timestamp"}, "start": start, "end": end}
        for entry in paired
        for start, end in [entry["timestamp"]]
    ]
    # `speakers` says the chunks again, with who says each.
    rest = {key: held for key, held in record.items() if key not in (name, "chunks")}
    return {**rest, "segments": segments}


def _is_word(value: Any) -> bool:
    entry = as_object(value)
    return isinstance(entry.get("word"), str) and as_number(entry.get("start")) is not None


def _of_words(record: JsonObject) -> JsonObject:
    """Words without segments: one for each turn of a speaker. The text has what is between the words, too."""
    words = [as_object(word) for word in record["words"]]
    spoken = [
        SpokenText(
            text=as_text(word.get("word")).strip(),
            speaker=as_text(word.get("speaker")),
            start=as_number(word.get("start")),
            end=as_number(word.get("end")),
            extras=word,
        )
        for word in words
    ]
    turns = turns_of(spoken)
    texts = [record["text"]] if len(turns) == 1 else [turn.text for turn in turns]
    segments = [
        {**filled({"speaker": turn.speaker}), "start": turn.start, "end": turn.end, "text": text, **turn.extras}
        for turn, text in zip(turns, texts, strict=True)
    ]
    rest = {name: held for name, held in record.items() if name != "words"}
    return {**rest, "segments": segments}


def is_row(row: Any) -> bool:
    """A row of the TSV that Whisper writes: times are whole milliseconds."""
    return isinstance(row, Mapping) and row.keys() == _ROW and _milliseconds(row.get("start")) is not None


def of_rows(rows: Sequence[Any]) -> JsonObject:
    """The rows of a TSV as segments."""
    return {
        "segments": [
            {**as_object(row), **{side: _milliseconds(as_object(row).get(side)) for side in ("start", "end")}}
            for row in rows
        ]
    }


def _milliseconds(value: Any) -> float | None:
    return from_milliseconds(int(value) if isinstance(value, str) and value.isdecimal() else value)
