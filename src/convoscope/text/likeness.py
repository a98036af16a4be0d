"""How alike two texts are, when one was meant and the other heard."""

from __future__ import annotations

from functools import lru_cache

from convoscope.text.folding import compact


@lru_cache(maxsize=4096)
def sounds_like(text: str) -> str:
    """The text as it would be heard: numbers, dates, spelled codes in one form."""
    from convoscope.text.spoken import normalised

    return normalised(text)


def likeness(first: str, second: str) -> float:
    """From 0 to 1; a part of a text is like the whole."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import LCSseq

    shorter, longer = sounds_like(first), sounds_like(second)
    if not shorter or not longer:
        return 0.0
    if len(shorter) > len(longer):
        shorter, longer = longer, shorter
    if len(shorter) < _TELLING:  # A single short word is found in any long text.
        return fuzz.ratio(shorter, longer) / 100
    if len(shorter) * len(longer) > _MOST_STEPS:
        words = shorter.split()
        return LCSseq.similarity(words, longer.split()) / len(words)
    return fuzz.partial_ratio(shorter, longer) / 100


_TELLING = 8
_MOST_STEPS = 1_000_000
"""Characters times characters. Above it, the time for the best part would grow with the cube of the length: then
words are counted that stand in both in the same order, or the beginnings are looked at alone."""
_GLANCE = 1_000


def similarity(first: str, second: str) -> float:
    """From 0 to 1, of the texts as wholes: a part is not the whole."""
    from rapidfuzz import fuzz

    return fuzz.ratio(sounds_like(first), sounds_like(second)) / 100


def resemble(first: str, second: str) -> bool:
    """At a glance: letters and digits agree for the most part."""
    from rapidfuzz import fuzz

    first_key, second_key = compact(first), compact(second)
    if min(len(first_key), len(second_key)) < _TELLING:
        return first_key == second_key
    if first_key in second_key or second_key in first_key:
        return True
    if len(first_key) * len(second_key) > _MOST_STEPS:
        first_key, second_key = first_key[:_GLANCE], second_key[:_GLANCE]
    return fuzz.partial_ratio(first_key, second_key, score_cutoff=70) > 0
