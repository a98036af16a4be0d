"""What identifies a person is taken out of a question before it leaves the machine, and put back into the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import re2

from convoscope.errors import UsageError

_EMAIL = re.compile(r"[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}")
_SPOKEN_EMAIL = re.compile(
    r"\b(?:[\w+-]{1,30}\s+(?:dot|punkt|punto|point|underscore|dash|minus)\s+){0,4}[\w+-]{1,30}\s+at\s+"
    r"[\w-]{1,30}(?:\s+dot\s+[a-z]{2,12}){1,3}\b",
    re.IGNORECASE,
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b")
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d(?:[ .\-/()]{0,2}\d){6,18}(?!\w)")
_DATE = re.compile(r"(?:19|20)\d\d[-./](?:0?[1-9]|1[0-2])[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d")
_DIGIT_WORDS = (
    ("zero", "oh", "o", "nought", "null", "cero", "zéro"),
    ("one", "eins", "uno", "un"),
    ("two", "zwei", "zwo", "dos", "deux"),
    ("three", "drei", "tres", "trois"),
    ("four", "vier", "cuatro", "quatre"),
    ("five", "fünf", "cinco", "cinq"),
    ("six", "sechs", "seis"),
    ("seven", "sieben", "siete", "sept"),
    ("eight", "acht", "ocho", "huit"),
    ("nine", "niner", "neun", "nueve", "neuf"),
)
_NUMBER_WORDS = {word: str(digit) for digit, words in enumerate(_DIGIT_WORDS) for word in words}
_TIMES = {"double": 2, "triple": 3}
_TENS = dict(
    zip(("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), "23456789", strict=True)
)
_TEENS = {
    "ten": "10",
    "eleven": "11",
    "twelve": "12",
    "thirteen": "13",
    "fourteen": "14",
    "fifteen": "15",
    "sixteen": "16",
    "seventeen": "17",
    "eighteen": "18",
    "nineteen": "19",
}
_SPOKEN_WORD = "|".join(sorted({*_NUMBER_WORDS, *_TIMES, *_TENS, *_TEENS, "plus", "hundred"}, key=len, reverse=True))
_SPOKEN = re.compile(rf"\b(?:(?:{_SPOKEN_WORD}|\d)\b[ ,.\-]{{0,3}}){{4,40}}", re.IGNORECASE)
_LEAST_PHONE = 7


class Redacted(NamedTuple):
    """A text without what identifies a person, and what each placeholder stands for."""

    text: str
    originals: dict[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """How many different values of each kind were taken out."""
        counts: dict[str, int] = {}
        for placeholder in self.originals:
            kind = placeholder[1:].rpartition("_")[0].lower()
            counts[kind] = counts.get(kind, 0) + 1
        return counts

    def undone(self, value: object) -> object:
        """An answer with the original values instead of placeholders, at any depth."""
        if isinstance(value, str):
            for placeholder, original in self.originals.items():
                value = value.replace(placeholder, original)
            return value
        if isinstance(value, dict):
            return {self.undone(name): self.undone(member) for name, member in value.items()}
        return [self.undone(member) for member in value] if isinstance(value, list) else value


class Redaction:
    """Takes mail addresses, phone and card numbers, IBANs and the user's own patterns out of a text.

    One value has one placeholder wherever it is, spoken or written, so that a reader can still compare:

    >>> hidden = Redaction().hide("call 555 0134 999, five five five oh one three four nine nine nine, mail a@b.org")
    >>> hidden.text
    'call <PHONE_1>, <PHONE_1>, mail <EMAIL_1>'
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = tuple(patterns)
        self._own: list[Any] = []
        for pattern in patterns:
            try:
                self._own.append(re2.compile(pattern))
            except re2.error as error:
                raise UsageError(f"{pattern!r} is not a pattern: {error}", hint="the syntax is RE2's") from None

    def hide(self, text: str) -> Redacted:
        placeholders: dict[tuple[str, str], str] = {}
        originals: dict[str, str] = {}

        def placeholder(kind: str, value: str, original: str) -> str:
            key = (kind, value)
            if key not in placeholders:
                number = 1 + sum(1 for held, _ in placeholders if held == kind)
                placeholders[key] = f"<{kind}_{number}>"
                originals[placeholders[key]] = original
            return placeholders[key]

        for own in self._own:
            text = own.sub(lambda match: placeholder("PRIVATE", match[0], match[0]) if match[0] else "", text)
        text = _EMAIL.sub(lambda match: placeholder("EMAIL", match[0].lower(), match[0]), text)
        text = _SPOKEN_EMAIL.sub(lambda match: placeholder("EMAIL", _written_email(match[0]), match[0]), text)
        text = _IBAN.sub(
            lambda match: placeholder("IBAN", match[0].replace(" ", ""), match[0]) if is_iban(match[0]) else match[0],
            text,
        )

        def number(text: str, digits: str) -> str:
            if is_card(digits):
                return placeholder("CARD", digits, text)
            return placeholder("PHONE", digits, text) if len(digits) >= _LEAST_PHONE else text

        def written(match: re.Match[str]) -> str:
            if _DATE.match(match[0].lstrip("+(")):
                return match[0]
            return number(match[0], re.sub(r"\D", "", match[0]))

        def spoken(match: re.Match[str]) -> str:
            words = match[0].rstrip(" ,.-")
            return number(words, _spoken_digits(words)) + match[0][len(words) :]

        text = _DIGITS.sub(written, text)
        text = _SPOKEN.sub(spoken, text)
        return Redacted(text, originals)


def _written_email(spoken: str) -> str:
    words = {
        "dot": ".",
        "punkt": ".",
        "punto": ".",
        "point": ".",
        "underscore": "_",
        "dash": "-",
        "minus": "-",
        "at": "@",
    }
    return "".join(words.get(word, word) for word in spoken.lower().split())


def _spoken_digits(text: str) -> str:
    digits: list[str] = []
    times, tens = 1, ""
    for word in re.findall(r"\w+", text.lower()):
        if word in _TIMES:
            times = _TIMES[word]
            continue
        if word in _TENS:
            digits.append(tens and tens + "0")
            tens = _TENS[word]
            continue
        digit = (
            _NUMBER_WORDS.get(word)
            or _TEENS.get(word)
            or (word if word.isdigit() else "00" if word == "hundred" else "")
        )
        digits.append((tens + digit if len(digit) == 1 and digit != "0" else (tens and tens + "0") + digit) * times)
        times, tens = 1, ""
    return "".join(digits) + (tens and tens + "0")


def is_card(digits: str) -> bool:
    """Thirteen to nineteen digits with the check digit of a card number (Luhn)."""
    if not 13 <= len(digits) <= 19:
        return False
    doubled = (int(digit) * (1 + index % 2) for index, digit in enumerate(reversed(digits)))
    return sum(number - 9 if number > 9 else number for number in doubled) % 10 == 0


def is_iban(text: str) -> bool:
    """The check digits of an IBAN fit: ISO 13616, remainder 1 of 97."""
    account = text.replace(" ", "")
    if not 15 <= len(account) <= 34:
        return False
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
