"""Langfuse traces: `{trace, observations}` as the application exports them, lists of the API, and rows of CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from convoscope.conversation import Label
from convoscope.ingest.kits.exchanges import numbers_in
from convoscope.ingest.kits.payloads import answered_messages, given_messages, tools_given, unquoted
from convoscope.ingest.kits.shapes import embedded
from convoscope.ingest.kits.spans import LoggedSpan, seconds
from convoscope.ingest.kits.traces import (
    Logged,
    LoggedCall,
    Lookup,
    ToolRun,
    TraceReader,
    chunks_of,
    with_result_message,
)
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled

_MODELS = ("GENERATION", "EMBEDDING")
_UNTYPED = ("SPAN", "CHAIN")
_TOKENS = {
    "prompt_tokens": ("input", "prompt_tokens", "promptTokens"),
    "completion_tokens": ("output", "completion_tokens", "completionTokens"),
    "total_tokens": ("total", "totalTokens"),
}
_COLUMNS = {
    "prompt_tokens": ("promptTokens", "inputUsage"),
    "completion_tokens": ("completionTokens", "outputUsage"),
    "total_tokens": ("totalTokens", "totalUsage"),
    "cost": ("totalCost", "calculatedTotalCost"),
    "ttft": ("timeToFirstToken",),
}
_WHOLE = "convoscope.whole"
"""Names a span that is made of a trace: it says what the observations say, where there are any."""


class LangfuseReader(TraceReader):
    """Traces with observations of the types GENERATION, TOOL, SPAN and the like."""

    name = "langfuse"
    title = "Langfuse"
    confidence = 0.95
    sessions = ("sessionId",)

    def knows(self, span: LoggedSpan) -> bool:
        return bool(span.attributes)

    def agent(self, span: LoggedSpan) -> str:
        return span.name if span.text("type") == "AGENT" else ""

    def spans(self, value: Any) -> Iterable[LoggedSpan]:
        record = as_object(value)
        for name in ("data", "traces", "items"):
            if isinstance(record.get(name), list) and not is_observation(record):
                for entry in record[name]:
                    yield from self.spans(entry)
                return
        trace = as_object(record.get("trace"))
        if not trace and (isinstance(record.get("observations"), list) or _is_trace(record)):
            trace = record
        if isinstance(value, list):
            for entry in value:
                yield from self.spans(entry)
        elif is_observation(record):
            yield _span(record, {})
        elif trace:
            inner = [
                entry
                for entry in as_list(record.get("observations")) or as_list(trace.get("observations"))
                if is_observation(entry)  # a list of traces holds their ids only
            ]
            for entry in inner:
                yield _span(entry, trace)
            if not inner and (trace.get("input") is not None or trace.get("output") is not None):
                whole = {"traceId": trace.get("id"), "type": "TRACE", "observations": None, _WHOLE: True}
                yield _span({**trace, **whole}, trace)

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        """All spans; one that is named like a tool that a model called is a tool, whatever its type says."""
        spans = super().spans_of(group)
        observed = {span.trace: span for span in reversed(spans) if _WHOLE not in span.attributes}
        for whole in (span for span in spans if _WHOLE in span.attributes and span.trace in observed):
            _take_over(observed[whole.trace], whole)
        spans = [span for span in spans if _WHOLE not in span.attributes or span.trace not in observed]
        if any(span.text("type").upper() in _UNTYPED for span in spans):
            outputs = [span.attributes.get("output") for span in spans if span.text("type") in _MODELS]
            replies = [message for answer in outputs for message in answered_messages(answer)]
            blocks = [block for message in replies for block in message["content"]]
            called = {block.get("name") for block in blocks if block["type"] == "tool_use"}
            parents = {span.parent for span in spans if span.text("type") in _MODELS}
            for span in spans:
                if span.text("type").upper() in _UNTYPED and span.name in called and span.id not in parents:
                    span.attributes = {**span.attributes, "type": "TOOL"}
        return spans

    def is_apart(self, span: LoggedSpan) -> bool:
        return span.text("type").upper() in ("EVALUATOR", "GUARDRAIL")

    def whole(self, span: LoggedSpan) -> tuple[Any, Any]:
        return unquoted(embedded(span.attributes.get("input"))), unquoted(embedded(span.attributes.get("output")))

    def logged(self, span: LoggedSpan) -> Logged | None:
        kind = span.text("type").upper()
        given, answer = self.whole(span)
        if kind == "TOOL":
            return _tool_run(span, given, answer)
        if kind == "RETRIEVER":
            query = as_text(given) or as_text(as_object(given).get("query"))
            return Lookup(query=query or None, chunks=chunks_of(answer))
        if kind not in ("GENERATION", "TRACE"):  # what is sent for a vector is no talk
            return None
        return LoggedCall(
            inputs=given_messages(given),
            outputs=answered_messages(answer),
            model=span.text("model", "providedModelName", "provided_model_name"),
            tools=tools_given(given),
            usage=_usage(span),
            is_measured=kind == "GENERATION",
        )

    def labels(self, spans: Sequence[LoggedSpan]) -> Iterator[Label]:
        seen: set[str] = set()
        for span in spans:
            for score in map(as_object, as_list(span.attributes.get("scores"))):
                id = as_text(score.get("id"))
                value = _score(score)
                if not as_text(score.get("name")) or value is None or (id and id in seen):
                    continue
                seen.add(id)
                is_human = as_text(score.get("source")).upper() == "ANNOTATION"
                part = as_text(score.get("observationId", score.get("observation_id")))
                yield Label(
                    name=as_text(score.get("name")),
                    value=value,
                    rater="langfuse",
                    rater_kind="human" if is_human else "external",
                    subject_kind="observation" if part else "conversation",
                    subject=part,
                    notes=as_text(score.get("comment")),
                )


def _score(score: JsonObject) -> Any:
    """The value of a score; a category is a word, and its number says nothing."""
    kind, word = (
        as_text(score.get("dataType", score.get("data_type"))),
        score.get("stringValue", score.get("string_value")),
    )
    if kind == "BOOLEAN" and score.get("value") in (0, 1):
        return bool(score["value"])
    return word if (kind == "CATEGORICAL" and word is not None) or score.get("value") is None else score["value"]


def _is_trace(value: JsonObject) -> bool:
    """Whether an object is a trace by itself: a row of the table of traces."""
    has_talk = {"id", "timestamp", "input", "output"} <= value.keys()
    return has_talk and any(name in value for name in ("sessionId", "userId", "htmlPath", "projectId"))


def is_observation(value: Any) -> bool:
    """Whether an object is an observation of a trace."""
    has_trace = isinstance(value, dict) and ("traceId" in value or "trace_id" in value)
    return has_trace and isinstance(value.get("type"), str) and ("startTime" in value or "start_time" in value)


def _span(value: JsonObject, trace: JsonObject) -> LoggedSpan:
    level = as_text(value.get("level"))
    extra = {
        "sessionId": value.get("sessionId") or trace.get("sessionId"),
        "user.id": value.get("userId") or trace.get("userId"),
    }
    return LoggedSpan(
        trace=as_text(value.get("traceId", value.get("trace_id"))),
        id=as_text(value.get("id")),
        parent=as_text(value.get("parentObservationId", value.get("parent_observation_id"))),
        name=as_text(value.get("name")),
        start=seconds(value, ("startTime", "start_time", "timestamp")),
        end=seconds(value, ("endTime", "end_time")),
        attributes={**value, **extra, "scores": [*as_list(value.get("scores")), *as_list(trace.get("scores"))]},
        error=(as_text(value.get("statusMessage")) or "the observation has the level ERROR")
        if level == "ERROR"
        else "",
    )


def _take_over(span: LoggedSpan, whole: LoggedSpan) -> None:
    """The first observation of a trace takes over what only the trace says: its session, its user, its scores."""
    named = {name: whole.attributes.get(name) for name in ("sessionId", "user.id")}
    scores = [*as_list(span.attributes.get("scores")), *as_list(whole.attributes.get("scores"))]
    span.attributes = {**span.attributes, **filled(named), "scores": scores}


def _tool_run(span: LoggedSpan, given: Any, answer: Any) -> ToolRun:
    """A tool that ran; what it gave back may be written as a message."""
    inner = as_object(given).get("input", given) if set(as_object(given)) == {"input"} else given
    name = span.name.removeprefix("execute_tool ")
    return with_result_message(ToolRun(name=name, arguments=inner, result=answer, error=span.error))


def _usage(span: LoggedSpan) -> JsonObject:
    """Tokens, costs and times; a table has a column for each."""
    usage = numbers_in(as_object(span.first("usageDetails", "usage")), _TOKENS)
    cost = numbers_in(as_object(span.first("costDetails")), {"cost": ("total",)})
    return numbers_in(span.attributes, _COLUMNS) | usage | cost


READER = LangfuseReader()
