"""Transcripts of whole sessions: who said what, where the transcript tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, SYSTEM, Conversation, Json
from convoscope.text.folding import folded_label

ASSISTANTS = frozenset(("assistant", "agent", "bot", "ai", "assistant bot", "ai agent", "ai assistant", "voice agent"))
OTHERS = frozenset(
    ("user", "caller", "customer", "human", "client", "guest", "patient", "system", "tool", "operator", "supervisor")
)
_SPEAKERS = ("speaker", "role", "participant", "from", "name", "channel")
_TEXTS = ("text", "message", "content", "transcript", "utterance")
_LISTS = ("turns", "segments", "messages", "transcript", "utterances", "conversation", "timeline")
_DEEPEST = 4

# [00:01.5] **Agent** (0:03): Good morning.
_BEFORE = r"[ \t>*-]{0,8}(?:[\[(]?[\d:., \t>–-]{1,40}[\])]?[ \t–-]{0,4})?[*_\[<]{0,3}"
_AFTER = r"[*_\]>]{0,3}[ \t]{0,4}(?:[\[(][^\])\n]{0,40}[\])])?[ \t]{0,4}[*_]{0,3}:[*_]{0,3}"
_ANYBODY = r"[^\W\d_][\w'.-]{0,30}(?: [\w'.-]{1,30}){0,2}"


class TranscriptLine(NamedTuple):
    """One stretch of a transcript, with the label of its speaker in small letters."""

    speaker: str
    text: str


class Speakers(NamedTuple):
    """The labels that stand for the agent, and those that stand for somebody else."""

    assistants: frozenset[str]
    others: frozenset[str]


def speakers_of(conversation: Conversation) -> Speakers:
    """The usual words, and the names that this conversation gives to who takes part."""
    assistants, others = set(ASSISTANTS), set(OTHERS)
    assistants.add(folded_label(conversation.agent.name))
    for who in conversation.participants:
        (assistants if who.role == ASSISTANT else others).update((folded_label(who.id), folded_label(who.name)))
    assistants.discard("")
    others.discard("")
    return Speakers(frozenset(assistants), frozenset(others - assistants))


def assistant_words(lines: Sequence[TranscriptLine], speakers: Speakers) -> str | None:
    """What the agent says; None where nobody can tell who of the speakers it is."""
    texts = [one.text for one in lines if one.speaker in speakers.assistants]
    if not texts and not all(one.speaker in speakers.others for one in lines):
        return None
    return " ".join(texts)


def transcript_lines(transcript: str, speakers: Speakers) -> list[TranscriptLine]:
    """The transcript by speaker: JSON of records, or text with a label before the words; nothing where neither fits."""
    text = transcript.strip()
    if text[:1] in ("[", "{"):
        try:
            records = list(_records(msgspec.json.decode(text)))
        except (msgspec.DecodeError, ValueError, RecursionError):
            records = []
        if records:
            return records
    names = speakers.assistants | speakers.others
    lines = _labelled(text, names)
    if lines and {one.speaker for one in lines} <= speakers.assistants:
        # Nobody else is called by a name that we know: then whoever stands before a colon speaks.
        lines = _labelled(text, names, anybody=True)
    return lines


def _records(value: Json, depth: int = 0) -> Iterator[TranscriptLine]:
    if isinstance(value, dict) and depth < _DEEPEST:
        speaker = next((value[name] for name in _SPEAKERS if isinstance(value.get(name), str)), None)
        text = next((value[name] for name in _TEXTS if isinstance(value.get(name), str)), None)
        if speaker is not None and text is not None:
            yield TranscriptLine(folded_label(speaker), text)
        else:
            for name in _LISTS:
                if isinstance(value.get(name), list):
                    yield from _records(value[name], depth + 1)
                    return
    elif isinstance(value, list) and depth < _DEEPEST:
        for record in value:
            yield from _records(record, depth + 1)


def _labelled(text: str, speakers: Iterable[str], *, anybody: bool = False) -> list[TranscriptLine]:
    """Cut where a line begins with a label; a text of one line is cut at capitalised labels inside it, too."""
    names = "|".join(
        re.escape(name).replace(r"\ ", "[ _]") for name in sorted(speakers, key=lambda one: (-len(one), one))
    )
    whoever = f"{names}|{_ANYBODY}" if anybody else names
    labels = list(re.finditer(rf"^{_BEFORE}(?P<label>{whoever}){_AFTER}", text, re.IGNORECASE | re.MULTILINE))
    if labels and "\n" not in text:
        inside = re.finditer(rf"(?:^{_BEFORE}|(?<=\s))(?P<label>{names}){_AFTER}", text, re.IGNORECASE)
        labels = [one for one in inside if one.start() == 0 or one["label"][:1].isupper()]
    if not labels or text[: labels[0].start()].strip():
        return []
    ends = [*(one.start() for one in labels[1:]), len(text)]
    return [
        TranscriptLine(folded_label(one["label"]), text[one.end() : end].strip())
        for one, end in zip(labels, ends, strict=True)
    ]


def only_assistant(conversation: Conversation, timeline: Json, speakers: Speakers) -> bool:
    """Nobody but the agent is known to speak: by the recording's timeline of speakers, else by the conversation."""
    heard = {folded_label(name) for name in _timed(timeline)}
    if heard:
        return heard <= speakers.assistants
    roles = {conversation.roles[one.speaker] for one in conversation.utterances}
    return roles - {SYSTEM} == {ASSISTANT}


def _timed(timeline: Json, depth: int = 0) -> Iterator[str]:
    """The speakers that a timeline names: as keys, or in its records."""
    if isinstance(timeline, Mapping) and depth < _DEEPEST:
        named = [timeline[name] for name in _SPEAKERS if isinstance(timeline.get(name), str)]
        if named:
            yield named[0]
        elif lists := [timeline[name] for name in _LISTS if isinstance(timeline.get(name), list)]:
            yield from _timed(lists[0], depth + 1)
        else:
            yield from (str(name) for name, spans in timeline.items() if isinstance(spans, list))
    elif isinstance(timeline, list) and depth < _DEEPEST:
        for record in timeline:
            yield from _timed(record, depth + 1)
