"""What a mapping says, and the reading of its TOML file."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from convoscope.errors import InputError

Way = str | list[str]
"""A path such as `chat.events` or `choices.0.text`, or several of which the first that leads to a value counts."""

FIELDS = ("domain", "intent", "requested", "state", "act")
_SEE = "docs/guides/mapping.md has all keys"


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class ConversationMap(_Table, frozen=True, kw_only=True):
    """Where in a record things of the conversation are."""

    records: Way | None = None
    """The list of conversations, or of messages, in a document that has things beside it."""
    messages: Way | None = None
    """The list of messages; without it each record is a message."""
    id: Way | None = None
    goal: Way | None = None
    dimensions: dict[str, Way] = {}
    labels: dict[str, Way] = {}


class MessageMap(_Table, frozen=True, kw_only=True):
    """Where in a message things are. `texts` is for a record that holds what each role says."""

    role: Way | None = None
    text: Way | None = None
    texts: dict[str, Way] = {}
    time: Way | None = None
    id: Way | None = None
    tool_calls: Way | None = None
    domain: Way | None = None
    intent: Way | None = None
    requested: Way | None = None
    state: Way | None = None
    act: Way | None = None


class ToolCallMap(_Table, frozen=True, kw_only=True):
    """Where in a tool call things are."""

    name: Way = msgspec.field(default_factory=lambda: ["name", "function.name", "tool", "tool_name", "function"])
    arguments: Way = msgspec.field(
        default_factory=lambda: ["arguments", "function.arguments", "args", "parameters", "params", "input"]
    )
    id: Way = msgspec.field(default_factory=lambda: ["id", "call_id"])
    result: Way = msgspec.field(default_factory=lambda: ["result", "output", "response"])


class PredictedMap(_Table, frozen=True, kw_only=True):
    """Where in a message the things are that the agent concluded, as opposed to what is right."""

    domain: Way | None = None
    intent: Way | None = None
    requested: Way | None = None
    state: Way | None = None
    act: Way | None = None
    response: Way | None = None


class ValueMap(_Table, frozen=True, kw_only=True):
    """Words of the log, and ours: `customer = "user"`."""

    role: dict[str, str] = {}
    domain: dict[str, str] = {}
    intent: dict[str, str] = {}
    act: dict[str, str] = {}


class Mapping(_Table, frozen=True, kw_only=True):
    """A whole mapping."""

    conversation: ConversationMap = ConversationMap()
    message: MessageMap = MessageMap()
    tool_call: ToolCallMap = ToolCallMap()
    predicted: PredictedMap = PredictedMap()
    values: ValueMap = ValueMap()


class MappingFile(msgspec.Struct, frozen=True):
    """A mapping, its file and a hash of what the file holds."""

    mapping: Mapping
    name: str
    hash: str


def load_mapping(path: Path) -> MappingFile:
    """The mapping of a file. Whatever is wrong with it is an error that names the key."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be opened: {error.strerror}", file=str(path), hint="name a TOML file") from None
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
            "message.texts stands for message.role and message.text",
            file=name,
            field="message",
            hint="give one of both",
        )
    if not message.texts and not (message.role and message.text):
        missing = "role" if message.text else "text"
        raise InputError(
            "says not where a message has its role and its text",
            file=name,
            field=f"message.{missing}",
            hint='for example role = "from", text = "body"',
        )
