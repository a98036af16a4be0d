"""What of a text was not said at all, and which facts were said that are in no text: by what is heard around them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from convoscope.audio.side_words import SideWords
from convoscope.audio.word_alignment import AlignedText, tokens_of
from convoscope.metrics.audio.meant_entities import (
    NUMBER,
    figures_of,
    is_heard,
    spoken_entities_in,
    words_between,
)
from convoscope.metrics.audio.spoken_script import LEAST_PROBABILITY, is_sure
from convoscope.resources.sound import Recognised
from convoscope.text.spoken import SpokenEntity, normalise
from convoscope.text.spoken.aloud import aloud, readings_of
from convoscope.text.spoken.entities import kind_of

LEAST_TIME = 0.5
"""Of the time that words take at the speed of a voice: where there is less, they were not said."""
LONGEST_PAUSE = 0.6
"""Seconds: what is behind a longer one may belong to no utterance of the log."""
_FIGURE, _SIGN = 4.0, 6.0
"""As many letters as a figure has in words, and a currency or a percentage."""


class Heard(NamedTuple):
    """Words that were heard, and when."""

    text: str
    start: float
    end: float
    kind: str = ""


class Omission(NamedTuple):
    """A part of a text that was not said, between two words that were."""

    between: Heard
    tokens: range


def left_out(aligned: AlignedText, side: SideWords, start: int, end: int) -> Omission | None:
    """Whether a span of a text was left out for sure: the words around it were heard, with no time between them."""
    run = _unheard(aligned, start, end)
    if run is None:
        return None
    before, after = _around(aligned, side, run)
    own = [word for word in (before, after) if word is not None and word in aligned.words]
    known = [word for word in (before, after) if word is not None]
    if not own or len(known) < 2 - side.is_whole or not all(is_sure((word,), LEAST_PROBABILITY) for word in known):
        return None
    from_, to = before.start if before else 0.0, after.end if after else side.track.seconds
    text = aligned.text[aligned.tokens[run.start].start : aligned.tokens[run[-1]].end]
    needed = LEAST_TIME * _length(text) + sum(_length(word.text) for word in known)
    if _speech(side, from_, to) >= needed * _pace(side.words):
        return None
    first, last = (before or own[0]).end, (after or own[-1]).start
    is_inside = len(own) == 2
    near = (first, max(first, last)) if is_inside else (own[0].start, own[0].end)
    return Omission(Heard(" ".join(word.text for word in own), *near), run)


def in_a_row(text: str, heard: str) -> bool:
    """Whether the words of a text were heard next to each other."""
    wanted, words = ([token.text for token in tokens_of(one)] for one in (text, heard))
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))


def _unheard(aligned: AlignedText, start: int, end: int) -> range | None:
    """The tokens around a span of which nothing was heard, up to those that were heard as they are."""
    inside = [i for i, token in enumerate(aligned.tokens) if token.start < end and start < token.end]
    if not inside:
        return None
    first, last = inside[0], inside[-1] + 1
    while first and not aligned.matched[first - 1]:
        first -= 1
    while last < len(aligned.tokens) and not aligned.matched[last]:
        last += 1
    if any(aligned.matched[first:last]) or any(begin < stop for begin, stop in aligned.ranges[first:last]):
        return None
    return range(first, last)


def _around(aligned: AlignedText, side: SideWords, run: range) -> tuple[Recognised | None, Recognised | None]:
    """The words that were heard before and behind some tokens, be they of another utterance."""
    if not aligned.words:
        return None, None
    words = side.words
    offset = words.index(aligned.words[0])
    position = offset + aligned.ranges[run.start][0]
    inside = range(offset, offset + len(aligned.words)) if not side.is_whole else range(len(words))
    return tuple(words[i] if i in inside else None for i in (position - 1, position))  # type: ignore[return-value]


def _speech(side: SideWords, start: float, end: float) -> float:
    return sum(max(0.0, min(span.end, end) - max(span.start, start)) for span in side.track.speech())


def _length(text: str) -> float:
    """About as many letters as a text has when its figures are words."""
    return sum(_FIGURE if sign.isdigit() else _SIGN if sign in "$€£%" else float(sign.isalpha()) for sign in text)


def _pace(words: Sequence[Recognised]) -> float:
    """Seconds of a letter, as this voice speaks."""
    return sum(word.end - word.start for word in words) / max(1.0, sum(_length(word.text) for word in words))


def added_entities(aligned: AlignedText, side: SideWords, script: str, right: Collection[int]) -> Iterator[Heard]:
    """Facts that were heard between words of an utterance, and that are nowhere in the script.

    `right` are the tokens of facts that were heard in another form: no other word stands for them.
    """
    of_text = {
        index
        for token, (range_, matched) in enumerate(zip(aligned.ranges, aligned.matched, strict=True))
        if matched or token not in right
        for index in range(*range_)
    }
    named = spoken_entities_in(aligned.text)
    meant = [figures_of(fact.canonical.split()) for fact in named]
    script = " ".join((script, *(reading for fact in named for reading in readings_of(fact.text))))
    for fact in spoken_entities_in(aligned.heard):
        indices = _inserted(aligned, fact, of_text)
        if not indices or kind_of(fact.type) == "name" or fact.type in ("email", "airport_code"):
            continue
        words = aligned.words[indices[0] : indices[-1] + 1]
        text = " ".join(word.text for word in words)
        figures = figures_of(normalise(aloud(text)))
        # One figure is noise. $28.20 and 20 cents: the recogniser wrote the end twice.
        if (fact.type == NUMBER and len(figures) < 2) or any(figures in other for other in meant if figures):
            continue
        # Times of words are estimates: those of the words next to them are of the same guess.
        near = aligned.words[max(0, indices[0] - 1) : indices[-1] + 2]
        needed = LEAST_TIME * sum(_length(word.text) for word in near) * _pace(side.words)
        is_long = near[-1].end - near[0].start >= needed
        is_new = is_sure(words, LEAST_PROBABILITY) and not is_heard(text, script)
        if is_new and is_long and _is_joined(aligned, indices, of_text):
            yield Heard(text, words[0].start, words[-1].end, kind_of(fact.type))


def _inserted(aligned: AlignedText, fact: SpokenEntity, of_text: set[int]) -> list[int]:
    """The words of a fact that was heard that stand for nothing of the text; its figures, if it has any."""
    indices = [*words_between([word.text for word in aligned.words], *fact.span)]
    figured = [index for index in indices if any(map(str.isdigit, aligned.words[index].text))]
    if figured:
        return [index for index in figured if index not in of_text]
    return indices if of_text.isdisjoint(indices) else []


def _is_joined(aligned: AlignedText, indices: Sequence[int], of_text: set[int]) -> bool:
    """Whether words follow, without a longer pause, on words of the text, or are followed by such."""
    words = aligned.words

    def reaches(index: int, step: int) -> bool:
        while 0 <= index + step < len(words):
            first, second = sorted((words[index], words[index + step]), key=lambda word: word.start)
            if second.start - first.end > LONGEST_PAUSE:
                return False
            index += step
            if index in of_text:
                return True
        return False

    return reaches(indices[0], -1) or reaches(indices[-1], 1)
