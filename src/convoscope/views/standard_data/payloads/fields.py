"""The fields of a component metric, and how their values are put right: numbers, seconds, flags, times."""

from __future__ import annotations

from typing import Any

from convoscope.views.standard_data.containers import OBJECT
from convoscope.views.standard_data.kinds import BOOLEAN, EPOCH, ID, INTEGER, NUMBER, TEXT, ValueKind
from convoscope.views.standard_data.shapes import METRICS
from convoscope.views.standard_data.warnings import Warnings

_OF_FRAMEWORKS: dict[str, ValueKind] = {
    # LiveKit's chat messages
    "e2e_latency": NUMBER,
    "llm_node_ttfs": NUMBER,
    "playback_latency": NUMBER,
    "started_speaking_at": EPOCH,
    "stopped_speaking_at": EPOCH,
    "ttfs": NUMBER,
    # Pipecat
    "cache_creation_input_tokens": INTEGER,
    "cache_read_input_audio_tokens": INTEGER,
    "cache_read_input_tokens": INTEGER,
    "is_complete": BOOLEAN,
    "leading_silence": NUMBER,
    "output_audio_tokens": INTEGER,
    "probability": NUMBER,
    "text_aggregation": NUMBER,
    "thinking_time": NUMBER,
    "ttfa": NUMBER,
    "ttfa_ttfb": NUMBER,
    "ttfat": NUMBER,
    "ttfat_ttfb": NUMBER,
}
_NOT_SECONDS = ("confidence", "probability", "tokens_per_second", "ttfa_ttfb", "ttfat_ttfb")
_SCHEMA: dict[str, ValueKind] = {name: kind for shape in METRICS.values() for name, kind in shape.fields.items()}
_OF_ANY = {name: _SCHEMA[name] for name in ("label", "source_label", "speech_id", "timestamp")} | {
    "e2e_latency": NUMBER
}
_KINDS = {name: kind for name, kind in (_SCHEMA | _OF_FRAMEWORKS).items() if name != "type"}
_SAME: dict[str, tuple[str, int]] = {
    f"{name}_ms": (name, 1000) for name, kind in _KINDS.items() if kind is NUMBER and name not in _NOT_SECONDS
} | {"e2e_processing_time_ms": ("end_of_utterance_delay", 1000), "end_of_turn_delay": ("end_of_utterance_delay", 1)}
"""Other names, the field that says the same in seconds, and how many of them make a second."""
_KINDS |= dict.fromkeys(_SAME, NUMBER)
FIELDS = frozenset(_KINDS)

# Most values are right: of this class, and no larger than any measurement, count or time in seconds is.
_PLAIN: dict[ValueKind, type] = {
    NUMBER: float,
    EPOCH: float,
    INTEGER: int,
    BOOLEAN: bool,
    TEXT: str,
    ID: str,
    OBJECT: dict,
}
_SMALL = 1e11
_CLASS = {name: _PLAIN[kind] for name, kind in _KINDS.items()} | dict.fromkeys(_SAME, type)  # to be looked at
_CLASS_OF_ANY = {name: _PLAIN[kind] for name, kind in _OF_ANY.items()}


def settle(metric: dict[str, Any], path: str, warnings: Warnings, *, known: bool = True) -> None:
    """Put the values of a metric right, in place: null and a warning for what cannot be read.

    Of a metric that is of no component we know, only what every metric may have is looked at.
    """
    class_of = (_CLASS if known else _CLASS_OF_ANY).get
    other_names: list[str] = []
    for key, value in metric.items():
        right: Any = class_of(key)
        if right is None or value is None:
            continue
        if value.__class__ is right:
            if right is not float and right is not int:
                continue
            if -_SMALL < value < _SMALL:
                continue
        kind = _KINDS[key]
        if not kind.clean(value):
            metric[key] = kind.mend(value, f"{path}.{key}", warnings)
        if key in _SAME:
            other_names.append(key)
    for key in other_names:
        field, per_second = _SAME[key]
        if metric[key] is not None and metric.get(field) is None:
            metric[field] = metric[key] if per_second == 1 else metric[key] / per_second


def number_of(value: object) -> int | float | None:
    """A finite number, or a text that spells one."""
    return None if value is None else NUMBER.mend(value, "", [])


def time_of(value: object) -> float | None:
    """Seconds since the epoch, or since whatever a small number counts from."""
    return None if value is None else EPOCH.mend(value, "", [])


def keep(metric: dict[str, Any], key: str, value: object) -> None:
    """Add what a payload says, under its own name; what has that name already stays, and both are kept."""
    if key in metric and metric[key] == value:
        return
    while key in metric:
        key = f"source_{key}"
    metric[key] = value
