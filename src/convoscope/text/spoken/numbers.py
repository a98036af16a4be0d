"""Numbers, codes, dates, times and money that are said in words, each in one form."""

from __future__ import annotations

import string
from typing import NamedTuple

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.vocabulary import (
    CURRENCIES,
    CURRENCY_CODES,
    DIGITS,
    MONTH_SHORT,
    MONTHS,
    NATO,
    ORDINALS,
    REPEATS,
    SCALES,
    SMALL,
    TENS,
    UNIT_ORDINALS,
    numbered,
    ordinal,
)
from convoscope.text.spoken.written import BREAKS, MARK

_SHORT_ORDINALS = {numbered(value): word for word, value in UNIT_ORDINALS.items()}
_NUMBER_STARTS = frozenset((*SMALL, *SCALES, *ORDINALS, *REPEATS, *_SHORT_ORDINALS))
_MONTHS = frozenset(MONTHS)
_BREAKS = frozenset(BREAKS)
_NUMBER_GOES_ON = frozenset((*SMALL, *SCALES, *UNIT_ORDINALS, *REPEATS, *_BREAKS, "oh", "o"))
_PADDING = ("", "", "", "")
"""After the last word, so that a look ahead needs no check."""
_LARGEST = 10**12


class _Number(NamedTuple):
    value: int
    end: int


def read_numbers(words: list[str]) -> list[str]:
    """Every number in words becomes digits, the way it is said: `four thirty` 430, `twelve hundred` 1200.

    Groups without hundreds and thousands are side by side, as in years, times and digits one by one.
    Punctuation ends a number.
    """
    if _NUMBER_STARTS.isdisjoint(words):
        return words
    starts = [index for index, word in enumerate(words) if word in _NUMBER_STARTS]
    padded = [*words, *_PADDING]
    out: list[str] = []
    done = 0
    for start in starts:
        if start < done:
            continue
        out += words[done:start]
        done = _read_number(padded, start, out)
    return out + words[done:]


def _read_number(words: list[str], start: int, out: list[str]) -> int:
    """Read one number from `start`, add it to `out`, return where it ends."""
    word = words[start]
    if word in SMALL and out[-1:] == ["point"] and len(out) > 1 and out[-2].isascii() and out[-2].isdecimal():
        # What is behind one `point`; a scale behind it is of the whole number: one point two million.
        digits, index = "", start
        while words[index] in SMALL:
            value, index = _below_hundred(words, index)
            digits += str(value)
        out[-2:] = [f"{out[-2]}.{digits}"]
        return index
    if word in SMALL and words[start + 1] not in _NUMBER_GOES_ON:
        out.append(str(SMALL[word]))
        return start + 1
    if word in SCALES:
        return _scale(words, start, out)
    if word in ORDINALS or word in _SHORT_ORDINALS:
        out.append(_SHORT_ORDINALS.get(word) or ordinal(ORDINALS[word]))
        return start + 1
    if word in REPEATS:
        return _side_by_side(words, start, out)
    if _is_ordinal(words, start):
        out.append(ordinal(TENS[word] + UNIT_ORDINALS[words[start + 1]]))
        return start + 2
    number = _below_hundred(words, start)
    if number.value and words[number.end] in SCALES:
        number = _scaled(words, number)
        out.append(str(number.value))
        return number.end
    return _side_by_side(words, start, out)


def _side_by_side(words: list[str], start: int, out: list[str]) -> int:
    """`five five five`, `twenty twenty six`, `four oh two`: groups that are written one after the other."""
    after_month = bool(out) and out[-1] in _MONTHS
    groups: list[str] = []
    index = start
    while True:
        word = words[index]
        if word in REPEATS and words[index + 1] in DIGITS:
            groups.append(DIGITS[words[index + 1]] * REPEATS[word])
            index = _over_pause(words, index + 2, groups)
            continue
        if word not in SMALL or _is_ordinal(words, index):
            break
        value, end = _below_hundred(words, index)
        if groups and words[end] in SCALES:
            break
        if after_month and len(groups) == 1 and int(groups[0]) <= 31:
            year = f"{groups[0]}{value}"
            if not (len(groups[0]) == 2 and len(year) == 4 and 1900 <= int(year) <= 2099):
                break
        groups.append(str(value))
        index = _over_pause(words, end, groups)
    if not groups:  # a double room
        out.append(words[start])
        return start + 1
    # `twelve fifty` is 12.50 before a currency, and 1250 otherwise; `one fifteen` is 115 always.
    is_price = [len(group) for group in groups] == [2, 2] and words[index] in CURRENCIES
    out.append(("." if is_price else "").join(groups))
    return index


def _over_pause(words: list[str], index: int, groups: list[str]) -> int:
    """Where the next group may begin: `four oh two` has a zero between, `five five... two` a hesitation."""
    word = words[index]
    if word in ("oh", "o") and words[index + 1] in SMALL:
        groups.append("0")
        return index + 1
    if word == words[index + 1] == words[index + 2] and word in _BREAKS and words[index + 3] in DIGITS:
        return index + 3 if words[index - 1] in DIGITS else index
    return index


def _scaled(words: list[str], number: _Number) -> _Number:
    """Go on from a number before `hundred`, `thousand`, …: `one` hundred and fifteen thousand two hundred."""
    total, (part, end) = 0, number
    while True:
        word = words[end]
        if word == "hundred" and 0 < part < 100:
            part, end = part * 100, end + 1
        elif word in SCALES and word != "hundred" and 0 < part < 1_000:
            total, part, end = total + part * SCALES[word], 0, end + 1
        else:
            return _Number(total + part, end)
        after = end + 1 if words[end] == "and" else end
        if words[after] in SMALL and words[after] != "zero" and not _is_ordinal(words, after):
            if DIGITS.keys() >= {*words[after : after + 3]}:  # one eight hundred `five five five`
                return _Number(total + part, end)
            more, end = _below_hundred(words, after)
            part += more
        if total >= _LARGEST:
            return _Number(total + part, end)


def _scale(words: list[str], start: int, out: list[str]) -> int:
    """`5 thousand`, `a hundred`: digits or an article times a scale word; without them it is a plain word."""
    while out and out[-1] in _BREAKS:
        out.pop()
    before = out[-1] if out else ""
    if before == "a":
        number = _scaled(words, _Number(1, start))
        out[-1] = str(number.value)
        return number.end
    whole, _, fraction = before.partition(".")
    digits = whole + fraction
    if digits.isascii() and digits.isdecimal() and whole and len(digits) < 12:
        product, remainder = divmod(int(digits) * SCALES[words[start]], 10 ** len(fraction))
        if product and not remainder:
            out[-1] = str(product)
            return start + 1
    out.append(words[start])
    return start + 1


def _below_hundred(words: list[str], index: int) -> _Number:
    word = words[index]
    following = words[index + 1]
    if word in TENS and following in DIGITS and following != "zero":
        return _Number(TENS[word] + int(DIGITS[following]), index + 2)
    return _Number(SMALL[word], index + 1)


def _is_ordinal(words: list[str], index: int) -> bool:
    """Whether `twenty fifth` is here."""
    return words[index] in TENS and words[index + 1] in UNIT_ORDINALS


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
    """No article, pronoun, name or drink: a piece that is a letter or number wherever it is."""

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
        index
        for index, word in enumerate(words)
        if word < ":" or word in _SURE_STARTS or (word in _DOUBTFUL and _as_in(words, index))
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
            continue  # most numbers are alone
        # An `a` or `i` right before may be the first letter of the code.
        first = start - 1 if start > done and words[start - 1] in _DOUBTFUL else start
        out += words[done:first]
        pieces, done = _run(words, first)
        out += _joined(pieces, out[-1] if out else "")
    return out + words[done:]


def _run(words: list[str], index: int) -> tuple[list[_Piece], int]:
    pieces: list[_Piece] = []
    end = len(words)
    while index < end:
        if pieces and pieces[-1].is_number and words[index : index + 2] in (["a", "m"], ["p", "m"]):
            break
        piece = _piece(words, index, pieces)
        if piece is None:
            break
        pieces.append(piece)
        index += len(piece.words)
    # A word that starts a run and is no piece of it, such as "12th" or "double" in front of a bed.
    return (pieces, index) if pieces else ([_Piece(words[index], (words[index],), sure=False)], index + 1)


def _piece(words: list[str], index: int, before: list[_Piece]) -> _Piece | None:
    word = words[index]
    following = words[index + 1] if index + 1 < len(words) else ""
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
        explained = _as_in(words, index)
        return _Piece(word, tuple(words[index : index + 1 + explained]), sure=word not in _DOUBTFUL or explained > 0)
    return None


def _as_in(words: list[str], index: int) -> int:
    """How many words explain a letter: `m as in mike`, `m for mike`, `seven as in seven`."""
    if index + 2 >= len(words):
        return 0
    word, link, example = words[index : index + 3]
    if link == "as" and example == "in" and index + 3 < len(words):
        return 3 if words[index + 3].startswith(word) else 0
    return 2 if link in ("for", "like") and NATO.get(example) == word else 0


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
            # A lone radio word is a name, a month or a drink; only the numbers at its sides are read.
            index = pieces.index(letters[0])
            return [*_digits(pieces[:index]), *letters[0].words, *_digits(pieces[index + 1 :])]
    code = "".join(piece.text for piece in pieces)
    number, half = code[:-2], code[-2:]
    return [number, half] if half in ("am", "pm") and number.isdecimal() else [code]


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
    index = 0
    while index < len(numbers):
        following = numbers[index : index + 4]
        lengths = [len(number) for number in following]
        fitting = (len(shape) for shape in _PHONES if shape == lengths[: len(shape)])
        size = next(fitting, 1) if lengths[0] != 1 or following[0] == "1" else 1
        out.append("".join(following[:size]))
        index += size
    return out


_MONTH_STARTS = frozenset((*MONTHS, *MONTH_SHORT))
_DAY = lazy_pattern(r"([0-9]{1,2})(st|nd|rd|th)?")
_YEAR = lazy_pattern(r"(?:19|20)[0-9]{2}")
_DECIMAL = lazy_pattern(r"[0-9]+(?:\.[0-9]+)?")
_DAY_POINTS = {"noon": "pm", "midnight": "am"}
_QUARTERS = {"half": 30, "quarter": 15}
_LONG = range(8, 16)
"""Digits of a phone number with its country."""
_TIME_WORDS = frozenset(("am", "pm", "m", "clock", "oclock", *_DAY_POINTS))
_UNIT_WORDS = frozenset((*CURRENCIES, "cents", "cent", "point", "plus", *_TIME_WORDS, *_QUARTERS))


def fold_dates(words: list[str]) -> list[str]:
    """`march 25`, `25th of march` and `the twenty fifth of march` are march 25th."""
    if _MONTH_STARTS.isdisjoint(words):
        return words
    indices = [index for index, word in enumerate(words) if word in _MONTH_STARTS]
    out: list[str] = []
    done = 0
    for index in indices:
        out += words[done:index]
        done = index + 1
        day = _day(words[done]) if done < len(words) else 0
        month = MONTH_SHORT.get(words[index], words[index])
        if day:
            out += [month, ordinal(day)]
            done += 1
            continue
        # "The first may go" has no month in it, "the first may 2026" has.
        sure = month != "may" or (done < len(words) and _YEAR.fullmatch(words[done]) is not None)
        day = _take_day_before(out, sure=sure) if month in _MONTHS else 0
        out += [month, ordinal(day)] if day else [words[index]]
    return out + words[done:]


def _take_day_before(out: list[str], *, sure: bool) -> int:
    """The day in front of a month, taken away from `out` with its `the` and `of`."""
    of = out[-1:] == ["of"]
    index = len(out) - (2 if of else 1)
    if index < 0 or (not of and not sure):
        return 0
    day = _day(out[index])
    if not day or (index and out[index - 1] in _MONTHS):
        return 0
    del out[index:]
    if out and out[-1] == "the":
        out.pop()
    return day


def _day(word: str) -> int:
    match = _DAY.fullmatch(word)
    value = int(match[1]) if match else ORDINALS.get(word, 0)
    return value if value <= 31 else 0


def fold_units(words: list[str]) -> list[str]:
    """Times, money and decimals, whose unit is behind the number or code."""
    if _UNIT_WORDS.isdisjoint(words):
        return words
    indices = [index for index, word in enumerate(words) if word in _UNIT_WORDS]
    out: list[str] = []
    done = 0
    for index in indices:
        if index < done:
            continue
        out += words[done:index]
        done = _unit(words, index, out)
    return out + words[done:]


def _unit(words: list[str], index: int, out: list[str]) -> int:
    word = words[index]
    following = words[index + 1] if index + 1 < len(words) else ""
    number = out[-1] if out and _DECIMAL.fullmatch(out[-1]) else ""
    if word in _TIME_WORDS and _time(word, out):
        return index + 1
    if word == "point" and number and following.isdecimal() and following.isascii() and "." not in number:
        out[-1] = f"{number}.{following}"
        return index + 2
    if word in _QUARTERS:
        return _quarter(words, index, out)
    if word == "plus" and len(following) in _LONG and following.isdecimal():
        while out[-1:] == ["plus"]:
            out.pop()
        return index + 1
    if word in CURRENCIES:
        return _money(words, index, out, number)
    if word in ("cent", "cents"):
        return _cents(index, out, word, number)
    out.append(word)
    return index + 1


def _time(word: str, out: list[str]) -> bool:
    """Fold a word of the clock; whether it is one here."""
    if word in ("m", "am", "pm"):
        _half_day(word, out)
    elif word in _DAY_POINTS:  # `noon`, `12 noon` and `12 o'clock noon` are 12 pm
        if out[-2:] == ["12", "o'clock"]:
            out.pop()
        out += [_DAY_POINTS[word]] if out[-1:] == ["12"] else ["12", _DAY_POINTS[word]]
    elif word == "oclock" or out[-1:] == ["o"]:
        out[len(out) - (word == "clock") :] = ["o'clock"]
    else:
        return False
    return True


def _quarter(words: list[str], index: int, out: list[str]) -> int:
    """`half past 4` is 430, `a quarter to 5` is 445."""
    side, hour = (*words[index + 1 : index + 3], "", "")[:2]
    word = words[index]
    if not _is_hour(hour) or (side != "past" and (side != "to" or word == "half")):
        out.append(word)
        return index + 1
    if out[-1:] == ["a"]:
        out.pop()
    start = int(hour) if side == "past" else (int(hour) - 2) % 12 + 1
    out.append(f"{start}{_QUARTERS[word] if side == 'past' else 60 - _QUARTERS[word]}")
    return index + 3


def _half_day(word: str, out: list[str]) -> None:
    """`4 p m`, `4 o'clock pm`, `4 00 pm` and `400 pm` are 4 pm; `4.30 pm` and `4 30 pm` are 430 pm."""
    end = len(out)
    if word == "m":
        half = out[-1:]
        word, end = ("".join(half) + word, end - 1) if half in (["a"], ["p"]) else (word, end)
    if end and out[end - 1] == "o'clock":
        end -= 1
    clock = _clock(out[max(0, end - 2) : end])
    if word == "m" or not clock:
        out.append(word[-1] if len(out) > end and out[-1] != "o'clock" else word)
        return
    hour, taken = clock
    out[end - taken :] = [hour, word]


def _clock(words: list[str]) -> tuple[str, int] | None:
    """The time at the end of some words, and of how many words it is."""
    last = words[-1] if words else ""
    if not last or not _DECIMAL.fullmatch(last):
        return None
    taken = 1
    if last.isdecimal() and len(last) == 2 and len(words) > 1 and _is_hour(words[-2]) and last < "60":
        last, taken = words[-2] + last, 2
    elif last.count(".") == 1 and len(last.split(".")[1]) == 2 and _is_hour(last.split(".")[0]):
        last = last.replace(".", "")
    if len(last) in (3, 4) and last.endswith("00") and _is_hour(last[:-2]):
        last = last[:-2]
    return last, taken


def _is_hour(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2 and 1 <= int(word) <= 12


def _money(words: list[str], index: int, out: list[str], number: str) -> int:
    """`usd 115`, `115 dollar` and `115 dollars` are 115 dollars."""
    unit, following = CURRENCIES[words[index]], words[index + 1] if index + 1 < len(words) else ""
    if number:
        out[-1] = number.removesuffix(".00")
        out.append(unit)
        return index + 1
    if words[index] in CURRENCY_CODES and _DECIMAL.fullmatch(following):
        out += [following.removesuffix(".00"), unit]
        return index + 2
    out.append(words[index])
    return index + 1


def _cents(index: int, out: list[str], word: str, number: str) -> int:
    """`12 dollars and 50 cents` is 12.50 dollars; `per cent` is percent."""
    if out[-1:] == ["per"]:
        out[-1] = "percent"
        return index + 1
    before = out[:-1]
    if before[-1:] == ["and"]:
        before.pop()
    whole = before[-2] if len(before) >= 2 and before[-1] in CURRENCIES.values() else ""
    if number.isdecimal() and len(number) <= 2 and whole.isdecimal() and whole.isascii():
        out[:] = [*before[:-2], f"{whole}.{int(number):02}", before[-1]]
    else:
        out.append("cents" if number else word)
    return index + 1
