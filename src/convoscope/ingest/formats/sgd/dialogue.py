"""One schema-guided dialogue: turns of user and system with frames of services, and calls of these.

MultiWOZ 2.2 has the same shape: its slots begin with their service, and its acts stand in a file of their own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from convoscope.conversation import ASSISTANT, USER, Act, Conversation, Frame, SlotSpan, SlotValue, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, leftovers, take, take_text
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_SPEAKERS = {"USER": USER, "SYSTEM": ASSISTANT}
_NO_INTENT = "NONE"
_USUAL = frozenset({"frames", "speaker", "utterance"})


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a frame as the file has it."""


class WrittenState(_Part, frozen=True):
    """The state of a service."""

    active_intent: str = _NO_INTENT
    requested_slots: tuple[str, ...] = ()
    slot_values: dict[str, tuple[str, ...]] = {}


class WrittenAction(_Part, frozen=True):
    """An act with at most one slot."""

    act: str
    slot: str = ""
    values: tuple[str, ...] = ()
    canonical_values: tuple[str, ...] = ()


class WrittenSpan(_Part, frozen=True):
    """Where a value stands, or what it was copied from."""

    slot: str
    start: int | None = None
    exclusive_end: int | None = None
    value: str | tuple[str, ...] = ""
    copy_from: str = ""


class WrittenCall(_Part, frozen=True):
    """A call of a service."""

    method: str
    parameters: dict[str, Any] = {}


class WrittenFrame(_Part, frozen=True):
    """Everything that a turn says of one service."""

    service: str = ""
    state: WrittenState | None = None
    actions: tuple[WrittenAction, ...] | None = None
    slots: tuple[WrittenSpan, ...] = ()
    service_call: WrittenCall | None = None
    service_results: list[Any] | None = None


def is_dialogue(value: Any) -> bool:
    """`{"dialogue_id": …, "turns": [{"speaker": "USER", "utterance": …, "frames": […]}]}`"""
    turns = value.get("turns") if isinstance(value, dict) and "dialogue_id" in value else None
    return any(
        isinstance(turn, dict) and turn.get("speaker") in _SPEAKERS and "utterance" in turn for turn in as_list(turns)
    )


def conversation(dialogue: Any, format: str, group: RecordGroup, notes: Notes) -> Conversation:
    """The dialogue with its frames, calls and results."""
    facts = dict(as_object(dialogue))
    turns = take(facts, "turns", kind=list)
    if turns is None:
        raise InputError("has no turns", field="turns", hint='expected {"dialogue_id": …, "turns": [{"speaker": …')
    id = take_text(facts, "dialogue_id") or group.name
    services = [as_text(one) for one in take(facts, "services", kind=list) or () if as_text(one)]
    timeline = TimelineBuilder(notes)
    frames: list[Frame] = []
    for place, turn in enumerate(turns):
        frames += _turn(place, turn, timeline)
    return Conversation(
        id=id,
        dimensions={"domain": "+".join(services)} if services else {},
        source=Source(format=format, files=group.file_names, record=id),
        participants=timeline.participants,
        timeline=tuple(timeline.events),
        frames=tuple(frames),
        extras={**({"services": services} if services else {}), **leftovers(facts, frozenset(), "dialogue", notes)},
    )


def _turn(place: int, turn: Any, timeline: TimelineBuilder) -> list[Frame]:
    """Say what a turn says, after the calls that it was answered with; its frames."""
    notes = timeline.notes
    if not isinstance(turn, dict):
        notes.set_aside("turn_unreadable", f"turns[{place}]", timeline.seq)
        timeline.mark("turn_unreadable", turn)
        return []
    facts = dict(turn)
    written = _frames(facts, place, notes, timeline.seq)
    for frame in written:
        _call(frame, timeline)
    name = facts.pop("speaker", "")
    speaker = _SPEAKERS.get(name if isinstance(name, str) else "")
    if speaker is None:
        notes.set_aside("speaker_unknown", f"turns[{place}].speaker {as_text(name)[:80]}", timeline.seq)
        facts["speaker"] = name
    text = take(facts, "utterance")
    if text is None:
        notes.set_aside("text_missing", f"turns[{place}].utterance", timeline.seq)
    seq, id = timeline.seq, take_text(facts, "turn_id") or str(place)
    extras = leftovers(facts, _USUAL, "turn", notes)
    timeline.say(timeline.participant(speaker or "unknown"), intended=Text(text or ""), id=id, extras=extras)
    return [_frame(frame, seq, text or "") for frame in written]


def _frames(facts: JsonObject, place: int, notes: Notes, seq: int) -> list[WrittenFrame]:
    """The frames that can be read; those that cannot stay where they were."""
    value = facts.pop("frames", [])
    read: list[WrittenFrame] = []
    unread: list[Any] = []
    for frame in value if isinstance(value, list) else [value]:
        try:
            read.append(msgspec.convert(frame, WrittenFrame))
        except msgspec.ValidationError as error:
            notes.set_aside("frame_unreadable", f"turns[{place}].frames: {error}"[:200], seq)
            unread.append(frame)
    if unread:
        facts["frames"] = unread
    return read


def _call(frame: WrittenFrame, timeline: TimelineBuilder) -> None:
    call = frame.service_call
    if call is not None:
        timeline.call(call.method, call.parameters, extras={"service": frame.service} if frame.service else None)
    if frame.service_results is not None:
        timeline.result(frame.service_results, name="" if call is None else call.method)


def _frame(frame: WrittenFrame, seq: int, text: str) -> Frame:
    service, state = frame.service, frame.state
    canonical = {
        one.slot: list(one.canonical_values)
        for one in frame.actions or ()
        if one.slot and one.canonical_values and one.canonical_values != one.values
    }
    return Frame(
        seq=seq,
        origin="gold",
        service=service,
        intents=None if state is None else _intents(state),
        slots=None if state is None else {_bare(name, service): read for name, read in state.slot_values.items()},
        requested=None if state is None else tuple(_bare(name, service) for name in state.requested_slots),
        acts=_acts(frame.actions),
        spans=tuple(_span(one, service, text) for one in frame.slots),
        extras={"canonical_values": canonical} if canonical else {},
    )


def _intents(state: WrittenState) -> tuple[str, ...]:
    return () if state.active_intent in ("", _NO_INTENT) else (state.active_intent,)


def _acts(actions: tuple[WrittenAction, ...] | None) -> tuple[Act, ...] | None:
    """None where there is none: every turn does something, so it was not annotated here."""
    if not actions:
        return None
    return tuple(Act(one.act, tuple(_slots(one))) for one in actions)


def _slots(action: WrittenAction) -> list[SlotValue]:
    if not action.slot:
        return []
    return [SlotValue(action.slot, value) for value in action.values] or [SlotValue(action.slot)]


def _span(span: WrittenSpan, service: str, text: str) -> SlotSpan:
    value = span.value if isinstance(span.value, str) else " | ".join(span.value)
    if not value and span.start is not None and span.exclusive_end is not None and span.start >= 0:
        value = text[span.start : span.exclusive_end]
    return SlotSpan(
        slot=_bare(span.slot, service),
        value=value,
        start=span.start,
        end=span.exclusive_end,
        copied_from=span.copy_from,
    )


def _bare(name: str, service: str) -> str:
    """The name of a slot without its service."""
    return name.removeprefix(f"{service}-") if service else name
