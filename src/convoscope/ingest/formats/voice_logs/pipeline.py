"""How the agent hears and speaks: told by the settings, else by what its logs look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Logged
from convoscope.conversation.model import Pipeline

_NAMES: dict[str, Pipeline] = {
    "cascade": "cascade",
    "audio_llm": "audio_llm",
    "audiollm": "audio_llm",
    "s2t": "audio_llm",
    "s2s": "s2s",
    "speech_to_speech": "s2s",
    "realtime": "s2s",
}


class StatedPipeline(NamedTuple):
    """The pipeline, and why, where it had to be concluded."""

    pipeline: Pipeline
    inferred: str = ""


def pipeline(
    result: Mapping[str, Any], config: Mapping[str, Any], audit: Sequence[Logged], *, framework: bool
) -> StatedPipeline:
    """The pipeline of a call."""
    for place in (result, config):
        name = str(place.get("pipeline_type") or "").lower().replace("-", "_")
        if name in _NAMES:
            return StatedPipeline(_NAMES[name])
    model = config.get("model")
    if isinstance(model, dict):
        for name, kind in _NAMES.items():
            if model.get(name) or model.get(f"{name}_model"):
                return StatedPipeline(kind)
    if any(record.kind == "user" and record.text == "[user audio]" for record in audit):
        return StatedPipeline("audio_llm", "the audit log holds the user's sound in place of words")
    named = any(result.get(field) for field in ("pipecat_logs_path", "framework_logs_path"))
    if result and not framework and not named and audit:
        return StatedPipeline("s2s", "result.json names no log of a framework")
    speakers = [record.kind for record in audit if record.kind in ("user", "assistant")]
    if not framework and not result and speakers[:1] == ["assistant"]:
        return StatedPipeline(
            "s2s", "the audit log begins with the agent's greeting, and there is no log of a framework"
        )
    return StatedPipeline("cascade", "" if framework else "nothing says otherwise")
