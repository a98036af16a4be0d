"""Reading what a model wrote: one JSON object by its schema, or nothing. A number is never guessed from prose."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from convoscope.text.json_schema import schema_faults

NOT_ON_SCALE = "not_on_scale"
UNUSABLE = "verdict_unusable"
WRAPPERS = ("turns", "items", "evaluations", "results", "turn_evaluations")
"""Names that models give to a list which the schema calls by one of them."""
_WHOLE = re.compile(r"\s*(-?\d{1,9})(?:\.0+)?\s*")
_DECIMAL = re.compile(r"\s*-?\d{1,9}(?:\.\d{1,9})?\s*")
_MOST_CHARACTERS = 400_000
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""What some models write before their answer. There may be drafts of it in there."""


class UnusableAnswer(ValueError):
    """An answer that is not in the shape that was asked for; `reason` is its code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.raw = ""
        """What the model wrote."""
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None


def read_answer(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The one JSON object with the required keys, its numbers as the schema wants them. Raises `UnusableAnswer`.

    >>> schema = {"type": "object", "properties": {"score": {"type": "integer", "maximum": 10}}, "required": ["score"]}
    >>> read_answer('Here it is: ```json {"score": "7"} ```', schema)
    {'score': 7}
    >>> read_answer('{"score": "8/10"}', schema)
    Traceback (most recent call last):
    convoscope.judging.answers.UnusableAnswer: score: "8/10" is not integer
    """
    required = schema.get("required", [])
    seen, accepted = "", None
    for value in _objects(_THOUGHTS.sub("", text[:_MOST_CHARACTERS])):
        candidate = _unwrapped(value, required)
        if not isinstance(candidate, dict):
            continue
        if all(name in candidate for name in required):
            answer = _coerced(candidate, schema)
            fault = next(iter(schema_faults(answer, dict(schema))), None)
            if fault is None:
                if accepted is not None and accepted != answer:
                    raise UnusableAnswer(UNUSABLE, "the answer has two JSON objects that differ")
                accepted = dict(answer)
                continue
            is_rating = any(name in fault.at for name in ("score", "rating"))
            raise UnusableAnswer(NOT_ON_SCALE if is_rating else UNUSABLE, str(fault))
        seen = seen or ", ".join(name for name in required if name not in candidate)
    if accepted is not None:
        return accepted
    raise UnusableAnswer(UNUSABLE, f"the answer has no {seen}" if seen else "the answer has no JSON object")


def _objects(text: str) -> Iterator[Any]:
    """The JSON values in a text that begin with a brace or a bracket, the outermost, in order."""
    # Models write line breaks into texts as they are, and NaN is no number.
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=str, strict=False)
    index = 0
    while (match := re.compile(r"[\[{]").search(text, index)) is not None:
        try:
            value, index = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            index = match.start() + 1
            continue
        yield value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which each key is once: of two ratings, none is the answer."""
    whole = dict(pairs)
    if len(whole) < len(pairs):
        raise ValueError("a key is there twice")
    return whole


def _unwrapped(value: Any, required: list[str]) -> Any:
    """A list where an object with one list is wanted, and a list under another of its usual names."""
    wanted = next((name for name in required if name in WRAPPERS), None)
    if wanted is None:
        return value
    if isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
        return {wanted: value}
    if isinstance(value, dict) and wanted not in value:
        held = [name for name in WRAPPERS if isinstance(value.get(name), list)]
        if len(held) == 1:
            return {**{name: member for name, member in value.items() if name != held[0]}, wanted: value[held[0]]}
    return value


def _coerced(value: Any, schema: Any) -> Any:
    """Numbers that were written as text or with a zero behind the point, and null instead of an empty text.

    Everything else stays as it is.
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {name: _coerced(member, properties.get(name)) for name, member in value.items()}
    if isinstance(value, list):
        return [_coerced(member, schema.get("items")) for member in value]
    types = schema.get("type")
    types = types if isinstance(types, list) else [types]
    if isinstance(value, bool) or "string" in types:
        return "" if value is None and types == ["string"] and "enum" not in schema else value
    if "integer" in types:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
            return int(match[1])
    if "number" in types and isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    return value
