"""Spans of the Vercel AI SDK: `ai.generateText`, `ai.streamText`, their calls of a provider, and tool calls."""

from __future__ import annotations

from convoscope.ingest.kits.genai import USAGE
from convoscope.ingest.kits.payloads import unquoted
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.kits.traces import Logged, LoggedCall, ToolRun, TraceReader, usage_of
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object

_USAGE = {
    **USAGE,
    "prompt_tokens": ("ai.usage.promptTokens", "ai.usage.inputTokens", *USAGE["prompt_tokens"]),
    "completion_tokens": ("ai.usage.completionTokens", "ai.usage.outputTokens", *USAGE["completion_tokens"]),
}


class VercelAIReader(TraceReader):
    """Spans with attributes that begin with `ai.`."""

    name = "vercel-ai"
    title = "the Vercel AI SDK"
    confidence = 0.93

    def knows(self, span: LoggedSpan) -> bool:
        return any(name in span.attributes for name in ("ai.operationId", "ai.prompt.messages", "ai.toolCall.name"))

    def logged(self, span: LoggedSpan) -> Logged | None:
        if "ai.toolCall.name" in span.attributes:
            return ToolRun(
                name=span.text("ai.toolCall.name"),
                call_id=span.text("ai.toolCall.id"),
                arguments=span.first("ai.toolCall.args", "ai.toolCall.input"),
                result=unquoted(span.first("ai.toolCall.result", "ai.toolCall.output")),
                error=span.error,
            )
        if not span.text("ai.operationId").startswith(("ai.generate", "ai.stream")):
            return None
        given = span.first("ai.prompt.messages", "ai.prompt")
        prompt = as_object(given).get("prompt")
        system = plain_messages(as_object(given).get("system"), "system") if isinstance(prompt, str) else []
        tools = as_list(span.first("ai.prompt.tools"))
        return LoggedCall(
            inputs=[*system, *plain_messages(prompt if isinstance(prompt, str) else given)],
            outputs=_reply(span),
            model=span.text("ai.response.model", "ai.model.id"),
            tools=tools or None,
            usage=_measured(span),
        )


def _measured(span: LoggedSpan) -> JsonObject:
    first = as_number(span.first("ai.response.msToFirstChunk", "ai.stream.msToFirstChunk"))
    return usage_of(span, _USAGE) | ({} if first is None else {"ttft": first / 1000})


def _reply(span: LoggedSpan) -> list[JsonObject]:
    names = ("ai.response.text", "ai.result.text", "ai.response.object", "ai.result.object")
    text = next((span.attributes[name] for name in names if span.attributes.get(name)), None)
    called = as_list(span.first("ai.response.toolCalls", "ai.result.toolCalls"))
    calls = [{"type": "tool-call", **as_object(entry)} for entry in called]
    thought = span.text("ai.response.reasoning")
    thoughts = [{"type": "thinking", "thinking": thought}] if thought else []
    content = [*thoughts, *([{"type": "text", "text": text}] if isinstance(text, str) and text else []), *calls]
    return plain_messages([{"role": "assistant", "content": content}], "assistant") if content else []


READER = VercelAIReader()
