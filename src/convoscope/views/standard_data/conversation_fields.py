"""What is known of an item beside what happened, as parts of a conversation and back: tools, truth, end, recording.

Values that a part cannot tell from "not stated" stay where they are, so that the way back gives exactly what came in.
"""

from __future__ import annotations

from typing import Any

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
from convoscope.views.standard_data.events import Fields, filled, take

NOTHING_EXPECTED = Expected()
DIMENSION_NAMES = frozenset(DIMENSIONS)
AGENT = ("agent_name", "agent_role", "system_prompt", "tools_available")
"""Fields of the agent: the conversation has them, and an item only where its own differ."""
SHARED = (*AGENT, "raw_complete_audio")
PEOPLE = ("user_id", "task_id")
"""Dimensions of the conversation where all of its items agree."""


def to_tool(schema: Fields) -> Tool:
    remaining = dict(schema)
    return Tool(
        name=take(remaining, "name"),
        description=take(remaining, "description"),
        arguments_schema=take(remaining, "args_schema", None),
        result_schema=take(remaining, "return_schema", None),
        extras=remaining,
    )


def schema_of(tool: Tool) -> Fields:
    fields = {
        "name": tool.name or None,
        "description": tool.description or None,
        "args_schema": tool.arguments_schema,
        "return_schema": tool.result_schema,
        "type": tool.kind or None,
    }
    return {**filled(fields), **tool.extras}


def take_expected(fields: Fields) -> Expected:
    """What a good answer would be, taken out of the fields."""
    call = fields.pop("expected_tool_call", None)
    return Expected(
        ground_truth=fields.pop("ground_truth", None),
        format=fields.pop("expected_format", None),
        tool_calls=None if call is None else (_to_expected_call(call),),
    )


def _to_expected_call(call: Fields) -> ExpectedToolCall:
    remaining = dict(call)
    return ExpectedToolCall(
        name=take(remaining, "tool_name"),
        arguments=take(remaining, "parameters", None),
        call_id=remaining.pop("call_id", ""),
        extras=remaining,
    )


def expected_call_of(call: ExpectedToolCall) -> Fields:
    fields = {"tool_name": call.name or None, "parameters": call.arguments}
    return {**filled(fields), "call_id": call.call_id, **call.extras}


def fields_of_expected(expected: Expected) -> Fields:
    """The fields; of several expected calls only one has a place there, so several have none."""
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


def to_recording(audio: Fields) -> AudioFile:
    remaining = dict(audio)
    duration = remaining.get("audio_duration")
    # A whole number may be too large for a double to hold exactly: then it stays where it is.
    exact = duration is not None and float(duration) == duration
    track = Track(
        id=take(remaining, "audio_uuid"),
        url=take(remaining, "audio_url"),
        format=take(remaining, "format"),
        sample_rate=take(remaining, "sample_rate", None),
        duration=float(remaining.pop("audio_duration")) if exact else None,
    )
    return AudioFile(tracks=(track,), transcript=take(remaining, "complete_transcript"), extras=remaining)


def audio_of(recording: AudioFile) -> Fields:
    """The fields of the first track: the schema knows one."""
    track = recording.tracks[0] if recording.tracks else Track()
    fields = {
        "audio_uuid": track.id or None,
        "audio_url": track.url or None,
        "format": track.format or None,
        "sample_rate": track.sample_rate,
        "audio_duration": track.duration,
        "channels": len(track.channels) or None,
        "complete_transcript": recording.transcript or None,
    }
    return {**filled(fields), **recording.extras}


def add_dimensions(dimensions: dict[str, str], metadata: Any) -> None:
    """The dimensions that an item's metadata name, as text, where they are not there already."""
    for name, value in metadata.items():
        if name in DIMENSION_NAMES and name not in dimensions:
            text = str(value) if type(value) in (str, int, float) else ""
            if text:
                dimensions[name] = text


def fields_of_item(item: Item) -> Fields:
    """What the item itself says: its kind, what it expects, how it ended."""
    kind = {"novaeval_item_type": item.kind} if item.kind else {}
    return {**kind, **fields_of_expected(item.expected), **fields_of_outcome(item.outcome)}
