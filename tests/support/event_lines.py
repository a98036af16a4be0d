"""Lines of an event stream as tests write them, and what came of them in short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    GuardEvaluated,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.ingest.formats.state_events.reader import READER
from convoscope.ingest.reader import Record, RecordGroup
from convoscope.ingest.report import Notes

T = 1_760_000_000.0


def event(at: float | None, kind: str, /, **facts: Any) -> dict[str, Any]:
    time = {} if at is None else {"timestamp": T + at}
    return {"event": kind, **time, **facts}


def entered(at: float | None, state: str, **facts: Any) -> dict[str, Any]:
    return event(at, "state_entered", state=state, **facts)


def exited(at: float | None, state: str, to_state: str, **facts: Any) -> dict[str, Any]:
    return event(at, "state_exited", state=state, to_state=to_state, **facts)


def turn(at: float | None, latency: Any = None, **facts: Any) -> dict[str, Any]:
    return event(at, "turn_complete", **({} if latency is None else {"latency_ms": latency}), **facts)


def build_all(*lines: Any, name: str = "log") -> tuple[list[Conversation], Notes]:
    notes = Notes("log.jsonl")
    records = tuple(Record(line, number) for number, line in enumerate(lines, 1))
    return list(READER.build(RecordGroup(name, Path("log.jsonl"), records), notes)), notes


def build(*lines: Any) -> tuple[Conversation, Notes]:
    (built,), notes = build_all(*lines)
    return built, notes


def codes(notes: Notes) -> list[tuple[str, str]]:
    return [(note.kind, note.code) for note in notes.taken]


def told(conversation: Conversation) -> list[str]:
    """The timeline in short: `+state`, `-state>to`, `turn@state`, `slot@state`, `?guard@state`, `[marker]`."""
    return [_told(conversation, one) for one in conversation.timeline]


def _told(conversation: Conversation, one: Any) -> str:
    if isinstance(one, Utterance):
        return f"{one.speaker}: {conversation.text(one)}"
    return next(form.format(one=one) for kind, form in SHORT.items() if isinstance(one, kind))


SHORT: dict[type, str] = {
    StateEntered: "+{one.state}",
    StateExited: "-{one.state}>{one.to_state}",
    ComponentMetric: "turn@{one.state}",
    SlotFilled: "{one.slot}@{one.state}",
    GuardEvaluated: "?{one.guard}@{one.state}",
    ToolCall: "{one.name}()",
    ToolResult: "{one.name}->{one.success}",
    Marker: "[{one.name}]",
}
