"""JSON as it is found in the wild: strict and fast first, then forgiving, with each repair named."""

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

    Repaired, and said: bytes that are not UTF-8, half of a surrogate pair, control characters in
    a string, NaN and infinities (they become null). Anything else raises `BadJson`.
    """
    try:
        return Decoded(_decode(data))
    except RecursionError:
        raise BadJson("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _forgiving(data)


_TELLING = (b'"messages"', b'"conversation_id"', b'"session_id"', b'"traj"', b'"transcript"')


def has_name_twice(data: bytes) -> bool:
    """Whether an object has a name twice, of which only the last value is read.

    To look at every object takes longer than to read the record: it is done where a name that decides occurs twice.
    """
    if all(data.count(name) < 2 for name in _TELLING):
        return False
    is_twice = False

    def take(pairs: list[tuple[str, Any]]) -> None:
        nonlocal is_twice
        is_twice = is_twice or len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(data, object_pairs_hook=take, strict=False)
    except (ValueError, RecursionError):
        return False
    return is_twice


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
        value, mended = _mend(value)
    except RecursionError:
        raise BadJson("nested too deeply") from None
    if mended:
        repairs["lone_surrogate"] = None
    return Decoded(value, tuple(repairs))


def _explain(error: json.JSONDecodeError, text: str) -> str:
    if not text.strip():
        return "is empty"
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return "JSON is cut off at the end"
    near = text[error.pos : error.pos + 20].split("\n", maxsplit=1)[0]
    return f"not JSON at column {error.colno}, near {near!r}"


def _mend(value: Any) -> tuple[Any, bool]:
    """Lone surrogates cannot be written back as UTF-8: replace them."""
    if isinstance(value, str):
        mended = _SURROGATE.sub("\ufffd", value)
        return mended, mended != value
    if isinstance(value, list):
        pairs = [_mend(item) for item in value]
        return [item for item, _ in pairs], any(done for _, done in pairs)
    if isinstance(value, dict):
        is_mended = False
        result = {}
        for key, item in value.items():
            name, in_name = _mend(key)
            result[name], in_value = _mend(item)
            is_mended = is_mended or in_name or in_value
        return result, is_mended
    return value, False
