"""Single values of a tool's result: flags, codes, and the words of an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice

import msgspec

from convoscope.conversation import Json
from convoscope.text.result_languages import without_accents
from convoscope.views.result_fields import FALSE, NO_ERROR, TRUE
from convoscope.views.result_outcomes import LONGEST_ERROR, is_filled

_STATUS_LINE = re.compile(r"\s{0,3}(?:HTTP(?:/\d(?:\.\d)?)?\s{1,3})?(\d{3})(?:\s.{0,60}|)", re.IGNORECASE | re.DOTALL)


def truth(value: Json) -> bool | None:
    if isinstance(value, bool):
        return value
    word = without_accents(str(value).strip().lower()) if isinstance(value, str | int) else ""
    return True if word in TRUE else False if word in FALSE else None


def http_code(value: Json) -> int | None:
    """A number of three digits, alone or at the head of a status line."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 100 <= value < 600 else None
    if isinstance(value, str) and (match := _STATUS_LINE.fullmatch(value[:80])):
        return int(match[1])
    return None


def error_words(value: Json) -> str:
    """What the value of `error` says; empty where it says that there is none."""
    if isinstance(value, str):
        return "" if value.strip().lower() in NO_ERROR else value.strip()
    if isinstance(value, int):
        return str(value) if value else ""
    if isinstance(value, dict):
        if not is_filled(value) or _is_no_error(value):
            return ""
        return error_message(value) or msgspec.json.encode(value).decode()[:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(error_words, islice(value, 20)) if words), "")
    return ""


def _is_no_error(value: Mapping[str, Json]) -> bool:
    """`{"code": 0, "message": "OK"}` is the shape of an error that there was not."""
    code = value.get("code", value.get("status"))
    return code in (0, "0", 200, "200", "OK", "ok") and not isinstance(code, bool)


_MESSAGES = ("message", "error", "error_message", "errorMessage", "detail", "details", "msg", "reason", "description")


def error_message(value: Json) -> str:
    """The words of an error, for people."""
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0][:LONGEST_ERROR]
    if isinstance(value, list | tuple):
        return next((words for words in map(error_message, islice(value, 5)) if words), "")
    if not isinstance(value, dict):
        return ""
    inner: Iterable[Json] = (value.get(key) for key in (*_MESSAGES, "text", "code", "type", "content", "data"))
    for each in inner:
        if isinstance(each, str) and each.strip():
            return each.strip()[:LONGEST_ERROR]
        if isinstance(each, dict | list) and each:
            words = error_message(each) if isinstance(each, dict) else error_message(each[:1])
            if words:
                return words
    return ""
