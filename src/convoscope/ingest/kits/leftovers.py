"""What a log says beyond what its reader took, by the name of the field: nothing is lost by being overlooked."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from contextlib import suppress
from functools import cached_property
from typing import Any

import msgspec

from convoscope.conversation import USER, Conversation
from convoscope.conversation.events import moment
from convoscope.ingest.control_text import without_control
from convoscope.ingest.io.json import BadJson, decode
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


class Leftovers:
    """What the records of a group say beyond the conversations that are made of them.

    `known` are names of fields to leave out, with all that is in them. `shown` are names of fields whose texts and
    numbers show in the conversation in another way, or are copies: a value of another type is kept.
    """

    def __init__(self, notes: Notes, known: Set[str] = frozenset(), shown: Set[str] = frozenset()) -> None:
        self._notes, self._known, self._shown = notes, known | _PLAIN, shown
        self._looked_at: set[int] = set()
        """Objects and lists that were looked at, by their identity: the records hold them all the time."""
        self._held = _Held()
        """What is in any of the conversations, or was kept with one."""

    def kept_with(self, conversation: Conversation, records: Iterable[Any]) -> Conversation:
        """The conversation, with what these records say beyond it in its `extras`.

        A text is in the conversation if all its lines are: a reader may join the parts of a message. JSON in a text
        is looked into. Each value is kept once for all fields of the same path.
        """
        held = _Held()
        held.add(msgspec.to_builtins(conversation))
        left = _Search(held, self._known, self._shown, self._looked_at).through(records)
        self._held.values |= held.values
        self._held.texts |= held.texts
        if not left:
            return conversation
        self._note(left, UNREAD)
        kept = {path: without_payload(list(values), self._notes, -1) for path, values in left.items()}
        for values in left.values():
            self._held.add(list(values))
        return msgspec.structs.replace(conversation, extras={**conversation.extras, UNREAD: kept})

    def leave(self, records: Iterable[Any]) -> None:
        """What was noted already, or is refused: nothing of it is left over."""
        for record in records:
            inner = record.values() if isinstance(record, dict) else ()
            self._looked_at.update(map(id, (record, *inner)))
            self._held.add([value for value in inner if isinstance(value, str)])

    def note_rest(self, records: Iterable[Any]) -> None:
        """Note the texts of the whole records that were given with no conversation, and are in none."""
        whole = list(records)
        if all(isinstance(record, str) for record in whole):  # the lines of a plain text
            return
        left = _Search(self._held, self._known, self._shown, self._looked_at, is_rest=True).through(whole)
        self._note([path for path, values in left.items() if any(map(_is_text, values))], "in_no_conversation")

    def _note(self, left: Collection[str], code: str) -> None:
        if left:
            self._notes.ignored(f"field_{code}", ", ".join(left)[:200], count=len(left))
        for path in left:
            if path.rpartition(".")[2] in _SAID and ".delta." not in path:  # pieces of what comes whole
                self._notes.set_aside(f"text_{code}", path[:200])


def with_leftovers(
    conversation: Conversation,
    records: Iterable[Any],
    notes: Notes,
    known: Set[str] = frozenset(),
    shown: Set[str] = frozenset(),
) -> Conversation:
    """The conversation of records that hold no other one, with what they say beyond it in its `extras`."""
    return Leftovers(notes, known, shown).kept_with(conversation, records)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 2 and moment(value) is None


def _unquoted(text: str) -> str:
    """A text that may be written as JSON, in quotes."""
    if text[:1] == '"' == text[-1:]:
        with suppress(BadJson):
            return str(decode(text.encode("utf-8", "replace")).value)
    return text


class _Held:
    """The values of conversations."""

    def __init__(self) -> None:
        self.values: set[Any] = set()
        self.texts: set[Any] = set()
        """Those of the values that are texts: what equals one is held. A number may equal a truth value."""

    def add(self, value: Any) -> None:
        """All that is in a value; JSON in a text is looked into."""
        values, texts, pending = self.values, self.texts, [value]
        while pending:
            entry = pending.pop()
            if isinstance(entry, dict):
                pending += [inner for name, inner in entry.items() if name != "seq"]
            elif isinstance(entry, list | tuple):
                pending += entry
            elif entry is not None and entry not in values:
                values.add(entry)
                if isinstance(entry, str):
                    texts.add(entry)
                    if (inner := embedded(entry)) is not entry:
                        pending.append(inner)

    @cached_property
    def _lines(self) -> set[str]:
        return {line.strip() for text in self.texts for line in text.splitlines()}

    def has(self, value: Any) -> bool:
        if isinstance(value, str):
            value = _unquoted(value)
            words = without_control(value, USER).words
            return value in self.values or self._has_lines(value) or (bool(words) and self._has_lines(words))
        # Any log has these two somewhere.
        return value not in (0, 1) and value in self.values

    def _has_lines(self, text: str) -> bool:
        return all(line.strip() in self._lines for line in text.splitlines())

    def has_time(self, value: Any) -> bool:
        """Whether a value is one of the times, in another notation: a text, or milliseconds."""
        if isinstance(value, bool):
            return False
        read = moment(value)
        return read is not None and (read.at in self.values or from_milliseconds(read.at) in self.values)


class _Search:
    """Looks for values that are not held, by the path of their fields."""

    def __init__(
        self, held: _Held, known: Set[str], shown: Set[str], looked_at: set[int], *, is_rest: bool = False
    ) -> None:
        self._held, self._known, self._shown = held, known, shown
        self._looked_at, self._is_rest = looked_at, is_rest
        self._entries: set[bytes] = set()
        """Entries of lists in texts that were looked into: a history grows from call to call."""
        self._left: dict[str, dict[Any, None]] = {}

    def through(self, records: Iterable[Any]) -> dict[str, dict[Any, None]]:
        """The values of records that are not held, once for each path."""
        for record in records:
            self._look(record, "", 0)
        return self._left

    def _look(self, value: Any, path: str, depth: int, *, is_own: bool = True) -> None:
        if isinstance(value, str):
            for inner in self._inside(value, path):
                if isinstance(inner, str):
                    self._leave(inner, path)
                else:  # made here: another one may have its identity when it is gone
                    self._look(inner, path, depth + 1, is_own=False)
        elif not isinstance(value, dict | list | tuple):
            self._leave(value, path)
        elif depth >= _DEEPEST:
            self._leave(msgspec.json.encode(value).decode(), path)
        elif not (self._is_rest and is_own and id(value) in self._looked_at):
            if is_own:
                self._looked_at.add(id(value))
            if isinstance(value, dict):
                self._look_at_fields(value, path, depth, is_own=is_own)
            else:
                for inner in value:
                    self._look(inner, path, depth + 1, is_own=is_own)

    def _look_at_fields(self, value: JsonObject, path: str, depth: int, *, is_own: bool) -> None:
        known, shown, texts = self._known, self._shown, self._held.texts
        for name, inner in _named(value):
            is_empty = inner is None or inner == "" or name in known
            if is_empty or (not isinstance(inner, dict | list) and (name in shown or inner in texts)):
                continue
            self._look(inner, f"{path}.{name}" if path else name, depth + 1, is_own=is_own)

    def _inside(self, text: str, path: str) -> Iterator[Any]:
        """What JSON in a text says, else the text; of a list only the entries that were not there before."""
        if text.startswith("["):
            with suppress(msgspec.DecodeError):
                for entry in map(bytes, _entries(text)):
                    if (known := entry + path.encode()) not in self._entries:
                        self._entries.add(known)
                        yield decode(entry).value
                return
        yield embedded(text)

    def _leave(self, value: Any, path: str) -> None:
        of_path = self._left.get(path)
        is_there = value is None or value == "" or (of_path is not None and value in of_path)
        if not is_there and not self._held.has(value) and not self._held.has_time(value):
            self._left.setdefault(path, {})[value] = None


_entries = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _named(value: JsonObject) -> Iterable[tuple[str, Any]]:
    """The fields of an object. An attribute of OTLP is an object of its name and its value."""
    if len(value) == 2 and "key" in value and "value" in value and isinstance(value["key"], str):
        held = any_value(value["value"])
        return value.items() if held is None else [(value["key"], held)]
    return value.items()
