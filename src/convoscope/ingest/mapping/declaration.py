"""What a mapping says, the reading of its TOML file, and the paths that it has into records.

Paths are such as `chat.events`, `choices.0.text` and `frames.*.call`, where a star is each entry of a list; a backslash
is before a dot or a star that is part of a name.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.io.json import parsed

Way = str | list[str]
"""A path such as `chat.events` or `choices.0.text`, or several of which the first that leads to a value counts."""

Plain = str | int | float | bool
Conditions = dict[str, Plain | list[Plain]]
"""Paths, and the values that are wanted there."""
_SEE = "docs/guides/mapping.md has all keys"
CALL_NAMES = ("name", "function.name", "tool", "tool_name", "function", "function_name")
CALL_ARGUMENTS = ("arguments", "function.arguments", "args", "parameters", "params", "input")
CALL_IDS = ("call_id", "tool_call_id", "id")
RESULT_IDS = ("tool_call_id", "call_id", "tool_use_id", "source_call_id")
RESULTS = ("content", "output", "result", "response")
"""Names that are recognised without a key of the mapping."""
EACH = "*"
INSTRUCTIONS = "instructions"
"""The meaning of a word for a role whose texts say to the agent what it is to do."""


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class ConversationMap(_Table, frozen=True, kw_only=True):
    """Where in a record things of the conversation are."""

    records: Way | None = None
    """The list of conversations, or of messages, in a document that holds other things, too."""
    messages: Way | None = None
    """The list of messages, or an object that holds them; without it each record is a message."""
    id: Way | None = None
    goal: Way | None = None
    dimensions: dict[str, Way] = {}
    labels: dict[str, Way] = {}


class _DialogueMap(_Table, frozen=True, kw_only=True):
    domain: Way | None = None
    intent: Way | None = None
    requested: Way | None = None
    state: Way | None = None
    act: Way | None = None


class MessageMap(_DialogueMap, frozen=True, kw_only=True):
    """Where in a message things are. `texts` is for a record that holds what each role says."""

    role: Way | None = None
    text: Way | None = None
    texts: dict[str, Way] = {}
    time: Way | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    """What a number at `time` counts in; without it, large numbers show it themselves."""
    order: Literal["time", "newest_first"] | None = None
    """Messages of a list are sorted by their times, or turned round; without it they are as they are."""
    where: Conditions = {}
    """Only messages with one of these values at these paths are read: `private = false`."""
    control: list[str] = []
    """Texts that steer a program, and are not said."""
    id: Way | None = None
    tool_calls: Way | None = None
    tool_results: Way | None = None
    """Results of tools, beside what the message says."""


class ToolCallMap(_Table, frozen=True, kw_only=True):
    """Where in a tool call things are."""

    where: Conditions = {}
    """Messages with these values are calls themselves."""
    name: Way = msgspec.field(default_factory=lambda: [*CALL_NAMES])
    arguments: Way = msgspec.field(default_factory=lambda: [*CALL_ARGUMENTS])
    id: Way = msgspec.field(default_factory=lambda: [*CALL_IDS])
    result: Way = msgspec.field(default_factory=lambda: ["result", "output", "response"])
    caller: Way | None = None
    """The role of who calls, where that may be the user."""


class ToolResultMap(_Table, frozen=True, kw_only=True):
    """Where in the result of a tool things are. The text of a message of a tool is its result."""

    where: Conditions = {}
    """Messages with these values are results themselves."""
    content: Way | None = None
    """The result; without it the text of a message of a tool, or else one of the common names."""
    call_id: Way = msgspec.field(default_factory=lambda: [*RESULT_IDS])
    name: Way = msgspec.field(default_factory=lambda: ["name", "tool", "tool_name", "function_name"])
    error: Way | None = None
    """True, or a text, where the tool failed."""


class OutcomeMap(_Table, frozen=True, kw_only=True):
    """Where in a record it says how the conversation ended."""

    completed: Way | None = None
    ended_reason: Way | None = None
    error: Way | None = None
    duration: Way | None = None
    """In seconds."""


class PredictedMap(_DialogueMap, frozen=True, kw_only=True):
    """Where in a message the things are that the agent concluded, as opposed to what is right."""

    response: Way | None = None


class ValueMap(_Table, frozen=True, kw_only=True):
    """Values of the log, and ours: `customer = "user"`."""

    role: dict[str, str] = {}
    domain: dict[str, str] = {}
    intent: dict[str, str] = {}
    act: dict[str, str] = {}


class Mapping(_Table, frozen=True, kw_only=True):
    """A whole mapping."""

    conversation: ConversationMap = ConversationMap()
    message: MessageMap = MessageMap()
    tool_call: ToolCallMap = ToolCallMap()
    tool_result: ToolResultMap = ToolResultMap()
    outcome: OutcomeMap = OutcomeMap()
    predicted: PredictedMap = PredictedMap()
    values: ValueMap = ValueMap()


class MappingFile(msgspec.Struct, frozen=True):
    """A mapping, its file and a hash of what the file holds."""

    mapping: Mapping
    name: str
    hash: str


def load_mapping(path: Path) -> MappingFile:
    """The mapping of a file. What is wrong with it is an error that names the key."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot be opened: {error.strerror or error}", file=str(path), hint="name a TOML file"
        ) from None
    return MappingFile(parse_mapping(data, str(path)), path.name, hashlib.sha256(data).hexdigest())


def parse_mapping(data: bytes, name: str) -> Mapping:
    """The mapping that some TOML says."""
    try:
        content: Any = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is no TOML: {error}", file=name, hint=_SEE) from None
    except RecursionError:
        raise InputError("is nested too deeply", file=name, hint=_SEE) from None
    try:
        mapping = msgspec.convert(content, Mapping)
    except msgspec.ValidationError as error:
        message, _, field = str(error).partition(" - at ")
        raise InputError(message, file=name, field=field.strip("`").removeprefix("$."), hint=_SEE) from None
    _check(mapping, name)
    return mapping


def _check(mapping: Mapping, name: str) -> None:
    message = mapping.message
    if message.texts and (message.role or message.text):
        raise InputError(
            "message.texts is given together with message.role or message.text",
            file=name,
            field="message",
            hint="give one of both",
        )
    if not message.texts and not (message.role and message.text):
        missing = "role" if message.text else "text"
        raise InputError(
            "does not say where a message has its role and its text",
            file=name,
            field=f"message.{missing}",
            hint='for example role = "from", text = "body"',
        )


# Paths into a record.

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
    steps = (step for step in _STEP.findall(path) if step)
    return tuple(Each(step) if step == EACH else re.sub(r"\\(.)", r"\1", step) for step in steps)


class Each(str):
    """The step to every entry of a list; a key may be a star, too."""

    __slots__ = ()


def written(steps: Iterable[str]) -> str:
    """The path of some steps."""
    return ".".join(step if isinstance(step, Each) else _escaped(step) for step in steps) or "."


def _escaped(step: str) -> str:
    return r"\*" if step == EACH else re.sub(r"([.\\])", r"\\\1", step)


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
    for number, step in enumerate(steps):
        value = parsed(value)
        if isinstance(step, Each):
            return _in_each(value, steps[number + 1 :])
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _in_each(value: Any, steps: tuple[str, ...]) -> list[Any] | None:
    """What the steps lead to in each entry of a list, as one list; None where there is nothing."""
    entries: list[Any] = []
    for entry in value if isinstance(value, list) else ():
        inner = _at(entry, steps)
        inner = parsed(inner) if steps else inner
        if inner is not None and inner != "":
            entries += inner if isinstance(inner, list) else [inner]
    return entries or None


def without(record: Any, taken: Iterable[tuple[str, ...]]) -> Any:
    """A record without the values at some steps; it stays as it was."""
    for steps in taken:
        record = _without(record, steps)
    return record


def _without(value: Any, steps: tuple[str, ...]) -> Any:
    if steps and isinstance(steps[0], Each):
        left = [_without(entry, steps[1:]) for entry in value] if isinstance(value, list) else value
        return [entry for entry in left if entry != {}] if isinstance(left, list) else left
    if not steps or not isinstance(value, dict) or steps[0] not in value:
        return {} if not steps else value
    if len(steps) == 1:
        return {name: inner for name, inner in value.items() if name != steps[0]}
    return {**value, steps[0]: _without(value[steps[0]], steps[1:])}
