"""Paths into a record: `chat.events`, `choices.0.text`; a backslash before a dot that is part of a name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.mapping.declaration import Way

_STEP = re.compile(r"((?:[^.\\]|\\.)*)(?:\.|$)")


class Leaf(NamedTuple):
    """A value, and the steps to it."""

    value: Any
    steps: tuple[str, ...]


@lru_cache(maxsize=1024)
def steps_of(path: str) -> tuple[str, ...]:
    """The keys and indexes of a path; none for the record itself, which is `.`"""
    if path in ("", "."):
        return ()
    return tuple(re.sub(r"\\(.)", r"\1", step) for step in _STEP.findall(path) if step)


def written(steps: Iterable[str]) -> str:
    """The path of some steps."""
    return ".".join(re.sub(r"([.\\])", r"\\\1", step) for step in steps) or "."


def find(record: Any, way: Way | None) -> Leaf | None:
    """The first value that is neither missing nor null nor an empty text."""
    for path in () if way is None else [way] if isinstance(way, str) else way:
        steps = steps_of(path)
        value = _at(record, steps)
        if value is not None and value != "":
            return Leaf(value, steps)
    return None


def value_at(record: Any, way: Way | None) -> Any:
    leaf = find(record, way)
    return None if leaf is None else leaf.value


def _at(value: Any, steps: tuple[str, ...]) -> Any:
    for step in steps:
        value = parsed(value)
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def parsed(value: Any) -> Any:
    """What a text of JSON says, as cells of a table hold it; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return decode(value.encode("utf-8", "replace")).value
        except BadJson:
            return value
    return value


def without(record: Any, taken: Iterable[tuple[str, ...]]) -> Any:
    """A record without the values at some steps; it stays as it was."""
    for steps in taken:
        record = _without(record, steps)
    return record


def _without(value: Any, steps: tuple[str, ...]) -> Any:
    if not steps or not isinstance(value, dict) or steps[0] not in value:
        return {} if not steps else value
    if len(steps) == 1:
        return {name: inner for name, inner in value.items() if name != steps[0]}
    return {**value, steps[0]: _without(value[steps[0]], steps[1:])}
