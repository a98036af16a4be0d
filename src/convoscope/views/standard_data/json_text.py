"""JSON inside of text, as exports that know only text columns carry it."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import msgspec

from convoscope.views.standard_data.warnings import Warned, Warnings

_decode = msgspec.json.Decoder().decode
_SURROGATE = re.compile("[\ud800-\udfff]")
# Text in text in text: exports that quote what was quoted already.
_DEEPEST = 3


class Unread(NamedTuple):
    """Text that is not JSON."""


UNREAD = Unread()


def parsed(text: str, path: str, warnings: Warnings) -> Any:
    """The value that a JSON text holds, through several layers of quotes; `UNREAD` where it is not JSON.

    What JSON cannot say (NaN) or UTF-8 cannot carry (half a character) is put right, with a warning.
    """
    value: Any = text
    for _ in range(_DEEPEST):
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
