"""What records hold: their lists, the fields of their objects, and the texts in a field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from convoscope.ingest.io.json import parsed
from convoscope.ingest.kits.shapes import blocks_of
from convoscope.ingest.mapping.declaration import EACH, Each, written
from convoscope.ingest.mapping.transcripts import transcript_messages

_DEPTH = 8
_FIELD_DEPTH = 4
_MAX_MESSAGES = 200
_MAX_ENTRIES = 30
"""Entries of a list that are looked into."""
_MOST_VALUES = 50_000
_PAIR = (2, 3, 4)
"""Lengths of a list that may be a message: a role and a text, with a time or an id."""
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNDERSTOOD = frozenset({"text", "tool_use", "tool_result", "thinking"})


class RecordField(NamedTuple):
    """A field of records, by its path, and the values that they have there."""

    path: str
    values: list[Any]

    @property
    def name(self) -> str:
        """The last step in one spelling: `Ticket No`, `ticketNo` and `ticket-no` are `ticket_no`."""
        return plain_name(self.path.rpartition(".")[2])

    @property
    def texts(self) -> list[str]:
        """What is written there, in texts and in parts."""
        return [text for value in self.values for text in texts_in(value) or ()]


def plain_name(name: str) -> str:
    """A name in one spelling."""
    return re.sub(r"[\s_-]+", "_", _HUMP.sub("_", name).strip()).casefold()


def words_of(name: str) -> list[str]:
    """The words of a name: `VoiceBot 2` is voice, bot and 2."""
    return re.findall(r"[^\W\d_]+|\d+", _HUMP.sub(" ", name).casefold())


def texts_in(value: Any) -> list[str] | None:
    """The texts of a text, or of a list of parts; None for any other value."""
    if isinstance(value, str) and not value.startswith("[{"):
        return [value]
    if not isinstance(value, str | list) or value == []:
        return None if not isinstance(value, list) else []
    blocks = blocks_of(value)
    if not any(block["type"] in _UNDERSTOOD for block in blocks):
        return None
    return [block["text"] for block in blocks if block["type"] == "text" and isinstance(block.get("text"), str)]


def calls_in(value: Any) -> bool:
    """Whether a list of parts holds calls of tools."""
    return isinstance(value, list) and any(block["type"] == "tool_use" for block in blocks_of(value))


def lists_of(records: Sequence[Any]) -> list[RecordField]:
    """Every list of objects, or of pairs, in the records, the outer before the inner; entries of a list are a star."""
    by_path: dict[str, list[Any]] = {}
    for steps, value in islice((found for record in records for found in _walk(record)), _MOST_VALUES):
        entries = list(map(parsed, _entries(value))) or _transcript(value)
        if any(map(_is_message_like, entries)):
            held = by_path.setdefault(written(steps), [])
            held += [entry for entry in entries if _is_message_like(entry)][: _MAX_MESSAGES - len(held)]
    return [RecordField(path, values) for path, values in by_path.items()]


def _transcript(value: Any) -> list[Any]:
    """The messages of a text with labels of speakers; other texts have none."""
    has_lines = isinstance(value, str) and "\n" in value and ":" in value
    return [*transcript_messages(value)] if has_lines else []


def _is_message_like(entry: Any) -> bool:
    if isinstance(entry, list):
        return len(entry) in _PAIR and isinstance(entry[0], str) and isinstance(entry[1], str)
    return isinstance(entry, dict)


def _entries(value: Any) -> list[Any]:
    """The entries of a list, or of an object that holds nothing but numbered objects."""
    if isinstance(value, dict) and len(value) > 1 and all(re.fullmatch(r"[a-z_-]*\d+", str(key)) for key in value):
        return list(value.values()) if all(isinstance(one, dict) for one in value.values()) else []
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return [*transcript_messages(value)] if ":" in value[0] else []
    return value if isinstance(value, list) else []


def _walk(value: Any, steps: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    value = parsed(value)
    if steps:
        yield steps, value
    if len(steps) >= _DEPTH:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, (*steps, str(name)))
    elif isinstance(value, list):
        for inner in value[:_MAX_ENTRIES]:
            if isinstance(inner, dict):
                yield from _walk(inner, (*steps, Each(EACH)))


def fields_of(records: Sequence[Any]) -> list[RecordField]:
    """The fields of records, with their values. Those of a list that is a message are its indexes."""
    by_path: dict[str, list[Any]] = {}
    for record in records:
        pairs = enumerate(record) if isinstance(record, list) else ()
        whole = {str(index): value for index, value in pairs} if isinstance(record, list) else record
        if isinstance(whole, dict):
            for steps, value in _leaves(whole, ()):
                by_path.setdefault(written(steps), []).append(value)
    return [RecordField(path, values) for path, values in by_path.items()]


def _leaves(value: Any, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if steps and value is not None and value != "":
        yield steps, value
    if len(steps) >= _FIELD_DEPTH:
        return
    inner = parsed(value) if steps and isinstance(value, str) and value.startswith("{") else value
    if isinstance(inner, dict):
        for name, held in inner.items():
            yield from _leaves(held, (*steps, str(name)))


def listed_fields(records: Sequence[Any]) -> list[RecordField]:
    """Objects inside the records, also in lists, by paths with stars."""
    by_path: dict[str, list[Any]] = {}
    for steps, value in islice((found for record in records for found in _walk(record)), _MOST_VALUES):
        if isinstance(value, dict):
            by_path.setdefault(written(steps), []).append(value)
    return [RecordField(path, values) for path, values in by_path.items()]
