"""Logs of calls, record by record, in the order in which things happened."""

from __future__ import annotations

from typing import Any

import msgspec

from convoscope.conversation.events import Logged
from convoscope.views.eva import EvaReading, read_eva

SOURCES = ("audit", "framework", "simulator")


def hears(text: str, ms: int | None = None) -> Logged:
    """audit: what the agent's recogniser made of the user."""
    return Logged(source="audit", kind="user", text=text, ms=ms)


def replies(text: str, ms: int | None = None) -> Logged:
    """audit: the model's reply."""
    return Logged(source="audit", kind="assistant", text=text, ms=ms)


def calls(tool: Any, parameters: Any, ms: int | None = None) -> Logged:
    return Logged(source="audit", kind="tool_call", value={"tool": tool, "parameters": parameters}, ms=ms)


def answers(tool: Any, response: Any, ms: int | None = None) -> Logged:
    return Logged(source="audit", kind="tool_response", value={"tool": tool, "response": response}, ms=ms)


def falls_back() -> Logged:
    return Logged(source="audit", kind="turn_fallback", value="[TURN-END FALLBACK after 8s] …")


def speaks(text: str, ms: int | None = None) -> Logged:
    """framework: what was sent to the speech engine."""
    return Logged(source="framework", kind="tts_text", text=text, ms=ms)


def starts(speaker: str, sound: float | None = None, ms: int | None = None) -> Logged:
    return Logged(source="simulator", kind="audio_start", speaker=speaker, sound=sound, ms=ms)


def ends(speaker: str, sound: float | None = None, ms: int | None = None) -> Logged:
    return Logged(source="simulator", kind="audio_end", speaker=speaker, sound=sound, ms=ms)


def means(text: str, ms: int | None = None) -> Logged:
    """simulator: what the user was to say."""
    return Logged(source="simulator", kind="user_speech", text=text, ms=ms)


def caught(text: str, ms: int | None = None) -> Logged:
    """simulator: what the caller heard the assistant say."""
    return Logged(source="simulator", kind="assistant_speech", text=text, ms=ms)


def hangs_up(ms: int | None = None) -> Logged:
    return Logged(source="simulator", kind="connection_state", value={"state": "session_ended"}, ms=ms)


def read(*records: Logged, pipeline: str | None = "cascade") -> EvaReading:
    """The n-th record is logged at n tenths of a second, from 1.0 s on, unless it has a time."""
    return read_eva(log(*records), pipeline)


def log(*records: Logged) -> list[Logged]:
    timed = [
        record if record.ms is not None else msgspec.structs.replace(record, ms=1000 + 100 * place)
        for place, record in enumerate(records)
    ]
    return sorted(timed, key=lambda record: SOURCES.index(record.source))


def trace(reading: EvaReading) -> list[tuple[int, str, str | None]]:
    """Turn, who, and text or tool, of each entry."""
    return [
        (entry["turn_id"], entry.get("role", entry["type"]), entry.get("content", entry.get("tool_name")))
        for entry in reading.conversation_trace
    ]


GREETING = (speaks("Hello."), starts("assistant"), ends("assistant"), caught("Hello."))


def says(text: str, heard: str | None = None) -> tuple[Logged, ...]:
    """The user's whole turn, without any trouble."""
    return (starts("user"), means(text), ends("user"), hears(text if heard is None else heard))


def reply(text: str) -> tuple[Logged, ...]:
    """The assistant's whole turn, without any trouble."""
    return (replies(text), speaks(text), starts("assistant"), ends("assistant"), caught(text))
