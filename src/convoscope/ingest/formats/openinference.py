"""OpenInference spans, as Phoenix and Arize collect them: models, tools, retrievers, and turns of realtime voice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convoscope.conversation import Label
from convoscope.ingest.kits.exchanges import request_messages, response_messages, usage_in
from convoscope.ingest.kits.shapes import by_prefix, embedded, plain_messages
from convoscope.ingest.kits.spans import LoggedSpan, spans_in, unflattened
from convoscope.ingest.kits.traces import Handoff, Logged, LoggedCall, Lookup, ToolRun, TraceReader, chunks_of, usage_of
from convoscope.ingest.record import JsonObject, as_object, as_text

KIND = "openinference.span.kind"
_USAGE = {
    "prompt_tokens": ("llm.token_count.prompt",),
    "completion_tokens": ("llm.token_count.completion",),
    "total_tokens": ("llm.token_count.total",),
    "cost": ("llm.cost.total",),
}
_VALUES = ("input.value", "output.value")
_HIDDEN = "__REDACTED__"
"""What an instrumentation writes instead of content that it was asked to hide."""


class OpenInferenceReader(TraceReader):
    """Spans with a kind of OpenInference."""

    name = "openinference"
    title = "OpenInference"
    confidence = 0.92

    def knows(self, span: LoggedSpan) -> bool:
        return KIND in span.attributes

    def spans(self, value: Any) -> Iterable[LoggedSpan]:
        for span in spans_in(value):
            span.attributes = {name: held for name, held in span.attributes.items() if held != _HIDDEN}
            yield span

    def is_apart(self, span: LoggedSpan) -> bool:
        return span.text(KIND) in ("EVALUATOR", "GUARDRAIL")

    def whole(self, span: LoggedSpan) -> tuple[Any, Any]:
        return (
            (span.first(_VALUES[0]), span.first(_VALUES[1])) if span.text(KIND) in ("AGENT", "CHAIN") else (None, None)
        )

    def logged(self, span: LoggedSpan) -> Logged | None:
        kind = span.text(KIND)
        if kind == "TOOL":
            is_handoff = span.name.startswith("handoff to ") and "tool.name" not in span.attributes
            return Handoff(agent=span.name.removeprefix("handoff to ")) if is_handoff else _tool(span)
        if kind == "RETRIEVER":
            chunks = chunks_of(_listed(span, "retrieval.documents"))
            return Lookup(query=span.text("input.value") or None, chunks=chunks)
        if kind == "USER":
            words = plain_messages(span.text("input.audio.transcript") or span.text("input.value"), "user")
            return LoggedCall(inputs=words, is_spoken="input.audio.transcript" in span.attributes)
        if kind != "LLM" or _is_speech_service(span):
            return None
        return self.model_call(span)

    def model_call(self, span: LoggedSpan) -> LoggedCall:
        inputs = plain_messages(_messages(span, "llm.input_messages"))
        outputs = plain_messages(_messages(span, "llm.output_messages"), "assistant")
        transcript = span.text("output.audio.transcript")
        if transcript and not outputs:
            outputs = plain_messages(transcript, "assistant")
        if not inputs and not outputs:  # some instrumentations fill only the values
            inputs, outputs = _plain_values(span)
        return LoggedCall(
            inputs=inputs,
            outputs=outputs,
            model=span.text("llm.model_name"),
            tools=_tools(span),
            usage=usage_of(span, _USAGE) or usage_in(span.first(_VALUES[1])),
            is_spoken=bool(transcript),
            is_cut_off=span.text("llm.finish_reason") == "cancelled",
        )

    def labels(self, spans: Sequence[LoggedSpan]) -> Iterator[Label]:
        for span in spans:
            for prefix in ("annotations", "session.annotations", "trace.annotations"):
                for held in unflattened(span.attributes, prefix):
                    entry = as_object(as_object(held).get("annotation", held))
                    value = entry.get("score") if entry.get("score") is not None else entry.get("label")
                    if as_text(entry.get("name")) and value is not None:
                        is_human = as_text(entry.get("annotator_kind")).upper() == "HUMAN"
                        yield Label(
                            name=as_text(entry.get("name")),
                            value=value,
                            rater_kind="human" if is_human else "external",
                            rater=as_text(entry.get("annotator_kind")).lower(),
                            notes=as_text(entry.get("explanation")),
                        )


def _is_speech_service(span: LoggedSpan) -> bool:
    """Pipecat logs its recogniser and its voice as models, too."""
    first = "llm.input_messages.0.message.name"
    return span.name in ("pipecat.stt", "pipecat.tts") or span.text(first) == "stt_text"


def _tool(span: LoggedSpan) -> ToolRun:
    return ToolRun(
        name=span.text("tool.name", "tool_call.function.name") or span.name,
        call_id=span.text("tool_call.id"),
        arguments=span.first("tool_call.function.arguments", "input.value", "tool.parameters"),
        result=span.first("tool.result", "output.value"),
        error=span.error,
    )


def _listed(span: LoggedSpan, prefix: str) -> Any:
    """A list of an attribute: as it is, or one attribute for each of its values."""
    listed = embedded(span.attributes.get(prefix))
    return listed if isinstance(listed, list) else unflattened(span.attributes, prefix)


def _messages(span: LoggedSpan, prefix: str) -> list[Any]:
    messages: list[Any] = []
    for entry in _listed(span, prefix):
        held = as_object(entry)
        # Exports as a table hold objects with `message.role` instead of `role` inside of `message`.
        nested = {"message": _nested(held)} if any(name.startswith("message.") for name in held) else held
        messages.append(nested)
    return messages


def _nested(held: JsonObject) -> JsonObject:
    return {name.removeprefix("message."): value for name, value in held.items() if value is not None}


def _plain_values(span: LoggedSpan) -> tuple[list[JsonObject], list[JsonObject]]:
    """What a span of a model was given and gave: a request and a response, messages, or texts."""
    given, answer = (span.first(name) for name in _VALUES)
    inputs = request_messages(given) or plain_messages(given)
    outputs = response_messages(answer) if isinstance(answer, dict) else plain_messages(answer, "assistant")
    # LlamaIndex writes messages as texts, each behind its role.
    return inputs, by_prefix(answer) or outputs if isinstance(answer, str) else outputs


def _tools(span: LoggedSpan) -> list[Any] | None:
    matched = [
        embedded(as_object(as_object(entry).get("tool", entry)).get("json_schema"))
        for entry in _listed(span, "llm.tools")
    ]
    return [entry for entry in matched if isinstance(entry, dict)] or None


READER = OpenInferenceReader()
