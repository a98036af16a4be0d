"""How English words are pronounced, by the CMU Pronouncing Dictionary, and how far two pronunciations are apart."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parent / "pronunciations" / "cmudict.xz"
"""126,000 words, names among them, under a BSD licence. It is data: what it says does not depend on the machine."""

_NAMES = (
    *("AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY", "JH"),
    *("K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH"),
)
PHONES = dict(zip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLM", _NAMES, strict=True))
"""The name of each phone, by the letter that the file has for it."""
_CODE = {name: letter for letter, name in PHONES.items()}
_LETTERS = {
    "a": "EY",
    "b": "B IY",
    "c": "S IY",
    "d": "D IY",
    "e": "IY",
    "f": "EH F",
    "g": "JH IY",
    "h": "EY CH",
    "i": "AY",
    "j": "JH EY",
    "k": "K EY",
    "l": "EH L",
    "m": "EH M",
    "n": "EH N",
    "o": "OW",
    "p": "P IY",
    "q": "K Y UW",
    "r": "AA R",
    "s": "EH S",
    "t": "T IY",
    "u": "Y UW",
    "v": "V IY",
    "w": "D AH B AH L Y UW",
    "x": "EH K S",
    "y": "W AY",
    "z": "Z IY",
}
_HISSING = frozenset(_CODE[name] for name in ("CH", "JH", "S", "SH", "Z", "ZH"))
_VOICELESS = frozenset(_CODE[name] for name in ("F", "K", "P", "T", "TH"))
_MOST_WAYS = 64
"""Of a span of words, no more pronunciations than this are compared."""


class PhoneErrors(NamedTuple):
    """The fewest substitutions, deletions and insertions between two pronunciations, and the phones of the first."""

    errors: int
    phones: int
    wanted: str
    spoken: str


@cache
def _dictionary() -> dict[str, list[str]]:
    words: dict[str, list[str]] = {}
    for line in lzma.decompress(FILE.read_bytes()).decode().split("\n"):
        word, _, phones = line.partition(" ")
        words.setdefault(word, []).append(phones)
    for letter, names in _LETTERS.items():
        phones = "".join(_CODE[name] for name in names.split())
        if phones not in words.setdefault(letter, []):
            words[letter].append(phones)
    return words


def pronunciations(word: str) -> Sequence[str]:
    """The ways in which a word in small letters is pronounced; none where the dictionary does not know it."""
    words = _dictionary()
    if word in words:
        return words[word]
    stem = word.removesuffix("'s")
    return [phones + _genitive(phones) for phones in words.get(stem, ())] if stem != word else ()


def _genitive(phones: str) -> str:
    if phones[-1] in _HISSING:
        return _CODE["IH"] + _CODE["Z"]
    return _CODE["S"] if phones[-1] in _VOICELESS else _CODE["Z"]


def phone_errors(wanted: Sequence[str], spoken: Sequence[str]) -> PhoneErrors | None:
    """How far some words are from others, by their nearest pronunciations; None where one of them is unknown."""
    from rapidfuzz.distance import Levenshtein

    ways = [_ways(words) for words in (wanted, spoken)]
    if not all(ways):
        return None
    pairs = ((Levenshtein.distance(one, other), one, other) for one, other in product(*ways))
    errors, near, nearest = min(pairs)
    return PhoneErrors(errors, len(near), phone_names(near), phone_names(nearest))


def _ways(words: Sequence[str]) -> list[str]:
    """The pronunciations of words in a row; none where one of the words is unknown."""
    return ["".join(way) for way in islice(product(*map(pronunciations, words)), _MOST_WAYS)] if words else []


def phone_names(phones: str) -> str:
    """Phones by their names, for a person: `L EH S T ER`."""
    return " ".join(PHONES[letter] for letter in phones)
