"""Words and sentences of a text, as the metrics count them."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"[.!?…]+(?:\s+|$)|[。！？\n]+")
_BETWEEN_WORDS = re.compile(r"\W+")


def count_words(text: str) -> int:
    """Words stand between blanks and hold a letter or a digit."""
    return sum(1 for token in text.split() if token.isalnum() or any(map(str.isalnum, token)))


def sentences(text: str) -> list[str]:
    """The text cut after . ! ? before a blank, and at line ends."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]


def normal(text: str) -> str:
    """Small letters, words only, one blank between: texts that differ in punctuation become equal."""
    return _BETWEEN_WORDS.sub(" ", text.casefold()).strip()
