"""Conversations that a reader builds of values, and what tests of exports look at in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from convoscope.conversation import (
    ComponentMetric,
    Conversation,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.ingest.reader import Reader, Record, RecordGroup
from convoscope.ingest.report import Notes


def built(reader: Reader, *values: Any) -> tuple[list[Conversation], Notes]:
    """The conversations of a group of records, and what was noted."""
    notes = Notes()
    records = tuple(Record(value, number) for number, value in enumerate(values, 1))
    return list(reader.build(RecordGroup("log", Path("log.json"), records), notes)), notes


def built_one(reader: Reader, *values: Any) -> tuple[Conversation, Notes]:
    (conversation,), notes = built(reader, *values)
    return conversation, notes


def codes(notes: Notes, kind: str = "") -> list[str]:
    return [note.code for note in notes.taken if note.kind == kind or not kind]


def steps(conversation: Conversation) -> list[str]:
    """The timeline in short: `+A` enters, `A>B` leaves, `slot=value@state`."""
    written: list[str] = []
    for event in conversation.timeline:
        match event:
            case StateEntered():
                written.append(f"+{event.state}")
            case StateExited():
                written.append(f"{event.state}>{event.to_state} {event.reason}".strip())
            case SlotFilled():
                written.append(f"{event.slot}={event.value}@{event.state}")
            case Utterance():
                written.append(f"{event.speaker}: {conversation.text(event)}")
            case ToolCall():
                written.append(f"{event.name}()")
            case ToolResult():
                written.append(f"-> {event.success}")
            case Marker():
                written.append(f"[{event.name}]")
            case ComponentMetric():
                label, state = (f" {event.label}" if event.label else ""), (f" @{event.state}" if event.state else "")
                written.append(f"{event.component}{label} {event.values}{state}")
            case _:
                pass
    return written


def metrics(conversation: Conversation) -> list[ComponentMetric]:
    return [event for event in conversation.timeline if isinstance(event, ComponentMetric)]
