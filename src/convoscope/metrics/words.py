"""Words and sentences of a text, as the metrics count them."""

from __future__ import annotations

import re

_WORD = re.compile(r"\S*[^\W_]\S*")
_SENTENCE_END = re.compile(r"[.!?…]+(?:\s+|$)|[。！？\n]+")
_BETWEEN_WORDS = re.compile(r"\W+")


def count_words(text: str) -> int:
    """Words stand between blanks and hold a letter or a digit."""
    return len(_WORD.findall(text))


def sentences(text: str) -> list[str]:
    """The text cut after . ! ? before a blank, and at line ends."""
    return [sentence for part in _SENTENCE_END.split(text) if (sentence := part.strip())]


def normal(text: str) -> str:
    """Small letters, words only, one blank between: texts that differ in punctuation become equal."""
    return _BETWEEN_WORDS.sub(" ", text.casefold()).strip()
