"""What of a record is nowhere in the conversation that was made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from convoscope.conversation import Conversation, to_json
from convoscope.conversation.events import moment

# These say what a thing is. In a conversation its place says so: a `tool` message is a tool result.
_KINDS = frozenset({"role", "type", "object"})


class _Leaf(NamedTuple):
    path: str
    value: Any


def lost(record: Any, conversation: Conversation) -> list[str]:
    """The paths of the values that got lost.

    A text may have become part of a longer one, JSON in a string a structure, a time seconds, and
    a number a text. Embedded sound and pictures are told by their length.
    """
    kept = [leaf.value for leaf in _leaves(json.loads(to_json(conversation)), "")]
    texts = [value for value in kept if isinstance(value, str)]
    return [f"{leaf.path} = {leaf.value!r}" for leaf in _leaves(record, "") if not _found(leaf.value, kept, texts)]


def _found(value: Any, kept: list[Any], texts: list[str]) -> bool:
    if isinstance(value, bool):
        return any(one is value for one in kept)
    if value in kept or any(str(value) in text for text in texts):
        return True
    if isinstance(value, str) and f"({len(value)} characters left out)" in texts:
        return True
    when = moment(value)
    return when is not None and when.at in kept


def _leaves(value: Any, path: str) -> Iterator[_Leaf]:
    if isinstance(value, dict):
        for key, one in value.items():
            if not (key in _KINDS and isinstance(one, str)):
                yield from _leaves(one, f"{path}.{key}")
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _leaves(one, f"{path}[{index}]")
    elif isinstance(value, str) and value[:1] in ("{", "["):
        try:
            yield from _leaves(json.loads(value), path)
        except json.JSONDecodeError:
            yield _Leaf(path, value)
    elif value is not None and value != "":
        yield _Leaf(path, value)
