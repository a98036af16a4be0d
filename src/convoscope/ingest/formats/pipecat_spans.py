"""Pipecat spans, by OpenInference's instrumentation or its own: a turn of a voice agent with its services below it."""

from __future__ import annotations

from convoscope.ingest.formats.openinference import OpenInferenceReader
from convoscope.ingest.kits.genai import USAGE, sent
from convoscope.ingest.kits.shapes import plain_messages
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.kits.traces import Logged, LoggedCall, ToolRun, TraceReader, usage_of
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import as_list

_INTERRUPTED = ("conversation.was_interrupted", "turn.was_interrupted")
_CUT = "convoscope.cut_off"


class PipecatSpansReader(OpenInferenceReader):
    """Spans of one turn or of a whole call."""

    name = "pipecat-spans"
    title = "Pipecat"
    confidence = 0.95
    sessions = ("conversation.id", *TraceReader.sessions)
    pipeline = "cascade"

    def knows(self, span: LoggedSpan) -> bool:
        is_pipecat = span.name.startswith("pipecat.") or span.text("service.name").endswith("Service#0")
        return is_pipecat or (span.name in ("stt", "llm", "tts", "turn") and "metrics.ttfb" in span.attributes)

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        spans = super().spans_of(group)
        cut = {span.id for span in spans if any(span.attributes.get(name) is True for name in _INTERRUPTED)}
        for span in spans:
            if span.parent in cut:
                span.attributes[_CUT] = True
        return spans

    def logged(self, span: LoggedSpan) -> Logged | None:
        name = span.name.removeprefix("pipecat.")
        if name == "stt" and span.text("transcript", "text"):
            words = plain_messages(span.text("transcript", "text"), "user")
            return LoggedCall(inputs=words, is_spoken=True)
        if name == "llm":
            call = self.model_call(span)
            if not call.inputs and not call.outputs:
                call.inputs = sent(span) or plain_messages(span.first("input"))
                call.outputs = plain_messages(span.first("output"), "assistant")
            call.is_cut_off = bool(span.attributes.get(_CUT))
            call.model = call.model or span.text("gen_ai.request.model")
            call.usage = call.usage or usage_of(span, USAGE)
            call.tools = call.tools or as_list(span.first("tools")) or None
            ttft = span.first("metrics.ttfb", "gen_ai.server.time_to_first_token")
            if isinstance(ttft, int | float):
                call.usage["ttft"] = ttft
            return call
        matched = super().logged(span) if name.startswith("tool") else None
        return matched if isinstance(matched, ToolRun) else None


READER = PipecatSpansReader()
