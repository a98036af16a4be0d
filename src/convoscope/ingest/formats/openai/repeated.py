"""What a message says, made comparable: to find histories that are logged again with each call."""

from __future__ import annotations

from typing import Any

import msgspec

from convoscope.ingest.record import ROLES, TEXT_FIELDS, JsonObject, filled, speaker_field

_CALL_FIELDS = ("name", "arguments", "input", "call_id", "tool_call_id", "tool_use_id", "output", "refusal", "text")
_AGENT_ITEMS = ("function_call", "custom_tool_call", "mcp_call")
_BEFORE, _AFTER = 64, 256
_USER = b'"user"'

_encode = msgspec.json.Encoder(order="deterministic").encode


def quick_keys(text: bytes, list_name: bytes) -> tuple[bytes, bytes]:
    """The first and the second message of the user, as they are written: calls of one conversation share one.

    Growing histories have the first in common; a history that is cut begins with the second of an earlier call. The
    first is empty where no such message is seen: then the records have to be decoded to be compared.
    """
    start = 0 if text[:1] == b"[" else text.find(list_name)
    if start < 0:
        return b"", b""
    first = text.find(_USER, start)
    second = text.find(_USER, first + 1) if first >= 0 else -1
    return _around(text, start, first), _around(text, start, second)


def _around(text: bytes, start: int, place: int) -> bytes:
    """What an object says around a place in it; what stands before the object does not matter."""
    if place < 0:
        return b""
    before = text[max(start, place - _BEFORE) : place].rpartition(b"{")[2]
    return before + text[place : place + _AFTER].partition(b"}")[0]


def message_signature(message: Any) -> int:
    """A hash of who says what, calls what, or answers what; ids, times and counts of a message do not matter."""
    if not isinstance(message, dict):
        return hash(_canonical(message))
    calls = message.get("tool_calls")
    rest = filled({name: message.get(name) for name in _CALL_FIELDS if name != "text"})
    function = message.get("function_call")
    if isinstance(calls, list):
        rest["tool_calls"] = [_function(one) for one in calls]
    if isinstance(function, dict):
        rest["function_call"] = function
    return hash((role_of(message), _content(message), _canonical(rest)))


def role_of(message: JsonObject) -> str:
    """Whose message or item it is; "" for nobody's."""
    if message.get("type") in _AGENT_ITEMS:
        return "assistant"
    field = speaker_field(message) or "role"
    return ROLES.get(str(message.get(field)).strip().casefold(), "")


def _content(message: JsonObject) -> str:
    content = message.get("content")
    if content is None:
        content = next((message[name] for name in TEXT_FIELDS if isinstance(message.get(name), str)), "")
    if isinstance(content, str):
        return " ".join(content.split())
    if not isinstance(content, list):
        return _canonical(content)
    parts = [_part(part) for part in content]
    return "\n".join(part if isinstance(part, str) else _canonical(part) for part in parts).strip()


def _part(part: Any) -> Any:
    """A part of a content without what an API adds to it on the way back."""
    if not isinstance(part, dict):
        return part
    facts = filled({name: part.get(name) for name in (*_CALL_FIELDS, "content")})
    return facts["text"] if set(facts) == {"text"} else facts or part


def _function(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    return [call.get("id"), function.get("name"), function.get("arguments")] if isinstance(function, dict) else call


def _canonical(value: Any) -> str:
    return _encode(value).decode()
