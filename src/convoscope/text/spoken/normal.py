"""The canonical tokens of a text: two texts that are said alike have the same."""

from __future__ import annotations

from functools import lru_cache

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.numbers import fold_dates, fold_units, join_codes, read_numbers
from convoscope.text.spoken.vocabulary import SPELLINGS
from convoscope.text.spoken.written import BREAKS, cut, fold_addresses, plain, without_accents

_BY_CHARACTER = frozenset(("ja", "zh", "ko", "yue"))
_WORD = lazy_pattern(r"(?:[^\W_]|[^\x00-\x7f\s])+(?:'(?:[^\W_]|[^\x00-\x7f\s])+)*")
_CHARACTER = lazy_pattern(r"[a-z0-9]+(?:'[a-z0-9]+)*|[^\x00-\x7f\s]")
_BREAKS = frozenset(BREAKS)
_PASSES = 6


def normalise(text: str, language: str = "en") -> tuple[str, ...]:
    """The canonical tokens of a text.

    English: see the guide on spoken forms. Other languages: lower case, one kind of quotes, no
    punctuation; Japanese, Chinese and Korean by character.
    """
    return _tokens(text, language[:3].lower().rstrip("-_"))  # "en-US", "yue"


@lru_cache(maxsize=4096)
def _tokens(text: str, tongue: str) -> tuple[str, ...]:
    """By the tongue, however a caller names or leaves out the language: several metrics ask for the same text."""
    text = plain(text)
    if tongue == "en":
        return tuple(_english(cut(text if text.isascii() else without_accents(text))))
    text = text.lower()
    tokens: list[str] = (_CHARACTER if tongue in _BY_CHARACTER else _WORD).findall(text)
    return tuple(tokens)


def normalised(text: str, language: str = "en") -> str:
    """The canonical tokens with a blank between."""
    return " ".join(normalise(text, language))


def _english(words: list[str]) -> list[str]:
    words = [word for word in read_numbers(words) if word not in _BREAKS]
    for _ in range(_PASSES):
        folded = fold_units(fold_addresses(join_codes(fold_dates(words))))
        if folded == words:
            break
        words = read_numbers(folded)
    return words if SPELLINGS.keys().isdisjoint(words) else [SPELLINGS.get(word, word) for word in words]
