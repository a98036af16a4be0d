"""SRT, WebVTT and SBV: each cue is an utterance, with its times and, where it is known, its speaker."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convoscope.conversation import Clock, Conversation, Segment, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import UNKNOWN, LabelledLine, clock_seconds, labelled, speaker, speaker_labels
from convoscope.ingest.timeline_builder import TimelineBuilder

_CLOCK = Clock(id="audio", kind="audio", source="times of the cues")
_STAMP = r"((?:\d{1,4}:)?\d{1,2}:\d{1,2}[.,]\d{1,3})"
_TIMING = re.compile(rf"{_STAMP}(?:\s*-{{1,3}}>\s*|,){_STAMP}(?:\s+(.*))?$")
"""SBV has a comma where the others have an arrow. Files that were edited by hand may have a shorter one."""
_ARROW = "-->"
_VOICE = re.compile(r"<v(?:\.[\w.-]*)?[ \t]+([^<>]{1,200})>")
_TAG = re.compile(r"</?(?:[a-z]{1,8}(?:[. ][^<>]{0,200})?|\d[\d:.]*)>|\{\\[^{}]{0,40}\}", re.IGNORECASE)
_BLOCKS = ("NOTE", "STYLE", "REGION")
_LANGUAGE = re.compile(r"language:\s*([\w-]{2,20})$", re.IGNORECASE)
_HINT = "expected cues: a line `00:00:01,000 --> 00:00:04,000`, then what was said"


class Cue(NamedTuple):
    """A cue as it is written."""

    id: str
    number: int
    """The line that its text begins at."""
    lines: tuple[str, ...]
    timing: str | None
    """None where a block of text has no times."""


class SubtitlesReader(Reader):
    """Cues with times. A voice tag `<v Name>`, or a label before the words, says who speaks."""

    name = "subtitles"
    title = "SRT, WebVTT and SBV subtitles"

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container != "text" or not sample.values:
            return None
        if str(sample.values[0]).startswith("WEBVTT"):
            return Detection(1.0, "begins with WEBVTT", "file")
        if any(_TIMING.match(str(line)) for line in sample.values[:20]):
            return Detection(0.95, "has the times of cues", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        blocks = _blocks(group.records)
        header, blocks = _header(blocks)
        cues = list(_cues(blocks, notes))
        timeline = _Timeline(notes, cues)
        for cue in cues:
            timeline.add(cue)
        if not timeline.events:
            raise InputError("has no cue with words", hint=_HINT)
        language = next((match[1] for line in header if (match := _LANGUAGE.match(line))), "")
        extras = {name: value for name, value in (("header", header), ("language", language)) if value}
        yield Conversation(
            id=group.name,
            source=Source(format=self.name, files=group.file_names),
            participants=timeline.builder.participants,
            clocks=(_CLOCK,) if any(event.time for event in timeline.events) else (),
            timeline=tuple(timeline.events),
            extras=extras,
        )


def _blocks(records: Sequence[Record]) -> list[list[Record]]:
    """Lines without a blank line between. Blank lines are not among the records: their numbers are missing."""
    blocks: list[list[Record]] = []
    last = -1
    for record in records:
        # A line of blanks behind the times is no end of a cue: YouTube writes it above the words.
        is_cue_open = bool(blocks) and _is_timing(blocks[-1][-1]) and record.number == last + 2
        if not blocks or (record.number != last + 1 and not (is_cue_open and _is_text(record))):
            blocks.append([])
        blocks[-1].append(record)
        last = record.number
    return blocks


def _is_text(record: Record) -> bool:
    return not (_is_timing(record) or str(record.value).isdigit() or str(record.value).startswith(_BLOCKS))


def _header(blocks: list[list[Record]]) -> tuple[list[str], list[list[Record]]]:
    if not blocks or not str(blocks[0][0].value).startswith("WEBVTT"):
        return [], blocks
    first = blocks[0]
    length = next((number for number, record in enumerate(first) if _is_timing(record)), len(first))
    lines = [line for record in first[:length] if (line := str(record.value).removeprefix("WEBVTT").strip(" -"))]
    rest = [first[length:]] if first[length:] else []
    return lines, rest + blocks[1:]


def _cues(blocks: list[list[Record]], notes: Notes) -> Iterator[Cue]:
    for block in blocks:
        kind = str(block[0].value).split()[0] if str(block[0].value).split() else ""
        if kind in _BLOCKS and not any(map(_is_timing, block)):
            notes.ignored({"NOTE": "comment"}.get(kind, "style"), str(block[0].value)[:80])
        else:
            yield from _cues_of(block)


def _cues_of(block: list[Record]) -> Iterator[Cue]:
    """The cues of a block, which is usually one: its id, its times, its lines."""
    timings = [index for index, record in enumerate(block) if _is_timing(record)]
    if not timings:
        lines = [record for record in block if not str(record.value).isdigit()]
        if lines:
            yield Cue("", lines[0].number, tuple(str(record.value) for record in lines), None)
        return
    starts = [index - _is_id(block, index - 1) for index in timings]
    if starts[0] > 0:
        yield Cue("", block[0].number, tuple(str(record.value) for record in block[: starts[0]]), None)
    for timing, start, end in zip(timings, starts, [*starts[1:], len(block)], strict=True):
        lines = block[timing + 1 : end]
        id = str(block[start].value) if start < timing else ""
        yield Cue(id, block[timing].number, tuple(str(record.value) for record in lines), str(block[timing].value))


def _is_timing(record: Record) -> bool:
    line = str(record.value)
    return _ARROW in line or _TIMING.match(line) is not None


def _is_id(block: list[Record], index: int) -> bool:
    """At the head of a block any line is an id; between cues without a blank line only a number is."""
    return index == 0 or (index > 0 and str(block[index].value).isdigit())


class _Timeline:
    """The utterances of the cues so far."""

    def __init__(self, notes: Notes, cues: Sequence[Cue]) -> None:
        self.notes = notes
        self.builder = TimelineBuilder(notes)
        self.events = self.builder.events
        lines = (_labelled(line) for cue in cues for line in cue.lines)
        self.before: Sequence[str] = ()
        """The lines of the cue before, as text."""
        self.speakers = speaker_labels((line for line in lines if line is not None), _are_most_labelled(cues))

    def add(self, cue: Cue) -> None:
        with self.notes.at_line("", cue.number):
            times = self._times(cue)
            parts = [(label, text) for label, text in self._parts(cue) if text]
            if not parts:
                self.notes.ignored("cue_without_words", cue.id, self.builder.seq)
            shown = [line for line in map(_plain, cue.lines) if line]
            if shown and self.before and shown[0] == self.before[-1]:
                # Captions that roll: a line is shown until the next one is whole. It was said once.
                self.notes.inferred("line_shown_again", shown[0][:80], self.builder.seq)
            self.before = shown
            for label, text in parts:
                who = speaker(self.builder, label) if label else self.builder.participant(UNKNOWN)
                self.builder.say(who, spoken=Text(text, "subtitles"), id=cue.id, segments=times)

    def _times(self, cue: Cue) -> list[Segment]:
        match = _TIMING.match(cue.timing or "")
        if match is None:
            self.notes.set_aside("cue_without_times", (cue.timing or "")[:80], self.builder.seq)
            return []
        start, end = clock_seconds(match[1]), clock_seconds(match[2])
        if end < start:
            self.notes.set_aside("cue_ends_before_it_starts", match[0][:80], self.builder.seq)
            return []
        return [Segment(start, end, _CLOCK.id)]

    def _parts(self, cue: Cue) -> Iterator[tuple[str, str]]:
        """The label of each voice in a cue, and what it says."""
        label, lines = "", list[str]()
        for line in cue.lines:
            pieces = _VOICE.split(line)
            begin = pieces[0]
            marked = labelled(_plain(begin))
            if marked is not None and marked.label in self.speakers:
                yield label, "\n".join(lines)
                label, lines = marked.label, []
                begin = marked.text
            if text := _plain(begin):
                lines.append(text)
            for name, words in zip(pieces[1::2], pieces[2::2], strict=True):
                yield label, "\n".join(lines)
                label, lines = html.unescape(name).strip(), []
                if text := _plain(words):
                    lines.append(text)
        yield label, "\n".join(lines)


def _labelled(line: str) -> LabelledLine | None:
    """The text before the first voice tag, as label and text."""
    return labelled(_plain(_VOICE.split(line, maxsplit=1)[0]))


def _are_most_labelled(cues: Sequence[Cue]) -> bool:
    """At least two cues, and more than half of those with words, begin with a label: it is how speakers are written."""
    begins = [_labelled(cue.lines[0]) is not None for cue in cues if cue.lines]
    return sum(begins) > max(1, len(begins) / 2)


def _plain(text: str) -> str:
    return html.unescape(_TAG.sub("", text)).strip()


READER = SubtitlesReader()
