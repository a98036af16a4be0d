"""What a voice makes of writing: signs and short forms as words, and the ways in which a date or an amount is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.short_forms import FRACTION_SIGNS, short_forms_aloud
from convoscope.text.spoken.vocabulary import DIGITS, MONTH_SHORT, MONTHS, REPEATS, SIGNS, SMALL, TENS

_WEEKDAYS = {
    "mon": "monday",
    "tue": "tuesday",
    "tues": "tuesday",
    "wed": "wednesday",
    "thu": "thursday",
    "thurs": "thursday",
    "fri": "friday",
    "sat": "saturday",
    "sun": "sunday",
}
_DECADES = {str(value)[0]: f"{word.removesuffix('y')}ies" for word, value in TENS.items() if word != "fourty"}
_HALVES = {"morning": "am", "afternoon": "pm", "evening": "pm", "night": "pm"}
_DIGIT = "|".join((*DIGITS, *REPEATS, "oh", "[0-9]+"))
_NUMBER = rf"(?:{'|'.join(SMALL)}|[0-9]{{1,2}}(?::[0-9]{{2}})?)"
_MONTH = "|".join((*MONTHS, *MONTH_SHORT))

_COMMA_CENTS = lazy_pattern(r"([$€£] ?[0-9]+),([0-9]{2})(?![0-9]|[,.][0-9])")
_SIGN_BEHIND = lazy_pattern(r"(?<![\w.,])([0-9]+)(?:[.,]([0-9]{2}))? ?([€£])(?![0-9])")
_OH = lazy_pattern(rf"\b(?:oh|o)\b(?=(?:[ -](?:{_DIGIT})\b){{2}})|(?<=point )oh\b", re.IGNORECASE)
_CLOCK_RANGE = lazy_pattern(r"(\b[0-9]{1,2}(?::[0-9]{2}(?: ?[ap]\.?m\.?)?| ?[ap]\.?m\.?)) ?[-–—] ?(?=[0-9])", re.I)
_RANGE = lazy_pattern(
    r"(?<![\w./:–—-])([$€£]?)([0-9]{1,3}(?:\.[0-9]+)?) ?[-–—] ?[$€£]?([0-9]{1,3}(?:\.[0-9]+)?)(?![\w/:–—-]|\.[0-9])"
)
_MINUS = lazy_pattern(r"(?<![\w)])(?<![0-9)] )[-−](?=[0-9])")
_NUMBER_SIGN = lazy_pattern(r"#(?=\w*[0-9])|\bNo\. ?(?=[0-9])")
_SHORT_DAY = lazy_pattern(rf"\b({'|'.join(_WEEKDAYS)})\b\.?(?=,? (?:[0-9]|(?:{_MONTH})\b))", re.IGNORECASE)
_DAY_MONTH = lazy_pattern(rf"\b([0-9]{{1,2}})(?:st|nd|rd|th)? ({'|'.join(MONTH_SHORT)})\b\.?", re.IGNORECASE)
_DECADE = lazy_pattern(r"\b((?:19|20)?)([2-9])0'?s\b")
_DAY_PART = lazy_pattern(
    rf"(?<![\w:.])((?:(?:{_MONTH})\.? )?)({_NUMBER})(?: o'?clock)?"
    r"(?: in the (morning|afternoon|evening)| at (night))\b",
    re.IGNORECASE,
)


def aloud(text: str) -> str:
    """A text with the signs and short forms as words that are always said alike: `5 km`, `Dr. Smith`, `20-25 days`.

    Both what was meant and what a recogniser wrote are brought into this form before they are compared.
    """
    text = text.replace("’", "'")
    text = _COMMA_CENTS.sub(r"\1.\2", text)
    text = _SIGN_BEHIND.sub(lambda one: f"{one[3]}{one[1]}{'.' + one[2] if one[2] else ''}", text)
    text = _CLOCK_RANGE.sub(r"\1 to ", text)
    text = _RANGE.sub(_range, text)
    text = _MINUS.sub(" minus ", text)
    text = short_forms_aloud(text)
    text = _NUMBER_SIGN.sub(" number ", text)
    text = _SHORT_DAY.sub(lambda one: _WEEKDAYS[one[1].lower()], text)
    text = _DAY_MONTH.sub(lambda one: f"{MONTH_SHORT[one[2].lower()]} {one[1]}", text)
    text = _DECADE.sub(lambda one: f"{one[1]} {_DECADES[one[2]]}", text)
    text = _OH.sub("zero", text)
    return _DAY_PART.sub(_half_day, text)


def _range(match: re.Match[str]) -> str:
    sign, first, last = match.groups()
    # 555-0142 is a phone number, and 3-2 a score.
    return f"{sign}{first} to {sign}{last}" if float(first) < float(last) else match[0]


def _half_day(match: re.Match[str]) -> str:
    month, hour, part, night = match.groups()
    whole = hour.partition(":")[0]
    is_hour = not month and 1 <= int(SMALL.get(whole.lower(), whole)) <= 12
    return f"{hour} {_HALVES[(part or night).lower()]}" if is_hour else match[0]


class WrittenForm(NamedTuple):
    """A part of a text that may be read in several ways, each of them right."""

    type: str
    start: int
    end: int
    readings: tuple[str, ...]


_SLASHED = lazy_pattern(r"(?<![\w./-])([0-9]{1,4})/([0-9]{1,4})(?:/([0-9]{4}|[0-9]{2}))?(?![\w/-]|\.[0-9])")
_DOTTED = lazy_pattern(r"(?<![\w./-])([0-9]{1,2})([.-])([0-9]{1,2})\2([0-9]{4})(?![\w/-]|\.[0-9])")
_COINS = lazy_pattern(r"(?<!\w)([$€£]) ?0[.,]([0-9]{2})(?![0-9])")
_SUM = lazy_pattern(r"(?<!\w)[$€£] ?[0-9]+,[0-9]{2}(?![0-9]|[,.][0-9])")
_PLAIN_RANGE = lazy_pattern(r"(?<![\w./:–—-])([0-9]{1,3}) ?[-–—] ?([0-9]{1,3})(?![\w/:–—-]|[.,][0-9])")
_NEGATIVE = lazy_pattern(r"(?<![\w)])(?<![0-9)] )[-−]([0-9]+(?:\.[0-9]+)?)(?![\w-]|\.[0-9])")
_DECIMAL_COMMA = lazy_pattern(r"(?<![\w.,$€£])([0-9]{1,3}),([0-9]{1,2})(?![0-9]|,[0-9])")
_HALF = lazy_pattern(r"(?<![\w.,$€£])0?\.5(?![0-9])")
_FRACTION = lazy_pattern(rf"(?:([0-9]+) ?)?([{''.join(FRACTION_SIGNS)}])")
_DEGREES = lazy_pattern(r"(?<![\w.])([-−]?)([0-9]+(?:\.[0-9]+)?) ?(?:° ?([CF])\b|([℃℉]))")
_AFTERNOON = lazy_pattern(r"(?<![0-9:.])(1[3-9]|2[0-3]):([0-5][0-9])(?![0-9:]| ?[ap]\.?m)", re.IGNORECASE)
_FRACTIONS = {
    ("1", "2"): ("half", "half a", "one half", "a half"),
    ("1", "3"): ("a third", "one third"),
    ("2", "3"): ("two thirds",),
    ("1", "4"): ("a quarter", "one quarter", "quarter", "one fourth"),
    ("3", "4"): ("three quarters", "three fourths"),
    **{(str(one), "5"): (f"{one} fifths",) for one in (2, 3, 4)},
    **{(str(one), "8"): (f"{one} eighths",) for one in (3, 5, 7)},
    **{("1", str(parts)): (f"one {name}", f"an {name}", f"a {name}") for parts, name in ((5, "fifth"), (8, "eighth"))},
}

_HALVES_OF_ONE = ("0.5", "point 5", *_FRACTIONS["1", "2"])


def written(text: str) -> list[WrittenForm]:
    """The parts of a text with several readings, in its order: `12/03/2026` is a day of December or of March."""
    parts = [
        *(
            WrittenForm("date" if day else "number", *one.span(), (*day, *others))
            for one, day, others in _slashed(text)
        ),
        *(WrittenForm("date", *one.span(), tuple(_days(one[1], one[3], one[4]))) for one in _DOTTED.finditer(text)),
        *(WrittenForm("amount", *one.span(), _coins(one)) for one in _COINS.finditer(text)),
        *(WrittenForm("amount", *one.span(), (aloud(one[0]),)) for one in _SUM.finditer(text)),
        *(WrittenForm("number", *one.span(), _comma(one)) for one in _DECIMAL_COMMA.finditer(text)),
        *(WrittenForm("number", *one.span(), _between(one)) for one in _PLAIN_RANGE.finditer(text)),
        *(WrittenForm("number", *one.span(), _HALVES_OF_ONE) for one in _HALF.finditer(text)),
        *(WrittenForm("number", *one.span(), _fraction(one)) for one in _FRACTION.finditer(text)),
        *(WrittenForm("number", *one.span(), _degrees(one)) for one in _DEGREES.finditer(text)),
        *(WrittenForm("time", *one.span(), _afternoon(one)) for one in _AFTERNOON.finditer(text)),
        *(
            WrittenForm("number", *one.span(), (f"minus {one[1]}", f"negative {one[1]}"))
            for one in _NEGATIVE.finditer(text)
        ),
    ]
    result: list[WrittenForm] = []
    for part in sorted(parts, key=lambda part: part.start):
        if part.readings and (not result or part.start >= result[-1].end):
            result.append(part)
    return result


def _slashed(text: str) -> Iterator[tuple[re.Match[str], tuple[str, ...], tuple[str, ...]]]:
    for match in _SLASHED.finditer(text):
        first, second, year = match.groups(default="")
        days = tuple(_days(first, second, year))
        fractions = _FRACTIONS.get((first, second), ())
        both = f"{first} {second}"
        if year:
            yield match, days, (f"{both} {year}",)
        else:
            links = tuple(f"{first} {word} {second}" for word in ("slash", "over", "out of", "of"))
            yield match, days, (*fractions, *links) if fractions else (both, *links)  # half a cup is no 12 cups


def _days(first: str, second: str, year: str) -> Iterator[str]:
    """The days that two numbers can be: the month is first in America, and second elsewhere."""
    long = f"20{year}" if len(year) == 2 else year
    for month, day in ((int(first), int(second)), (int(second), int(first))):
        if 1 <= month <= 12 and 1 <= day <= 31:
            yield f"{MONTHS[month - 1]} {day} {long}".strip()


def _coins(match: re.Match[str]) -> tuple[str, ...]:
    coins = str(int(match[2]))
    return f"{coins} cents", f"{coins} p", f"0.{match[2]} {SIGNS[match[1]]}"


def _comma(match: re.Match[str]) -> tuple[str, ...]:
    """One and a half, or two numbers of a list."""
    return (
        f"{match[1]}.{match[2]}",
        f"{match[1]} {match[2]}",
        f"{match[1]} and {match[2]}",
        f"{match[1]} comma {match[2]}",
    )


def _fraction(match: re.Match[str]) -> tuple[str, ...]:
    slashed, decimals = FRACTION_SIGNS[match[2]]
    first, _, second = slashed.partition("/")
    return (f"{match[1]}{decimals}",) if match[1] else (*_FRACTIONS[first, second], slashed)


def _degrees(match: re.Match[str]) -> tuple[str, ...]:
    """The scale need not be said."""
    scales = ("celsius", "centigrade") if match[3] == "C" or match[4] == "℃" else ("fahrenheit",)
    numbers = [f"{word} {match[2]}" for word in ("minus", "negative")] if match[1] else [match[2]]
    return tuple(f"{number} degrees {scale}".strip() for scale in (*scales, "") for number in numbers)


def _afternoon(match: re.Match[str]) -> tuple[str, ...]:
    hour, minute = int(match[1]) - 12, match[2]
    short = f"{hour} o'clock" if minute == "00" else f"{hour}:{minute}"
    return match[0], f"{hour}:{minute} pm", short, f"{match[1]}{minute}"


def _between(match: re.Match[str]) -> tuple[str, ...]:
    first, last = match[1], match[2]
    ways = tuple(f"{first} {word} {last}" for word in ("to", "or", "through", "and", "minus"))
    counts = match.string[match.end() :].lstrip(" %")[:1].isalpha()  # 2-3 days are not 23
    return ways if counts else (*ways, f"{first} {last}")


_MOST = 32
"""Readings of one fact."""


def readings_of(text: str) -> tuple[str, ...]:
    """All ways in which a short text may be read aloud, the likeliest first."""
    ways = [text]
    for part in reversed(written(text)):
        ways = [f"{way[: part.start]}{reading}{way[part.end :]}" for way in ways for reading in part.readings]
    return tuple(dict.fromkeys(aloud(way) for way in ways[:_MOST]))


__all__ = ["WrittenForm", "aloud", "readings_of", "written"]
