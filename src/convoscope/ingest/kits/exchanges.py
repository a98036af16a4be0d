"""Requests to a model and its responses, of OpenAI, Anthropic and Google, as they went over HTTP."""

from __future__ import annotations

import base64
import binascii
import gzip
from collections.abc import Mapping, Sequence
from typing import Any

from convoscope.ingest.kits.shapes import embedded, plain_messages
from convoscope.ingest.kits.streams import is_stream, items_of, message_of, stream_events
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled

TOKENS: Mapping[str, Sequence[str]] = {
    "prompt_tokens": ("prompt_tokens", "input_tokens", "promptTokenCount"),
    "completion_tokens": ("completion_tokens", "output_tokens", "candidatesTokenCount"),
    "total_tokens": ("total_tokens", "totalTokenCount"),
}


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
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        return data.decode("utf-8", "replace")
    except (binascii.Error, ValueError, OSError, EOFError):
        return text


def request_messages(body: Any) -> list[JsonObject]:
    """What a model was sent, instructions first."""
    request = as_object(body)
    system = next(
        (
            request[name]
            for name in ("system", "instructions", "systemInstruction", "system_instruction")
            if request.get(name)
        ),
        None,
    )
    messages: list[JsonObject] = []
    if system is not None:
        parts = as_object(system).get("parts", system)
        messages += plain_messages(
            [{"role": "system", "content": parts}] if isinstance(parts, list) else parts, "system"
        )
    given = next((request[name] for name in ("messages", "contents", "input", "prompt") if request.get(name)), None)
    return messages + plain_messages(given)


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
        return _gemini([as_object(entry) for entry in body])
    response = as_object(body)
    if isinstance(response.get("candidates"), list):
        return _gemini([response])
    if isinstance(response.get("choices"), list):
        first = as_object(next(iter(response["choices"]), None))
        message = first.get("message")
        return plain_messages(message if isinstance(message, dict) else as_text(first.get("text")), "assistant")
    return plain_messages(response.get("output", response), "assistant")


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
    """The numbers of an object, each under the first of its names that is there."""
    first = {
        name: next((as_number(values[key]) for key in keys if key in values), None) for name, keys in names.items()
    }
    return {name: value for name, value in first.items() if value is not None}


def is_model_request(body: Any) -> bool:
    """Whether a body was sent to a model: it holds messages."""
    request = as_object(body)
    names = ("messages", "contents", "input", "prompt")
    has_model = any(name in request for name in ("model", "contents", "max_tokens", "generationConfig"))
    return has_model and any(request.get(name) for name in names) and bool(request_messages(request))


def usage_in(body: Any) -> JsonObject:
    """The tokens that a response counts."""
    held = as_object(body)
    if isinstance(body, str):
        for event in map(as_object, stream_events(body)):
            inner = as_object(event.get("response")) or as_object(event.get("message")) or event
            for name in ("usage", "usageMetadata"):  # a stream may count what was sent first, and the answer last
                held[name] = as_object(held.get(name)) | filled(as_object(inner.get(name)))
    usage = as_object(held.get("usage")) or as_object(held.get("usageMetadata"))
    return numbers_in(usage, TOKENS)
