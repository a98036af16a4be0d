"""Words and sentences of a text, as the metrics count them."""

from __future__ import annotations

import re
import unicodedata

import msgspec

# Each looks at a run of characters from its beginning alone: from every place in it, a long one would take hours.
_WORD = re.compile(r"(?<!\S)\S*?[^\W_]")
_WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Kana and Han."""
_LETTERS_OF_A_WORD = 2
"""In such a writing, so many letters count as a word where a text must have some length."""
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++(?:\s+|$)|[。！？\n]+")


def count_words(text: str) -> int:
    """Words stand between blanks and hold a letter or a digit."""
    if text.isascii():
        # Without its signs, a run between blanks that holds neither letter nor digit is gone.
        return len(text.encode().translate(_BLANKS, _SIGNS).split())
    return len(_WORD.findall(text))


def is_without_blanks(text: str) -> bool:
    """Whether most letters of a text are of a writing in which no blank parts one word from the next."""
    return not text.isascii() and 2 * len(_WITHOUT_BLANKS.findall(text)) > sum(map(str.isalpha, text))


def tokens(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in small letters; vowel signs and accents belong to their letter."""
    if text.isascii():
        return text.encode().translate(_SMALL_LETTERS).decode().split()
    composed = unicodedata.normalize("NFC", text.lower())
    return "".join(one if _is_word_character(one) else " " for one in composed).split()


def sentences(text: str) -> list[str]:
    """The text cut after . ! ? before a blank, and at line ends."""
    if not text.isascii():
        parts = _SENTENCE_END.split(text)
    elif "\n" in text:
        parts = [part for line in text.split("\n") for part in _sentences_of_line(line)]
    else:
        parts = _sentences_of_line(text)
    return [sentence for part in parts if (sentence := part.strip())]


def _sentences_of_line(line: str) -> list[str]:
    """The same for ASCII, without a pattern that is tried at every character."""
    marked = line.encode().translate(_MARKS)
    parts = []
    start = 0
    while (end := marked.find(b". ", start)) >= 0:
        parts.append(line[start:end].rstrip(".!?"))
        start = end + 2
    parts.append(line[start:].rstrip(".!?"))
    return parts


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence, and what it has in common with all that say the same."""

    normalised_words: str
    text: str


def long_sentences(text: str, least: int) -> list[Sentence]:
    """The sentences of a text that have so many words or more."""
    if not text.isascii() or "\n" in text:
        return [Sentence(normalised_words(one), one) for one in sentences(text) if _has_words(one, least)]
    # The same without a text for each step: what all of the text needs is done once.
    encoded = text.encode()
    marked, small = encoded.translate(_MARKS), encoded.translate(_SMALL_LETTERS).decode()
    signs = len(encoded.translate(None, _LETTERS_AND_BLANKS))
    long = []
    start = 0
    while start < len(marked):
        end = marked.find(b". ", start)
        end = len(marked) if end < 0 else end
        plain = small[start:end].split()
        # A sign parts a word into tokens, or is a token: there are no fewer words than tokens without signs.
        if len(plain) - signs >= least or (
            len(plain) >= least and len(marked[start:end].translate(None, _SIGNS).split()) >= least
        ):
            long.append(Sentence(" ".join(plain), text[start:end].rstrip(".!?").strip()))
        start = end + 2
    return long


def _has_words(sentence: str, least: int) -> bool:
    if count_words(sentence) >= least:
        return True
    return is_without_blanks(sentence) and sum(map(str.isalpha, sentence)) >= least * _LETTERS_OF_A_WORD


def normalised_words(text: str) -> str:
    """Small letters, words only, one blank between: texts that differ in punctuation become equal."""
    return " ".join(tokens(text if text.isascii() else text.casefold()))


def _is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


_ASCII = [chr(code) for code in range(128)]
_BLANKS = bytes(32 if one.isspace() else ord(one) for one in _ASCII) + bytes(128)
_SIGNS = bytes(ord(one) for one in _ASCII if not one.isalnum() and not one.isspace())
_LETTERS_AND_BLANKS = bytes(ord(one) for one in _ASCII if one.isalnum() or one.isspace())
_SMALL_LETTERS = bytes(ord(one.lower()) if one.isalnum() or one == "_" else 32 for one in _ASCII) + bytes(128)
_MARKS = bytes(32 if one.isspace() else ord("." if one in "!?" else one) for one in _ASCII) + bytes(128)
