"""How alike two texts are, when one was meant and the other heard."""

from __future__ import annotations

import re
from functools import lru_cache

_TAG = re.compile(r"\[[^\]]*\]")
_NOT_SPOKEN = re.compile(r"[^0-9a-z\u00c0-\uffff]+")


@lru_cache(maxsize=4096)
def compact(text: str) -> str:
    """Letters and digits only, in small letters, without bracketed tags."""
    if "[" in text:
        text = _TAG.sub(" ", text)
    return _NOT_SPOKEN.sub("", text.lower())


@lru_cache(maxsize=4096)
def sounds_like(text: str) -> str:
    """The text as it would be heard: numbers, dates, spelled codes in one form."""
    from convoscope.spoken import normalised

    return normalised(text)


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a part of a text is like the whole."""
    from rapidfuzz import fuzz

    mine, theirs = sounds_like(one), sounds_like(other)
    if not mine or not theirs:
        return 0.0
    if len(mine) > len(theirs):
        mine, theirs = theirs, mine
    # A single short word is found in any long text.
    part = fuzz.partial_ratio(mine, theirs) if len(mine) >= _TELLING else fuzz.ratio(mine, theirs)
    return part / 100


_TELLING = 8


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
    return fuzz.partial_ratio(mine, theirs, score_cutoff=70) > 0
