"""Descriptions of actions as they are compared: plain letters, and how many edits lie between two of them."""

from __future__ import annotations

import string
import unicodedata
from fractions import Fraction
from functools import cache, lru_cache

from rapidfuzz.distance import Levenshtein

_SYMBOLS = "$+<=>^|~`"


class _Deletions(dict[int, int | None]):
    """What `str.translate` deletes: punctuation of any script, and the symbols that ASCII counts as punctuation."""

    def __missing__(self, code: int) -> int | None:
        letter = chr(code)
        kept = None if letter in _SYMBOLS or unicodedata.category(letter).startswith("P") else code
        self[code] = kept
        return kept


@cache
def _deletions() -> _Deletions:
    """One for all texts: it fills as it meets letters."""
    return _Deletions()


_ASCII = str.maketrans("", "", string.punctuation)


@lru_cache(4096)
def plain_description(text: str) -> str:
    """NFKC, case folded, without punctuation, single blanks: `Schedule follow-up!` is `schedule followup`."""
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII).split())
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_deletions()).split())


def similarity(first: str, second: str) -> float:
    """1 − edits ÷ the longer length, of plain descriptions; 0 where one of them is empty."""
    if not first or not second:
        return 0.0
    return 1 - Levenshtein.distance(first, second) / max(len(first), len(second))


def exact_threshold(threshold: float | Fraction) -> Fraction:
    """The threshold as it is written: 0.8 is 4/5, and not the nearest binary number."""
    return threshold if isinstance(threshold, Fraction) else Fraction(str(threshold))
