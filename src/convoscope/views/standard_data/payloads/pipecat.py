"""Pipecat: what one entry of a metrics frame measures, told by its name, its shape and its processor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import keep, number_of
from convoscope.views.standard_data.payloads.kinds import EOU, LLM, STT, TTS

TTFB = "ttfb"
PROCESSING = "processing"
TOKENS = "tokens"
CHARACTERS = "characters"
STT_USAGE = "stt_usage"
TTFA = "ttfa"
TTFAT = "ttfat"
TEXT_AGGREGATION = "text_aggregation"
END_OF_TURN = "turn"

GROUPS = (TTFB, TTFA, TTFAT, TEXT_AGGREGATION, PROCESSING, TOKENS, CHARACTERS, STT_USAGE)
"""The keys under which RTVI groups entries, in the order in which they are read."""

_NAMES = {
    **{name.replace("_", ""): name for name in GROUPS},
    "llmusage": TOKENS,
    "ttsusage": CHARACTERS,
    "sttusage": STT_USAGE,
}
_NAME_KEYS = ("type", "name", "class", "__class__", "metric", "kind")
_OF_A_TURN = ("e2e_processing_time_ms", "is_complete", "probability")


class Measured(NamedTuple):
    """What an entry says: of which component, the field it is about, and every field that it gives."""

    component: str
    field: str
    fields: dict[str, Any]


@lru_cache(maxsize=1024)
def service_of(processor: str) -> str:
    """`llm`, `tts` or `stt`, as the class in a processor's name says (`OpenAILLMService#0`), or nothing.

    Capitals first, since the letters of one may arise by chance in another: `FastTTSService`.
    """
    name = processor.split("#", 1)[0]
    services = re.findall(r"LLM|TTS|STT", name) or re.findall(
        r"\b(?:llm|tts|stt)\b", re.sub(r"[\W_]+", " ", name.lower())
    )
    return services[-1].lower() if services else ""


@lru_cache(maxsize=1024)
def metric_named(name: str) -> str:
    """The metric that a name says: `TTFBMetricsData`, `ttfb`, `ttfb_llm`; nothing where it is none of Pipecat's."""
    bare = re.sub(r"[^a-z0-9]|metrics?data$|metrics?$|data$", "", name.rsplit(".", 1)[-1].casefold())
    return _NAMES.get(bare) or _NAMES.get(re.sub(r"(llm|tts|stt)$", "", bare), "")


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether this is an entry of a metrics frame: it names its processor and gives something that it measured."""
    return isinstance(entry.get("processor"), str) and (
        "value" in entry or TTFA in entry or TTFAT in entry or any(key in entry for key in _OF_A_TURN)
    )


def stated(entry: Mapping[str, Any]) -> str:
    """What an entry measures, by its name or by its shape; nothing for a bare number of seconds."""
    for key in _NAME_KEYS:
        name = entry.get(key)
        if isinstance(name, str) and metric_named(name):
            return metric_named(name)
    if TTFAT in entry:
        return TTFAT
    if TTFA in entry:
        return TTFA
    value = entry.get("value")
    if isinstance(value, dict):
        return STT_USAGE if "audio_seconds" in value else TOKENS if any("tokens" in str(key) for key in value) else ""
    if "value" not in entry and any(key in entry for key in _OF_A_TURN):
        return END_OF_TURN
    whole = isinstance(number_of(value), int)
    return CHARACTERS if whole and service_of(entry["processor"]) == "tts" else ""


_FIELDS = {
    (TTFB, "llm"): (LLM, "ttft"),
    (TTFB, "tts"): (TTS, "ttfb"),
    # It runs from the end of speech to the final transcript, and that is what the delay of a transcription is.
    (TTFB, "stt"): (EOU, "transcription_delay"),
    (PROCESSING, "llm"): (LLM, "duration"),
    (PROCESSING, "tts"): (TTS, "duration"),
    (PROCESSING, "stt"): (STT, "duration"),
}
_ALWAYS = {
    TOKENS: (LLM, "prompt_tokens"),
    CHARACTERS: (TTS, "characters_count"),
    STT_USAGE: (STT, "audio_duration"),
    TTFA: (TTS, "ttfa"),
    TTFAT: (LLM, "ttfat"),
    TEXT_AGGREGATION: (TTS, "text_aggregation"),
    END_OF_TURN: (EOU, "end_of_utterance_delay"),
}
BESIDE = {TTFA: "ttfa_ttfb", TTFAT: "ttfat_ttfb"}
"""Where the time to first byte stands that such an entry repeats: not where it would be counted again."""
FIRST = {TTS: "ttfb", LLM: "ttft", EOU: "transcription_delay"}
"""The field that a time to first byte becomes."""


def measured(metric: str, entry: Mapping[str, Any]) -> Measured | None:
    """What an entry says as a metric of a component; None where its processor is of no component we know."""
    named = _ALWAYS.get(metric) or _FIELDS.get((metric, service_of(str(entry.get("processor", "")))))
    if named is None:
        return None
    component, field = named
    value = entry.get("value")
    several = value if isinstance(value, dict) else {}
    fields: dict[str, Any] = {} if value is None or several else {field: value}
    for key, member in (*entry.items(), *several.items()):
        if member is None or (member is value and key == "value"):
            continue
        keep(fields, "source_type" if key == "type" else BESIDE.get(metric, TTFB) if key == TTFB else key, member)
    if metric == STT_USAGE and "audio_seconds" in fields and "audio_duration" not in fields:
        fields["audio_duration"] = fields.pop("audio_seconds")
    if metric == TOKENS:
        field = next((key for key in fields if str(key).endswith("_tokens")), field)
    return Measured(component, field, fields)
