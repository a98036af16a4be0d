"""JSON as logs have it: strict and fast first, then forgiving, with each repair named."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec

_SURROGATE = re.compile("[\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode


class BadJson(ValueError):
    """Text that is not JSON; `line` and `column` count from 1 inside the text."""

    def __init__(self, message: str, line: int = 1, column: int = 0) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class Decoded(NamedTuple):
    """A JSON value, and what had to be put right to read it."""

    value: Any
    repairs: tuple[str, ...] = ()


def decode(data: bytes) -> Decoded:
    """Read one JSON value.

    Repaired and named: bytes that are not UTF-8, half of a surrogate pair, control characters in
    a string, NaN and infinities (they become null). Anything else raises `BadJson`.
    """
    try:
        return Decoded(_decode(data))
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _forgiving(data)


def parsed(value: Any) -> Any:
    """What a text of JSON says, as cells of a table hold it: an object or a list. Any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value.encode("utf-8", "replace")).value
        except BadJson:
            return value
    return value


def repeated_name(data: bytes) -> str:
    """A name that is twice in one object, of which only the last value is read; "" where there is no such name."""
    repeated: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        if not repeated and len(set(names)) < len(names):
            repeated.append(next(name for name in names if names.count(name) > 1))

    try:
        json.loads(data, object_pairs_hook=look, strict=False)
    except (ValueError, RecursionError):
        return ""
    return repeated[0] if repeated else ""


def _forgiving(data: bytes) -> Decoded:
    repairs: dict[str, None] = {}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", errors="replace")
        repairs["invalid_utf8"] = None

    def no_number(_: str) -> None:
        repairs["not_a_number"] = None

    def finite(digits: str) -> float | None:
        value = float(digits)
        if abs(value) != float("inf"):
            return value
        no_number(digits)
        return None

    try:
        try:
            value = json.loads(text, parse_constant=no_number, parse_float=finite)
        except json.JSONDecodeError:
            value = json.loads(text, parse_constant=no_number, parse_float=finite, strict=False)
            repairs["control_character"] = None
    except json.JSONDecodeError as error:
        raise BadJson(_explain(error, text), error.lineno, error.colno) from None
    except (RecursionError, ValueError) as error:
        raise BadJson(f"cannot be read: {error}") from None
    try:
        whole = _without_surrogates(value)
        if whole != value:
            repairs["lone_surrogate"] = None
    except RecursionError:
        raise BadJson("nested too deeply") from None
    return Decoded(whole, tuple(repairs))


def _explain(error: json.JSONDecodeError, text: str) -> str:
    if not text.strip():
        return "is empty"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "JSON is cut off at the end"
    near = text[error.pos : error.pos + 20].split("\n", maxsplit=1)[0]
    return f"not JSON at column {error.colno}, near {near!r}"


def _without_surrogates(value: Any) -> Any:
    """Lone surrogates cannot be written back as UTF-8: they are replaced."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(name): _without_surrogates(item) for name, item in value.items()}
    return value
