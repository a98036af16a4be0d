"""How alike two texts are, when one was meant and the other heard."""

from __future__ import annotations

from functools import lru_cache

from convoscope.text.folding import compact


@lru_cache(maxsize=4096)
def sounds_like(text: str) -> str:
    """The text as it would be heard: numbers, dates, spelled codes in one form."""
    from convoscope.text.spoken import normalised

    return normalised(text)


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a part of a text is like the whole."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import LCSseq

    mine, theirs = sounds_like(one), sounds_like(other)
    if not mine or not theirs:
        return 0.0
    if len(mine) > len(theirs):
        mine, theirs = theirs, mine
    if len(mine) < _TELLING:  # A single short word is found in any long text.
        return fuzz.ratio(mine, theirs) / 100
    if len(mine) * len(theirs) > _MOST_STEPS:
        words = mine.split()
        return LCSseq.similarity(words, theirs.split()) / len(words)
    return fuzz.partial_ratio(mine, theirs) / 100


_TELLING = 8
_MOST_STEPS = 1_000_000
"""Characters times characters. Above it, the time for the best part would grow with the cube of the length: then
words are counted that stand in both in the same order, or the beginnings are looked at alone."""
_GLANCE = 1_000


def similarity(one: str, other: str) -> float:
    """From 0 to 1, of the texts as wholes: a part is not the whole."""
    from rapidfuzz import fuzz

    return fuzz.ratio(sounds_like(one), sounds_like(other)) / 100


def resemble(one: str, other: str) -> bool:
    """At a glance: letters and digits agree for the most part."""
    from rapidfuzz import fuzz

    mine, theirs = compact(one), compact(other)
    if min(len(mine), len(theirs)) < _TELLING:
        return mine == theirs
    if mine in theirs or theirs in mine:
        return True
    if len(mine) * len(theirs) > _MOST_STEPS:
        mine, theirs = mine[:_GLANCE], theirs[:_GLANCE]
    return fuzz.partial_ratio(mine, theirs, score_cutoff=70) > 0
