"""What a message says, made comparable: to find histories that are logged again with each call."""

from __future__ import annotations

from typing import Any

import msgspec

from convoscope.ingest.record import ROLES, TEXT_FIELDS, Facts, filled, speaker_field

_CALL_FIELDS = ("name", "arguments", "input", "call_id", "tool_call_id", "tool_use_id", "output", "refusal", "text")
_AGENT_ITEMS = ("function_call", "custom_tool_call", "mcp_call")
_BEFORE, _AFTER = 64, 256
_USER = b'"user"'

_encode = msgspec.json.Encoder(order="deterministic").encode


def quick_key(text: bytes, list_name: bytes) -> bytes:
    """What stands around the first message of the user; two calls of one conversation have the same.

    Nothing where no such message is seen: then the records have to be decoded to be compared.
    """
    start = 0 if text[:1] == b"[" else text.find(list_name)
    place = text.find(_USER, start)
    if start < 0 or place < 0:
        return b""
    near = text[place : place + _AFTER]
    return text[max(start, place - _BEFORE) : place] + near.partition(b"}")[0]


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


def role_of(message: Facts) -> str:
    """Whose message or item it is; "" for nobody's."""
    if message.get("type") in _AGENT_ITEMS:
        return "assistant"
    field = speaker_field(message) or "role"
    return ROLES.get(str(message.get(field)).strip().casefold(), "")


def _content(message: Facts) -> str:
    content = message.get("content")
    if content is None:
        content = next((message[name] for name in TEXT_FIELDS if isinstance(message.get(name), str)), "")
    if isinstance(content, str):
        return content.strip()
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
