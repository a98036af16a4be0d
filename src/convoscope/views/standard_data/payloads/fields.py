"""The fields of a component metric: of which component they are, how values are coerced, and the order of turns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from convoscope.conversation.events import moment
from convoscope.views.standard_data.containers import OBJECT
from convoscope.views.standard_data.schema import METRICS
from convoscope.views.standard_data.values import BOOLEAN, EPOCH, ID, INTEGER, NUMBER, TEXT, ValueKind, Warnings

VAD = "vad_metrics"
STT = "stt_metrics"
TTS = "tts_metrics"
LLM = "llm_metrics"
EOU = "eou_metrics"
TURN = "turn_metrics"
"""What was measured of a whole turn, where no metric of a component is there to carry it."""
UNKNOWN = "unknown"

COMPONENTS = frozenset({VAD, STT, TTS, LLM, EOU})
_COMPONENT_NAMES = {
    **{component.removesuffix("_metrics"): component for component in COMPONENTS},
    "voiceactivitydetection": VAD,
    "speechtotext": STT,
    "texttospeech": TTS,
    "endofutterance": EOU,
}


@lru_cache(maxsize=1024)
def component_of(name: str) -> str:
    """The component that a type names (`vad_metrics`, `VADMetrics`, `PipelineVADMetrics`, `vad`), or nothing."""
    if name in COMPONENTS:
        return name
    bare = re.sub(r"[^a-z0-9]|metrics?$", "", name.rsplit(".", 1)[-1].casefold())
    return _COMPONENT_NAMES.get(bare.removeprefix("pipeline"), "")


_ONLY_EOU = ("end_of_utterance_delay", "end_of_turn_delay", "transcription_delay", "on_user_turn_completed_delay")
_ONLY_VAD = ("idle_time", "inference_count", "inference_duration_total", "speech_detected")
_ONLY_LLM = ("ttft", "completion_tokens", "prompt_tokens")
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")
_ONLY_TTS = ("ttfb", "characters_count", "speaking_duration")
_WITH_AUDIO = ("transcript", "confidence", "streamed")
_IN_MILLISECONDS = {f"{key}_ms": key for key in (*_ONLY_EOU, "idle_time", "ttft", "ttfb", "speaking_duration")}


def component_from_keys(entry: Mapping[str, Any]) -> str:
    """The component that an untyped metric is of: the rule of the specification, 1.3, 5.

    A key counts where it has a single value; with an object it only names what is in it. To the list we add
    the keys that no other component has either: the other two delays of the end of an utterance, the tokens
    of prompt and completion, and what else a voice activity detector counts.
    """
    keys = {_IN_MILLISECONDS.get(key, key) for key, value in entry.items() if not isinstance(value, dict | list)}
    tokens = _TOKENS if "tokens_per_second" in keys else ()
    audio = _WITH_AUDIO if "audio_duration" in keys else ()
    rules = ((EOU, _ONLY_EOU), (VAD, _ONLY_VAD), (LLM, (*_ONLY_LLM, *tokens)), (TTS, _ONLY_TTS), (STT, audio))
    return next((component for component, own in rules if not keys.isdisjoint(own)), "")


_BY_FRAMEWORKS: dict[str, ValueKind] = {
    # LiveKit's chat messages
    **dict.fromkeys(("e2e_latency", "llm_node_ttfs", "playback_latency", "ttfs"), NUMBER),
    **dict.fromkeys(("started_speaking_at", "stopped_speaking_at"), EPOCH),
    # Pipecat
    **dict.fromkeys(("leading_silence", "probability", "text_aggregation", "thinking_time"), NUMBER),
    **dict.fromkeys(("ttfa", "ttfa_ttfb", "ttfat", "ttfat_ttfb"), NUMBER),
    **dict.fromkeys(("cache_creation_input_tokens", "cache_read_input_tokens"), INTEGER),
    **dict.fromkeys(("cache_read_input_audio_tokens", "output_audio_tokens"), INTEGER),
    "is_complete": BOOLEAN,
}
_NOT_SECONDS = ("confidence", "probability", "tokens_per_second", "ttfa_ttfb", "ttfat_ttfb")
_SCHEMA: dict[str, ValueKind] = {name: kind for shape in METRICS.values() for name, kind in shape.fields.items()}
_OF_ANY = {name: _SCHEMA[name] for name in ("label", "source_label", "speech_id", "timestamp")} | {
    "e2e_latency": NUMBER
}
_KINDS = {name: kind for name, kind in (_SCHEMA | _BY_FRAMEWORKS).items() if name != "type"}
_SAME: dict[str, tuple[str, int]] = {
    f"{name}_ms": (name, 1000) for name, kind in _KINDS.items() if kind is NUMBER and name not in _NOT_SECONDS
} | {"e2e_processing_time_ms": ("end_of_utterance_delay", 1000), "end_of_turn_delay": ("end_of_utterance_delay", 1)}
"""Other names, the field that says the same in seconds, and how many of them make a second."""
_KINDS |= dict.fromkeys(_SAME, NUMBER)
METRIC_FIELDS = frozenset(_KINDS)
UNORDERED = "unordered"
"""True of a metric of which nothing says what it comes before or after."""
OF_FRAMEWORKS = METRIC_FIELDS | {"envelopes", "metric", "model", "processor", "source", "source_type", UNORDERED}
"""Not of the schema, but known: what frameworks measure, and where the readers of payloads keep the rest."""

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


def coerce_metric(metric: dict[str, Any], path: str, warnings: Warnings, *, known: bool = True) -> None:
    """Coerce the values of a metric, in place: null and a warning for what cannot be read.

    Of a metric of an unknown component, only what every metric may have is looked at.
    """
    class_of = (_CLASS if known else _CLASS_OF_ANY).get
    other_names: list[str] = []
    for key, value in metric.items():
        right: Any = class_of(key)
        if right is None or value is None:
            continue
        if value.__class__ is right and ((right is not float and right is not int) or -_SMALL < value < _SMALL):
            continue
        kind = _KINDS[key]
        if not kind.is_valid(value):
            metric[key] = kind.coerce(value, f"{path}.{key}", warnings)
        if key in _SAME:
            other_names.append(key)
    for key in other_names:
        field, per_second = _SAME[key]
        if metric[key] is not None and metric.get(field) is None:
            metric[field] = metric[key] if per_second == 1 else metric[key] / per_second


def keep(metric: dict[str, Any], key: str, value: object) -> None:
    """Add what a payload says, under its own name; what has that name already stays, and both are kept."""
    if key in metric and metric[key] == value:
        return
    while key in metric:
        key = f"source_{key}"
    metric[key] = value


TURN_KEY = re.compile(r"(?:turn|exchange)[\s_#-]*\d*", re.IGNORECASE)
"""A label that says itself that it names a turn."""
_OF_A_TURN = (EOU, LLM, TTS)
_IN_ORDER = (VAD, STT, *_OF_A_TURN)


def in_turns(metrics: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Metrics of several components by time, where all have one; else the first of each component, the second, ….

    The end of the user's turn, the call of the model and the speech of one turn are at the same index
    of their arrays where these are equally long. Where they are not, and no id joins them, nothing says
    what belongs together: such metrics are marked as `unordered`, in place.
    """
    by_type: dict[str, list[dict[str, Any]]] = {name: [] for name in _IN_ORDER}
    for metric in metrics:
        by_type.setdefault(metric["type"], []).append(metric)
    every = [metric for listed in by_type.values() for metric in listed]
    times = [moment(metric.get("timestamp")) for metric in every]
    known = [time for time in times if time is not None]
    if len(known) == len(every) and len({time.kind for time in known}) <= 1:
        return [every[index] for index in sorted(range(len(every)), key=lambda index: known[index].at)]
    loose = [[metric for metric in by_type[name] if not _is_keyed(metric)] for name in _OF_A_TURN]
    waiting = {id(metric) for listed in loose for metric in listed}
    first = [metric for metric in every if id(metric) not in waiting]
    if len({len(listed) for listed in loose if listed}) > 1:
        for metric in (metric for listed in loose for metric in listed):
            metric[UNORDERED] = True
    return [*first, *(metric for turn in zip_longest(*loose) for metric in turn if metric is not None)]


def _is_keyed(metric: dict[str, Any]) -> bool:
    """Whether a metric says itself which turn it is of."""
    label = metric.get("label")
    named = isinstance(label, str) and TURN_KEY.fullmatch(label.strip()) is not None
    return bool(metric.get("speech_id")) or named or "source_label" in metric
