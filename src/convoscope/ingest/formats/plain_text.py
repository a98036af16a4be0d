"""Plain text with a label before each utterance: `Agent: …`, `CALLER: …`, `[00:12] Agent: …`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from convoscope.conversation import Clock, Conversation, Source, Text, Time
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import (
    UNKNOWN,
    LabelledLine,
    is_machine_key,
    is_numbered,
    labelled,
    role_of,
    speaker,
    speaker_labels,
)
from convoscope.ingest.timeline_builder import TimelineBuilder

_CLOCK = Clock(id="transcript", kind="relative", source="times in the transcript")
_ENDINGS = (".txt", ".text", ".md", ".log", "", ".gz", ".zst", ".zstd")
_FEW_WORDS = 3
"""Keys have values of a word or two; people say more on average."""
_SENTENCE_ENDS = (".", "?", "!", "…", "。", "？", "！")
_HINT = "expected lines such as `Agent: …` and `Customer: …`"


class PlainTextReader(Reader):
    """Lines of a label, a colon and what was said; a line without a label goes on with the one before it."""

    name = "plain-text"
    title = "Speaker-labelled plain text"

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container != "text" or sample.path.suffix.lower() not in _ENDINGS:
            return None
        lines = [line for value in sample.values if (line := labelled(str(value))) is not None]
        speakers = speaker_labels(lines)
        known = [line for line in lines if line.label in speakers]
        if not known or _is_machine_text(lines, known):
            return None
        roles = {role_of(line.label) for line in known} - {UNKNOWN}
        is_named_text = sample.path.suffix.lower() == ".txt"
        if {"user", "assistant"} <= roles or (is_named_text and (roles or _is_talk(known, sample))):
            return Detection(0.6, "lines begin with the label of a speaker", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        lines = [(record, labelled(str(record.value))) for record in group.records]
        speakers = speaker_labels(line for _, line in lines if line is not None)
        # What is before the first line of a speaker is a header.
        spoken = (index for index, (_, line) in enumerate(lines) if line is not None and line.label in speakers)
        first = next(spoken, len(lines))
        timeline = TimelineBuilder(notes)
        utterances: list[tuple[LabelledLine, list[Record]]] = []
        for record, line in lines[first:]:
            if line is not None and line.label in speakers:
                utterances.append((line, [record]))
            else:
                utterances[-1][1].append(record)
        for line, records in utterances:
            _say(timeline, line, records)
        is_timed = any(line.at is not None for line, _ in utterances)
        if not timeline.events:
            raise InputError("has no line with the label of a speaker and words", hint=_HINT)
        header = [str(record.value) for record, _ in lines[:first]]
        yield Conversation(
            id=group.name,
            source=Source(format=self.name, files=group.file_names),
            participants=timeline.participants,
            clocks=(_CLOCK,) if is_timed else (),
            timeline=tuple(timeline.events),
            extras={"header": header} if header else {},
        )


def _is_machine_text(lines: list[LabelledLine], known: list[LabelledLine]) -> bool:
    """Whether most labels are keys that programs write: a log, headers, settings, a stream of events."""
    keys = sum(is_machine_key(line.label) for line in lines)
    if 2 * keys >= len(lines) or all(is_machine_key(line.label) for line in known):
        return True
    # Settings name a user and an agent once each, among other keys.
    return len({line.label for line in known}) == len(known) < len(lines) - len(known)


def _is_talk(known: list[LabelledLine], sample: Sample) -> bool:
    """Whether people of unknown roles talk: half the lines are labelled, and two or more take turns, in sentences."""
    labels = [line.label for line in known]
    if sum(line.is_chat for line in known) > 1:  # a chat may have its words in lines of their own
        return True
    if len(set(labels)) < 2 or 2 * len(known) < len(sample.values):
        return False
    if any(line.is_chat or line.at is not None or is_numbered(line.label) for line in known):
        return True
    changes = sum(one != other for one, other in pairwise(labels))
    words = sum(len(line.text.split()) for line in known)
    sentences = sum(line.text.endswith(_SENTENCE_ENDS) for line in known)
    are_sentences = words >= _FEW_WORDS * len(known) or 2 * sentences >= len(known)
    return changes >= 2 and are_sentences and not any(label[0].islower() for label in labels)


def _say(timeline: TimelineBuilder, line: LabelledLine, records: list[Record]) -> None:
    """What follows a label, in its line and in those without a label; blank lines between are kept as one."""
    texts = [line.text] if line.text else []
    for before, record in pairwise(records):
        if record.number > before.number + 1 and texts:
            texts.append("")
        texts.append(str(record.value))
    text = "\n".join(texts)
    if not text:
        with timeline.notes.at_line("", records[0].number):
            timeline.notes.set_aside("label_without_words", line.label, timeline.seq)
        return
    at = None if line.at is None else Time(line.at, _CLOCK.id)
    timeline.say(speaker(timeline, line.label), spoken=Text(text, "transcript"), time=at)


READER = PlainTextReader()
