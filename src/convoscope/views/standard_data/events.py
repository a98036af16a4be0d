"""Parts of an item as parts of a conversation and back: events, tools, expectations, the end, the recording.

What a part of a conversation cannot hold stays in its `extras`, or in the fields of the item, so that the way back
returns exactly what came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

import msgspec

from convoscope.conversation.events import (
    AnyEvent,
    Clock,
    ComponentMetric,
    Retrieval,
    Time,
    ToolCall,
    ToolResult,
    moment,
)
from convoscope.conversation.model import (
    DIMENSIONS,
    AudioFile,
    Expected,
    ExpectedToolCall,
    Item,
    Outcome,
    Tool,
    Track,
)
from convoscope.views.standard_data.containers import free_name
from convoscope.views.standard_data.schema import STT, TTS

Fields = dict[str, Any]
Clocks = dict[str, Clock]

HAPPENED = frozenset(
    {"retrieval_query", "retrieved_context", "tool_calls", "tool_call_results"}
    | {"stt_data", "tts_data", "metrics_collected"}
)
"""The fields that become events."""
KEPT = "standard_data"
"""Where an item keeps the fields that the way back would not return exactly."""
SHARED = ("agent_name", "agent_role", "system_prompt", "tools_available", "raw_complete_audio")
"""Fields of the agent and the recording: the conversation has them, and an item only where its own differ."""
PEOPLE = ("user_id", "task_id")
"""Dimensions of the conversation where all of its items agree."""
NOTHING_EXPECTED = Expected()
_DIMENSION_NAMES = frozenset(DIMENSIONS)
_SPANS = {"stt_span": ("stt_data", STT), "tts_span": ("tts_data", TTS)}
_METRICS = "_metrics"
_UNKNOWN = "unknown"
_encode = msgspec.json.Encoder(order="sorted").encode

# The fields that attributes of parts come from, and go back to.
_TOOL = {
    "name": "name",
    "description": "description",
    "arguments_schema": "args_schema",
    "result_schema": "return_schema",
}
_CALL = {"name": "tool_name", "arguments": "parameters"}
_RESULT = {"call_id": "call_id", "result": "result", "success": "success", "error": "error_message"}
_TRACK = {"id": "audio_uuid", "url": "audio_url", "format": "format", "sample_rate": "sample_rate"}
_TEXTS = frozenset({"name", "description", "call_id", "error", "id", "url", "format"})
"""Attributes that are "" where they are not stated; the others are None."""


def _take_attributes(fields: Fields, names: Mapping[str, str]) -> Fields:
    return {name: take(fields, field, "" if name in _TEXTS else None) for name, field in names.items()}


def _fields_from(part: object, names: Mapping[str, str]) -> Fields:
    return {
        field: value
        for name, field in names.items()
        if (value := getattr(part, name)) is not None and not (name in _TEXTS and value == "")
    }


def take(fields: Fields, name: str, missing: Any = "") -> Any:
    """Take a value out; one that is null or "" stays where it is, and counts as missing."""
    value = fields.get(name)
    if value is None or value == missing:
        return missing
    return fields.pop(name)


def filled(fields: Fields) -> Fields:
    """Without nulls."""
    return {name: value for name, value in fields.items() if value is not None}


def keep(fields: Fields, name: str, value: Any) -> None:
    """Keep a field as it came: the way back would not return it exactly."""
    fields.setdefault(KEPT, {})[name] = value


def identical(first: Any, second: Any) -> bool:
    """The same value, down to its types: 1 is not 1.0, and neither is true."""
    if first is second or (type(first) is str and type(second) is str):
        return bool(first == second)
    try:
        return _encode(first) == _encode(second)
    except (TypeError, ValueError, RecursionError):
        return False


def time_of(value: Any, clocks: Clocks, until: Any = None) -> Time | None:
    """A time, and the end of its span where it is of the same clock; the clock is declared on first sight."""
    read = moment(value)
    if read is None:
        return None
    if read.kind not in clocks:
        clocks[read.kind] = Clock(id=read.kind, kind=read.kind, source="timestamp")
    end = None if until is None else moment(until)
    return Time(read.at, read.kind, end.at if end is not None and end.kind == read.kind else None)


# What happened


def happen(fields: Fields, timeline: list[AnyEvent], clocks: Clocks) -> tuple[int, ...]:
    """Move what happened out of the fields to the end of the timeline; the seqs in the order of the fields.

    An empty list stays in the fields: it says that there was nothing, which is worth knowing.
    """
    first = len(timeline)
    if "retrieval_query" in fields or "retrieved_context" in fields:
        _retrieve(fields, timeline)
    seqs: Iterable[int] = range(first, len(timeline))
    if fields.get("tool_calls") or fields.get("tool_call_results"):
        seqs = [*seqs, *_use_tools(fields, timeline)]
    if "metrics_collected" in fields or "stt_data" in fields or "tts_data" in fields:
        seqs = [*seqs, *_measure(fields, timeline, clocks)]
    return tuple(seqs)


def happened(events: Iterable[AnyEvent]) -> Fields:
    """The fields that these events stand for."""
    queries: list[str] = []
    chunks: list[list[str]] = []
    calls: list[Fields] = []
    results: list[Fields] = []
    spans: dict[str, dict[str, Any]] = {component: {} for component in _SPANS}
    metrics: list[Fields] = []
    for event in events:
        if type(event) is Retrieval:
            queries += [] if event.query is None else [event.query]
            chunks.append(list(event.chunks))
        elif type(event) is ToolCall:
            raw = {} if event.raw_arguments is None else {"raw_arguments": event.raw_arguments}
            calls.append({**_fields_from(event, _CALL), **raw, "call_id": event.call_id, **event.extras})
        elif type(event) is ToolResult:
            results.append({**_fields_from(event, {**_RESULT, "name": "tool_name"}), **event.extras})
        elif type(event) is ComponentMetric and event.component in _SPANS:
            labelled = spans[event.component]
            labelled[free_name(event.label, labelled)] = event.values
        elif type(event) is ComponentMetric:
            metrics.append(_metric_of(event))
    fields = {
        "retrieval_query": queries,
        "retrieved_context": chunks,
        "tool_calls": calls,
        "tool_call_results": results,
        **{_SPANS[name][0]: span[""] if list(span) == [""] else span for name, span in spans.items()},
        "metrics_collected": metrics,
    }
    return {name: value for name, value in fields.items() if value}


def _retrieve(fields: Fields, timeline: list[AnyEvent]) -> None:
    """The chunks that each query returned; the query of chunks without one is None."""
    queries, chunks = fields.get("retrieval_query"), fields.get("retrieved_context")
    if queries:
        del fields["retrieval_query"]
        if chunks is None:
            fields["retrieved_context"] = None
        elif 0 < len(chunks) < len(queries):
            keep(fields, "retrieved_context", chunks)
    if chunks:
        del fields["retrieved_context"]
    for query, query_chunks in zip_longest(queries or (), chunks or ()):
        timeline.append(Retrieval(seq=len(timeline), query=query, chunks=tuple(query_chunks or ())))


def _use_tools(fields: Fields, timeline: list[AnyEvent]) -> list[int]:
    """Each call, and after it the results that carry its id; then the results that belong to no call."""
    calls, results = fields.get("tool_calls"), fields.get("tool_call_results")
    open_results: dict[str, list[int]] = {}
    if results:
        del fields["tool_call_results"]
        for index, result in enumerate(results):
            open_results.setdefault(result.get("call_id") or "", []).append(index)
    seqs: list[int] = []
    answers: dict[int, int] = {}

    def answer(indices: Iterable[int]) -> None:
        for index in indices:
            answers[index] = seq = len(timeline)
            remaining = dict(results[index])  # type: ignore[index]
            timeline.append(ToolResult(seq=seq, **_take_attributes(remaining, _RESULT), extras=remaining))

    if calls:
        del fields["tool_calls"]
        for call in calls:
            seqs.append(len(timeline))
            timeline.append(_to_call(call, len(timeline)))
            if open_results and (call_id := call.get("call_id")):
                answer(open_results.pop(call_id, ()))
    answer(sorted(index for indices in open_results.values() for index in indices))
    return [*seqs, *(answers[index] for index in range(len(answers)))]


def _to_call(call: Fields, seq: int) -> ToolCall:
    name, given, call_id = call.get("tool_name"), call.get("parameters"), call.get("call_id")
    if len(call) == 3 and name and given is not None and call_id is not None:
        return ToolCall(seq=seq, name=name, arguments=given, call_id=call_id)
    remaining = dict(call)
    call_id = remaining.pop("call_id", "")
    return ToolCall(seq=seq, **_take_attributes(remaining, _CALL), call_id=call_id, extras=remaining)


def _measure(fields: Fields, timeline: list[AnyEvent], clocks: Clocks) -> list[int]:
    """Component metrics, by their times where all of them have one of the same clock; else as they are listed."""
    measured = [
        *_spans(fields, "stt_span", clocks),
        *(_to_metric(metric, clocks) for metric in fields.get("metrics_collected") or ()),
        *_spans(fields, "tts_span", clocks),
    ]
    for name in ("stt_data", "metrics_collected", "tts_data"):
        if fields.get(name):
            del fields[name]
    order = list(range(len(measured)))
    times = [metric["time"] for metric in measured if metric["time"] is not None]
    if len(times) == len(measured) and len({time.clock for time in times}) == 1:
        order.sort(key=lambda index: times[index].at)
    seqs = [0] * len(measured)
    for seq, index in enumerate(order, len(timeline)):
        seqs[index] = seq
        timeline.append(ComponentMetric(seq=seq, **measured[index]))
    return seqs


def _spans(fields: Fields, component: str, clocks: Clocks) -> list[Fields]:
    name, kind = _SPANS[component]
    given = fields.get(name)
    if not given:
        return []
    by_turn: Mapping[str, Any] = {"": given} if kind.is_single(given) else given
    if "" in by_turn and by_turn[""] is not given:
        keep(fields, name, given)
    return [
        {
            "component": component,
            "label": label,
            "values": values,
            "time": time_of(values.get("span_start_time"), clocks, values.get("span_end_time")),
        }
        for label, values in by_turn.items()
    ]


def _to_metric(metric: Fields, clocks: Clocks) -> Fields:
    """A metric is named by its type without `_metrics`; a type that is not written so stays among the values."""
    values = dict(metric)
    type_ = values.get("type")
    component, extras = _UNKNOWN, {}
    if not isinstance(type_, str):
        extras = {} if "type" in values else {"type": None}
    elif type_.endswith(_METRICS) and type_ != _METRICS and type_.removesuffix(_METRICS) not in _SPANS:
        component = type_.removesuffix(_METRICS)
        del values["type"]
    else:
        component = f"{type_}{_METRICS}" if type_ in _SPANS else type_ or _UNKNOWN
    named = (name for name in ("label", "speech_id") if isinstance(values.get(name), str) and values[name])
    texts = {name: values.pop(name) for name in named}
    time = time_of(values.get("timestamp"), clocks)
    return {"component": component, **texts, "time": time, "values": values, "extras": extras}


def _metric_of(metric: ComponentMetric) -> Fields:
    fields = {
        "type": None if "type" in metric.extras else f"{metric.component}{_METRICS}",
        "label": metric.label or None,
        "speech_id": metric.speech_id or None,
        "state": metric.state or None,
        "timestamp": metric.time.at if metric.time is not None and metric.time.clock == "wall" else None,
    }
    return {**filled(fields), **metric.values}


# What is known of an item beside what happened


def to_tool(schema: Fields) -> Tool:
    remaining = dict(schema)
    return Tool(**_take_attributes(remaining, _TOOL), extras=remaining)


def schema_of(tool: Tool) -> Fields:
    kind = {"type": tool.kind} if tool.kind else {}
    return {**_fields_from(tool, _TOOL), **kind, **tool.extras}


def take_expected(fields: Fields) -> Expected:
    """What a good answer would be, taken out of the fields."""
    call = fields.pop("expected_tool_call", None)
    calls = None
    if call is not None:
        remaining = dict(call)
        call_id = remaining.pop("call_id", "")
        calls = (ExpectedToolCall(**_take_attributes(remaining, _CALL), call_id=call_id, extras=remaining),)
    return Expected(
        ground_truth=fields.pop("ground_truth", None), format=fields.pop("expected_format", None), tool_calls=calls
    )


def expected_call_of(call: ExpectedToolCall) -> Fields:
    return {**_fields_from(call, _CALL), "call_id": call.call_id, **call.extras}


def fields_of_expected(expected: Expected) -> Fields:
    """The fields; an item has a field for one expected call, so several are left out."""
    fields: Fields = {"ground_truth": expected.ground_truth, "expected_format": expected.format}
    if expected.tool_calls is not None and len(expected.tool_calls) == 1:
        fields["expected_tool_call"] = expected_call_of(expected.tool_calls[0])
    return filled(fields)


def take_outcome(fields: Fields) -> Outcome | None:
    """How the item ended, taken out of the fields; None where they do not say."""
    if "agent_exit" not in fields and not fields.get("exit_status"):
        return None
    return Outcome(finished=fields.pop("agent_exit", None), final_status=take(fields, "exit_status"))


def fields_of_outcome(outcome: Outcome | None) -> Fields:
    if outcome is None:
        return {}
    return filled({"agent_exit": outcome.finished, "exit_status": outcome.final_status or None})


def fields_of_item(item: Item) -> Fields:
    """What the item itself says: its kind, what it expects, how it ended."""
    kind = {"novaeval_item_type": item.kind} if item.kind else {}
    return {**kind, **fields_of_expected(item.expected), **fields_of_outcome(item.outcome)}


def to_recording(audio: Fields) -> AudioFile:
    remaining = dict(audio)
    duration = remaining.get("audio_duration")
    # A whole number may be too large for a double to hold exactly: then it stays where it is.
    exact = duration is not None and float(duration) == duration
    track = Track(
        **_take_attributes(remaining, _TRACK), duration=float(remaining.pop("audio_duration")) if exact else None
    )
    return AudioFile(tracks=(track,), transcript=take(remaining, "complete_transcript"), extras=remaining)


def audio_of(recording: AudioFile) -> Fields:
    """The fields of the first track: the schema knows one."""
    track = recording.tracks[0] if recording.tracks else Track()
    fields = {
        **_fields_from(track, {**_TRACK, "duration": "audio_duration"}),
        "channels": len(track.channels) or None,
        "complete_transcript": recording.transcript or None,
    }
    return {**filled(fields), **recording.extras}


def add_dimensions(dimensions: dict[str, str], metadata: Any) -> None:
    """The dimensions that an item's metadata name, as text, where they are not there already."""
    for name, value in metadata.items():
        if name in _DIMENSION_NAMES and name not in dimensions:
            text = str(value) if type(value) in (str, int, float) else ""
            if text:
                dimensions[name] = text
