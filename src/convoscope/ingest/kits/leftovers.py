"""What a log says beyond what its reader took, by the name of the field: nothing is lost by being overlooked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from convoscope.conversation import USER, Conversation
from convoscope.conversation.events import moment
from convoscope.ingest.control_text import without_control
from convoscope.ingest.kits.shapes import embedded
from convoscope.ingest.kits.spans import any_value
from convoscope.ingest.record import JsonObject, from_milliseconds, without_payload
from convoscope.ingest.report import Notes

UNREAD = "not_read"
"""The name in `extras` of what is left over."""
_DEEPEST = 60
_PLAIN = frozenset({"role", "type"})
"""What a thing is shows in what it becomes."""
_SAID = frozenset({"text", "content", "transcript", "parts"})


def with_leftovers(
    conversation: Conversation,
    records: Iterable[Any],
    notes: Notes,
    known: Set[str] = frozenset(),
    shown: Set[str] = frozenset(),
) -> Conversation:
    """The conversation, with what the records say beyond it in its `extras`.

    `known` are names of fields to leave out, with all that is in them. `shown` are names of fields whose texts and
    numbers show in the conversation in another way, or are copies: a value of another type is kept.
    A text is in the conversation if all its lines are: a reader may join the parts of a message. JSON in a text is
    looked into. Each value is kept once for all fields of the same path.
    """
    held = _Held(conversation)
    left: dict[str, dict[Any, None]] = {}
    for path, value in _fields(records, known | _PLAIN, shown):
        if not held.has(value) and not held.has_time(value):
            left.setdefault(path, {})[value] = None
    if not left:
        return conversation
    notes.ignored("field_not_read", ", ".join(left)[:200], count=len(left))
    for path in left:
        if path.rpartition(".")[2] in _SAID and ".delta." not in path:  # pieces of what comes whole
            notes.set_aside("text_not_read", path[:200])
    kept = {path: without_payload(list(values), notes, -1) for path, values in left.items()}
    return msgspec.structs.replace(conversation, extras={**conversation.extras, UNREAD: kept})


class _Held:
    """The values of a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._values: set[Any] = set()
        self._lines: set[str] = set()
        for _, value in _fields([msgspec.to_builtins(conversation)], {"seq"}):
            self._values.add(value)
            if isinstance(value, str):
                self._lines.update(map(str.strip, value.splitlines()))

    def has(self, value: Any) -> bool:
        if isinstance(value, str):
            words = without_control(value, USER).words
            return value in self._values or self._has_lines(value) or (bool(words) and self._has_lines(words))
        # Any log has these two somewhere.
        return value not in (0, 1) and value in self._values

    def _has_lines(self, text: str) -> bool:
        return all(line.strip() in self._lines for line in text.splitlines())

    def has_time(self, value: Any) -> bool:
        """Whether a value is one of the times, in another notation: a text, or milliseconds."""
        if isinstance(value, bool):
            return False
        read = moment(value)
        return read is not None and (read.at in self._values or from_milliseconds(read.at) in self._values)


def _fields(records: Iterable[Any], known: Set[str], shown: Set[str] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Texts, numbers and truth values, each with the names of the fields on the way to it."""
    for record in records:
        yield from _walk(record, "", known, shown, 0)


def _walk(value: Any, path: str, known: Set[str], shown: Set[str], depth: int) -> Iterator[tuple[str, Any]]:
    value = embedded(value) if isinstance(value, str) else value
    if value is None or value == "":
        return
    if isinstance(value, dict | list | tuple) and depth >= _DEEPEST:
        yield path, msgspec.json.encode(value).decode()
    elif isinstance(value, dict):
        for name, inner in _named(value):
            if name not in known and (name not in shown or isinstance(inner, dict | list)):
                yield from _walk(inner, f"{path}.{name}" if path else name, known, shown, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _walk(inner, path, known, shown, depth + 1)
    else:
        yield path, value


def _named(value: JsonObject) -> Iterable[tuple[str, Any]]:
    """The fields of an object. An attribute of OTLP is an object of its name and its value."""
    if value.keys() == {"key", "value"} and isinstance(value["key"], str):
        held = any_value(value["value"])
        return value.items() if held is None else [(value["key"], held)]
    return value.items()
