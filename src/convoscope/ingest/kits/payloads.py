"""What a call of a model was given and gave, as integrations log it: requests, responses, messages, texts, replies."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.kits.exchanges import REQUESTS, request_messages, response_messages, tools_in
from convoscope.ingest.kits.shapes import by_prefix, embedded, is_message, plain_messages, said_in
from convoscope.ingest.kits.streams import is_chunk_list
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text

_REPLIES = ("replies", "toolCalls", "finish_reason", "finishReason", "stopReason", "text", "message")
"""Fields that answers of frameworks have, and no message."""
_RESPONSES = ("choices", "candidates", "output")


def given_messages(value: Any) -> list[JsonObject]:
    """The messages that a model was given."""
    value = unquoted(embedded(value))
    if isinstance(value, list):
        value = [entry for entry in value if _definition(entry) is None]
    held = as_object(value)
    if held and not is_message(held):
        return _of_program(request_messages(held) if any(name in held for name in REQUESTS) else said_in(held, "user"))
    return _listed(value, "user")


def answered_messages(value: Any) -> list[JsonObject]:
    """The messages that a model answered with."""
    value = unquoted(embedded(value))
    if is_chunk_list(value):
        return response_messages(value)
    held = as_object(value)
    if not held or (is_message(held) and "role" in held):
        return _listed(value, "assistant")
    generations = as_list(held.get("generations"))
    while generations and isinstance(generations[0], list):
        generations = generations[0]
    if generations:  # LangChain
        first = as_object(generations[0])
        return plain_messages(first.get("message") or as_text(first.get("text")), "assistant")
    if any(isinstance(held.get(name), list | dict) and held[name] for name in _RESPONSES):
        inner = held.get("output")
        return response_messages(inner) if is_chunk_list(inner) else response_messages(held) or answered_messages(inner)
    if isinstance(held.get("outputs"), dict):
        return answered_messages(held["outputs"])
    return _reply(held) if any(name in held for name in _REPLIES) else said_in(_content(held), "assistant")


def tools_given(value: Any) -> list[Any] | None:
    """The tools that a model could call: of a request, or listed behind its messages."""
    value = embedded(value)
    listed = [tool for entry in as_list(value) if (tool := _definition(entry)) is not None]
    return listed or tools_in(as_object(value))


def unquoted(value: Any) -> Any:
    """A text that is written as JSON, in quotes; other values as they are. Python prints None for nothing."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        with suppress(BadJson):
            return decode(value.encode("utf-8", "replace")).value
    return None if value == "None" else value


def _definition(message: Any) -> JsonObject | None:
    """What a tool is, where a message of a tool says that: some integrations list the tools behind the messages."""
    content = as_object(as_object(message).get("content"))
    return content if content.get("type") == "function" and "name" in as_object(content.get("function")) else None


def _listed(value: Any, role: str) -> list[JsonObject]:
    """Messages, texts, or calls of tools without a message around them."""
    if isinstance(value, str):
        return by_prefix(value) or plain_messages(value, role)
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return _of_program(plain_messages(value if by_prefix(value[0]) else "\n".join(value), role))
    if isinstance(value, list) and value and all("toolName" in as_object(entry) for entry in value):
        return plain_messages([{"role": role, "content": [{"type": "tool-call", **entry} for entry in value]}], role)
    return plain_messages(value, role)


def _of_program(messages: list[JsonObject]) -> list[JsonObject]:
    """Messages, but not the objects of a program as it prints them."""
    texts = [as_text(block.get("text")) for message in messages for block in message["content"]]
    return [] if any(text.startswith(("role=", "ChatMessage(")) for text in texts) else messages


def _content(value: JsonObject) -> Any:
    """Google's ADK holds a message in its content; other values as they are."""
    held = value.get("content")
    return held if isinstance(held, dict) else value


def _reply(value: JsonObject) -> list[JsonObject]:
    """An answer that has no role: Haystack's replies, Mastra's text with calls, the message of Strands."""
    if isinstance(value.get("replies"), list):
        return plain_messages(value["replies"], "assistant")
    if isinstance(value.get("message"), dict):
        return plain_messages({"role": "assistant", **value["message"]}, "assistant")
    if "content" in value:
        return plain_messages(
            _content(value) if isinstance(value["content"], dict) else {"role": "", **value}, "assistant"
        )
    calls = [{"type": "tool-call", **as_object(entry)} for entry in as_list(value.get("toolCalls"))]
    words = {"role": "assistant", "content": value.get("text", value.get("message"))}
    return plain_messages([words, {"role": "assistant", "content": calls}], "assistant")
