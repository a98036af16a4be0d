"""Signs, units and short words in writing, and the words that a voice says for them."""

from __future__ import annotations

import re

from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken.vocabulary import DIGITS, SMALL, listed

_UNITS = {
    **dict.fromkeys(("km", "kms"), "kilometers"),
    **dict.fromkeys(("kg", "kgs"), "kilograms"),
    **dict.fromkeys(("mcg", "µg", "μg"), "micrograms"),
    **dict.fromkeys(("lb", "lbs"), "pounds"),
    **dict.fromkeys(("min", "mins"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs"), "hours"),
    **dict.fromkeys(("sec", "secs"), "seconds"),
    **dict.fromkeys(("wk", "wks"), "weeks"),
    **dict.fromkeys(("yr", "yrs"), "years"),
    **dict.fromkeys(("km/h", "kph"), "kilometers per hour"),
    **dict.fromkeys(("¢", "pence"), "cents"),
    "m": "meters",
    "cm": "centimeters",
    "mm": "millimeters",
    "g": "grams",
    "mg": "milligrams",
    "l": "liters",
    "ml": "milliliters",
    "oz": "ounces",
    "ft": "feet",
    "kb": "kilobytes",
    "mb": "megabytes",
    "gb": "gigabytes",
    "tb": "terabytes",
    "kwh": "kilowatt hours",
    "mph": "miles per hour",
    "°": "degrees",
    "°c": "degrees celsius",
    "°f": "degrees fahrenheit",
    "m²": "square meters",
    "m³": "cubic meters",
    "km²": "square kilometers",
    "x": "times",
}
_ONE = {"feet": "foot", "times": "times"}
_PER = {
    **{unit: words.removesuffix("s") for unit, words in _UNITS.items() if unit.isalpha() and unit not in ("x", "ft")},
    **{word: word for word in listed("second minute hour day night week month year person head unit item kilo piece")},
}
_SHORT = {
    "dr": "doctor",
    "apt": "apartment",
    "ext": "extension",
    "approx": "approximately",
    "dept": "department",
    "vs": "versus",
    "etc": "et cetera",
    "tel": "telephone",
    "mt": "mount",
}
_STREETS = {"St": "Street", "Ave": "Avenue", "Rd": "Road", "Blvd": "Boulevard", "Ln": "Lane", "Hwy": "Highway"}
SHORT_FORMS = frozenset((*_UNITS, *_SHORT, *map(str.lower, _STREETS)))
"""In small letters; a voice says another word for each."""
FRACTION_SIGNS = {
    "½": ("1/2", ".5"),
    "¼": ("1/4", ".25"),
    "¾": ("3/4", ".75"),
    "⅓": ("1/3", ".33"),
    "⅔": ("2/3", ".67"),
    "⅛": ("1/8", ".125"),
    "⅜": ("3/8", ".375"),
    "⅝": ("5/8", ".625"),
    "⅞": ("7/8", ".875"),
    "⅕": ("1/5", ".2"),
    "⅖": ("2/5", ".4"),
    "⅗": ("3/5", ".6"),
    "⅘": ("4/5", ".8"),
}
_SIGNS = "".join(FRACTION_SIGNS)
DECIMALS = dict(FRACTION_SIGNS.values())
_SPOKEN_FRACTIONS = {
    **dict.fromkeys(("a half", "one half"), "1/2"),
    **dict.fromkeys(("a quarter", "one quarter", "a fourth", "one fourth"), "1/4"),
    **dict.fromkeys(("three quarters", "three fourths"), "3/4"),
    **dict.fromkeys(("a third", "one third"), "1/3"),
    "two thirds": "2/3",
}
_DIGIT_WORDS = {digit: word for word, digit in DIGITS.items() if word != "niner"}
_NUMBER = rf"(?:{'|'.join(SMALL)}|[0-9]+)"

_MIXED_SIGN = lazy_pattern(rf"([0-9]+) ?([{_SIGNS}])")
_LONE_SIGN = lazy_pattern(rf"[{_SIGNS}]")
_MIXED = lazy_pattern(
    rf"(?<![\w/.])({_NUMBER})(?: and ({'|'.join(_SPOKEN_FRACTIONS)}|[1-7]/[2-8])|[ -]([1-7]/[2-8]))(?![\w/])",
    re.IGNORECASE,
)
_RAISED = lazy_pattern(r"(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_POWERS = {"²": "squared", "³": "cubed"}
_TRADE_MARKS = lazy_pattern(r"[™®©℠]")
_UNIT = lazy_pattern(
    rf"(?<![\w.])([0-9]+(?:[.,][0-9]+)*)[ -]?({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?!\w)",
    re.IGNORECASE,
)
_PER_UNIT = lazy_pattern(rf"(?<=\w) ?/ ?({'|'.join(sorted(_PER, key=len, reverse=True))})\b(?!/)")
_A_UNIT = lazy_pattern(
    r"([$€£] ?[0-9.,]+|\b(?:dollars?|euros?|pounds?|cents?|percent)) (?:an?|each|every) "
    rf"(?={'|'.join(sorted({*_PER.values()}))})",
    re.IGNORECASE,
)
_NAMED = lazy_pattern(r"\b(Dr|Apt|Ext|Mt)\b\.?(?= ?[A-Z0-9])")
_SHORT_WORD = lazy_pattern(rf"\b({'|'.join(_SHORT)})\.", re.IGNORECASE)
_SAINT = lazy_pattern(r"\bSt\b\.? (?=[A-Z])")
_STREET = lazy_pattern(rf"(?<=\w )({'|'.join(_STREETS)})\b\.?")
_THOUSANDS = lazy_pattern(r"(?<![\w.,$€£])([0-9]+(?:\.[0-9]+)?) ?(?:([kK])|M)(?!\w)")
_KILOS = lazy_pattern(r"\bkilos\b|(?<=\bper )kilo\b", re.IGNORECASE)
_CONTRACTIONS = {
    lazy_pattern(pattern, re.IGNORECASE): words
    for pattern, words in (
        (r"\bwon't\b", "will not"),
        (r"\bcan't\b|\bcannot\b", "can not"),
        (r"\blet's\b", "let us"),
        (r"n't\b", " not"),
        (r"'ll\b", " will"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"(?<=\bI)'m\b", " am"),
        (r"(?:(?<=\bit)|(?<=\bhe)|(?<=\bshe)|(?<=\bthat)|(?<=\bthere)|(?<=\bwhat)|(?<=\bhere))'s\b", " is"),
    )
}


def plain_fractions(text: str) -> str:
    """Signs that must not become part of the number before them: 1½ is 1.5, ½ is 1/2, 10⁶ is two numbers."""
    text = _MIXED_SIGN.sub(lambda one: one[1] + FRACTION_SIGNS[one[2]][1], text)
    text = _LONE_SIGN.sub(lambda one: f" {FRACTION_SIGNS[one[0]][0]}", text)
    text = _TRADE_MARKS.sub("", text).replace("№", " No. ")
    return _RAISED.sub(lambda one: f" {_POWERS.get(one[0], f'to the {one[0]}')} ", text)


def short_forms_aloud(text: str) -> str:
    """Units, fractions and short words as the words that are said for them."""
    text = _UNIT.sub(_unit, text.replace("℃", "°C").replace("℉", "°F"))
    text = _MIXED.sub(_mixed, plain_fractions(text))
    text = _PER_UNIT.sub(lambda one: f" per {_PER[one[1]]}", text)
    text = _THOUSANDS.sub(lambda one: f"{one[1]} {'thousand' if one[2] else 'million'}", text)
    text = _NAMED.sub(lambda one: f"{_SHORT[one[1].lower()]} ", text)
    text = _SHORT_WORD.sub(lambda one: _SHORT[one[1].lower()], text)
    text = _STREET.sub(lambda one: _STREETS[one[1]], _SAINT.sub("Saint ", text))
    text = _A_UNIT.sub(r"\1 per ", text)
    return _KILOS.sub(lambda one: f"kilogram{'s' * one[0].endswith('s')}", text)


def without_contractions(text: str) -> str:
    """`I'll` is I will: a voice may say either."""
    text = text.replace("’", "'")
    for pattern, words in _CONTRACTIONS.items():
        text = pattern.sub(words, text)
    return text


def _unit(match: re.Match[str]) -> str:
    number, unit = match[1], match[2]
    if unit in ("H", "M", "G", "L"):  # gate 5M
        return match[0]
    words = _UNITS[unit.lower()]
    first, *others = words.split()
    single = " ".join((_ONE.get(first, first.removesuffix("s")), *others))
    return f"{number} {single if number == '1' and first != 'square' else words}"


def _mixed(match: re.Match[str]) -> str:
    number, spoken = match[1], (match[2] or match[3]).lower()
    decimals = DECIMALS.get(_SPOKEN_FRACTIONS.get(spoken, spoken))
    if decimals is None:
        return match[0]
    digits = " ".join(_DIGIT_WORDS[digit] for digit in decimals[1:])
    return f"{number}{decimals}" if number.isdecimal() else f"{number} point {digits}"
