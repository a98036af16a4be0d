"""Transcripts of recognisers: words with times and speakers, joined to turns of a call."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

import msgspec

from convoscope.conversation import Clock, Conversation, Outcome, Segment, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.kits.leftovers import Leftovers
from convoscope.ingest.reader import Reader, RecordGroup
from convoscope.ingest.record import JsonObject, filled, in_order
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import speaker
from convoscope.ingest.timeline_builder import TimelineBuilder

CLOCK = "audio"


class SpokenText(msgspec.Struct, kw_only=True):
    """A word, or a whole turn, of one speaker. Times are seconds of the recording."""

    text: str
    speaker: str = ""
    start: float | None = None
    end: float | None = None
    confidence: float | None = None
    part: str = ""
    """The segment that the log puts it in: words of another one begin a new turn."""
    id: str = ""
    extras: JsonObject = {}


def turns_of(words: Iterable[SpokenText], *, glue: Sequence[str] = (",", ".", "?", "!", ":", ";")) -> list[SpokenText]:
    """Words of one speaker after the other, joined to turns. Punctuation has no time and joins what is before it."""
    turns: list[list[SpokenText]] = []
    for word in words:
        if turns and _continues(turns[-1][0], word):
            turns[-1].append(word)
        else:
            turns.append([word])
    return [_joined(turn, glue) for turn in turns]


def _continues(first: SpokenText, word: SpokenText) -> bool:
    """Whether a word belongs to the turn that begins so."""
    if word.start is None:
        return word.speaker in ("", first.speaker)
    return word.speaker == first.speaker and word.part == first.part


def last_of_each(
    entries: Iterable[JsonObject], id_of: Callable[[JsonObject], str], notes: Notes, partial: str = ""
) -> list[JsonObject]:
    """The last entry of each id of a stream: those before it are the same as far as it was heard.

    `partial` names the field that says so of an entry. What is final is not said again: an entry of its id is another
    one. One that stays partial is all that is known of it. Without such a field every entry but the last is partial.
    """
    last: dict[str, JsonObject] = {}
    for number, entry in enumerate(entries):
        id = id_of(entry) or f"#{number}"
        if id in last and partial and last[id].get(partial) is not True:
            id = f"{id} #{number}"
        if id in last:
            notes.ignored("partial_result")
        last[id] = entry
    for id, entry in last.items():
        if partial and entry.get(partial) is True:
            notes.inferred("partial_result_is_the_last", id[:80])
    return list(last.values())


def channel_turns(channels: Sequence[Sequence[SpokenText]]) -> list[SpokenText]:
    """The turns of channels. Where another channel speaks in a pause of one, its turn ends; overlaps do not end it."""
    starts = [sorted(word.start for word in words if word.start is not None) for words in channels]
    turns: list[SpokenText] = []
    for number, words in enumerate(channels):
        others = sorted(start for index, found in enumerate(starts) if index != number for start in found)
        spans: list[list[SpokenText]] = [[]]
        end: float | None = None
        for word in words:
            if end is not None and word.start is not None:
                first = bisect_left(others, end)
                if first < len(others) and others[first] < word.start:
                    spans.append([])
            spans[-1].append(word)
            end = word.end if word.end is not None else end
        turns += [turn for span in spans for turn in turns_of(span)]
    return by_start(turns)


def by_start(turns: Sequence[SpokenText]) -> list[SpokenText]:
    """Turns of several channels in the order in which they begin; one without a time stays behind the one before."""
    return [turns[index] for index in in_order([turn.start for turn in turns])]


def _joined(words: Sequence[SpokenText], glue: Sequence[str]) -> SpokenText:
    text = "".join(word.text if word.text in glue or not index else f" {word.text}" for index, word in enumerate(words))
    starts = [word.start for word in words if word.start is not None]
    ends = [word.end for word in words if word.end is not None]
    sure = [word.confidence for word in words if word.confidence is not None and word.start is not None]
    return SpokenText(
        text=text,
        speaker=words[0].speaker,
        start=min(starts, default=None),
        end=max(ends, default=None),
        confidence=sum(sure) / len(sure) if sure else None,
        extras=filled({"words": [word.extras for word in words if word.extras]}),
    )


class Transcript(msgspec.Struct, kw_only=True):
    """What a recogniser wrote of one recording."""

    id: str = ""
    turns: list[SpokenText] = []
    language: str = ""
    duration: float | None = None
    roles: dict[str, str] = {}
    """The role of a speaker, by label, where the log says it; otherwise the label may say it."""
    extras: JsonObject = {}
    raw: Any = None
    """The transcript as it is written: what is not in the conversation is kept beside it."""


class TranscriptReader(Reader):
    """Reads transcripts of recognisers."""

    shown: Set[str] = frozenset()
    """Names of fields whose texts and numbers need not be kept: they say again what others say."""

    def transcripts(self, group: RecordGroup, notes: Notes) -> Iterator[Transcript]:
        """The transcripts of a group of records."""
        raise NotImplementedError

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        leftovers = Leftovers(notes, shown=self.shown)
        for transcript in self.transcripts(group, notes):
            timeline = TimelineBuilder(notes)
            for turn in transcript.turns:
                if turn.text.strip():
                    _say(turn, transcript, timeline, self.name)
                else:
                    notes.set_aside("segment_without_text", turn.speaker, timeline.seq)
            if not timeline.events:
                leftovers.leave([transcript.raw])
                notes.refuse(InputError("a transcript without words", hint="nothing was said, or nothing recognised"))
                continue
            conversation = Conversation(
                id=transcript.id or group.name,
                source=Source(format=self.name, files=group.file_names, record=group.name),
                pipeline="cascade",
                participants=timeline.participants,
                clocks=(Clock(id=CLOCK, kind="audio", source=self.name),),
                timeline=tuple(timeline.events),
                outcome=Outcome(duration=transcript.duration),
                extras=transcript.extras,
            )
            yield leftovers.kept_with(conversation, [transcript.raw])
        leftovers.note_rest(record.value for record in group.records)


def _say(turn: SpokenText, transcript: Transcript, timeline: TimelineBuilder, source: str) -> None:
    role = transcript.roles.get(turn.speaker)
    if role:
        id = timeline.participant(role, "" if turn.speaker.casefold() == role else turn.speaker)
    else:
        id = speaker(timeline, turn.speaker or "speaker")
    is_timed = turn.start is not None and turn.end is not None and turn.end >= turn.start
    if not is_timed:
        timeline.notes.set_aside("segment_without_times", turn.text[:60], timeline.seq)
    words = Text(turn.text, source, turn.confidence, transcript.language)
    timeline.say(
        id,
        heard=words,
        segments=[Segment(turn.start, turn.end, CLOCK)] if is_timed else [],  # type: ignore[arg-type]
        id=turn.id,
        extras=turn.extras,
    )
