"""Numbers said in words, as digits."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.text.spoken.vocabulary import (
    CURRENCIES,
    DIGITS,
    MONTHS,
    ORDINALS,
    REPEATS,
    SCALES,
    SMALL,
    TENS,
    UNIT_ORDINALS,
    numbered,
    ordinal,
)
from convoscope.text.spoken.written import BREAKS

_SHORT_ORDINALS = {numbered(value): word for word, value in UNIT_ORDINALS.items()}
_STARTS = frozenset((*SMALL, *SCALES, *ORDINALS, *REPEATS, *_SHORT_ORDINALS))
_MONTHS = frozenset(MONTHS)
_BREAKS = frozenset(BREAKS)
_GOES_ON = frozenset((*SMALL, *SCALES, *UNIT_ORDINALS, *REPEATS, *_BREAKS, "oh", "o"))
_PADDING = ("", "", "", "")
"""RankedMetric the last word, so that a look ahead needs no check."""
_LARGEST = 10**12


class _Number(NamedTuple):
    value: int
    end: int


def read_numbers(words: list[str]) -> list[str]:
    """Every number in words becomes digits, the way it is said: `four thirty` 430, `twelve hundred` 1200.

    Groups without hundreds and thousands stand side by side, as in years, times and digits one by one.
    Punctuation ends a number.
    """
    if _STARTS.isdisjoint(words):
        return words
    starts = [place for place, word in enumerate(words) if word in _STARTS]
    padded = [*words, *_PADDING]
    out: list[str] = []
    done = 0
    for start in starts:
        if start < done:
            continue
        out += words[done:start]
        done = _read(padded, start, out)
    return out + words[done:]


def _read(words: list[str], start: int, out: list[str]) -> int:
    """Read one number from `start`, add it to `out`, return where it ends."""
    word = words[start]
    if out and out[-1] == "point" and word in SMALL and _is_whole(out[-2:-1]):
        return _fraction(words, start, out)
    if word in SMALL and words[start + 1] not in _GOES_ON:
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


def _is_whole(words: list[str]) -> bool:
    return bool(words) and words[0].isascii() and words[0].isdecimal()


def _fraction(words: list[str], start: int, out: list[str]) -> int:
    """What stands behind one `point`; a scale behind it is of the whole number: one point two million."""
    digits, place = "", start
    while words[place] in SMALL:
        value, place = _below_hundred(words, place)
        digits += str(value)
    out[-2:] = [f"{out[-2]}.{digits}"]
    return place


def _side_by_side(words: list[str], start: int, out: list[str]) -> int:
    """`five five five`, `twenty twenty six`, `four oh two`: groups that are written one after the other."""
    after_month = bool(out) and out[-1] in _MONTHS
    groups: list[str] = []
    place = start
    while True:
        word = words[place]
        if word in REPEATS and words[place + 1] in DIGITS:
            groups.append(DIGITS[words[place + 1]] * REPEATS[word])
            place = _over_pause(words, place + 2, groups)
            continue
        if word not in SMALL or _is_ordinal(words, place):
            break
        value, end = _below_hundred(words, place)
        if groups and words[end] in SCALES:
            break
        if after_month and len(groups) == 1 and int(groups[0]) <= 31 and not _is_year(groups[0], str(value)):
            break
        groups.append(str(value))
        place = _over_pause(words, end, groups)
    if not groups:  # a double room
        out.append(words[start])
        return start + 1
    out.append(_read_groups(groups, words, place))
    return place


def _over_pause(words: list[str], place: int, groups: list[str]) -> int:
    """Where the next group may begin: `four oh two` has a zero between, `five five... two` a hesitation."""
    word = words[place]
    if word in ("oh", "o") and words[place + 1] in SMALL:
        groups.append("0")
        return place + 1
    if word == words[place + 1] == words[place + 2] and word in _BREAKS and words[place + 3] in DIGITS:
        return place + 3 if words[place - 1] in DIGITS else place
    return place


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
    product = _times(before, SCALES[words[start]])
    if product:
        out[-1] = str(product)
    else:
        out.append(words[start])
    return start + 1


def _times(number: str, scale: int) -> int:
    """1.2 times a million; 0 where that is no whole number, or the first is none."""
    whole, _, fraction = number.partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdecimal() and whole and len(digits) < 12):
        return 0
    product, remainder = divmod(int(digits) * scale, 10 ** len(fraction))
    return 0 if remainder else product


def _below_hundred(words: list[str], place: int) -> _Number:
    word = words[place]
    following = words[place + 1]
    if word in TENS and following in DIGITS and following != "zero":
        return _Number(TENS[word] + int(DIGITS[following]), place + 2)
    return _Number(SMALL[word], place + 1)


def _is_ordinal(words: list[str], place: int) -> bool:
    """Whether `twenty fifth` stands here."""
    return words[place] in TENS and words[place + 1] in UNIT_ORDINALS


def _is_year(first: str, second: str) -> bool:
    return len(first) == len(second) == 2 and 1900 <= int(first + second) <= 2099


def _read_groups(groups: list[str], words: list[str], end: int) -> str:
    """`twelve fifty` is 12.50 before a currency, and 1250 otherwise; `one fifteen` is 115 always."""
    if [len(group) for group in groups] == [2, 2] and words[end] in CURRENCIES:
        return f"{groups[0]}.{groups[1]}"
    return "".join(groups)
