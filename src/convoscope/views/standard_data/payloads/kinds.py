"""Which component a metric is of: by its `type`, or else by a key that only one component has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

VAD = "vad_metrics"
STT = "stt_metrics"
TTS = "tts_metrics"
LLM = "llm_metrics"
EOU = "eou_metrics"
TURN = "turn_metrics"
"""What was measured of a whole turn, where no metric of a component is there to carry it."""
UNKNOWN = "unknown"

COMPONENTS = frozenset({VAD, STT, TTS, LLM, EOU})
_NAMES = {
    "vad": VAD,
    "voiceactivitydetection": VAD,
    "stt": STT,
    "speechtotext": STT,
    "tts": TTS,
    "texttospeech": TTS,
    "llm": LLM,
    "eou": EOU,
    "endofutterance": EOU,
}


@lru_cache(maxsize=1024)
def component_of(name: str) -> str:
    """The component that a type names (`vad_metrics`, `VADMetrics`, `PipelineVADMetrics`, `vad`), or nothing."""
    if name in COMPONENTS:
        return name
    bare = re.sub(r"[^a-z0-9]|metrics?$", "", name.rsplit(".", 1)[-1].casefold())
    return _NAMES.get(bare.removeprefix("pipeline"), "")


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
    if not keys.isdisjoint(_ONLY_EOU):
        return EOU
    if not keys.isdisjoint(_ONLY_VAD):
        return VAD
    if not keys.isdisjoint(_ONLY_LLM) or ("tokens_per_second" in keys and not keys.isdisjoint(_TOKENS)):
        return LLM
    if not keys.isdisjoint(_ONLY_TTS):
        return TTS
    if "audio_duration" in keys and not keys.isdisjoint(_WITH_AUDIO):
        return STT
    return ""
