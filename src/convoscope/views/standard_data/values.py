"""The kinds of value that an item has: whether a value is valid as it is, and how it is coerced.

`is_valid` is asked of every value and must be fast; `coerce` is asked only of what is not valid. It returns the value
as it should have been, or None with a warning that carries the original: nothing is lost silently."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from convoscope.conversation.events import moment


class Warned(NamedTuple):
    """One thing in a payload that could not be taken as it came."""

    path: str
    """Where it stands in the payload, such as `tool_calls[1].parameters`; "" is the payload itself."""
    code: str
    message: str
    """What happened, as a sentence for a person."""
    value: Any = None
    """The original value, where it is not in the item any more."""


Warnings = list[Warned]


_decode = msgspec.json.Decoder().decode
_SURROGATE = re.compile("[\ud800-\udfff]")
# Text in text in text: exports that quote what was quoted already.
_DEEPEST_QUOTES = 3


class Unread(NamedTuple):
    """Text that is not JSON."""


UNREAD = Unread()


def parsed(text: str, path: str, warnings: Warnings) -> Any:
    """The value that a JSON text holds, through several layers of quotes; `UNREAD` where it is not JSON.

    What JSON cannot say (NaN) or UTF-8 cannot carry (half a character) is put right, with a warning.
    """
    value: Any = text
    for _ in range(_DEEPEST_QUOTES):
        if not isinstance(value, str):
            break
        value = _parsed_once(value, path, warnings)
    return UNREAD if isinstance(value, str) else value


def _parsed_once(text: str, path: str, warnings: Warnings) -> Any:
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        pass
    wrong: list[str] = []

    def finite(digits: str) -> float | None:
        if math.isfinite(number := float(digits)):
            return number
        wrong.append(digits)
        return None

    try:
        value = json.loads(text, parse_constant=wrong.append, parse_float=finite, strict=False)
    except (ValueError, RecursionError):
        return UNREAD
    if "\\u" in text and _SURROGATE.search(written := json.dumps(value, ensure_ascii=False)):
        wrong.append("lone surrogate")
        value = json.loads(_SURROGATE.sub("\ufffd", written))
    if wrong:
        warnings.append(Warned(path, "json_repaired", f"{path} holds JSON that had to be repaired.", text))
    return value


def as_json_text(value: Any) -> str | None:
    """A value as JSON text; None where it cannot be written."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=False)
    except (TypeError, ValueError, RecursionError):
        return None


_LARGEST = 1.7976931348623157e308
_INT64 = 2**63
# Below this a double holds every whole number.
_EXACT = 2**53
_NUMERAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_YES = frozenset({"true", "1", "yes", "on"})
_NO = frozenset({"false", "0", "no", "off"})
# Seconds of a moment that is still written with four digits of a year; milliseconds begin here.
_LAST_SECOND = 1e11
_PER_SECOND = {
    "time_in_epoch_s": 1,
    "time_in_epoch_ms": 10**3,
    "time_in_epoch_us": 10**6,
    "time_in_epoch_ns": 10**9,
}


class ValueKind:
    """Any value at all: everything is clean."""

    def clean(self, value: Any) -> bool:  # noqa: ARG002
        return True

    def mend(self, value: Any, path: str, warnings: Warnings) -> Any:  # noqa: ARG002
        return value

    def unknown(self, value: Any) -> Iterator[str]:  # noqa: ARG002
        """Names inside a clean value that the schema does not know, such as `[].foo`."""
        return iter(())


class TextKind(ValueKind):
    """Text. Numbers and booleans are written out; an object or a list becomes its JSON text, with a warning."""

    def clean(self, value: Any) -> bool:
        return type(value) is str

    def mend(self, value: Any, path: str, warnings: Warnings) -> str | None:
        if (text := _written(value)) is not None:
            return text
        if isinstance(value, dict | list | tuple) and (text := as_json_text(value)) is not None:
            warnings.append(Warned(path, "kept_as_json", f"{path} should be text; it is kept as JSON text.", value))
            return text
        warnings.append(Warned(path, "not_text", f"{path} should be text, and was left out.", value))
        return None


class Identifier(TextKind):
    """Text that names something. An object, a list, true and false name nothing."""

    def mend(self, value: Any, path: str, warnings: Warnings) -> str | None:
        if (text := id_text(value)) is not None:
            return text
        warnings.append(Warned(path, "not_an_id", f"{path} should name something, and was left out.", value))
        return None


class Number(ValueKind):
    """A finite number; text that is one counts as one."""

    def clean(self, value: Any) -> bool:
        # An integer too large for a double is none that was measured.
        return (type(value) is float or type(value) is int) and -_LARGEST <= value <= _LARGEST

    def mend(self, value: Any, path: str, warnings: Warnings) -> float | int | None:
        number = _number(value)
        if number is None:
            warnings.append(Warned(path, "not_a_number", f"{path} should be a number, and was left out.", value))
        return number


class Integer(ValueKind):
    """A whole number of 64 bits; 3.0 and "3" are 3."""

    def clean(self, value: Any) -> bool:
        return type(value) is int and -_INT64 <= value < _INT64

    def mend(self, value: Any, path: str, warnings: Warnings) -> int | None:
        number = _number(value)
        if number is not None and number == (whole := int(number)) and -_INT64 <= whole < _INT64:
            return whole
        warnings.append(Warned(path, "not_an_integer", f"{path} should be a whole number, and was left out.", value))
        return None


class Boolean(ValueKind):
    """True or false; 1, "yes", "ON" and their opposites count."""

    def clean(self, value: Any) -> bool:
        return type(value) is bool

    def mend(self, value: Any, path: str, warnings: Warnings) -> bool | None:
        word = value.strip().lower() if isinstance(value, str) else value
        if isinstance(word, float | int) and word in (0, 1):
            return bool(word)
        if isinstance(word, str) and word in _YES | _NO:
            return word in _YES
        warnings.append(Warned(path, "not_a_boolean", f"{path} should be true or false, and was left out.", value))
        return None


class TimeText(ValueKind):
    """A time as text. A number since the epoch becomes ISO 8601 in UTC; text stays as it was written."""

    def clean(self, value: Any) -> bool:
        return type(value) is str and moment(value) is not None

    def mend(self, value: Any, path: str, warnings: Warnings) -> str | None:
        if isinstance(value, str) or (isinstance(value, float | int) and not isinstance(value, bool)):
            text = str(value) if isinstance(value, str) else _iso(value)
            if text is not None and moment(text) is not None:
                return text
            if text:
                warnings.append(
                    Warned(path, "kept_as_text", f"{path} is not a time that can be read; it is kept.", value)
                )
                return text
        if isinstance(value, date):
            return value.isoformat()
        warnings.append(Warned(path, "not_a_time", f"{path} should be a time, and was left out.", value))
        return None


class EpochSeconds(ValueKind):
    """Seconds since the epoch, or since the start where they are few; ISO text and other units are converted."""

    def clean(self, value: Any) -> bool:
        return (type(value) is float or type(value) is int) and -_LARGEST <= value < _LAST_SECOND

    def mend(self, value: Any, path: str, warnings: Warnings) -> float | int | None:
        read = moment(value.isoformat() if isinstance(value, datetime) else value)
        if read is not None and self.clean(read.at):
            return read.at
        warnings.append(Warned(path, "not_a_time", f"{path} should be a time, and was left out.", value))
        return None


class Choice(ValueKind):
    """One of a few words, however they are capitalised."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def clean(self, value: Any) -> bool:
        return type(value) is str and value in self.words

    def mend(self, value: Any, path: str, warnings: Warnings) -> str | None:
        if isinstance(value, str) and (word := value.strip().lower()) in self.words:
            return word
        allowed = " or ".join(self.words)
        warnings.append(Warned(path, "unknown_word", f"{path} should be {allowed}, and was left out.", value))
        return None


def id_text(value: Any) -> str | None:
    """What an id is as text; None for what names nothing. Tables write whole numbers as 7.0: that is 7."""
    if isinstance(value, bool):
        return None
    number = float(value) if isinstance(value, Decimal) and value.is_finite() else value
    if isinstance(number, float) and -_EXACT < number < _EXACT and number == (whole := int(number)):
        return str(whole)
    return _written(value)


def _written(value: Any) -> str | None:
    """A single value as text; None where it is not a single value, or not a number at all."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal | UUID):
        try:
            return str(value)
        except ValueError:  # more digits than Python is willing to write
            return None
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    return None


def _number(value: Any) -> float | int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not _NUMERAL.fullmatch(text):
            return None
        try:
            value = int(text) if text.lstrip("+-").isdigit() else float(text)
        except ValueError:  # more digits than Python is willing to read
            return None
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float | int) and -_LARGEST <= value <= _LARGEST:
        return value
    return None


def _iso(number: float | int) -> str | None:
    """A number since the epoch as ISO 8601 in UTC, to its last digit; seconds since a start stay a number."""
    read = moment(number)
    if read is None:
        return None
    per_second = _PER_SECOND.get(read.inferred)
    if per_second is None:
        return repr(number)
    try:
        seconds, rest = divmod(Decimal(repr(number)), per_second)
        text = datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ArithmeticError, ValueError, OSError):  # beyond the year 9999
        return repr(number)
    fraction = f"{rest / per_second:.9f}"[1:].rstrip("0").rstrip(".")
    return text.replace("+00:00", f"{fraction}Z")


ANY = ValueKind()
TEXT = TextKind()
ID = Identifier()
NUMBER = Number()
INTEGER = Integer()
BOOLEAN = Boolean()
TIME = TimeText()
EPOCH = EpochSeconds()
ITEM_TYPE = Choice("agent", "conversational")
