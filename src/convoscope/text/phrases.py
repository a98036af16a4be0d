"""The grammar of phrases in a lexicon: `(a|b)` is a choice, `[a|b]` may be absent, `..` is up to three words.

`^` and `$` are the beginning and the end of a sentence. A phrase becomes a pattern of folded text, and a set of words
one of which is in every text that it fits: most texts hold none, and need no pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

_PIECE = re.compile(r"\.\.|[()\[\]|^$]|[^\s()\[\]|^$.]+|\s+|.")
_DEEPEST = 8


class Word(NamedTuple):
    """A word, in all the ways it is written."""

    spellings: tuple[str, ...]


class Alternatives(NamedTuple):
    """One of several sequences; none of them where it may be absent."""

    sequences: tuple[tuple[Piece, ...], ...]
    may_be_absent: bool


Piece = Word | Alternatives | str
"""A string is one of `..`, `^`, `$`."""


def parsed(phrase: str, spell: Callable[[str], tuple[str, ...]]) -> tuple[Piece, ...]:
    """A phrase as its pieces. `spell` gives the ways a word is written, and raises ValueError where it is none."""
    pieces = [piece for piece in _PIECE.findall(phrase) if not piece.isspace()]
    sequences, rest = _sequences(pieces, spell, 0)
    if rest:
        raise ValueError("a bracket is closed that was not opened")
    if len(sequences) > 1:
        raise ValueError("a choice is written in brackets")
    return sequences[0]


def _sequences(
    pieces: Sequence[str], spell: Callable[[str], tuple[str, ...]], depth: int
) -> tuple[tuple[tuple[Piece, ...], ...], Sequence[str]]:
    """Sequences up to the bracket that closes them, and what comes from that bracket on."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} brackets are open")
    sequences: list[list[Piece]] = [[]]
    while pieces and pieces[0] not in ")]":
        piece, pieces = pieces[0], pieces[1:]
        if piece == "|":
            sequences.append([])
        elif piece in "([":
            inner, pieces = _sequences(pieces, spell, depth + 1)
            if not pieces or pieces[0] != {"(": ")", "[": "]"}[piece]:
                raise ValueError("a bracket is not closed")
            pieces = pieces[1:]
            sequences[-1].append(Alternatives(inner, piece == "["))
        else:
            sequences[-1].append(piece if piece in ("..", "^", "$") else Word(spell(piece)))
    if not all(sequences):
        raise ValueError("a choice is empty; what may be absent is written [so]")
    return tuple(map(tuple, sequences)), pieces


_SIGNS: Mapping[bool, Mapping[str, str]] = {
    True: {"..": r"(?: [^ .?]+){0,3}", "^": r"(?:^| [.?])", "$": r"(?: *$| [.?])"},
    False: {"..": r"[^.?]{0,8}", "^": r"(?:^|[.?])", "$": r"(?:$|[.?])"},
}


def pattern(phrase: Sequence[Piece], has_blanks: bool) -> str:
    """A phrase as a pattern of folded text. Each word brings the blank before it; the last is followed by one."""
    whole = "".join(_pattern(piece, has_blanks) for piece in phrase)
    return f"{whole}(?: |$)" if has_blanks and phrase[-1] != "$" else whole


def _pattern(piece: Piece, has_blanks: bool) -> str:
    if isinstance(piece, str):
        return _SIGNS[has_blanks][piece]
    if isinstance(piece, Word):
        written = "|".join(map(re.escape, piece.spellings))
        return f"{' ' if has_blanks else ''}{written if len(piece.spellings) == 1 else f'(?:{written})'}"
    choices = "|".join("".join(_pattern(one, has_blanks) for one in sequence) for sequence in piece.sequences)
    return f"(?:{choices}){'?' if piece.may_be_absent else ''}"


def anchors(phrase: Sequence[Piece], common: Collection[str]) -> frozenset[str]:
    """Words one of which is in each text that a phrase fits, as few and as rare as can be; none where all may miss."""
    sets = [words for piece in phrase if (words := _anchors(piece, common))]
    return min(sets, key=lambda words: (_frequency(words, common), len(words)), default=frozenset())


def _frequency(words: frozenset[str], common: Collection[str]) -> float:
    """How often one of some words is met, roughly: of common words, the short ones are met most."""
    return sum(1 / len(word) ** 2 for word in words if word in common)


def _anchors(piece: Piece, common: Collection[str]) -> frozenset[str]:
    if isinstance(piece, str) or (isinstance(piece, Alternatives) and piece.may_be_absent):
        return frozenset()
    if isinstance(piece, Word):
        # A spelling of two words is found by its first.
        return frozenset(spelling.split()[0] for spelling in piece.spellings)
    sets = [anchors(sequence, common) for sequence in piece.sequences]
    return frozenset().union(*sets) if all(sets) else frozenset()
