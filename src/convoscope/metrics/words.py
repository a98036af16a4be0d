"""Words and sentences of a text, as the metrics count them."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"\S*[^\W_]\S*")
_TOKEN = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…]+(?:\s+|$)|[。！？\n]+")


def count_words(text: str) -> int:
    """Words stand between blanks and hold a letter or a digit."""
    return len(_WORD.findall(text))


def tokens(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in small letters; vowel signs and accents belong to their letter."""
    text = text.lower()
    if text.isascii():
        return _TOKEN.findall(text)
    composed = unicodedata.normalize("NFC", text)
    return "".join(one if _belongs(one) else " " for one in composed).split()


def sentences(text: str) -> list[str]:
    """The text cut after . ! ? before a blank, and at line ends."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]


def normal(text: str) -> str:
    """Small letters, words only, one blank between: texts that differ in punctuation become equal."""
    return " ".join(tokens(text.casefold()))


def _belongs(one: str) -> bool:
    return one.isalnum() or one == "_" or unicodedata.category(one)[0] == "M"
