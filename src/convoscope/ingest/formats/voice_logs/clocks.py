"""Whether the clocks of two logs agree, told by the texts that both hold."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from convoscope.ingest.formats.voice_logs.text_to_sound import NOWHERE, placed
from convoscope.text.folding import compact, likeness, resemble

NOTICEABLE = 1.5
"""Seconds; less than this cannot be told from the usual delay between two logs."""
_SPREAD = 2.5
_SEVERAL = 3
_PLAIN = 5.0
"""Seconds that one or two texts must be apart, since a single slow answer can be late by less."""
_ALIKE = 0.6
_WINDOW = 12
_LONG = 20
"""Letters and digits of a text that is no accident."""


class HeardText(NamedTuple):
    """A text at a moment of one log's clock."""

    at: float
    text: str


class Skew(NamedTuple):
    """How far a clock is ahead of another, and how many texts say so."""

    seconds: float
    texts: int


def skew(first: Sequence[HeardText], second: Sequence[HeardText], usual: float) -> Skew | None:
    """How far my clock is ahead of theirs; None where they agree, or nothing can be told.

    `usual` is the delay from their moment to mine when both clocks agree. One pair of texts counts
    only where the texts are long enough to be no accident.
    """
    if not first or not second or _agree(first, second, usual):
        return None
    return _middle([first[i].at - second[j].at - usual for i, j in _pairs(first, second)])


def _middle(gaps: list[float]) -> Skew | None:
    """What most of them agree on, if that is noticeable."""
    if not gaps:
        return None
    middle = median(gaps)
    near = [gap for gap in gaps if abs(gap - middle) <= _SPREAD]
    least = NOTICEABLE if len(near) >= _SEVERAL else _PLAIN
    if abs(middle) < least or 2 * len(near) <= len(gaps):
        return None
    return Skew(median(near), len(near))


def sent_in_time(replies: Sequence[HeardText], runs: Sequence[HeardText], usual: float) -> bool:
    """At a glance: most replies were sent as they are, and when they should have been."""
    when = {compact(run.text): run.at for run in runs}
    gaps = [abs(when[text] - reply.at - usual) for reply in replies if (text := compact(reply.text)) in when]
    return 2 * sum(gap <= NOTICEABLE for gap in gaps) > len(replies)


def sent_after(replies: Sequence[HeardText], words: Sequence[HeardText], usual: float) -> Skew | None:
    """How far the clock of single words is ahead of that of whole replies, which hold the same words exactly."""
    keys = [compact(word.text) for word in words]
    whole = "".join(keys)
    when: dict[int, float] = {}
    position = 0
    for word, key in zip(words, keys, strict=True):
        when.setdefault(position, word.at)
        position += len(key)
    gaps: list[float] = []
    begin = 0
    for reply in replies:
        text = compact(reply.text)
        where = whole.find(text, begin) if len(text) >= _LONG else NOWHERE
        if where in when:
            gaps.append(when[where] - reply.at - usual)
            begin = where + len(text)
    return _middle(gaps)


def _agree(first: Sequence[HeardText], second: Sequence[HeardText], usual: float) -> bool:
    """Side by side in time, most texts find their like: no need to look any further."""
    latest: dict[int, float] = {}
    order = sorted(range(len(second)), key=lambda place: second[place].at)
    times = [second[place].at for place in order]
    for text in first:
        expected = text.at - usual
        after = bisect_left(times, expected)
        nearest = min(order[max(0, after - 1) : after + 1], key=lambda other: abs(expected - second[other].at))
        # Of an utterance that was heard in parts only the last part was logged at its end.
        if resemble(text.text, second[nearest].text):
            latest[nearest] = expected - second[nearest].at
    in_time = sum(abs(gap) <= NOTICEABLE for gap in latest.values())
    return 2 * in_time > min(len(first), len(second))


def _pairs(first: Sequence[HeardText], second: Sequence[HeardText]) -> list[tuple[int, int]]:
    """Texts that are alike, in the order of both."""
    alike = {
        (i, j): likeness(one.text, other.text)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
        if abs(i - j) <= _WINDOW
    }
    places = placed(
        len(first), [0.1] * len(second), lambda i, j: 1 - alike.get((i, j), 0.0), again=0.3, alone=1 - _ALIKE
    )
    # Of several texts on one, the longest tells most.
    longest: dict[int, int] = {}
    for i, j in enumerate(places):
        if j != NOWHERE and alike.get((i, j), 0.0) >= _ALIKE:
            longest[j] = max(i, longest.get(j, i), key=lambda one: len(first[one].text))
    return [(i, j) for j, i in longest.items()]
