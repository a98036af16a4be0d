"""Texts in one form, and how alike two of them are: case, Unicode forms, blanks, punctuation, names in any spelling."""

from __future__ import annotations

import string
import unicodedata
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from convoscope.text.patterns import lazy_pattern

Form = Literal["NFC", "NFKC"]


def composed(text: str) -> str:
    """One way of writing accented letters: NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def compatible(text: str) -> str:
    """One way of writing for characters that mean the same: NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def folded(text: str) -> str:
    """Lower case, and one way of writing for characters that mean the same: NFKC, case folded."""
    return fold(text, "NFKC")


_LOOK_ALIKES = dict(
    zip(
        "авеһіјкмнорсԛѕтԝхуԁɡɩАВЕНІЈКМОРСЅТХУԌαενικορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "abehijkmhopcqstwxydgiABEHIJKMOPCSTXYGaevikoptuxABEZHIKMNOPTYX",
        strict=True,
    )
)
_TO_LATIN = str.maketrans(_LOOK_ALIKES)
_UNSEEN = lazy_pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""Characters that are not drawn: zero width, soft hyphens, marks of direction."""
_OTHER_LETTER = lazy_pattern("[\u0370-\u052f\u0261\u0269]")
_LATIN_LETTER = lazy_pattern("[A-Za-z]")


def visible(text: str) -> str:
    """A text as a person sees it: without characters that are not drawn, wide letters as usual ones.

    Greek and Cyrillic letters that look like Latin ones are those, in words with Latin letters; and in all words where
    the text has Latin letters and no other letters of these scripts.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    if not _OTHER_LETTER.search(text) or not _LATIN_LETTER.search(text):
        return text
    if all(character in _LOOK_ALIKES for character in _OTHER_LETTER.findall(text)):
        return text.translate(_TO_LATIN)
    return " ".join(word.translate(_TO_LATIN) if _LATIN_LETTER.search(word) else word for word in text.split(" "))


def fold(text: str, form: Form) -> str:
    """Lower case, in one of the forms of Unicode."""
    if text.isascii():
        return text.lower()
    # Folding can part what was composed.
    return unicodedata.normalize(form, unicodedata.normalize(form, text).casefold())


@lru_cache(maxsize=64)
def comparable(text: str) -> str:
    """Folded, with single blanks, without punctuation at the edges; of punctuation alone, all of it.

    Kept for a while: several metrics look at the same answer, and many items have the same truth.
    """
    joined = " ".join(text.lower().split() if text.isascii() else folded(text).split())
    return trimmed(joined) or joined


def comparable_as_written(text: str) -> str:
    """The same, but that capital letters count."""
    joined = " ".join(compatible(text).split())
    return trimmed(joined) or joined


def trimmed(text: str) -> str:
    """Without punctuation and blanks at both ends; a minus before a digit belongs to the number."""
    if text.isascii():
        bare = text.strip(_EDGES)
        if not bare[:1].isdigit():
            return bare
        start = len(text) - len(text.lstrip(_EDGES))
    else:
        start, end = 0, len(text)
        while start < end and _is_edge(text[start]):
            start += 1
        while end > start and _is_edge(text[end - 1]):
            end -= 1
        bare = text[start:end]
    if start and text[start - 1] == "-" and bare[:1].isdigit():
        return f"-{bare}"
    return bare


def _is_edge(character: str) -> bool:
    return character == "`" or character.isspace() or unicodedata.category(character)[0] == "P"


_EDGES = "".join(one for one in map(chr, range(128)) if _is_edge(one))

_TAG = lazy_pattern(r"\[[^\]]*(\]?)")
_SILENT = bytes(one for one in range(128) if not chr(one).isalnum())
_SMALL = bytes(range(128)).lower() + bytes(range(128, 256))
_SIGNS = lazy_pattern("[\u0080-\u00bf\U00010000-\U0010ffff]+")
"""What is left of signs where those of ASCII are gone."""
_SIGNS_BEGIN = (b"\xc2", b"\xf0", b"\xf1", b"\xf2", b"\xf3", b"\xf4")
"""The bytes that UTF-8 begins these with, and no other character."""


@lru_cache(maxsize=4096)
def compact(text: str) -> str:
    """Letters and digits only, in lower case, without bracketed tags."""
    if "[" in text:
        # A bracket that is never closed is no tag. It is found all the same, so that what follows is looked at once.
        text = _TAG.sub(lambda tag: " " if tag[1] else tag[0], text)
    if text.isascii():
        return text.encode().translate(_SMALL, _SILENT).decode()
    bare = text.lower().encode("utf-8", "surrogatepass").translate(None, _SILENT)
    letters = bare.decode("utf-8", "surrogatepass")
    return _SIGNS.sub("", letters) if any(byte in bare for byte in _SIGNS_BEGIN) else letters


_CAMEL = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_WORDS = lazy_pattern(r"[^\W_]+")


def split_camel(text: str, separator: str) -> str:
    """`maxTurns` with a separator between its words."""
    return _CAMEL.sub(separator, text)


@lru_cache(maxsize=4096)  # reasons and names of states repeat from conversation to conversation
def name_words(text: str) -> tuple[str, ...]:
    """The words of a name, in lower case, however they are put together."""
    return tuple(_WORDS.findall(split_camel(text, " ").casefold()))


@lru_cache(maxsize=4096)
def snake_case(text: str) -> str:
    """`Max turns`, `max-turns` and `maxTurns` are `max_turns`."""
    return "_".join(name_words(text))


def folded_name(name: str) -> str:
    """`Book repair`, `book-repair` and `book_repair` are one name; capital letters part no words."""
    return "_".join(name.casefold().replace("_", " ").replace("-", " ").split())


def folded_label(name: str) -> str:
    """`AI_agent` and `ai  agent` are one label; a hyphen is a part of a name."""
    return " ".join(name.replace("_", " ").casefold().split())


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
words are counted that are in both in the same order, or the beginnings are looked at alone."""
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


_SYMBOLS = "$+<=>^|~`"


class _Deletions(dict[int, int | None]):
    """What `str.translate` deletes: punctuation of any script, and the symbols that ASCII counts as punctuation."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        kept = None if character in _SYMBOLS or unicodedata.category(character).startswith("P") else code
        self[code] = kept
        return kept


_DELETIONS = _Deletions()
"""One for all texts: it fills as it meets characters."""
_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(4096)
def plain_description(text: str) -> str:
    """NFKC, case folded, without punctuation, single blanks: `Schedule follow-up!` is `schedule followup`."""
    if text.isascii():
        return " ".join(text.lower().translate(_PUNCTUATION).split())
    return " ".join(unicodedata.normalize("NFKC", text).casefold().translate(_DELETIONS).split())


def description_similarity(first: str, second: str) -> float:
    """1 − edits ÷ the longer length, of plain descriptions; 0 where one of them is empty."""
    from rapidfuzz.distance import Levenshtein

    if not first or not second:
        return 0.0
    return 1 - Levenshtein.distance(first, second) / max(len(first), len(second))


def exact_threshold(threshold: float | Fraction) -> Fraction:
    """The threshold as it is written: 0.8 is 4/5, and not the nearest binary number."""
    return threshold if isinstance(threshold, Fraction) else Fraction(str(threshold))
