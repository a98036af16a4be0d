"""Spans of traces, read from any envelope: OTLP JSON, protobuf as JSON, console exporters, rows of a table."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation.events import moment
from convoscope.ingest.kits.shapes import embedded
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text

_LISTS = ("spans", "data", "batches", "traces", "results", "items", "rows")
_STARTS = ("startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "start_timestamp", "timestamp")
_ENDS = ("endTimeUnixNano", "end_time_unix_nano", "end_time", "endTime", "end_timestamp")
_PARENTS = ("parentSpanId", "parent_span_id", "parent_id", "parentId")
_ATTRIBUTES = "attributes"
_CONTEXTS = ("context", "spanContext", "_spanContext")
_CHILDREN = ("child_spans", "children")
_LOGGED_AT = ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano")
_DEEPEST = 6
_BARE = ("gen_ai.", "openinference.", "llm.input_messages.", "ai.prompt")


class SpanEvent(msgspec.Struct, frozen=True):
    """Something that a span logs on the way."""

    name: str
    attributes: JsonObject
    at: float | None = None


class LoggedSpan(msgspec.Struct, kw_only=True):
    """One step of a trace. Times are seconds since 1970, or from any start."""

    trace: str = ""
    id: str = ""
    parent: str = ""
    name: str = ""
    start: float | None = None
    end: float | None = None
    attributes: JsonObject = {}
    events: tuple[SpanEvent, ...] = ()
    error: str = ""
    """What went wrong; "" where the span ended well."""
    resource: JsonObject = {}
    raw: tuple[JsonObject, ...] = ()
    """The span as it was written, and what it was written into: a scope, a resource."""
    is_log: bool = False
    """It is no span, but a record of a log about one: its event."""

    def first(self, *names: str) -> Any:
        """The first of these attributes that has a value; JSON in a text is read."""
        for name in names:
            value = self.attributes.get(name)
            if value not in (None, "", [], {}):
                return embedded(value)
        return None

    def text(self, *names: str) -> str:
        """The first of these attributes that is a text or a number, as text."""
        return next((text for name in names if (text := as_text(self.attributes.get(name)))), "")


def spans_in(value: Any, depth: int = 0, around: tuple[JsonObject, ...] = ()) -> Iterator[LoggedSpan]:
    """The spans of a record: of OTLP JSON, of protobuf as JSON, of console exporters, or rows of a table."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for entry in value:
            yield from spans_in(entry, depth + 1, around)
        return
    if not isinstance(value, dict):
        return
    if any(isinstance(value.get(name), list) for name in (*_SPANS.batches, *_LOGS.batches)):
        around = (*around, _without(value, *_SPANS.batches, *_LOGS.batches))
        for kind in (_SPANS, _LOGS):
            for batch in (batch for name in kind.batches for batch in as_list(value.get(name))):
                yield from _otlp_batch(as_object(batch), around, kind)
    elif _is_log(value):
        yield _log(value, {}, around)
    elif is_span(value):
        yield _span(_without(value, *_CHILDREN), {}, around)
        for name in _CHILDREN:
            yield from spans_in(as_list(value.get(name)), depth + 1)
    elif any(name.startswith(_BARE) for name in value):
        yield LoggedSpan(attributes=_flat(value), raw=(value, *around))  # the attributes of a span alone
    else:
        inner = [name for name in _LISTS if isinstance(value.get(name), list | dict)]
        around = (*around, _without(value, *inner))
        for name in inner:
            yield from spans_in(value[name], depth + 1, around)


def _without(value: JsonObject, *names: str) -> JsonObject:
    return {name: inner for name, inner in value.items() if name not in names}


def _context(value: JsonObject) -> JsonObject:
    """What holds the ids of a span: an object of its own, or the span."""
    return next((held for name in _CONTEXTS if (held := as_object(value.get(name)))), value)


def is_span(value: Any) -> bool:
    """Whether an object is one span: it has two of ids, attributes and a start."""
    if not isinstance(value, dict):
        return False
    context = _context(value)
    has_ids = any(name in context for name in ("spanId", "span_id", "context.span_id"))
    has_attributes = isinstance(embedded(value.get(_ATTRIBUTES)), dict | list) or any(
        name.startswith("attributes.") for name in value
    )
    return sum((has_ids, has_attributes, any(name in value for name in _STARTS))) >= 2


class _Signal(NamedTuple):
    """The names of one kind of OTLP: of its batches, of their scopes, and of what these hold."""

    batches: tuple[str, ...]
    scopes: tuple[str, ...]
    records: tuple[str, ...]


_SPANS = _Signal(
    ("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans", "instrumentationLibrarySpans"), ("spans",)
)
_LOGS = _Signal(("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"))


def _otlp_batch(batch: JsonObject, around: tuple[JsonObject, ...], kind: _Signal) -> Iterator[LoggedSpan]:
    resource = attributes_of(as_object(batch.get("resource")).get(_ATTRIBUTES))
    scopes = [scope for name in kind.scopes for scope in as_list(batch.get(name))]
    around = (*around, _without(batch, *kind.scopes))
    for scope in map(as_object, scopes):
        around_records = (*around, _without(scope, *kind.records))
        for record in (as_object(record) for name in kind.records for record in as_list(scope.get(name))):
            yield (_log if kind is _LOGS else _span)(record, resource, around_records)


def _is_log(value: JsonObject) -> bool:
    """Whether an object is one record of a log, as Python's console exporter prints it."""
    return "severity_number" in value and "body" in value and ("span_id" in value or "event_name" in value)


def _log(value: JsonObject, resource: JsonObject, around: tuple[JsonObject, ...]) -> LoggedSpan:
    """A record of a log as a span that holds one event; `with_logs` puts the event into the span that it is about."""
    span = _span(value, resource, around)
    span.start = span.end = seconds(value, (*_LOGGED_AT, "timestamp"))
    names = ("eventName", "event_name", "name")
    span.name = next((name for key in names if (name := as_text(value.get(key)))), "") or span.text("event.name")
    body = attributes_of(any_value(value.get("body"))) or any_value(value.get("body"))
    span.events = (SpanEvent(span.name, {**span.attributes, "body": body}, span.start),)
    span.is_log = True
    return span


def with_logs(spans: Iterable[LoggedSpan]) -> list[LoggedSpan]:
    """Spans, with the records of logs as their events. Records about a span that is not there become one."""
    whole: dict[tuple[str, str], LoggedSpan] = {}
    merged: list[LoggedSpan] = []
    logs: list[LoggedSpan] = []
    for span in spans:
        if span.is_log:
            logs.append(span)
            continue
        merged.append(span)
        whole.setdefault((span.trace, span.id), span)
    for log in sorted(logs, key=lambda log: log.start or 0.0):
        about = whole.get((log.trace, log.id)) if log.id else None
        if about is None:
            whole[log.trace, log.id] = log
            merged.append(log)
            continue
        about.events = (*about.events, *log.events)
        about.attributes = {**log.attributes, **about.attributes}
        about.raw = (*about.raw, *log.raw)
        if about.is_log:
            about.end = log.end
    return merged


def _span(value: JsonObject, resource: JsonObject, around: tuple[JsonObject, ...]) -> LoggedSpan:
    context = _context(value)
    parent = as_object(value.get("parent")) or as_object(value.get("parentSpanContext"))
    attributes = attributes_of(value.get(_ATTRIBUTES))
    for name, entry in value.items():
        if name.startswith("attributes.") and entry is not None:
            attributes |= _flat({name.removeprefix("attributes."): entry})
    return LoggedSpan(
        trace=_id(context, "traceId", "trace_id", "context.trace_id"),
        id=_id(context, "spanId", "span_id", "context.span_id") or (_id(value, "id") if "traceId" in value else ""),
        parent=_id(parent, "spanId", "span_id") or _id(value, *_PARENTS),
        name=as_text(value.get("name")) or as_text(value.get("span_name")),
        start=_time(value, _STARTS),
        end=_time(value, _ENDS),
        attributes=attributes,
        events=tuple(map(_event, map(as_object, as_list(embedded(value.get("events")))))),
        error=_error(value),
        resource=resource or attributes_of(as_object(value.get("resource")).get(_ATTRIBUTES)),
        raw=(value, *around),
    )


def _time(value: JsonObject, names: Sequence[str]) -> float | None:
    """A time of a span. Spans of Python's SDK, which have a context, count nanoseconds, if only from 0 in tests."""
    counted = next((value[name] for name in names if name in value), None)
    is_counted = isinstance(counted, int) and isinstance(value.get("context"), dict)
    number = as_number(counted) if is_counted else None
    return seconds(value, names) if number is None else number / 1e9


def _event(value: JsonObject) -> SpanEvent:
    return SpanEvent(
        as_text(value.get("name")),
        attributes_of(value.get(_ATTRIBUTES)),
        seconds(value, ("timeUnixNano", "time_unix_nano", "timestamp", "time")),
    )


def _id(value: JsonObject, *names: str) -> str:
    """An id as hexadecimal text: protobuf as JSON has base64, Python's console exporter 0x before it."""
    text = next((text for name in names if (text := as_text(value.get(name)))), "")
    text = text.removeprefix("0x")
    if len(text) in (12, 24) and not all(character in "0123456789abcdefABCDEF-" for character in text):
        try:
            return base64.b64decode(text, validate=True).hex()
        except (binascii.Error, ValueError):
            return text
    return text


def seconds(value: JsonObject, names: Sequence[str]) -> float | None:
    """A time in any notation; a pair is seconds and nanoseconds."""
    for name in names:
        time = value.get(name)
        if isinstance(time, list) and len(time) == 2:
            whole, part = map(as_number, time)
            if whole is not None and part is not None:
                return whole + part / 1e9
        read = moment(time) if time is not None else None
        if read is not None:
            # Tests of exporters count nanoseconds from 0: no trace of years ago has such a number.
            return read.at / 1e9 if read.kind == "relative" and "nano" in name.casefold() else read.at
    return None


def _error(value: JsonObject) -> str:
    status = value.get("status")
    code = as_object(status).get("code", as_object(status).get("status_code")) if isinstance(status, dict) else status
    code = value.get("status_code") if code is None else code
    if code in (2, "2", "ERROR", "STATUS_CODE_ERROR", "error"):
        message = (
            as_object(status).get("message") or as_object(status).get("description") or value.get("status_message")
        )
        return as_text(message) or "the span has the status error"
    return ""


def attributes_of(value: Any) -> JsonObject:
    """Attributes by name: of OTLP a list of typed values, elsewhere an object, which may be nested."""
    value = embedded(value)
    if isinstance(value, list):
        named = ((as_object(entry).get("key"), as_object(entry).get("value")) for entry in value)
        return {name: any_value(held) for name, held in named if isinstance(name, str)}
    return _flat(value) if isinstance(value, dict) else {}


def any_value(value: Any) -> Any:
    """A value of OTLP, which names its type: `{"stringValue": "a"}`; other values as they are."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    kind = kind.replace("_", "").casefold()
    if kind in ("stringvalue", "boolvalue", "doublevalue", "bytesvalue"):
        return held
    if kind == "intvalue":
        return int(held) if isinstance(held, str) and held.lstrip("-").isdecimal() else held
    if kind == "arrayvalue":
        return [any_value(entry) for entry in as_list(as_object(held).get("values"))]
    if kind == "kvlistvalue":
        return attributes_of(as_object(held).get("values"))
    return value


_NESTED = (
    "gen_ai",
    "llm",
    "ai",
    "openinference",
    "input",
    "output",
    "session",
    "user",
    "tool",
    "retrieval",
    "metadata",
)


def _flat(attributes: Mapping[str, Any]) -> JsonObject:
    """Attributes that some exporters nest, under the names that they had: `llm.model_name`."""
    flat: JsonObject = {}
    for name, value in attributes.items():
        if name in _NESTED and isinstance(value, dict):
            _flatten(name, value, flat)
        else:
            flat[name] = value
    return flat


def _flatten(prefix: str, value: Any, flat: JsonObject, depth: int = 0) -> None:
    if isinstance(value, dict) and depth < _DEEPEST:
        for name, inner in value.items():
            _flatten(f"{prefix}.{name}", inner, flat, depth + 1)
    else:
        flat[prefix] = value


def unflattened(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list that attributes hold under a prefix, one attribute for each value: `prefix.0.role`, `prefix.0.content`.

    >>> unflattened({"p.0.role": "user", "p.1.role": "assistant", "p.1.calls.0.name": "f"}, "p")
    [{'role': 'user'}, {'role': 'assistant', 'calls': [{'name': 'f'}]}]
    """
    tree: JsonObject = {}
    for name, value in attributes.items():
        if not name.startswith(f"{prefix}."):
            continue
        node, *rest = tree, *name[len(prefix) + 1 :].split(".")
        for key in rest[:-1]:
            inner = node.setdefault(key, {})
            node = inner if isinstance(inner, dict) else node
        node[rest[-1]] = value
    listed = _as_lists(tree)
    return listed if isinstance(listed, list) else [listed] if listed else []


def _as_lists(node: Any) -> Any:
    """Objects whose keys are all numbers, as lists in the order of the numbers."""
    if not isinstance(node, dict):
        return node
    if node and all(key.isdecimal() for key in node):
        return [_as_lists(node[key]) for key in sorted(node, key=int)]
    return {key: _as_lists(value) for key, value in node.items()}
