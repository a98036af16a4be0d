"""Metrics of what can be heard of the agent: the words that it was given to say against those in the transcript."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from convoscope.conversation import ASSISTANT, ComponentMetric, Conversation, Json
from convoscope.metrics.audio.transcripts import assistant_words, only_assistant, speakers_of, transcript_lines
from convoscope.metrics.declaration import HIGHER, ITEM, TenPoints, metric
from convoscope.metrics.declaration import RATIO as UNIT_RATIO
from convoscope.metrics.item_fields import missing, needs_of
from convoscope.metrics.voice.transcription import word_errors
from convoscope.scores.observation import Observation, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS, Reduce
from convoscope.text.spoken import normalise
from convoscope.views.items import WHOLE, Case, Subject, cases
from convoscope.views.languages import languages_of

_DIGITS = re.compile(r"(\d+)")


class Script(NamedTuple):
    """What the synthesiser was given to say, in the order of turns, and the spans that do not tell."""

    lines: tuple[str, ...]
    untold: tuple[str, ...] = ()


class SpokenSession(NamedTuple):
    """The cases that one recording speaks of."""

    subject: Subject
    cases: tuple[Case, ...]
    transcript: str
    timeline: Json = None


@metric(
    "audio.word_accuracy",
    version=3,
    observes=ITEM,
    unit=UNIT_RATIO,
    better=HIGHER,
    needs=needs_of("word_accuracy"),
    reduce=Reduce(RATIO, RATIO_OF_SUMS),
    ten=TenPoints(zero=0.0, ten=1.0),
    sensitive_to=(),
)
def word_accuracy(conversation: Conversation) -> Iterator[Observation]:
    """How many of the words that the agent was given to say stand in the transcript of the call?

    1 − word error rate, and not below 0. Reference: `input_text` of `tts_data`, in the order of turns.
    Hypothesis: the agent's part of `complete_transcript`. Both are brought into one spoken form. Items
    of one recording are compared together. Unmeasured where there is no transcript, where it does not
    tell who speaks, or where a text that was synthesised is not told.
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
    if script.untold:
        return unmeasured(subject, "no_input_text", ", ".join(script.untold[:5]))
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
