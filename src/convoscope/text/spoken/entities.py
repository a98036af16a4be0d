"""The facts in what a caller says: names, codes, times, dates, amounts, places, numbers.

A fact is found by its shape and by the words around it. There is no list of names or places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.normal import normalise
from convoscope.text.spoken.vocabulary import (
    CURRENCIES,
    MONTHS,
    NATO,
    ORDINALS,
    REPEATS,
    SCALES,
    SIGNS,
    SMALL,
    TENS,
    listed,
)
from convoscope.text.spoken.written import NO_MAILBOX, TOP_LEVEL

_KINDS = {
    **dict.fromkeys(("name", "place"), "name"),
    **dict.fromkeys(("confirmation_code", "flight_number", "seat", "airport_code", "phone", "email"), "code"),
    **dict.fromkeys(("date", "time"), "date"),
}
_WORD = lazy_pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_ANY_DIGIT = lazy_pattern(r"[0-9]")
_JOINS = lazy_pattern(r"[\s-]*|\s*(?:\.\.\.|…)\s*")
_LISTED = lazy_pattern(r"[\s,-]*")
_NUMBER_WORDS = frozenset((*SMALL, *SCALES, *ORDINALS)) - {"second"}
_BEFORE_SECOND = frozenset((*TENS, *MONTHS))
_LINKS = frozenset(("second", *REPEATS, "and", "point", "oh"))
_EXPLAIN = frozenset(("as", "for", "like"))
_SENTENCE_ENDS = frozenset(".!?:")
_AS_IN = ["as", "in"]
_AREA, _AREA_END = (" (", "("), (") ", ")", ")-")
"""Around the area code of a phone number."""
_AHEAD = 5
"""Words behind a radio word in which another letter is looked for."""


def kind_of(type: str) -> str:
    """What a person is shown for the type of a fact: name, code, date or amount."""
    return _KINDS.get(type, "amount")


class Words:
    """The words of a text, as written, in lower case, and where they are."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found = list(_WORD.finditer(text))
        self.written = [found[0] for found in self._found]
        self.small = [word.lower() for word in self.written]
        if "’" in text:
            self.small = [word.replace("’", "'") for word in self.small]

    def __len__(self) -> int:
        return len(self.written)

    def start(self, index: int) -> int:
        return self._found[index].start()

    def end(self, index: int) -> int:
        return self._found[index].end()

    def near(self, start: int, end: int) -> list[str]:
        """The words from one position to another in lower case, as many as there are."""
        return self.small[max(start, 0) : max(end, 0)]

    def word(self, index: int) -> str:
        """A word in lower case, empty beyond the ends."""
        return self.small[index] if 0 <= index < len(self.small) else ""

    def gap(self, index: int) -> str:
        """What is between a word and the one before it."""
        return self.text[self._found[index - 1].end() : self._found[index].start()]

    def between(self, start: int, end: int) -> str:
        """The text from the first word to the one before `end`."""
        return self.text[self.start(start) : self.end(end - 1)]

    def begins(self, index: int) -> bool:
        """Whether a word is at the beginning of a sentence, where anything has a capital."""
        return index == 0 or not _SENTENCE_ENDS.isdisjoint(self.gap(index))

    def is_name(self, index: int) -> bool:
        """Whether a word has a capital and is longer than a letter."""
        if not 0 <= index < len(self.written):
            return False
        word = self.written[index]
        return len(word) > 1 and word[0].isupper()


def spelled_end(words: Words, start: int) -> int:
    """Where a span of numbers and single letters ends; `start` itself where it is empty."""
    end, most = start, len(words.small)
    explained, lettered = False, False  # "as" was said so far, a letter was said
    while end < most and (end == start or _spelling_goes_on(words, end, explained=explained)):
        step = _spelled_piece(words, start, end, lettered=lettered)
        if not step:
            break
        spoken = words.near(end, end + step)
        explained, lettered = explained or "as" in spoken, lettered or any(map(_is_letter, spoken))
        end += step
    return min(end, most)


def _spelling_goes_on(words: Words, index: int, *, explained: bool) -> bool:
    """Whether a number or code may go on with a word: after a blank, a hyphen, a hesitation, in 4:30 and 1,200."""
    gap = words.gap(index)
    if gap == " ":
        return True
    before, word = words.written[index - 1], words.written[index]
    if gap in (":", ".", ","):
        half_day = gap == "." and before.lower() in ("a", "p") and word.lower() == "m"
        return half_day or (before.isdigit() and word[0].isdigit() and (gap != "," or len(word) == 3))
    if before.isdigit() and len(word) == 3 and word.isdigit() and gap in _AREA:
        return True
    if before.isdigit() and len(before) == 3 and word.isdigit() and gap in _AREA_END:
        return True
    return (_LISTED if explained else _JOINS).fullmatch(gap) is not None


def _spelled_piece(words: Words, start: int, index: int, *, lettered: bool) -> int:
    """Of how many words the letter or number at a position is; 0 where it is neither."""
    word = words.small[index]
    begun = index > start
    if word in _NUMBER_WORDS or (not word.isalpha() and _ANY_DIGIT.search(word)):
        alone = word in SCALES and not begun
        return 0 if alone else _with_example(words, index)
    if len(word) == 1:
        return _letter(words, index, begun=begun)
    if word in NATO:
        return int(_is_radio(words, index, begun=begun, lettered=lettered))
    return int(word in _LINKS and _links(words, index, begun=begun))


def _links(words: Words, index: int, *, begun: bool) -> bool:
    """Words that belong to a number and are not one: `double` seven, one hundred `and` five, one `point` two."""
    word, following = words.small[index], words.word(index + 1)
    if word == "second":
        return words.word(index - 1) in _BEFORE_SECOND
    if word in REPEATS:
        return following in SMALL or len(following) == 1
    if word == "and":
        return begun and following in SMALL and words.word(index - 1) in ("hundred", "thousand")
    if word == "point":
        return begun and _is_number(following) and _is_number(words.word(index - 1))
    return word == "oh" and begun


def _is_number(word: str) -> bool:
    return word in SMALL or word.isdigit()


def _with_example(words: Words, index: int) -> int:
    """N, the four words N as in November, or the three words N for November."""
    following = words.small[index + 1 : index + 3]
    if len(following) < 2 or following[0] not in _EXPLAIN:
        return 1
    if following == _AS_IN:
        return 4
    return 3 if following[0] != "as" and NATO.get(following[1]) == words.small[index] else 1


def _letter(words: Words, index: int, *, begun: bool) -> int:
    """A single letter; `a` and `I` are words of their own unless others are next to them."""
    word, following = words.written[index], words.word(index + 1)
    length = _with_example(words, index)
    if word not in ("a", "A", "I") or length > 1:
        return length if word.isalpha() else 0
    if not begun:
        letters = [one for one in words.near(index + 1, index + 3) if len(one) == 1 or one in SMALL or one in NATO]
        return int(len(letters) == 2 and word.isupper())
    if word == "a":
        return int(following == "m" or words.written[index - 1].islower())
    letters_before = [len(one) for one in words.near(index - 2, index)] == [1, 1]
    return int(word == "A" or len(following) == 1 or letters_before)


def _is_radio(words: Words, index: int, *, begun: bool, lettered: bool) -> bool:
    """Whether a word of the radio alphabet is a letter here: with another letter in the span, or in a seat."""
    last = words.word(index - 1) if begun else ""
    if words.small[index] == "november":  # a month, unless right behind a letter
        return _is_letter(last)
    if (len(last) == 1 and last.isalpha()) or lettered:
        return True
    # Behind a radio word, and some numbers, another letter is said: foxtrot two `bravo`.
    following = words.near(index + 1, index + 1 + _AHEAD)
    behind = next((word for word in following if not _is_number(word)), "")
    if _is_letter(behind) and words.gap(index + 1) in (" ", "-", ", "):
        return True
    before = words.near(index - 4, index)
    return begun and ("seat" in before or "row" in before)


def _is_letter(word: str) -> bool:
    """Whether a word is a letter for sure, or a radio word: no article, no pronoun."""
    return word in NATO or (len(word) == 1 and word.isalpha() and word not in "ai")


NAME, LOCATION, AIRPORT = "name", "place", "airport_code"
CODE, FLIGHT, SEAT = "confirmation_code", "flight_number", "seat"
TIME, DATE, DURATION = "time", "date", "duration"
AMOUNT, PHONE, EMAIL, NUMBER = "amount", "phone", "email", "number"

_ENDING = "|".join(sorted(TOP_LEVEL))
_LINK = "(?: +(?:dot|underscore|dash|hyphen|plus) +|[.+-])"  # an underscore is in \w already
_MAIL = lazy_pattern(
    r"(?<![\w.+-])(?:[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    rf"|(?!(?:{'|'.join(sorted(NO_MAILBOX))})\b(?!{_LINK}))\w+(?:{_LINK}\w+"
    rf"| +(?:[0-9]+|{'|'.join(sorted(SMALL))})\b){{0,9}}"
    rf" +at +[\w-]+(?:(?: +dot +|\.)[\w-]+){{0,8}}(?: +dot +|\.)(?:{_ENDING})\b)",
    re.IGNORECASE,
)
_MAYBE_MAIL = lazy_pattern(r"@| at +[\w-]+(?: +dot |\.[a-z])", re.IGNORECASE)
_TAG = lazy_pattern(r"\[[^\[\]]*\]")
_SEAT_SHAPE = lazy_pattern(r"[0-9]{1,2}[a-k]")
_FLIGHT_SHAPE = lazy_pattern(r"[a-z]{2}[0-9]{1,4}")
_ORDINAL_SHAPE = lazy_pattern(r"[0-9]+(?:st|nd|rd|th)")
_CLOCK_SHAPE = lazy_pattern(r"(?:1[0-2]|[1-9])[0-5][0-9]")
_YEAR_SHAPE = lazy_pattern(r"(?:19|20)[0-9]{2}")

_MONTHS = frozenset(MONTHS)
_MOMENTS = frozenset(("noon", "midnight"))
_PARTS_OF_HOURS = frozenset(("half", "quarter"))
_STARTS = frozenset((*SMALL, *SCALES, *ORDINALS, *NATO, *REPEATS, *MONTHS, *_MOMENTS, *_PARTS_OF_HOURS))
_WEEKDAYS = frozenset(listed("monday tuesday wednesday thursday friday saturday sunday"))
_UNITS = frozenset(listed("minute hour day week month year night minutes hours days weeks months years nights"))
_LONG_UNITS = _UNITS - {"night", "nights", "day"}
"""Durations that callers give as facts: "one night" and "one day" mostly say what kind of thing is meant."""
_HALF_DAYS = frozenset(("am", "pm"))
_NAMING = frozenset(("name", "names", "name's", "surname"))
_SPELLING = frozenset(("spelled", "spelt", "spell", "spelling"))
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr"))
_TO_LOCATION = frozenset(listed("from to into in near via through departing leaving reach visit between"))
_TO_MONTH = frozenset(listed("in of until till by since from to through between next last this early late mid"))
_CALLING = frozenset(listed("phone telephone cell mobile call contact callback"))
_AT_TIME = frozenset(listed("at by the before after around until till from to for confirmed my original"))
_COUNTED = frozenset(listed("option gate terminal row zone group step number no flight room"))
_NO_AIRPORT = frozenset(listed("USA FAQ PIN ATM VIP APP CEO DOB SSN ETA TSA YES NOT AND THE FOR BUT CAN YOU"))
_NO_NAME = frozenset(("i", "i'm", "i'd", "i'll", "i've", "ok", "okay", "am", "pm", "yes", "no"))


class SpokenEntity(NamedTuple):
    """A fact in a text."""

    type: str
    text: str
    """As it is written."""
    start: int
    end: int
    canonical: str
    """Its canonical tokens, with a blank between."""

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


class _FactEnd(NamedTuple):
    """Where a fact, or another word, ends, and of which type it is."""

    end: int
    type: str = ""


@lru_cache(maxsize=4096)
def entities(text: str) -> tuple[SpokenEntity, ...]:
    """The facts in an English text, in its order. They do not overlap."""
    free = _TAG.sub(_blank, text) if "[" in text else text
    spoken: list[SpokenEntity] = []
    if _MAYBE_MAIL.search(free):
        spoken += [_entity(EMAIL, text, mail.start(), mail.end()) for mail in _MAIL.finditer(free)]
        free = _MAIL.sub(_blank, free)
    words = Words(free)
    spoken += [_entity(type, text, start, end) for type, start, end in _spans(words)]
    return tuple(sorted(spoken, key=lambda entity: entity.start))


def _blank(match: re.Match[str]) -> str:
    return "." * len(match[0])


def _entity(type: str, text: str, start: int, end: int) -> SpokenEntity:
    written = text[start:end]
    # "twenty one Charlie" is 21C only behind the word seat.
    tokens = normalise(f"seat {written}")[1:] if type == SEAT else normalise(written)
    return SpokenEntity(type, written, start, end, " ".join(tokens))


def _spans(words: Words) -> Iterator[tuple[str, int, int]]:
    done = 0
    for index, word in enumerate(words.written):
        # Most words have a small letter and no figure in front, and begin nothing.
        if index < done or ("a" <= word[0] <= "z" and len(word) > 1 and word not in _STARTS):
            continue
        done, type = _fact(words, index)
        if type:
            # A currency may be before it, or the plus or bracket of a phone number.
            start = words.start(index)
            sign = words.text[max(start - 1, 0) : start]
            opened = type == PHONE and (sign == "+" or (sign == "(" and ")" in words.text[start : start + 4]))
            yield type, start - 1 if sign in SIGNS or opened else start, words.end(done - 1)


def _fact(words: Words, index: int) -> _FactEnd:
    word = words.small[index]
    # "may one ask" is no date.
    if word in _MONTHS and words.is_name(index) and (end := spelled_end(words, index + 1)) > index + 1:
        return _FactEnd(_with_year(words, end), DATE)
    if word in _MOMENTS or word in _PARTS_OF_HOURS:
        return _moment(words, index)
    end = spelled_end(words, index)
    if end > index:
        return _numeric(words, index, end)
    if words.written[index][0].isupper():
        return _capital(words, index)
    return _FactEnd(index + 1)


def _moment(words: Words, index: int) -> _FactEnd:
    """Noon, half past four, quarter to five p m."""
    if words.small[index] in _MOMENTS:
        return _FactEnd(index + 1, TIME)
    hour = index + 2
    if words.word(index + 1) not in ("past", "to") or (end := spelled_end(words, hour)) == hour:
        return _FactEnd(index + 1)
    end += words.word(end) in _HALF_DAYS
    # What folds to a time in digits is one; a quarter to twenty is not.
    return _FactEnd(end, TIME) if normalise(words.between(index, end))[0].isdecimal() else _FactEnd(index + 1)


def _with_year(words: Words, end: int) -> int:
    year = spelled_end(words, end) if end < len(words) and words.gap(end).strip() in ("", ",") else end
    is_year = year > end and _YEAR_SHAPE.fullmatch("".join(normalise(words.between(end, year))))
    return year if is_year else end


def _day_first(words: Words, start: int, end: int) -> int:
    """Where a date ends whose day is before its month: 25 March, the first of May 2026; 0 where it is no date."""
    month = end + 1 if words.word(end) == "of" else end
    if words.word(month) not in _MONTHS or (month == end and not words.is_name(month)):
        return 0
    is_day = normalise(words.between(start, month + 1))[:1] == (words.word(month),)
    return _with_year(words, month + 1) if is_day else 0


def _numeric(words: Words, start: int, end: int) -> _FactEnd:
    """What a span of letters and numbers is, by the unit behind it, or by its shape."""
    unit = words.word(end)
    tokens = normalise(words.between(start, end))
    if unit == "o'clock" or unit in _HALF_DAYS:
        return _FactEnd(end + 1, TIME)
    if tokens and tokens[-1] in _HALF_DAYS:
        return _FactEnd(end, TIME)
    if unit in CURRENCIES:  # twelve dollars `and fifty cents`
        index = end + 2 if words.word(end + 1) == "and" else end + 1
        cents = spelled_end(words, index)
        has_cents = cents > index and words.word(cents) in ("cent", "cents")
        return _FactEnd(cents + 1 if has_cents else end + 1, AMOUNT)
    first = words.start(start)
    if words.text[first - 1 : first] in SIGNS:
        return _FactEnd(end, AMOUNT)
    if unit in _UNITS:
        return _FactEnd(end + 1, DURATION if unit in _LONG_UNITS else "")
    if dated := _day_first(words, start, end):
        return _FactEnd(dated, DATE)
    return _FactEnd(end, _shape(words, "".join(tokens), start, end))


def _shape(words: Words, code: str, start: int, end: int) -> str:
    before = words.near(start - 5, start)
    letters = sum(one.isalpha() for one in code)
    if code in ORDINALS:
        return ""
    if words.word(start - 1) == "seat" or _SEAT_SHAPE.fullmatch(code):
        return SEAT
    if not letters:
        return _digits(words, code, start, end)
    if letters < len(code):
        if _FLIGHT_SHAPE.fullmatch(code):
            return FLIGHT
        return CODE if len(code) >= 4 and not _ORDINAL_SHAPE.fullmatch(code) else ""
    if not _NAMING.isdisjoint(before[-3:]) or not _SPELLING.isdisjoint(before[-2:]):
        return NAME
    if letters == 3:
        return AIRPORT
    return CODE if letters >= 5 else ""


def _digits(words: Words, code: str, start: int, end: int) -> str:
    if words.word(start - 1) == "flight" or _is_brand(words, start - 1):
        return FLIGHT if len(code) >= 2 else ""
    if len(code) >= 7 or (len(code) >= 4 and not _CALLING.isdisjoint(words.near(start - 5, start))):
        return PHONE
    if words.word(start - 1) in _AT_TIME and _CLOCK_SHAPE.fullmatch(code):
        spoken = words.near(start, end)
        # Four thirty and 4:30, but not three three zero.
        if len(spoken) == 1 or spoken[1].isdigit() or any(SMALL.get(word, 0) >= 10 for word in spoken):
            return TIME
    return NUMBER if len(code) >= 3 else ""


def _is_brand(words: Words, index: int) -> bool:
    """A name right before a number: `Skyway` three one eight."""
    return words.is_name(index) and not words.begins(index) and words.small[index] not in _COUNTED


def _capital(words: Words, index: int) -> _FactEnd:
    """What a row of words with capitals is, by the words before it."""
    word, small = words.written[index], words.small[index]
    if _is_introduced(words, index):
        return _FactEnd(_row(words, index), NAME)
    if len(word) == 3 and word.isupper() and word not in _NO_AIRPORT and _row(words, index) == index + 1:
        return _FactEnd(index + 1, AIRPORT)
    if small in _NO_NAME or words.begins(index):
        return _FactEnd(index + 1)
    if small in _WEEKDAYS:
        return _FactEnd(index + 1, DATE)
    if small in _MONTHS:
        return _FactEnd(index + 1, DATE if words.word(index - 1) in _TO_MONTH else "")
    end = _row(words, index)
    number = spelled_end(words, end)
    if number > end and _is_brand(words, end - 1) and words.gap(end) == " ":
        numbered = _numeric(words, end, number)
        if numbered == _FactEnd(number, FLIGHT):
            return numbered
    leads_on = words.word(end) == "to" and words.is_name(end + 1)
    return _FactEnd(end, LOCATION if leads_on or words.word(index - 1) in _TO_LOCATION else "")


def _row(words: Words, index: int) -> int:
    """Where a row of words with capitals ends."""
    end = index + 1
    while words.is_name(end) and words.small[end] not in _NO_NAME and words.gap(end) == " ":
        end += 1
    return end


def _is_introduced(words: Words, index: int) -> bool:
    """My name is …, this is …, Mr …"""
    last = words.small[index - 1] if index else ""
    if last in _NAMING or last in _TITLES or last == "i'm":
        return True
    if last == "is":
        before = words.near(index - 3, index)
        return not _NAMING.isdisjoint(before) or before[-2:-1] == ["this"]
    return last == "am" and words.word(index - 2) == "i"
