"""LiveKit: what a chat message carries as its metrics, taken apart by component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convoscope.views.standard_data.payloads.fields import keep
from convoscope.views.standard_data.payloads.kinds import EOU, LLM, TTS, TURN

COMPONENT_FIELDS = {
    "end_of_turn_delay": (EOU, "end_of_utterance_delay"),
    "transcription_delay": (EOU, "transcription_delay"),
    "on_user_turn_completed_delay": (EOU, "on_user_turn_completed_delay"),
    "llm_node_ttft": (LLM, "ttft"),
    "llm_node_tps": (LLM, "tokens_per_second"),
    "llm_node_ttfs": (LLM, "ttfs"),
    "tts_node_ttfb": (TTS, "ttfb"),
    "playback_latency": (TTS, "playback_latency"),
}
"""What a chat message measures: of which component it is, and how that calls it (standard-data.md, 7).

`e2e_latency` is of the whole turn.
"""
METADATA = {"llm_metadata": LLM, "tts_metadata": TTS}
SPEAKING = ("started_speaking_at", "stopped_speaking_at")
OF_THE_ASSISTANT = tuple(key for key, (component, _) in COMPONENT_FIELDS.items() if component != EOU)
OF_A_MESSAGE = (*COMPONENT_FIELDS, *SPEAKING, "e2e_latency")


def of_chat_message(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The metrics of one chat message: of a user's an EOU metric, of an assistant's an LLM and a TTS metric.

    When somebody was speaking belongs to the last of them, since it is the voice that is heard; whatever
    is of the whole turn, above all `e2e_latency`, belongs to the first. Where there is none, the turn has
    a metric of its own.
    """
    parts: dict[str, dict[str, Any]] = {}
    for key, (component, name) in COMPONENT_FIELDS.items():
        if metrics.get(key) is not None:
            parts.setdefault(component, {"type": component})[name] = metrics[key]
    made = list(parts.values()) or [{"type": TURN}]
    for key, value in metrics.items():
        if key in COMPONENT_FIELDS or value is None:
            continue
        if METADATA.get(key) in parts:
            parts[METADATA[key]]["metadata"] = value
        elif key in SPEAKING:
            made[-1][key] = value
        elif key == "type":
            keep(made[0], "source_type", value)
        else:
            keep(made[0], key, value)
    return made
