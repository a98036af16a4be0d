"""The kinds of value that an item has: whether a value is valid as it is, and how it is coerced.

`is_valid` is asked of every value and must be fast; `coerce` is asked only of what is not valid. It returns the value
as it should have been, or None with a warning that carries the original: nothing is lost silently.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from convoscope.conversation.events import moment

_decode = msgspec.json.Decoder().decode
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_QUOTES = 3
"""Text in text in text: exports that quote what was quoted already."""
_LARGEST = 1.7976931348623157e308
_INT64 = 2**63
_EXACT = 2**53
"""Below this a double holds every whole number."""
_NUMERAL = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)
_LAST_SECOND = 1e11
"""Seconds of a moment that is still written with four digits of a year; milliseconds begin here."""
_PER_SECOND = {f"time_in_epoch_{unit}": 10**power for unit, power in (("s", 0), ("ms", 3), ("us", 6), ("ns", 9))}
ITEM_TYPES = ("agent", "conversational")


class Warned(NamedTuple):
    """One thing in a payload that could not be taken as it came."""

    path: str
    """Where it is in the payload, such as `tool_calls[1].parameters`; "" is the payload itself."""
    code: str
    message: str
    """What happened, as a sentence for a person."""
    value: Any = None
    """The original value, where it is not in the item any more."""


Warnings = list[Warned]


# JSON inside of text, as exports that know only text columns carry it


UNREAD: Any = object()
"""Text that is not JSON."""


def parsed(text: str, path: str, warnings: Warnings) -> Any:
    """The value that a JSON text holds, through several layers of quotes; `UNREAD` where it is not JSON.

    What JSON cannot say (NaN) or UTF-8 cannot carry (half a character) is repaired, with a warning.
    """
    value: Any = text
    for _ in range(_MAX_QUOTES):
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


# Kinds


class ValueKind:
    """Any value at all: everything is valid."""

    is_valid: Callable[[Any], bool] = staticmethod(lambda _: True)

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:  # noqa: ARG002
        return value

    def unknown(self, value: Any) -> Iterator[str]:  # noqa: ARG002
        """Names inside a valid value that the schema does not know, such as `[].foo`."""
        return iter(())


class Scalar(ValueKind):
    """A single value; `convert` returns None for what cannot be one."""

    def __init__(
        self, is_valid: Callable[[Any], bool], convert: Callable[[Any], Any], code: str, expected: str
    ) -> None:
        self.is_valid, self.convert, self.code, self.expected = is_valid, convert, code, expected

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:
        converted = self.convert(value)
        if converted is None:
            warnings.append(Warned(path, self.code, f"{path} should {self.expected}, and was left out.", value))
        return converted


class TextKind(Scalar):
    """Text. Numbers and booleans are written out; an object or a list becomes its JSON text, with a warning."""

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:
        if isinstance(value, dict | list | tuple):
            try:
                text = json.dumps(value, ensure_ascii=False, default=str, skipkeys=False)
            except (TypeError, ValueError, RecursionError):
                return super().coerce(value, path, warnings)
            warnings.append(Warned(path, "kept_as_json", f"{path} should be text; it is kept as JSON text.", value))
            return text
        return super().coerce(value, path, warnings)


class TimeText(Scalar):
    """A time as text. A number since the epoch becomes ISO 8601 in UTC; text stays as it was written."""

    def coerce(self, value: Any, path: str, warnings: Warnings) -> Any:
        if isinstance(value, str) or (isinstance(value, float | int) and not isinstance(value, bool)):
            text = str(value) if isinstance(value, str) else _iso(value)
            if text and moment(text) is None:
                warnings.append(
                    Warned(path, "kept_as_text", f"{path} is not a time that can be read; it is kept.", value)
                )
            if text:
                return text
        return super().coerce(value, path, warnings)


def is_text(value: Any) -> bool:
    return type(value) is str


def is_number(value: Any) -> bool:
    """A finite number; an integer too large for a double was not measured."""
    return (type(value) is float or type(value) is int) and -_LARGEST <= value <= _LARGEST


def is_integer(value: Any) -> bool:
    return type(value) is int and -_INT64 <= value < _INT64


def is_epoch(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and -_LARGEST <= value < _LAST_SECOND


def to_number(value: Any) -> float | int | None:
    """A finite number; text that is one counts as one."""
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
    return value if isinstance(value, float | int) and -_LARGEST <= value <= _LARGEST else None


def _to_integer(value: Any) -> int | None:
    """A whole number of 64 bits; 3.0 and "3" are 3."""
    number = to_number(value)
    return whole if number is not None and number == (whole := int(number)) and is_integer(whole) else None


def _to_boolean(value: Any) -> bool | None:
    """True or false; 1, "yes", "ON" and their opposites count."""
    if isinstance(value, str):
        return _BOOLEANS.get(value.strip().lower())
    return bool(value) if isinstance(value, float | int) and value in (0, 1) else None


def to_epoch(value: Any) -> float | None:
    """Seconds since the epoch, or since the start where they are few; ISO text and other units are converted."""
    read = moment(value.isoformat() if isinstance(value, datetime) else value)
    return read.at if read is not None and is_epoch(read.at) else None


def id_text(value: Any) -> str | None:
    """An id as text; None for what names nothing. Tables write whole numbers as 7.0: that is 7."""
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
    return value.isoformat() if isinstance(value, date) else None


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
TEXT = TextKind(is_text, _written, "not_text", "be text")
ID = Scalar(is_text, id_text, "not_an_id", "name something")
NUMBER = Scalar(is_number, to_number, "not_a_number", "be a number")
INTEGER = Scalar(is_integer, _to_integer, "not_an_integer", "be a whole number")
BOOLEAN = Scalar(lambda value: type(value) is bool, _to_boolean, "not_a_boolean", "be true or false")
TIME = TimeText(
    lambda value: type(value) is str and moment(value) is not None,
    lambda value: value.isoformat() if isinstance(value, date) else None,
    "not_a_time",
    "be a time",
)
EPOCH = Scalar(is_epoch, to_epoch, "not_a_time", "be a time")
ITEM_TYPE = Scalar(
    lambda value: type(value) is str and value in ITEM_TYPES,
    lambda value: word if isinstance(value, str) and (word := value.strip().lower()) in ITEM_TYPES else None,
    "unknown_word",
    "be agent or conversational",
)
