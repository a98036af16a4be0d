"""Codes and spelled words: letters and digits that are said one by one, joined."""

from __future__ import annotations

import string
from typing import NamedTuple

from convoscope.text.spoken.vocabulary import NATO, REPEATS
from convoscope.text.spoken.written import MARK

_LETTERS = frozenset(string.ascii_lowercase)
_DOUBTFUL = frozenset("ai")
"""Letters that are words of their own: at the edge of a code they belong to it only on good grounds."""
_FIGURES = frozenset(string.digits)
_SURE_STARTS = frozenset((*_LETTERS, *NATO, *REPEATS)) - _DOUBTFUL
"""An `a` or `i` starts a code only where it is explained: `a as in alpha`."""
_GOES_ON = frozenset((*_LETTERS, *NATO, *REPEATS, MARK + "a", "as", "for", "like", "oh", "ray"))
_SEATS = frozenset(("seat", "row", "seats"))
_PHONES = ([1, 3, 3, 4], [1, 3, 7], [1, 10], [3, 3, 4], [3, 7])
"""How many digits the parts of a phone number have; the 1 is the prefix of a country or of long distance."""


class _Piece(NamedTuple):
    """One letter or number of a code, and the words it was said with."""

    text: str
    words: tuple[str, ...]
    sure: bool
    """No article, pronoun, name or drink: a piece that is a letter or number wherever it stands."""

    @property
    def is_spelled(self) -> bool:
        """Said with more than the letter: `alpha`, `a as in anna`."""
        return len(self.words) > 1 or self.words[0] in NATO

    @property
    def is_number(self) -> bool:
        return self.text[0] in _FIGURES


def join_codes(words: list[str]) -> list[str]:
    """Runs of single letters, digits and radio-alphabet words become one token: `z k 3 foxtrot foxtrot w` zk3ffw."""
    # Figures and the mark come before ":" in the order of characters, letters after it.
    starts = [
        place
        for place, word in enumerate(words)
        if word < ":" or word in _SURE_STARTS or (word in _DOUBTFUL and _as_in(words, place))
    ]
    if not starts:
        return words
    out: list[str] = []
    done = 0
    for start in starts:
        if start < done:
            continue
        following = words[start + 1] if start + 1 < len(words) else "."
        if following > ":" and following not in _GOES_ON and words[start][0] != MARK:
            continue  # most numbers stand alone
        # An `a` or `i` right before may be the first letter of the code.
        first = start - 1 if start > done and words[start - 1] in _DOUBTFUL else start
        out += words[done:first]
        pieces, done = _run(words, first)
        out += _joined(pieces, out[-1] if out else "")
    return out + words[done:]


def _run(words: list[str], place: int) -> tuple[list[_Piece], int]:
    pieces: list[_Piece] = []
    end = len(words)
    while place < end:
        if pieces and pieces[-1].is_number and _is_half_day(words, place):
            break
        piece = _piece(words, place, pieces)
        if piece is None:
            break
        pieces.append(piece)
        place += len(piece.words)
    # A word that starts a run and is no piece of it, such as "12th" or "double" in front of a bed.
    return (pieces, place) if pieces else ([_Piece(words[place], (words[place],), sure=False)], place + 1)


def _piece(words: list[str], place: int, before: list[_Piece]) -> _Piece | None:
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else ""
    if word in REPEATS and (following in _LETTERS or (len(following) == 1 and following in _FIGURES)):
        return _Piece(following * REPEATS[word], (word, following), sure=following not in _DOUBTFUL)
    if word == "oh" and before and before[-1].is_number and following.isdecimal() and following.isascii():
        return _Piece("0", (word,), sure=True)
    if word == "o" and following == "clock":
        return None
    if word == "x" and following == "ray":
        return _Piece("x", (word, following), sure=True)
    if word in NATO:
        return _Piece(NATO[word], (word,), sure=False)
    if word[0] == MARK:
        return _Piece(word[1:], (word[1:],), sure=True)
    if word in _LETTERS or (word.isdecimal() and word.isascii()):
        explained = _as_in(words, place)
        return _Piece(word, tuple(words[place : place + 1 + explained]), sure=word not in _DOUBTFUL or explained > 0)
    return None


def _as_in(words: list[str], place: int) -> int:
    """How many words explain a letter: `m as in mike`, `m for mike`, `seven as in seven`."""
    if place + 2 >= len(words):
        return 0
    word, link, example = words[place : place + 3]
    if link == "as" and example == "in" and place + 3 < len(words):
        return 3 if words[place + 3].startswith(word) else 0
    return 2 if link in ("for", "like") and NATO.get(example) == word else 0


def _is_half_day(words: list[str], place: int) -> bool:
    return words[place] in ("a", "p") and words[place + 1 : place + 2] == ["m"]


def _joined(pieces: list[_Piece], before: str) -> list[str]:
    if len(pieces) == 1 and pieces[0].is_number:
        return [pieces[0].text]
    seat = before in _SEATS
    first, last = 0, len(pieces)
    while first < last and not _may_lead(pieces[first:last]):
        first += 1
    while last > first and not _may_end(pieces[first:last], seat):
        last -= 1
    head = [word for piece in pieces[:first] for word in piece.words]
    tail = [word for piece in pieces[last:] for word in piece.words]
    return head + _code(pieces[first:last], seat) + tail


def _may_lead(pieces: list[_Piece]) -> bool:
    first, others = pieces[0], pieces[1:]
    if first.is_spelled:
        return True
    if first.text == "a":
        return first.sure and len(others) >= 2
    return first.text != "i" or first.sure or sum(piece.sure and not piece.is_number for piece in others) >= 2


def _may_end(pieces: list[_Piece], seat: bool) -> bool:
    last, others = pieces[-1], pieces[:-1]
    if last.text not in _DOUBTFUL or last.is_spelled:
        return True
    if last.sure and others and others[-1].is_number:
        return True
    if seat and last.text == "a" and len(others) == 1 and others[0].is_number:
        return True
    return len(others) >= 2 and not any(piece.is_number for piece in others[-2:])


def _code(pieces: list[_Piece], seat: bool) -> list[str]:
    letters = [piece for piece in pieces if not piece.is_number]
    if not letters:
        return _digits(pieces)
    if len(letters) == 1 and letters[0].words[0] in NATO:
        number_and_letter = len(pieces) == 2 and pieces[0].is_number
        if not (seat and number_and_letter):
            return _around(pieces, letters[0])
    if len(pieces) == 1:
        (piece,) = pieces
        return [piece.text]
    code = "".join(piece.text for piece in pieces)
    number, half = code[:-2], code[-2:]
    return [number, half] if half in ("am", "pm") and number.isdecimal() else [code]


def _around(pieces: list[_Piece], word: _Piece) -> list[str]:
    """A lone radio word is a name, a month or a drink; only the numbers at its sides are read."""
    place = pieces.index(word)
    return [*_digits(pieces[:place]), *word.words, *_digits(pieces[place + 1 :])]


def _digits(pieces: list[_Piece]) -> list[str]:
    """Single digits are one number, as are the parts of a phone number; other numbers stay apart."""
    out: list[str] = []
    single = False
    for piece in pieces:
        zero = piece.words == ("oh",)
        short = len(piece.text) == 1 or piece.words[0] in REPEATS
        if out and (zero or (short and single)):
            out[-1] += piece.text
        else:
            out.append(piece.text)
        single = short or zero
    return _phones(out) if len(out) > 1 else out


def _phones(numbers: list[str]) -> list[str]:
    out: list[str] = []
    place = 0
    while place < len(numbers):
        following = numbers[place : place + 4]
        lengths = [len(number) for number in following]
        fitting = (len(shape) for shape in _PHONES if shape == lengths[: len(shape)])
        size = next(fitting, 1) if lengths[0] != 1 or following[0] == "1" else 1
        out.append("".join(following[:size]))
        place += size
    return out
