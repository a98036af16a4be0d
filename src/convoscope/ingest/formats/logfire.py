"""Spans of Logfire: OpenTelemetry with request and response data of its own."""

from __future__ import annotations

from convoscope.ingest.formats.otel_genai import OTelGenAIReader
from convoscope.ingest.kits.exchanges import usage_in
from convoscope.ingest.kits.shapes import embedded, plain_messages
from convoscope.ingest.kits.spans import Span
from convoscope.ingest.kits.traces import Logged, LoggedCall
from convoscope.ingest.record import JsonObject, as_object


class LogfireReader(OTelGenAIReader):
    """Spans with attributes that begin with `logfire.`."""

    name = "logfire"
    title = "Logfire"
    confidence = 0.94

    def knows(self, span: Span) -> bool:
        return any(name.startswith("logfire.") for name in span.attributes)

    def logged(self, span: Span) -> Logged | None:
        matched = super().logged(span)
        request = as_object(span.first("request_data"))
        if matched is None and not request:
            return None
        call = matched if matched is not None else LoggedCall(model=str(request.get("model", "")))
        if isinstance(call, LoggedCall) and request:
            call.inputs = call.inputs or plain_messages(request)
            call.outputs = call.outputs or _response(span)
            call.usage = call.usage or usage_in(span.first("response_data"))
        return call


def _response(span: Span) -> list[JsonObject]:
    """The answer: a message, or what a stream came to."""
    data = as_object(span.first("response_data"))
    message = embedded(data.get("message"))
    if isinstance(message, dict):
        return plain_messages({"content": None, "role": "assistant", **message}, "assistant")
    text = data.get("combined_chunk_content") or data.get("text")
    return plain_messages(text, "assistant") if isinstance(text, str) else []


READER = LogfireReader()
