"""Requests to a model and its responses, of OpenAI, Anthropic and Google, as they went over HTTP."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from convoscope.ingest.io.containers import MAX_RECORD_BYTES
from convoscope.ingest.kits.shapes import embedded, instructions_in, plain_messages
from convoscope.ingest.kits.streams import is_chunk_list, is_stream, items_of, message_of, stream_events
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, number_in

TOKENS: Mapping[str, Sequence[str]] = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "promptTokens"),
    "completion_tokens": (
        "completion_tokens",
        "output_tokens",
        "candidatesTokenCount",
        "outputTokens",
        "completionTokens",
    ),
    "total_tokens": ("total_tokens", "totalTokenCount", "totalTokens"),
}


_GZIP = 31
"""Tells zlib that the data are those of gzip."""
REQUESTS = ("messages", "contents", "input", "prompt", "prompts")
"""Where a request holds what the model is sent."""


def body_of(value: Any) -> Any:
    """The body of a request or response: JSON is read, base64 and gzip are undone, a stream stays text."""
    if isinstance(value, dict):
        inner = next((value[name] for name in ("string", "text", "base64_string", "body") if name in value), value)
        is_base64 = value.get("encoding") == "base64" or "base64_string" in value
        value = _from_base64(inner) if is_base64 and isinstance(inner, str) else inner
    if isinstance(value, str) and value.startswith("H4sI"):  # gzip in base64
        value = _from_base64(value)
    return embedded(value)


def _from_base64(text: str) -> Any:
    try:
        data = base64.b64decode(text)
        if data.startswith(b"\x1f\x8b"):
            data = zlib.decompressobj(_GZIP).decompress(data, MAX_RECORD_BYTES)  # a small text may unpack to any size
        return data.decode("utf-8", "replace")
    except (binascii.Error, ValueError, zlib.error):
        return text


def request_messages(body: Any) -> list[JsonObject]:
    """What a model was sent, instructions first."""
    request = as_object(body)
    given = next((request[name] for name in REQUESTS if request.get(name)), None)
    return [*instructions_in(request), *plain_messages(given)]


def tools_in(request: JsonObject) -> list[Any] | None:
    """The tools of a request; Google declares several in one."""
    tools = as_list(request.get("tools")) or as_list(as_object(request.get("config")).get("tools"))
    names = ("functionDeclarations", "function_declarations")
    declared = [entry for tool in tools for name in names for entry in as_list(as_object(tool).get(name))]
    return declared or list(tools) or None


def response_messages(body: Any) -> list[JsonObject]:
    """What a model answered: whole, or as a stream of events."""
    if isinstance(body, str):
        if not is_stream(body):
            return []
        items = items_of(body)
        if items:
            return plain_messages(items, "assistant")
        joined = message_of(body)
        if joined is not None:
            return plain_messages(joined, "assistant")
        return _gemini([as_object(event) for event in stream_events(body)])
    if isinstance(body, list):
        return (
            plain_messages(message_of(body), "assistant")
            if is_chunk_list(body)
            else _gemini(list(map(as_object, body)))
        )
    response = as_object(body)
    if isinstance(response.get("candidates"), list):
        return _gemini([response])
    if isinstance(response.get("choices"), list):
        first = as_object(next(iter(response["choices"]), None))
        message = first.get("message")
        return plain_messages(message if isinstance(message, dict) else as_text(first.get("text")), "assistant")
    held = response.get("output", response)
    inner = as_object(held).get("message")  # Bedrock's Converse
    return plain_messages(inner if isinstance(inner, dict) else held, "assistant")


def _gemini(chunks: list[JsonObject]) -> list[JsonObject]:
    """The first candidate, of one response or of the chunks of a stream; texts of chunks are joined."""
    parts: list[Any] = []
    for chunk in chunks:
        candidate = as_object(next(iter(as_list(chunk.get("candidates"))), None))
        for part in map(as_object, as_list(as_object(candidate.get("content")).get("parts"))):
            is_more = parts and set(part) == set(parts[-1]) == {"text"}
            if is_more:
                parts[-1] = {"text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
    return plain_messages({"role": "model", "parts": parts}, "assistant") if parts else []


def numbers_in(values: JsonObject, names: Mapping[str, Sequence[str]]) -> JsonObject:
    """The numbers of an object, each under the first of its names that has one; tables write numbers as text."""
    matched = {
        name: next((number for key in keys if (number := _number(values.get(key))) is not None), None)
        for name, keys in names.items()
    }
    return {name: value for name, value in matched.items() if value is not None}


def _number(value: Any) -> float | None:
    return number_in(value) if isinstance(value, str) else as_number(value)


def is_model_request(body: Any) -> bool:
    """Whether a body was sent to a model: it holds messages."""
    request = as_object(body)
    has_model = any(name in request for name in ("model", "contents", "max_tokens", "generationConfig"))
    return has_model and any(request.get(name) for name in REQUESTS) and bool(request_messages(request))


def usage_in(body: Any) -> JsonObject:
    """The tokens that a response counts."""
    held = as_object(body)
    if isinstance(body, str):
        for event in map(as_object, stream_events(body)):
            inner = as_object(event.get("response")) or as_object(event.get("message")) or event
            for name in ("usage", "usageMetadata"):  # a stream may count what was sent first, and the answer last
                held[name] = as_object(held.get(name)) | filled(as_object(inner.get(name)))
    inner = as_object(held.get("message"))
    usage = as_object(held.get("usage")) or as_object(held.get("usageMetadata")) or as_object(inner.get("usage"))
    return numbers_in(usage, TOKENS)
