"""OpenTelemetry spans of generative AI: three generations of the conventions, in attributes and in events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.conversation import Label
from convoscope.ingest.formats.livekit_spans import PREFIX, is_livekit, livekit_step, mark_interrupted
from convoscope.ingest.kits.genai import USAGE, answered, sent, tool_run
from convoscope.ingest.kits.spans import LoggedSpan, unflattened
from convoscope.ingest.kits.traces import (
    Handoff,
    Logged,
    LoggedCall,
    Lookup,
    TraceReader,
    chunks_of,
    usage_of,
)
from convoscope.ingest.reader import Detection, RecordGroup, Sample
from convoscope.ingest.record import as_object, as_text

_CALLS = ("chat", "text_completion", "generate_content", "completion", "responses")
_NO_CALLS = ("embeddings", "embedding", "rerank", "moderation", "image_generation", "create_agent")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model")
_EVALUATION = "gen_ai.evaluation"


class OTelGenAIReader(TraceReader):
    """Spans with attributes that begin with `gen_ai.`."""

    name = "otel-genai"
    title = "OpenTelemetry GenAI"

    def detect(self, sample: Sample) -> Detection | None:
        claim = super().detect(sample)
        if claim is None and any("resourceSpans" in as_object(value) for value in sample.values):
            # Spans of other programs: they may be of a session that goes on in another file.
            return Detection(0.2, "spans of OpenTelemetry, none of them of a model", "file")
        return claim

    def knows(self, span: LoggedSpan) -> bool:
        return any(name.startswith(("gen_ai.", PREFIX)) for name in span.attributes)

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        spans = super().spans_of(group)
        mark_interrupted(spans)
        return spans

    def logged(self, span: LoggedSpan) -> Logged | None:
        return livekit_step(span, self.generic_step(span)) if is_livekit(span) else self.generic_step(span)

    def generic_step(self, span: LoggedSpan) -> Logged | None:
        """What a span logs by the general conventions."""
        operation = span.text("gen_ai.operation.name", "llm.request.type")
        kind = span.text("traceloop.span.kind")
        if operation == "handoff":
            return Handoff(agent=span.text("gen_ai.handoff.to_agent") or span.name)
        is_tool = not operation and "gen_ai.tool.name" in span.attributes
        if operation == "execute_tool" or kind == "tool" or is_tool:
            return tool_run(span)
        if operation == "retrieval" or "gen_ai.retrieval.documents" in span.attributes:
            query = span.text("gen_ai.retrieval.query.text", "gen_ai.retrieval.query")
            return Lookup(query=query or None, chunks=chunks_of(span.first("gen_ai.retrieval.documents")))
        inputs, outputs = ([], []) if operation in _NO_CALLS else (sent(span), answered(span))
        is_call = operation in _CALLS or (not operation and bool(span.text(*_MODELS)))
        if not is_call and not inputs and not outputs:
            return None
        tools = span.first("gen_ai.tool.definitions", "llm.request.functions")
        return LoggedCall(
            inputs=inputs,
            outputs=outputs,
            model=span.text(*_MODELS),
            tools=tools if isinstance(tools, list) else unflattened(span.attributes, "llm.request.functions") or None,
            usage=usage_of(span, USAGE),
            is_measured=is_call,
        )

    def whole(self, span: LoggedSpan) -> tuple[Any, Any]:
        names = (("traceloop.entity.input", "inputs"), ("traceloop.entity.output", "outputs"))
        given, answer = (as_object(span.first(name)).get(held) for name, held in names)
        return given, answer

    def labels(self, spans: Sequence[LoggedSpan]) -> Iterator[Label]:
        """Evaluations that are events of a span, or records of a log."""
        for span in spans:
            for event in span.events:
                held = event.attributes
                score = held.get(f"{_EVALUATION}.score.value", held.get(f"{_EVALUATION}.score.label"))
                if event.name == f"{_EVALUATION}.result" and score is not None:
                    yield Label(
                        name=as_text(held.get(f"{_EVALUATION}.name")),
                        value=score,
                        rater_kind="external",
                        rater=as_text(held.get("convoscope.judge")) or _EVALUATION,
                        notes=as_text(held.get(f"{_EVALUATION}.explanation")),
                    )


READER = OTelGenAIReader()
