"""Langfuse traces: `{trace, observations}` as the application exports them, lists of the API, and rows of CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from convoscope.conversation import Label
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.kits.exchanges import response_messages
from convoscope.ingest.kits.shapes import embedded, plain_messages
from convoscope.ingest.kits.spans import Span, seconds
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
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text

_TURN = re.compile(r"^(system|developer|user|human|assistant|ai|tool): ?", re.M)
_MODELS = ("GENERATION", "EMBEDDING")
_REPLIES = ("replies", "toolCalls", "finish_reason")
"""Fields that answers of frameworks have, and no message."""
_UNTYPED = ("SPAN", "CHAIN")
_TOKENS = {
    "prompt_tokens": ("input", "prompt_tokens"),
    "completion_tokens": ("output", "completion_tokens"),
    "total_tokens": ("total",),
}


class LangfuseReader(TraceReader):
    """Traces with observations of the types GENERATION, TOOL, SPAN and the like."""

    name = "langfuse"
    title = "Langfuse"
    confidence = 0.95
    sessions = ("sessionId",)

    def knows(self, span: Span) -> bool:
        return bool(span.attributes)

    def agent(self, span: Span) -> str:
        return span.name if span.text("type") == "AGENT" else ""

    def spans(self, value: Any) -> Iterable[Span]:
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
                yield _span({**trace, "traceId": trace.get("id"), "type": "GENERATION", "observations": None}, trace)

    def spans_of(self, group: RecordGroup) -> list[Span]:
        """All spans; one that is named like a tool that a model called is a tool, whatever its type says."""
        spans = super().spans_of(group)
        if any(span.text("type").upper() in _UNTYPED for span in spans):
            outputs = [embedded(span.attributes.get("output")) for span in spans if span.text("type") in _MODELS]
            blocks = [
                block for answer in outputs for message in messages(answer, "assistant") for block in message["content"]
            ]
            called = {block.get("name") for block in blocks if block["type"] == "tool_use"}
            parents = {span.parent for span in spans if span.text("type") in _MODELS}
            for span in spans:
                if span.text("type").upper() in _UNTYPED and span.name in called and span.id not in parents:
                    span.attributes = {**span.attributes, "type": "TOOL"}
        return spans

    def logged(self, span: Span) -> Logged | None:
        kind = span.text("type").upper()
        given, answer = (_unquoted(embedded(span.attributes.get(name))) for name in ("input", "output"))
        if kind == "TOOL":
            return _tool_run(span, given, answer)
        if kind == "RETRIEVER":
            return Lookup(
                query=as_text(given) or as_text(as_object(given).get("query")) or None, chunks=chunks_of(answer)
            )
        if kind != "GENERATION":  # what is sent for a vector is no talk
            return None
        listed = [entry["content"] for entry in map(as_object, as_list(given)) if _is_definition(entry)]
        return LoggedCall(
            inputs=messages(given, "user"),
            outputs=messages(answer, "assistant"),
            model=span.text("model"),
            tools=listed or None,
            usage=_usage(span),
        )

    def labels(self, spans: Sequence[Span]) -> Iterator[Label]:
        seen: set[str] = set()
        for span in spans:
            for score in map(as_object, as_list(span.attributes.get("scores"))):
                id = as_text(score.get("id"))
                value = score.get("value") if score.get("value") is not None else score.get("stringValue")
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


def _is_trace(value: JsonObject) -> bool:
    """Whether an object is a trace by itself: a row of the table of traces."""
    has_talk = {"id", "timestamp", "input", "output"} <= value.keys()
    return has_talk and any(name in value for name in ("sessionId", "userId", "htmlPath", "projectId"))


def is_observation(value: Any) -> bool:
    """Whether an object is an observation of a trace."""
    has_trace = isinstance(value, dict) and ("traceId" in value or "trace_id" in value)
    return has_trace and isinstance(value.get("type"), str) and ("startTime" in value or "start_time" in value)


def _span(value: JsonObject, trace: JsonObject) -> Span:
    level = as_text(value.get("level"))
    extra = {
        "sessionId": value.get("sessionId") or trace.get("sessionId"),
        "user.id": value.get("userId") or trace.get("userId"),
    }
    return Span(
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


def _tool_run(span: Span, given: Any, answer: Any) -> ToolRun:
    """A tool that ran; what it gave back may be written as a message."""
    inner = as_object(given).get("input", given) if set(as_object(given)) == {"input"} else given
    name = span.name.removeprefix("execute_tool ")
    return with_result_message(ToolRun(name=name, arguments=inner, result=answer, error=span.error))


def _is_definition(message: JsonObject) -> bool:
    """Whether a message of a tool says what the tool is: some integrations list the tools behind the messages."""
    content = as_object(message.get("content"))
    return content.get("type") == "function" and "name" in as_object(content.get("function"))


def messages(value: Any, role: str) -> list[JsonObject]:
    """The messages of an input or output, in the many shapes that integrations write."""
    value = None if value == "None" else value  # nothing, as Python prints it
    if isinstance(value, list):
        value = [entry for entry in value if not (isinstance(entry, dict) and _is_definition(entry))]
    if isinstance(value, str):
        return _by_prefix(value) or plain_messages(value, role)
    if isinstance(value, list) and value and all(isinstance(entry, str) for entry in value):
        return [] if any(entry.startswith("role=") for entry in value) else plain_messages("\n".join(value), role)
    held = as_object(value)
    if isinstance(held.get("messages"), list) and any(isinstance(entry, str) for entry in held["messages"]):
        return []  # the objects of a program as it prints them
    if any(isinstance(held.get(name), list) and held[name] for name in ("choices", "candidates", "output")):
        return response_messages(held)
    if role == "assistant" and "role" not in held and any(name in held for name in _REPLIES):
        return _reply(held)
    if isinstance(held.get("prompt"), str):
        system = plain_messages(as_text(held.get("system")), "system")
        return [*system, *plain_messages(held["prompt"], role)]
    if isinstance(value, list) and value and all("toolName" in as_object(entry) for entry in value):
        return plain_messages([{"role": role, "content": [{"type": "tool-call", **entry} for entry in value]}], role)
    instructions = as_object(held.get("config")).get("system_instruction")
    matched = plain_messages(_content(value), role)
    return [*plain_messages(instructions, "system"), *matched] if isinstance(instructions, str) and matched else matched


def _content(value: Any) -> Any:
    """Google's ADK holds a message in its content; other values as they are."""
    held = as_object(value).get("content")
    return held if isinstance(held, dict) else value


def _reply(value: JsonObject) -> list[JsonObject]:
    """An answer that has no role: Haystack's replies, Mastra's text with calls, the message of Strands."""
    if isinstance(value.get("replies"), list):
        return plain_messages(value["replies"], "assistant")
    if isinstance(value.get("message"), dict) or "content" in value:
        return plain_messages(_content(value), "assistant")
    calls = [{"type": "tool-call", **as_object(entry)} for entry in as_list(value.get("toolCalls"))]
    words = {"role": "assistant", "content": value.get("text", value.get("message"))}
    return plain_messages([words, {"role": "assistant", "content": calls}], "assistant")


def _unquoted(value: Any) -> Any:
    """A text that is written as JSON, in quotes; other values as they are."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        with suppress(BadJson):
            return decode(value.encode("utf-8", "replace")).value
    return value


def _by_prefix(text: str) -> list[JsonObject]:
    """Messages that are written one after the other, each behind its role; nothing where a text is not so."""
    starts = list(_TURN.finditer(text))
    if not starts or starts[0].start():
        return []
    ends = [*(entry.start() for entry in starts[1:]), len(text)]
    matched = [(entry[1], text[entry.end() : end].strip()) for entry, end in zip(starts, ends, strict=True)]
    return [
        message
        for role, words in matched
        if words not in ("", "None")
        for message in plain_messages({"role": role, "content": words})
    ]


def _usage(span: Span) -> JsonObject:
    details: Mapping[str, Any] = as_object(span.first("usageDetails", "usage"))
    matched = {
        name: next((as_number(details[key]) for key in keys if key in details), None) for name, keys in _TOKENS.items()
    }
    matched["cost"] = as_number(as_object(span.first("costDetails")).get("total")) or as_number(
        span.first("totalCost", "calculatedTotalCost")
    )
    matched["ttft"] = as_number(span.first("timeToFirstToken"))
    return {name: value for name, value in matched.items() if value is not None}


READER = LangfuseReader()
