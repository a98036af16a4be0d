"""Texts made alike: small letters, one way of writing a character, blanks and punctuation that do not count."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal

Form = Literal["NFC", "NFKC"]


def composed(text: str) -> str:
    """One way of writing accented letters: NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def compatible(text: str) -> str:
    """One way of writing for characters that mean the same: NFKC."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def folded(text: str) -> str:
    """Small letters, and one way of writing for characters that mean the same: NFKC, case folded."""
    return fold(text, "NFKC")


_LOOK_ALIKES = dict(
    zip(
        "авеһіјкмнорсԛѕтԝхуԁɡɩАВЕНІЈКМОРСЅТХУԌαενικορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
        "abehijkmhopcqstwxydgiABEHIJKMOPCSTXYGaevikoptuxABEZHIKMNOPTYX",
        strict=True,
    )
)
_TO_LATIN = str.maketrans(_LOOK_ALIKES)
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
"""Characters that are not drawn: zero width, soft hyphens, marks of direction."""
_OTHER_LETTER = re.compile("[\u0370-\u052f\u0261\u0269]")
_LATIN_LETTER = re.compile("[A-Za-z]")


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
    if all(letter in _LOOK_ALIKES for letter in _OTHER_LETTER.findall(text)):
        return text.translate(_TO_LATIN)
    return " ".join(word.translate(_TO_LATIN) if _LATIN_LETTER.search(word) else word for word in text.split(" "))


def fold(text: str, form: Form) -> str:
    """Small letters, in one of the forms of Unicode."""
    if text.isascii():
        return text.lower()
    # Folding can part what was composed.
    return unicodedata.normalize(form, unicodedata.normalize(form, text).casefold())


@lru_cache(maxsize=64)
def comparable(text: str) -> str:
    """Folded, with single blanks, without punctuation at the edges; of punctuation alone, all of it.

    Kept for a while: several metrics look at the same answer, and many items have the same truth.
    """
    joined = " ".join(folded(text).split())
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
        text = _TAG.sub(lambda tag: " " if tag[1] else tag[0], text)
    if text.isascii():
        return text.encode().translate(_SMALL, _SILENT).decode()
    bare = text.lower().encode("utf-8", "surrogatepass").translate(None, _SILENT)
    letters = bare.decode("utf-8", "surrogatepass")
    return _SIGNS.sub("", letters) if any(byte in bare for byte in _SIGNS_BEGIN) else letters
