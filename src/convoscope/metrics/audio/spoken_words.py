"""Metrics of the words in the agent's sound: how many arrive, how they are pronounced, and what is no word at all."""

from __future__ import annotations

import math
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from convoscope.audio.phones import PhoneErrors, phone_errors, pronunciations
from convoscope.audio.recognise import RATE
from convoscope.audio.side_words import Clip, SideWords, hear_side
from convoscope.audio.word_alignment import AlignedText, Token, tokens_of
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.metrics.audio.meant_entities import in_context
from convoscope.metrics.audio.spoken_script import (
    INTENDED_BY_AGENT,
    LEAST_MATCHED,
    LEAST_SPEECH,
    NO_SPEECH,
    SpokenLine,
    SpokenScript,
    in_english,
    moment,
    script,
    spoken_script,
    with_recording,
)
from convoscope.metrics.declaration import CONVERSATION, HIGHER, LOWER, SHARE, TenPoints, metric
from convoscope.metrics.declaration import RATIO as UNIT_RATIO
from convoscope.metrics.voice.transcription import Errors, word_errors
from convoscope.resources.sound import Recognised, Recogniser, Recording, Sound, Span
from convoscope.scores.observation import Observation, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import RATIO, RATIO_OF_SUMS, Reduce
from convoscope.text.spoken import normalise
from convoscope.text.spoken.aloud import aloud, written
from convoscope.text.spoken.short_forms import SHORT_FORMS, without_contractions
from convoscope.text.spoken.vocabulary import CURRENCIES, MONTHS, ORDINALS, SCALES, SMALL, WEEKDAYS, listed

MOST_MOMENTS = 20
_ALL_PHONES = TenPoints(zero=0.0, ten=1.0)
_of_calls = partial(metric, observes=CONVERSATION, reduce=Reduce(RATIO, RATIO_OF_SUMS), sensitive_to=())


async def _agent(conversation: Conversation, recording: Recording, recogniser: Recogniser) -> SpokenScript:
    lines = [line for line in script(conversation, ASSISTANT) if line.text.strip()]
    return await spoken_script(conversation, recording, recogniser, ASSISTANT, lines)


def _text_of(line: SpokenLine) -> str:
    """The text, without what a cut-off utterance never came to."""
    return line.aligned.text[: line.aligned.reached] if line.utterance.cut_off_by else line.aligned.text


@_of_calls(
    "audio.word_accuracy",
    variant="recogniser",
    version=6,
    unit=UNIT_RATIO,
    better=HIGHER,
    needs=(INTENDED_BY_AGENT,),
    ten=_ALL_PHONES,
    label="words that arrive",
    importance=4,
)
@with_recording
async def word_accuracy_recogniser(
    conversation: Conversation, recording: Recording, recogniser: Recogniser
) -> Sequence[Observation]:
    """How many of the words that the agent was given to say does a recogniser hear in its sound?

    1 − word error rate over the call, and not below 0: what each utterance was meant to be against what is heard of
    it, both in one spoken form. Of an utterance that was cut off, the words behind the last one that is heard are
    left out. The recogniser's own errors are in the figure.

    >>> value("audio.word_accuracy@recogniser", example("user: Hello?", "assistant: Hello. How can I help?"))
    'no_recording'
    """
    spoken = await _agent(conversation, recording, recogniser)
    if not any(clip.speech for clip in spoken.side.clips):
        return [not_applicable(conversation, NO_SPEECH, "no speech of the agent")]
    wrong_lines = [(line, said_errors(_text_of(line), line.aligned.heard, spoken.language)) for line in spoken.lines]
    words, wrong = sum(one.words for _, one in wrong_lines), sum(one.all for _, one in wrong_lines)
    details = {
        "words": words,
        "substitutions": sum(one.substitutions for _, one in wrong_lines),
        "deletions": sum(one.deletions for _, one in wrong_lines),
        "insertions": sum(one.insertions for _, one in wrong_lines),
        "utterances": len(wrong_lines),
        "by": spoken.side.by,
        "moments": list(_wrong_moments(spoken.side, wrong_lines)),
    }
    return [ratio(conversation, max(0, words - wrong), words, empty="nothing_to_say", details=details)]


def _wrong_moments(side: SideWords, wrong_lines: Sequence[tuple[SpokenLine, Errors]]) -> Iterator[dict[str, Any]]:
    """The utterances with most errors that were heard at all, with the words that differ."""
    for line, errors in sorted(wrong_lines, key=lambda pair: -pair[1].all)[:MOST_MOMENTS]:
        heard = line.aligned.words
        if errors.all and heard:
            pairs = [f"{one['said'] or '–'} → {one['heard'] or '–'}" for one in errors.details.get("worst", ())]
            text = "; ".join(pairs) or "no word of it"
            yield {**moment(side, heard[0].start, heard[-1].end), "kind": "words", "text": text}


def said_errors(text: str, heard: str, language: str) -> Errors:
    """The word errors of a text in that of its readings which is nearest to what was heard.

    What is spelled alike when it is put together is alike: $2.50 and two fifty, nine and nine o'clock.
    """
    if language[:2].lower() != "en":
        return word_errors(text, heard, language)
    spoken, read = normalise(aloud(without_contractions(heard))), without_contractions(text)

    def errors_of(way: str) -> Errors:
        return word_errors(" ".join(_as_heard(normalise(aloud(way)), spoken)), " ".join(spoken), language)

    for part in reversed(written(read)):
        ways = [f"{read[: part.start]}{reading}{read[part.end :]}" for reading in part.readings]
        read = min(ways, key=lambda way: errors_of(way).all)
    return errors_of(read)


def _as_heard(meant: Sequence[str], heard: Sequence[str]) -> Iterator[str]:
    """The tokens of a text, in the form of what was heard where that is the same."""
    from rapidfuzz.distance import Levenshtein

    number = {word: index for index, word in enumerate(dict.fromkeys((*meant, *heard)))}
    start = heard_start = 0
    for step in Levenshtein.opcodes([number[word] for word in meant], [number[word] for word in heard]):
        same = meant[step.src_start : step.src_end] if step.tag == "equal" else ()
        if same and not _UNSPOKEN.issuperset(same):
            yield from _one_form(meant[start : step.src_start], heard[heard_start : step.dest_start])
            yield from same
            start, heard_start = step.src_end, step.dest_end
    yield from _one_form(meant[start:], heard[heard_start:])


def _one_form(meant: Sequence[str], spoken: Sequence[str]) -> Sequence[str]:
    units = [_UNSPOKEN.intersection(tokens) - {_OCLOCK} for tokens in (meant, spoken)]
    is_another_unit = all(units) and units[0] != units[1]
    return spoken if _together(meant) == _together(spoken) and not is_another_unit else meant


def _together(tokens: Sequence[str]) -> str:
    return "".join(token for token in tokens if token not in _UNSPOKEN).replace(".", "").replace("'", "")


_OCLOCK = "o'clock"
_UNSPOKEN = frozenset((*CURRENCIES.values(), _OCLOCK))
"""Words that a number may have or not."""


class PhoneGap(NamedTuple):
    """Words that were heard as others."""

    meant: tuple[Token, ...]
    heard: tuple[Recognised, ...]


@_of_calls(
    "audio.pronunciation_audio",
    version=6,
    unit=UNIT_RATIO,
    better=HIGHER,
    needs=(INTENDED_BY_AGENT,),
    ten=_ALL_PHONES,
    languages=("en",),
    label="pronunciation",
    importance=3,
)
@with_recording
async def pronunciation_audio(
    conversation: Conversation, recording: Recording, recogniser: Recogniser
) -> Sequence[Observation]:
    """Does the agent's voice pronounce the words as they are pronounced?

    1 − phone errors ÷ phones of the words that are heard. A word that is heard as it is written has no error. One
    that is heard as another has as many as their pronunciations differ by: "Leicester" heard as "Lester" has none.
    Left out are: words of which nothing is heard, words that are heard as quite another word (more than half of the
    phones differ, or another weekday or number), utterances less than half of which is heard as it is, words without a
    pronunciation in the dictionary, figures and units, and short words that are heard as another short word ("in",
    "and"). The details count all of them.

    >>> value(pronunciation_audio, example("user: Hello?", "assistant: Hello, this is Leicester."))
    'no_recording'
    """
    in_english(conversation, ASSISTANT)
    spoken = await _agent(conversation, recording, recogniser)
    total = _Pronounced()
    for line in spoken.lines:
        total.add(line.aligned, spoken.side)
    details = {
        "phones": total.phones,
        "errors": total.errors,
        "without_phones": total.without_phones[:MOST_MOMENTS],
        "not_heard": total.not_heard,
        "short_words": total.short_words,
        "other_words": total.other_words,
        "utterances_not_recognised": total.not_recognised,
        "by": spoken.side.by,
        "moments": sorted(total.moments, key=lambda one: -one["errors"])[:MOST_MOMENTS],
    }
    if total.phones < LEAST_PHONES:
        if total.not_recognised:
            return [unmeasured(conversation, "utterance_not_recognised", f"{total.not_recognised} utterances")]
        return [unmeasured(conversation, "no_phones", f"{total.phones} phones of words that are in the dictionary")]
    return [ratio(conversation, max(0, total.phones - total.errors), total.phones, details=details)]


LEAST_PHONES = 10
"""Two or three words: of fewer, one error of the recogniser is most of the score."""
_SHORT_WORDS = frozenset(
    listed(
        "a an and are as at be but by can for from had has have he her him his i if in is it its me my no not of on "
        "or our so than that the their them then there they this to up was we were will with you your"
    )
)
"""Words that are spoken without stress: recognisers take one for another."""


MOST_DIFFERENT = 0.5
"""Of the phones of a word: where more differ, another word was said, which is a matter of word accuracy."""
_OF_A_LIST = frozenset((*MONTHS, *WEEKDAYS, "am", "pm", *SMALL, *SCALES, *ORDINALS))
"""Words that are another fact where one is heard for another, however alike they sound: Tuesday, Thursday."""


class _Pronounced:
    """Phones of what was heard, and the errors in them."""

    def __init__(self) -> None:
        self.phones, self.errors, self.not_heard, self.short_words, self.not_recognised = 0, 0, 0, 0, 0
        self.other_words = 0
        self.without_phones: list[str] = []
        self.moments: list[dict[str, Any]] = []

    def add(self, aligned: AlignedText, side: SideWords) -> None:
        if aligned.matched_share < LEAST_MATCHED:
            self.not_recognised += 1
            self.not_heard += len(aligned.tokens)
            return
        for token, matched in zip(aligned.tokens, aligned.matched, strict=True):
            if matched:
                ways = pronunciations(token.text)
                self.phones += len(ways[0]) if ways else 0
                self.without_phones += [] if ways else [token.text]
        for gap in gaps(aligned):
            meant = [token.text for token in gap.meant]
            heard = [token.text for word in gap.heard for token in tokens_of(word.text)]
            if not heard or not 0.5 <= len(heard) / len(meant) <= 2:
                self.not_heard += len(meant)
            elif _SHORT_WORDS.issuperset((*meant, *heard)):
                self.short_words += len(meant)
            elif any(_is_sign(aligned.text, token) for token in gap.meant):
                self.without_phones.append(" ".join(meant))
            else:
                self._add_gap(gap, meant, heard, side)

    def _add_gap(self, gap: PhoneGap, meant: Sequence[str], heard: Sequence[str], side: SideWords) -> None:
        heard_text = " ".join(word.text for word in gap.heard)
        errors: PhoneErrors | None = None
        if normalise(" ".join(meant)) != normalise(heard_text):
            errors = phone_errors(meant, heard)
        if errors is None:
            self.without_phones.append(" ".join(meant))
            return
        is_of_a_list = not _OF_A_LIST.isdisjoint(meant) and not _OF_A_LIST.isdisjoint(heard)
        if errors.errors > MOST_DIFFERENT * errors.phones or (errors.errors and is_of_a_list):
            self.other_words += len(meant)
            return
        self.phones += errors.phones
        self.errors += errors.errors
        if errors.errors:
            self.moments.append(
                {
                    **moment(side, gap.heard[0].start, gap.heard[-1].end),
                    "kind": "pronunciation",
                    "text": f"{' '.join(meant)}: {errors.wanted} → {errors.spoken} ({heard_text})",
                    "errors": errors.errors,
                }
            )


def _is_sign(text: str, token: Token) -> bool:
    """Whether a token is written with figures, or is a unit or another short form: 20°C, Dr."""
    return token.text in SHORT_FORMS or any(map(str.isdigit, in_context(text, token.start, token.end)))


def gaps(aligned: AlignedText) -> Iterator[PhoneGap]:
    """The spans of a text between words that were heard as they are, each with what was heard there."""
    meant: list[Token] = []
    for token, matched in [*zip(aligned.tokens, aligned.matched, strict=True), (Token("", 0, 0), True)]:
        if not matched:
            meant.append(token)
        elif meant:
            yield PhoneGap(tuple(meant), aligned.words_at(meant[0].start, meant[-1].end))
            meant = []


LEAST_LOG_PROBABILITY = -1.0
MOST_COMPRESSION = 2.4
MOST_UNKNOWN = 0.5
_SEGMENT_PAUSE = 0.4
MOST_OPEN = 0.5
SURE = -0.1
"""Mean log-probability of words that need no second hearing."""
LEAST_ALIKE = 0.7
"""Of the words of a clip, so many are heard again in another cut, if they are words."""
_LATER, _EDGE = 0.7, 0.5
_FEW_WORDS = 4
_ENDS = (".", "?", "!")


class SpeechSegment(NamedTuple):
    """A part of a clip with its speech, and why that is taken for no words; empty where it is not."""

    span: Span
    speech: float
    text: str
    fault: str


def _gibberish_of(role: str, variant: str, who: str) -> Any:
    """The same of each side."""

    async def gibberish(
        conversation: Conversation, recording: Recording, recogniser: Recogniser
    ) -> Sequence[Observation]:
        in_english(conversation, role)
        side = await hear_side(conversation, recording, recogniser, role)
        words_of_log = {token.text for one in conversation.utterances for token in tokens_of(one.meant())}
        segments, seconds, open_seconds = list[SpeechSegment](), 0.0, 0.0
        for clip in side.clips:
            of_clip = [*segments_of(clip, words_of_log)]
            seconds += sum(one.speech for one in of_clip)
            if not all(one.fault for one in of_clip) and not await _is_heard_again(clip, side, recogniser):
                open_seconds += sum(one.speech for one in of_clip if not one.fault)
                of_clip = [one for one in of_clip if one.fault]
            segments += of_clip
        if seconds < LEAST_SPEECH:
            return [not_applicable(conversation, NO_SPEECH, f"{seconds:.1f} s")]
        if open_seconds > MOST_OPEN * seconds:
            detail = f"{open_seconds:.1f} of {seconds:.1f} s are heard otherwise at the second time"
            return [unmeasured(conversation, "recogniser_unsure", detail)]
        flagged, seconds = [one for one in segments if one.fault], seconds - open_seconds
        details = {
            "seconds": round(seconds, 2),
            "flagged_seconds": round(sum(one.speech for one in flagged), 2),
            "open_seconds": round(open_seconds, 2),
            "by": side.by,
            "moments": [
                {**moment(side, *one.span), "kind": "gibberish", "text": f"{one.fault}: {one.text}".strip(": ")}
                for one in sorted(flagged, key=lambda one: -one.speech)[:MOST_MOMENTS]
            ],
        }
        return [ratio(conversation, sum(one.speech for one in flagged), seconds, details=details)]

    suffix = f"@{variant}" if variant else ""
    gibberish.__doc__ = f"""How much of {who}'s speech is not words?

    Seconds of speech that are flagged ÷ seconds of speech. A span is flagged if the recogniser writes nothing of
    it, if it is unsure of it (mean log-probability of its words below −1), if more than half of its words are neither
    in the dictionary nor in the log, or if its clip repeats itself (text that can be packed to less than 1 ÷ 2.4).
    A clip whose words come out otherwise in another cut is left out. Unmeasured where that is most of the speech.

    >>> value("audio.gibberish{suffix}", example("user: Hello?", "assistant: Hello."))
    'no_recording'
    """
    return _of_calls(
        "audio.gibberish",
        variant=variant,
        version=5,
        unit=SHARE,
        better=LOWER,
        ten=TenPoints(zero=1.0, ten=0.0),
        languages=("en",),
        label="speech that is not words" if not variant else "",
        importance=3 if not variant else 1,
    )(with_recording(gibberish))


gibberish = _gibberish_of(ASSISTANT, "", "the agent")
gibberish_caller = _gibberish_of(USER, "caller", "the caller")


async def _is_heard_again(clip: Clip, side: SideWords, recogniser: Recogniser) -> bool:
    """Whether a clip that begins later has the same words. Recognisers write fluent nonsense, each time another."""
    from rapidfuzz.distance import LCSseq

    start = clip.start + _LATER
    first = [token.text for word in clip.words if word.start > start + _EDGE for token in tokens_of(word.text)]
    if len(first) < _FEW_WORDS or _mean_log(clip.words) >= SURE:
        return True
    samples = side.track.read(start, clip.end, RATE)
    words = await recogniser.recognise(Sound(side.track.speaker, RATE, samples))
    again = [token.text for word in words for token in tokens_of(word.text)]
    return LCSseq.similarity(first, again) >= LEAST_ALIKE * len(first)


def _mean_log(words: Sequence[Recognised]) -> float:
    logs = [math.log(max(word.probability, 1e-9)) for word in words if word.probability is not None]
    return sum(logs) / len(logs) if logs else 0.0


def segments_of(clip: Clip, words_of_log: Collection[str]) -> Iterator[SpeechSegment]:
    """A clip, cut at pauses and ends of sentences, so that all of its speech is in one of the segments."""
    if not clip.words:
        yield SpeechSegment(Span(clip.start, clip.end), clip.speech, "", "no words")
        return
    groups: list[list[Recognised]] = [[clip.words[0]]]
    for before, word in pairwise(clip.words):
        if word.start - before.end >= _SEGMENT_PAUSE or before.text.endswith(_ENDS):
            groups.append([])
        groups[-1].append(word)
    whole = " ".join(word.text for word in clip.words).encode()
    repeats = len(whole) / len(zlib.compress(whole)) > MOST_COMPRESSION
    bounds = [clip.start, *((a[-1].end + b[0].start) / 2 for a, b in pairwise(groups)), clip.end]
    # Speech is spread over a clip as its time is: pauses in it are short.
    share = clip.speech / (clip.end - clip.start) if clip.end > clip.start else 0.0
    for group, start, end in zip(groups, bounds, bounds[1:], strict=False):
        fault = "repeats itself" if repeats else _fault(group, words_of_log)
        yield SpeechSegment(Span(start, end), (end - start) * share, " ".join(word.text for word in group), fault)


def _fault(words: Sequence[Recognised], words_of_log: Collection[str]) -> str:
    if _mean_log(words) < LEAST_LOG_PROBABILITY:
        return "unsure"
    tokens = [token.text for word in words for token in tokens_of(word.text) if token.text.isalpha()]
    unknown = [token for token in tokens if token not in words_of_log and not pronunciations(token)]
    return "unknown words" if len(unknown) > MOST_UNKNOWN * len(tokens) else ""
