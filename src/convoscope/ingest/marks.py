"""Names of fields that show a format, so that only readers that may know a file are imported."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any

from convoscope.ingest.reader import Detection, Reader, Sample

_SPANS = "resourceSpans resource_spans scopeSpans attributes spanContext span_id context trace_id resourceLogs"
MARKS: dict[str, str] = {
    "agents-runstate": "$schemaVersion",
    "anthropic-managed-agents": "processed_at type",
    "assemblyai": "acoustic_model audio_url audio_duration turn_order audio_start",
    "atif": "schema_version steps",
    "aws-transcribe": "results Transcript Alternatives TranscriptionJob CallAnalyticsJob",
    "chatgpt-export": "mapping",
    "chatwoot": "message_type messageType",
    "claude-agent-sdk": "session_id sessionId parent_tool_use_id",
    "contact-lens": "Transcript Utterance UtteranceEvent EventType",
    "deepgram": "results channel_index turn_index",
    "facebook": "sender_name senderName",
    "google-adk": "events eval_cases evalCases evalCaseResults eval_case_results expected_tool_use author",
    "http-exchanges": "interactions http_interactions log",
    "inspect": "eval member",
    "intercom": "conversation_parts ticket_parts delivered_as message_type",
    "langchain": "additional_kwargs response_metadata kwargs type",
    "langfuse": "observations traceId trace_id traces data sessionId userId htmlPath projectId",
    "langsmith": "run_type dotted_order post patch",
    "logfire": _SPANS,
    "mas4cs": "system_response evaluation_level",
    "openhands": "source",
    "openinference": f"{_SPANS} openinference.span.kind",
    "otel-genai": f"{_SPANS} gen_ai",
    "pipecat-spans": _SPANS,
    "rasa": "sender_id event type_name",
    "realtime": "event_id session interactions serverContent setup item type direction data message payload",
    "sharegpt": "conversations conversation items",
    "star": "Events",
    "swe-agent": "trajectory",
    "taskmaster": "utterances",
    "tau2-bench": "simulations task_id",
    "telegram": "from_id actor_id",
    "vercel-ai": f"{_SPANS} ai",
}
"""By format, names of which a file has one at least."""
_COMPANIONS = ("mas4cs",)
_DEEPEST = 6
_MOST = 2_000


def names_in(values: Iterable[Any]) -> frozenset[str]:
    """The names of fields in the first records, down to some depth; names of columns too."""
    names: set[str] = set()
    pending: list[tuple[Any, int]] = [(value, 0) for value in values]
    seen = 0
    while pending and seen < _MOST:
        value, depth = pending.pop()
        seen += 1
        if isinstance(value, dict):
            names.update(name for name in value if isinstance(name, str))
            names.update(name.partition(".")[0] for name in value if isinstance(name, str) and "." in name)
            inner: Iterable[Any] = value.values()
        elif isinstance(value, list):
            inner = value[:20]
        else:
            continue
        if depth < _DEEPEST:
            pending.extend((one, depth + 1) for one in inner if isinstance(one, dict | list))
    return frozenset(names)


class MarkedReader(Reader):
    """A reader that is imported when a file has one of its marks, or when it is named."""

    def __init__(self, point: EntryPoint) -> None:
        self.name = point.name
        self._point = point
        self.is_also_companion = point.name in _COMPANIONS
        self._marks = frozenset(MARKS[point.name].split())

    @cached_property
    def loaded(self) -> Reader:
        reader = self._point.load()
        if not isinstance(reader, Reader) or reader.name != self.name:
            raise TypeError(f"{self._point.value} is not the reader {self.name}")
        return reader

    def detect(self, sample: Sample) -> Detection | None:
        if sample.container == "text":
            return None
        if "names" not in sample.shared:
            sample.shared["names"] = names_in(sample.values)
        if self._marks.isdisjoint(sample.shared["names"]):
            return None
        return self.loaded.detect(sample)
