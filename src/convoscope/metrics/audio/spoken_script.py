"""What the log says of each utterance beside what a recogniser hears of it, and how both become evidence of a score."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

from convoscope.audio.call_comparison import CallComparison, NotCompared, compare_call
from convoscope.audio.side_words import SideWords, hear_side, spans_of
from convoscope.audio.word_alignment import AlignedText, align
from convoscope.conversation import ASSISTANT, Conversation, Utterance
from convoscope.metrics.needs import Need
from convoscope.resources.sound import Recognised, Recogniser, Recording, RecordingError
from convoscope.scores.observation import Observation, not_applicable, unmeasured
from convoscope.text.language import is_plainly
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of

LEAST_SPEECH = 3.0
"""Seconds of speech below which nothing is said of a voice."""
NO_SPEECH = "too_little_speech"
_DOES_NOT_FIT = "log_does_not_fit_sound"
LEAST_MATCHED = 0.5
"""Of an utterance less of which is heard as it is, nothing is said: it may be another one that was heard."""
LEAST_PROBABILITY = 0.5
"""Words that the recogniser is less sure of, on average, convict no voice."""

INTENDED_BY_AGENT = Need(
    "no_intended_text",
    "timeline.utterance.intended of the assistant",
    "what the agent's voice was given to say",
    lambda conversation: any(line.text for line in script(conversation, ASSISTANT)),
)


class ScriptLine(NamedTuple):
    """An utterance, and what it should sound like."""

    utterance: Utterance
    text: str


class SpokenLine(NamedTuple):
    """An utterance, and what was heard of it."""

    utterance: Utterance
    aligned: AlignedText


class SpokenScript(NamedTuple):
    """One side of a call: what was heard, utterance by utterance."""

    side: SideWords
    lines: tuple[SpokenLine, ...]
    language: str

    @property
    def text(self) -> str:
        """All texts in a row."""
        return " ".join(line.aligned.text for line in self.lines)


def script(conversation: Conversation, role: str) -> list[ScriptLine]:
    """What those of a role meant to say, or were given to say; never what a recogniser wrote of it."""
    lines = []
    for utterance in conversation.utterances:
        if conversation.roles[utterance.speaker] == role:
            words = utterance.intended or utterance.spoken
            if utterance.cut_off_by and utterance.spoken is not None:
                words = utterance.spoken  # what was really played before the cut
            lines.append(ScriptLine(utterance, words.text if words is not None else ""))
    return lines


def transcript(conversation: Conversation, role: str) -> list[ScriptLine]:
    """What the log's recogniser wrote of those of a role, with the utterances of which it wrote nothing."""
    return [
        ScriptLine(utterance, utterance.heard.text if utterance.heard is not None else "")
        for utterance in conversation.utterances
        if conversation.roles[utterance.speaker] == role
    ]


async def spoken_script(
    conversation: Conversation, recording: Recording, recogniser: Recogniser, role: str, lines: Sequence[ScriptLine]
) -> SpokenScript:
    """Each line with the words that were heard of it. Raises `RecordingError` where that cannot be known.

    In a recording of both sides, lines whose sound overlaps with that of others are left out. A recording that has
    neither the times nor most of the words of the log may be that of another call.
    """
    language = languages_of(conversation).of_role(role) or "en"
    side = await hear_side(conversation, recording, recogniser, role, language)
    if not side.is_whole:
        lines = [line for line in lines if _is_heard(conversation, side, line.utterance)]
    aligned = align([line.text for line in lines], side.words, language)
    has_sound = any(clip.speech for clip in side.clips)
    matched, wanted = (
        sum(map(count, aligned)) for count in (lambda one: sum(one.matched), lambda one: len(one.tokens))
    )
    if has_sound and matched < LEAST_MATCHED * wanted:
        import asyncio

        compared = await asyncio.to_thread(compare_call, conversation, recording)
        if not _is_of_call(compared):
            raise RecordingError(_DOES_NOT_FIT, "it has neither times of the log that fit nor most of its words")
    spoken = tuple(SpokenLine(line.utterance, each) for line, each in zip(lines, aligned, strict=True))
    return SpokenScript(side, spoken, language)


def _is_of_call(compared: CallComparison | NotCompared) -> bool:
    """Whether the times of a log show that the recording is that of its call; without them, nothing but words does."""
    if isinstance(compared, NotCompared):
        return False
    comparison = compared.comparison
    return comparison.shift.turns > 0 or not (comparison.missing or comparison.outside or comparison.unlogged)


def _is_heard(conversation: Conversation, side: SideWords, utterance: Utterance) -> bool:
    spans = spans_of(conversation, side.track, utterance)
    return bool(spans) and all(
        any(clip.start <= span.end and span.start <= clip.end for clip in side.clips) for span in spans
    )


_Ask = Callable[..., Awaitable[Sequence[Observation]]]


def with_recording(ask: _Ask) -> _Ask:
    """A metric that hears one side of a call: why that cannot be heard is its only observation."""

    @wraps(ask)
    async def listened(
        conversation: Conversation, recording: Recording, recogniser: Recogniser
    ) -> Sequence[Observation]:
        try:
            return await ask(conversation, recording, recogniser)
        except RecordingError as error:
            explain = not_applicable if error.reason == NO_SPEECH else unmeasured
            return [explain(conversation, error.reason, error.detail)]

    return listened


def in_english(conversation: Conversation, role: str) -> None:
    """Refuse words that are known to be of a language other than English.

    What others speak says little of a side with few words, where these are plainly English.
    """
    language = languages_of(conversation).of_role(role)
    own = (one for one in conversation.utterances if conversation.roles[one.speaker] == role)
    if language not in ("", "en") and not is_plainly("en", " ".join(map(conversation.text, own))):
        raise RecordingError(LANGUAGE_NOT_SUPPORTED, language)


def is_sure(words: Sequence[Recognised], least: float) -> bool:
    """Whether a recogniser is sure of some words on average; one that gives no probabilities is taken at its word."""
    known = [word.probability for word in words if word.probability is not None]
    return not known or sum(known) / len(known) >= least


def moment(side: SideWords, start: float, end: float) -> dict[str, float]:
    """A span of a track, as the page and the evidence have it.

    Recognisers let a first word begin in the silence before it: then it begins with the speech.
    """
    for span in side.track.speech():
        if start < span.start < end and not any(one.start <= start < one.end for one in side.track.speech()):
            start = span.start
    return {"start": side.common(start), "end": side.common(end)}


def timed_words(side: SideWords, words: Sequence[Recognised]) -> list[dict[str, Any]]:
    """The words that were heard, each with its moment."""
    return [{"text": word.text, **moment(side, word.start, word.end)} for word in words]
