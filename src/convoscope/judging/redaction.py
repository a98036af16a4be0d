"""What identifies a person is taken out of a question before it leaves the machine, and put back into the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import re2

from convoscope.errors import UsageError

_UNSEEN = re.compile("[\u00ad\u200b\u2060\ufeff]")
"""Characters of no width, which hide a number from a pattern and from no reader."""
_AT = r"(?:\s?@\s?|%40|\\{1,4}u0040|&#64;|\s?[(\[]\s?at\s?[)\]]\s?)"
_DOT = r"(?:\.|\s?[(\[]\s?dot\s?[)\]]\s?)"
_EMAIL = re.compile(rf"[\w.+%-]{{1,64}}{_AT}(?:[\w-]{{1,63}}{_DOT}){{1,8}}[A-Za-z]{{2,24}}", re.IGNORECASE)
_SPOKEN_EMAIL = re.compile(
    r"\b(?:[\w+-]{1,30}\s+(?:dot|punkt|punto|point|underscore|dash|minus)\s+){0,4}[\w+-]{1,30}\s+at\s+"
    r"[\w-]{1,30}(?:\s+dot\s+[a-z]{2,12}){1,3}\b",
    re.IGNORECASE,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?:[\s-]?[A-Z0-9]){11,30}", re.IGNORECASE)
_BETWEEN = r"[^\S\n]|[.\-‐-―−/()\u200c\u200d]"
"""What is between the groups of a number: blanks, dashes, points, brackets."""
_DIGITS = re.compile(rf"(?<![\w.])\+?\(?\d(?:(?:{_BETWEEN}){{0,3}}\d){{6,18}}(?!\w)")
_CARD = re.compile(
    rf"(?<!\d)(?:\d(?:(?:{_BETWEEN}|_){{0,3}}\d){{12,40}}|\d{{4}}(?:(?:{_BETWEEN}|[\n,_]|\\{{1,4}}[nrt]){{1,4}}\d{{4,6}}){{2,9}})"
)
"""A card number is known by its check digit, so letters may be around it, and more between groups of four."""
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
_TIMES = {"double": 2, "triple": 3, "doble": 2, "doppel": 2}
_TENS_WORDS = (
    ("twenty", "zwanzig", "veinte", "vingt"),
    ("thirty", "dreißig", "dreissig", "treinta", "trente"),
    ("forty", "vierzig", "cuarenta", "quarante"),
    ("fifty", "fünfzig", "cincuenta", "cinquante"),
    ("sixty", "sechzig", "sesenta", "soixante"),
    ("seventy", "siebzig", "setenta"),
    ("eighty", "achtzig", "ochenta"),
    ("ninety", "neunzig", "noventa"),
)
_TENS = {word: str(digit) for digit, words in enumerate(_TENS_WORDS, 2) for word in words}
_TEEN_WORDS = (
    ("ten", "zehn", "diez", "dix"),
    ("eleven", "elf", "once", "onze"),
    ("twelve", "zwölf", "doce", "douze"),
    ("thirteen", "dreizehn", "trece", "treize"),
    ("fourteen", "vierzehn", "catorce", "quatorze"),
    ("fifteen", "fünfzehn", "quince", "quinze"),
    ("sixteen", "sechzehn", "dieciséis", "seize"),
    ("seventeen", "siebzehn", "diecisiete"),
    ("eighteen", "achtzehn", "dieciocho"),
    ("nineteen", "neunzehn", "diecinueve"),
)
_TEENS = {word: str(number) for number, words in enumerate(_TEEN_WORDS, 10) for word in words}
_ONES = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TEENS |= {  # vierunddreißig is 34
    f"{one}und{tens}": f"{digit}{number}"
    for tens, digit in _TENS.items()
    if tens.endswith("ig")
    for number, one in enumerate(_ONES, 1)
}
_SPOKEN_WORD = "|".join(sorted({*_NUMBER_WORDS, *_TIMES, *_TENS, *_TEENS, "plus", "hundred"}, key=len, reverse=True))
_PAUSE = r"[ ,.\-]{0,3}(?:\b(?:u[hm]+|er+m?|eh+|äh+m?|euh+|hm+|y|et)\b[ ,.\-]{0,3}){0,2}"
"""What is between two number words: also what people say while they look for the next one."""
_SPOKEN = re.compile(rf"\b(?:(?:{_SPOKEN_WORD}|\d{{1,4}})\b{_PAUSE}){{4,40}}", re.IGNORECASE)
_LEAST_PHONE = 7
_LEAST_WORDS = 3


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

        text = _UNSEEN.sub("", text)
        for own in self._own:
            text = own.sub(lambda match: placeholder("PRIVATE", match[0], match[0]) if match[0] else "", text)
        text = _EMAIL.sub(lambda match: placeholder("EMAIL", match[0].lower(), match[0]), text)
        text = _SPOKEN_EMAIL.sub(lambda match: placeholder("EMAIL", _written_email(match[0]), match[0]), text)

        def account(match: re.Match[str]) -> str:
            iban = _iban_in(match[0])
            return placeholder("IBAN", _joined(iban), iban) + match[0][len(iban) :] if iban else match[0]

        def card(match: re.Match[str]) -> str:
            start, end = _card_in(match[0])
            whole = match[0][start:end]
            hidden = placeholder("CARD", re.sub(r"\D", "", whole), whole) if whole else ""
            return match[0][:start] + hidden + match[0][end:]

        text = _IBAN.sub(account, text)
        text = _CARD.sub(card, text)

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
            if len(re.findall(r"[^\W\d_]+", words)) < _LEAST_WORDS:
                return match[0]  # figures were looked at above
            return number(words, _spoken_digits(words)) + match[0][len(words) :]

        text = _DIGITS.sub(written, text)
        text = _SPOKEN.sub(spoken, text)
        return Redacted(text, originals)


_SPOKEN_SIGNS = {
    "dot": ".",
    "punkt": ".",
    "punto": ".",
    "point": ".",
    "underscore": "_",
    "dash": "-",
    "minus": "-",
    "at": "@",
}


def _written_email(spoken: str) -> str:
    return "".join(_SPOKEN_SIGNS.get(word, word) for word in spoken.lower().split())


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


def _joined(account: str) -> str:
    return re.sub(r"[\s-]", "", account).upper()


def _iban_in(text: str) -> str:
    """The longest beginning of a text that is an IBAN: words may follow it without a mark between."""
    return next((text[:end] for end in range(len(text), 14, -1) if is_iban(text[:end])), "")


def _card_in(text: str) -> tuple[int, int]:
    """Where the longest card number of whole groups is in a row of numbers; an empty span where there is none."""
    groups = [match.span() for match in re.finditer(r"\d+", text)]
    spans = [(first[0], last[1]) for index, first in enumerate(groups) for last in groups[index:]]
    for start, end in sorted(spans, key=lambda span: span[0] - span[1]):
        if is_card(re.sub(r"\D", "", text[start:end])):
            return start, end
    return 0, 0


def is_iban(text: str) -> bool:
    """The check digits of an IBAN fit: ISO 13616, remainder 1 of 97."""
    account = _joined(text)
    if not 15 <= len(account) <= 34 or not text[-1].isalnum():
        return False
    return int("".join(str(int(character, 36)) for character in account[4:] + account[:4])) % 97 == 1
