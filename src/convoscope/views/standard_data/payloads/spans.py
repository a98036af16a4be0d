"""Spans as noveum-trace writes them: dotted keys, sorted into the fields of an evaluation item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import EOU, TTS, TURN, keep
from convoscope.views.standard_data.schema import STTData, TTSData
from convoscope.views.standard_data.values import to_number

METRICS = "metrics_collected"
METRICS_PREFIX = f"{METRICS}."
_FIELDS = {"stt": "stt_data", "tts": "tts_data", "full_conversation": "raw_complete_audio"}
_RENAMED = {
    "stt": {"text": "transcript"},
    "tts": {"text": "input_text"},
    "full_conversation": {"audio_format": "format", "audio_channels": "channels", "transcript": "complete_transcript"},
    "turn": {"user_bot_latency_seconds": "e2e_latency"},
}
_NESTED = {
    "stt": frozenset({"provider", "model", "transcript", "text", "confidence", "is_final", "audio_uuid"}),
    "tts": frozenset({"provider", "model", "input_text", "text", "audio_uuid", "audio_duration_ms", "ttfb_ms"}),
    "full_conversation": frozenset({"audio_uuid", "audio_format", "audio_channels", "duration_ms"}),
    "turn": frozenset({"user_bot_latency_seconds", "was_interrupted"}),
}
"""Keys by which an object under such a name is known for the attributes of a span."""
_SPAN_TIMES = {
    "span_start_time": ("start_time", "span.start_time"),
    "span_end_time": ("end_time", "span.end_time"),
    "span_duration_ms": ("duration_ms", "span.duration_ms"),
}
_ALSO_MEASURED = {
    ("stt", "vad_to_final_ms"): (EOU, "transcription_delay"),
    ("tts", "ttfb_ms"): (TTS, "ttfb"),
}
"""Attributes that are measurements of a component: they stay where they are, and become a metric as well.

Where they are all that is known of the speech, they are only in the metric.
"""
SIGNS = frozenset({*_NESTED, "attributes"})
"""Names by which a span is known, beside those with a dot."""


class TraceSpan(NamedTuple):
    """Fields of an item, and the keys that were not used: `{**rest, **fields}` is the payload of the item."""

    fields: dict[str, Any]
    """Some of stt_data, tts_data, metrics_collected, raw_complete_audio."""
    rest: dict[str, Any]


def from_span(payload: Mapping[str, Any]) -> TraceSpan:
    """Sort the keys of a span into fields of an item: `stt.*`, `tts.*`, `turn.*`, `full_conversation.*`, metrics.

    They may be in `attributes`, and nested instead of dotted. A field that the payload has already is not
    touched: the keys stay in the rest. Values are as they came, but for milliseconds where the item has seconds.
    """
    rest = dict(payload)
    if SIGNS.isdisjoint(rest) and not any("." in key for key in rest if isinstance(key, str)):
        return TraceSpan({}, rest)
    attributes_of: dict[str, dict[str, Any]] = {}
    metrics: list[Any] = []
    taken = {name for name, field in _FIELDS.items() if rest.get(field) is not None}
    rest = _sorted_out(rest, taken, attributes_of)
    if isinstance(rest.get("attributes"), dict):
        attributes = _sorted_out(rest.pop("attributes"), taken, attributes_of)
        if attributes.get(METRICS) is not None:
            metrics.append(attributes.pop(METRICS))
        if attributes or payload["attributes"] == {}:
            rest["attributes"] = attributes
    fields: dict[str, Any] = {
        _FIELDS[name]: _renamed(name, values) for name, values in attributes_of.items() if name in _FIELDS
    }
    # When the span began and ended, and how long it took; of a span of both kinds they are of neither.
    speech = [fields[name] for name in ("stt_data", "tts_data") if name in fields]
    for name, keys in _SPAN_TIMES.items() if len(speech) == 1 else ():
        for key in keys:
            if rest.get(key) is not None and name not in speech[0]:
                speech[0][name] = rest.pop(key)
    _let_go(fields, attributes_of, rest)
    audio = fields.get("raw_complete_audio", {})
    milliseconds = to_number(audio.get("duration_ms"))
    if milliseconds is not None and audio.get("audio_duration") is None:
        audio["audio_duration"] = milliseconds / 1000
    metrics += _metrics(attributes_of, fields)
    if metrics:
        own = rest.pop(METRICS, None)
        fields[METRICS] = metrics if own is None else [own, *metrics]
    return TraceSpan(fields, rest)


def unflattened(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A flattened event put together again: `metrics_collected.metrics.ttft` is the `ttft` of its `metrics`."""
    whole = {key: value for key, value in entry.items() if not _is_under(key, METRICS_PREFIX)}
    for key, value in entry.items():
        if not _is_under(key, METRICS_PREFIX):
            continue
        *steps, last = key.removeprefix(METRICS_PREFIX).split(".", 2)
        inside = whole
        for step in steps:
            below = inside.get(step, {})
            if not isinstance(below, dict):
                inside, last = whole, key.removeprefix(METRICS_PREFIX)
                break
            inside[step] = dict(below)
            inside = inside[step]
        keep(inside, last, value)
    return whole


def _is_under(key: object, prefix: str) -> bool:
    return isinstance(key, str) and key.startswith(prefix)


def _sorted_out(keys: Mapping[str, Any], taken: set[str], attributes_of: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What is not of a span; the rest is added to the attributes of its first word."""
    rest: dict[str, Any] = {}
    of_a_turn = any(f"turn.{name}" in keys for name in _NESTED["turn"])
    for key, value in keys.items():
        head, dot, tail = key.partition(".") if isinstance(key, str) else (key, "", "")
        if head == METRICS and tail:
            keep(attributes_of.setdefault(METRICS, {}), key, value)
        elif head not in _NESTED or head in taken or (head == "turn" and dot and not of_a_turn):
            rest[key] = value
        elif tail:
            keep(attributes_of.setdefault(head, {}), tail, value)
        elif not dot and isinstance(value, dict) and not _NESTED[head].isdisjoint(value):
            for name, member in value.items():
                keep(attributes_of.setdefault(head, {}), name, member)
        else:
            rest[key] = value
    return rest


def _renamed(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    names = _RENAMED[name]
    return {key if names.get(key, key) in values else names[key]: value for key, value in values.items()}


def _let_go(fields: dict[str, Any], attributes_of: Mapping[str, Mapping[str, Any]], rest: dict[str, Any]) -> None:
    """Attributes none of which the schema knows are no record of speech: they would be read as a map by turn."""
    for name, shape in (("stt", STTData.kind), ("tts", TTSData.kind)):
        record = fields.get(_FIELDS[name])
        if record is not None and not shape.fits(record):
            del fields[_FIELDS[name]]
            for key, value in attributes_of[name].items():
                if (name, key) not in _ALSO_MEASURED or to_number(value) is None:
                    keep(rest, f"{name}.{key}", value)


def _metrics(attributes_of: Mapping[str, Mapping[str, Any]], fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the span measured: a flattened event, a turn, and attributes that are measurements."""
    metrics: list[dict[str, Any]] = []
    if METRICS in attributes_of:
        metrics.append(unflattened(attributes_of[METRICS]))
    for (name, key), (component, field) in _ALSO_MEASURED.items():
        attribute = attributes_of.get(name, {}).get(key)
        milliseconds = to_number(attribute)
        if milliseconds is not None:
            original = {} if _FIELDS[name] in fields else {key: attribute}
            metrics.append({"type": component, field: milliseconds / 1000, **original, "source": f"{name}.{key}"})
    if "turn" in attributes_of:
        turn = _renamed("turn", attributes_of["turn"])
        metrics.append({"type": TURN, **({"source_type": turn.pop("type")} if "type" in turn else {}), **turn})
    return metrics
