"""How alike two texts are, when one was meant and the other heard."""

from __future__ import annotations

import re
from functools import lru_cache

_TAG = re.compile(r"\[[^\]]*(\]?)")
_SILENT = bytes(one for one in range(128) if not chr(one).isalnum())
_SMALL = bytes(range(128)).lower() + bytes(range(128, 256))
_SIGNS = re.compile("[\u0080-\u00bf\U00010000-\U0010ffff]+")
"""What is left of signs where those of ASCII are gone."""
_SIGNS_BEGIN = (b"\xc2", b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""The bytes that UTF-8 begins these with, and no other character."""


@lru_cache(maxsize=4096)
def compact(text: str) -> str:
    """Letters and digits only, in small letters, without bracketed tags."""
    if "[" in text:
        # A bracket that is never closed is no tag. It is found all the same, so that what follows is looked at once.
        text = _TAG.sub(lambda found: " " if found[1] else found[0], text)
    if text.isascii():
        return text.encode().translate(_SMALL, _SILENT).decode()
    kept = text.lower().encode("utf-8", "surrogatepass").translate(None, _SILENT)
    found = kept.decode("utf-8", "surrogatepass")
    return _SIGNS.sub("", found) if any(byte in kept for byte in _SIGNS_BEGIN) else found


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
