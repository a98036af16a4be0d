"""Conversations as JSON, and the JSON Schema that describes them."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from convoscope.conversation.model import Conversation

SCHEMA_ID = "convoscope.conversation/1"


class _Other(msgspec.Struct, tag_field="schema", tag="convoscope.other"):
    """msgspec insists on a tag only where there are several."""


_encoder = msgspec.json.Encoder()
_packer = msgspec.msgpack.Encoder()
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""How MessagePack begins a NaN or an infinity; no text in UTF-8 holds these bytes."""
_decoder: msgspec.json.Decoder[Conversation] = msgspec.json.Decoder(Conversation | _Other)


def to_json(conversation: Conversation, *, finite: bool = False) -> bytes:
    """The conversation as JSON; reading it back gives an equal one.

    `finite` says that it is known to hold no NaN and no infinity, so that they need not be looked for.
    """
    encoded = _encoder.encode(conversation)
    if finite or b"null" not in encoded:
        return encoded
    # The encoder writes NaN and infinity as null, which would be a silent loss. First a quick look that misses none.
    try:
        may_be_infinite = _NOT_FINITE.search(_packer.encode(conversation)) is not None
    except OverflowError:  # a whole number that MessagePack cannot write, but JSON can
        may_be_infinite = True
    if may_be_infinite and not _finite(msgspec.to_builtins(conversation)):
        raise ValueError(f"conversation {conversation.id!r} holds NaN or infinity, which JSON cannot carry")
    return encoded


def from_json(data: bytes | str) -> Conversation:
    """Read what `to_json` wrote. Raises `msgspec.ValidationError` with the path of the bad field."""
    return _decoder.decode(data)


def from_builtins(value: Any) -> Conversation:
    """The same from JSON that has been decoded to dictionaries and lists already."""
    conversation: Conversation = msgspec.convert(value, Conversation | _Other)
    return conversation


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a conversation, generated from the model."""
    schema = msgspec.json.schema(Conversation)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{SCHEMA_ID}.json",
        "title": "Convoscope conversation, version 1",
        **schema,
    }


class Moved(msgspec.Struct, frozen=True):
    """A key that the model does not know, and the path it was found at."""

    path: str
    key: str


def keep_unknown_keys(value: dict[str, Any]) -> list[Moved]:
    """Move keys that the model does not know into the nearest `extras` above them, in place.

    The field names of the model are a contract for writers; a reader must not lose what a newer or
    careless writer added.
    """
    moved: list[Moved] = []
    _keep(value, Conversation, "$", value, moved)
    return moved


def _keep(value: Any, annotation: Any, path: str, home: dict[str, Any], moved: list[Moved]) -> None:
    struct = _struct_of(annotation, value)
    if struct is not None and isinstance(value, dict):
        hints = _hints(struct)
        config = struct.__struct_config__
        if "extras" in hints:
            home = value
        for key in [key for key in value if key not in hints and key != config.tag_field]:
            extras = home.setdefault("extras", {})
            if isinstance(extras, dict):
                name = key if home is value else f"{path.removeprefix('$.')}.{key}"
                while name in extras:
                    name += "_"
                extras[name] = value.pop(key)
                moved.append(Moved(path, key))
        for key, hint in hints.items():
            if key in value and key != "extras":
                _keep(value[key], hint, f"{path}.{key}", home, moved)
    elif isinstance(value, list):
        candidates = (annotation, *get_args(annotation))
        inner = next((get_args(kind)[0] for kind in candidates if get_origin(kind) is tuple), None)
        for index, element in enumerate(value):
            _keep(element, inner, f"{path}[{index}]", home, moved)


_hints = cache(get_type_hints)


def _struct_of(annotation: Any, value: Any) -> type[msgspec.Struct] | None:
    candidates = [annotation, *get_args(annotation)]
    structs = [one for one in candidates if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if len(structs) > 1 and isinstance(value, dict):
        tag = value.get(structs[0].__struct_config__.tag_field or "")
        structs = [one for one in structs if one.__struct_config__.tag == tag]
    return structs[0] if structs else None


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_finite(one) for one in value.values())
    if isinstance(value, list | tuple):
        return all(_finite(one) for one in value)
    return True
