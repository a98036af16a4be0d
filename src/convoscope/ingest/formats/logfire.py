"""Spans of Logfire: OpenTelemetry with request and response data of its own."""

from __future__ import annotations

from convoscope.ingest.formats.otel_genai import OTelGenAIReader
from convoscope.ingest.kits.exchanges import request_messages, usage_in
from convoscope.ingest.kits.shapes import embedded, plain_messages
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.kits.traces import Handoff, Logged, LoggedCall, ToolRun
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text


class LogfireReader(OTelGenAIReader):
    """Spans with attributes that begin with `logfire.`."""

    name = "logfire"
    title = "Logfire"
    confidence = 0.94

    def knows(self, span: LoggedSpan) -> bool:
        return any(name.startswith("logfire.") for name in span.attributes)

    def logged(self, span: LoggedSpan) -> Logged | None:
        template = span.text("logfire.msg_template")
        if template.startswith("Function: "):  # OpenAI's agents
            name = span.text("name") or span.name.removeprefix("Function: ")
            return ToolRun(name=name, arguments=span.first("input"), result=span.first("output"), error=span.error)
        if template.startswith("Handoff: "):
            return Handoff(agent=span.text("to_agent"))
        matched = super().logged(span)
        request = as_object(span.first("request_data"))
        answer = _response(span)
        # Requests for vectors and pictures have a model and an input, too; they have no such answer.
        is_call = bool(request.get("messages") or answer)
        if (matched is None and not is_call) or not isinstance(matched, LoggedCall | None):
            return matched
        call = matched or LoggedCall(model=as_text(request.get("model")))
        asked = request_messages(request) if is_call else []
        call.inputs = call.inputs or asked or plain_messages(span.first("input", "raw_input"))
        call.outputs = call.outputs or answer or plain_messages(span.first("output"), "assistant")
        call.usage = usage_in(span.first("response_data")) | call.usage
        call.tools = call.tools or as_list(request.get("tools")) or None
        return call


def _response(span: LoggedSpan) -> list[JsonObject]:
    """The answer: a message, or what a stream came to."""
    data = as_object(span.first("response_data"))
    message = embedded(data.get("message"))
    if isinstance(message, dict):
        return plain_messages({"content": None, "role": "assistant", **message}, "assistant")
    text = data.get("combined_chunk_content") or data.get("text")
    return plain_messages(text, "assistant") if isinstance(text, str) else []


READER = LogfireReader()
