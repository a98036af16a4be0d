"""Transcripts of what the agent meant and what was heard of it, and how many of its words arrive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, SYSTEM, ComponentMetric, Conversation, Json
from convoscope.metrics.declaration import HIGHER, ITEM, TenPoints, metric
from convoscope.metrics.declaration import RATIO as UNIT_RATIO
from convoscope.metrics.item_fields import missing, needs_of
from convoscope.metrics.voice.transcription import word_errors
from convoscope.scores.observation import Observation, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS, Reduce
from convoscope.text.folding import folded_label
from convoscope.text.spoken import normalise
from convoscope.views.items import WHOLE, Case, Subject, cases
from convoscope.views.languages import languages_of

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
    """One part of a transcript, with the label of its speaker in small letters."""

    speaker: str
    text: str


class Speakers(NamedTuple):
    """The labels of the agent, and those of other speakers."""

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
    """What the agent says; None where it is unknown which of the speakers it is."""
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
        # No other speaker has a name that we know: then any name before a colon is a speaker.
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
    label = f"{names}|{_ANYBODY}" if anybody else names
    labels = list(re.finditer(rf"^{_BEFORE}(?P<label>{label}){_AFTER}", text, re.IGNORECASE | re.MULTILINE))
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
    """Only the agent is known to speak: by the recording's timeline of speakers, else by the conversation."""
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


_DIGITS = re.compile(r"(\d+)")


class Script(NamedTuple):
    """What the synthesiser was given to say, in the order of turns, and the spans without a text."""

    lines: tuple[str, ...]
    without_text: tuple[str, ...] = ()


class SpokenSession(NamedTuple):
    """The cases that one recording speaks of."""

    subject: Subject
    cases: tuple[Case, ...]
    transcript: str
    timeline: Json = None


@metric(
    "audio.word_accuracy",
    version=4,
    observes=ITEM,
    unit=UNIT_RATIO,
    better=HIGHER,
    needs=needs_of("word_accuracy"),
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
    ten=TenPoints(zero=0.0, ten=1.0),
    sensitive_to=(),
)
def word_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """How many of the words that the agent was given to say are in the transcript of the call?

    1 − word error rate, and not below 0. Reference: `input_text` of `tts_data`, in the order of turns.
    Hypothesis: the agent's part of `complete_transcript`. Both are brought into one spoken form. Items
    of one recording are compared together. Unmeasured where there is no transcript, where it does not
    say who speaks, or where a text that was synthesised is unknown.

    >>> spoken = {"type": "component_metric", "component": "tts_span", "values": {"input_text": "It left on Monday."}}
    >>> call = example("user: Hi.", spoken, recording={"transcript": "User: Hi.\\nAssistant: It left on Sunday."})
    >>> value(word_accuracy, call)  # one of four words is another
    0.75
    """
    for session in _sessions(conversation):
        yield _compared(conversation, session)
    for case in cases(conversation):
        field = missing(case, "word_accuracy")
        if field is not None and case.item is not None:
            yield unmeasured(case.subject, f"no_{field}", field)


def _sessions(conversation: Conversation) -> Iterator[SpokenSession]:
    """Each recording with the cases that it speaks of: the conversation's own first, then those of single items."""
    shared: list[Case] = []
    single: list[SpokenSession] = []
    for case in cases(conversation):
        if missing(case, "word_accuracy") is not None or (case.item is None and conversation.items):
            continue
        own = case.extras.get("raw_complete_audio")
        if isinstance(own, dict):
            text = own.get("complete_transcript")
            single.append(
                SpokenSession(case.subject, (case,), text if isinstance(text, str) else "", own.get("timeline"))
            )
        else:
            shared.append(case)
    recording = conversation.recording
    if shared and recording is not None:
        subject = shared[0].subject if len(shared) == 1 else WHOLE
        yield SpokenSession(subject, tuple(shared), recording.transcript, recording.extras.get("timeline"))
    yield from single


def _compared(conversation: Conversation, session: SpokenSession) -> Observation:
    subject, language = session.subject, _language(conversation, session)
    if not session.transcript.strip():
        return unmeasured(subject, "no_transcript", "complete_transcript")
    script = _script(session.cases)
    if script.without_text:
        return unmeasured(subject, "no_input_text", ", ".join(script.without_text[:5]))
    reference = " ".join(script.lines)
    if not normalise(reference, language):
        return not_applicable(subject, "nothing_to_say")
    speakers = speakers_of(conversation)
    lines = transcript_lines(session.transcript, speakers)
    if lines:
        transcript = assistant_words(lines, speakers)
    else:
        transcript = session.transcript if only_assistant(conversation, session.timeline, speakers) else None
    if transcript is None:
        return unmeasured(subject, "speakers_not_told")
    errors = word_errors(reference, transcript, language)
    details = {
        "words": errors.words,
        "substitutions": errors.substitutions,
        "deletions": errors.deletions,
        "insertions": errors.insertions,
        **({"worst": errors.details["worst"]} if "worst" in errors.details else {}),
    }
    return ratio(subject, max(0, errors.words - errors.all), errors.words, empty="nothing_to_say", details=details)


def _script(sessions: tuple[Case, ...]) -> Script:
    """The texts in turn order. Exports that repeat the whole session in each item say each turn once."""
    lines: list[str] = []
    without_text: list[str] = []
    seen: set[tuple[str, str]] = set()
    for case in sessions:
        spans = [event for event in case.metrics if event.component == "tts_span"]
        if all(span.label for span in spans):
            spans.sort(key=lambda span: _natural(span.label))
        for span in spans:
            text = span.values.get("input_text")
            if not isinstance(text, str):
                without_text.append(_named(span))
            elif not span.label or (span.label, text) not in seen:
                seen.add((span.label, text))
                lines.append(text)
    return Script(tuple(lines), tuple(without_text))


def _natural(label: str) -> tuple[tuple[bool, int, str], ...]:
    """turn_2 comes before turn_10."""
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in _DIGITS.split(label))


def _named(span: ComponentMetric) -> str:
    return span.label or f"event {span.seq}"


def _language(conversation: Conversation, session: SpokenSession) -> str:
    spans = (event.values.get("language") for case in session.cases for event in case.metrics)
    for stated in (conversation.extras.get("language"), *spans):
        if isinstance(stated, str) and stated:
            return stated
    return languages_of(conversation).of_role(ASSISTANT) or "en"
