"""Schema-Guided Dialogue: turns of user and system with frames of services, service calls and results.

MultiWOZ 2.2 has the same shape: its slots begin with their service, and its acts are in a file of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from convoscope.conversation import ASSISTANT, USER, Act, Conversation, Frame, SlotSpan, SlotValue, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, as_list, as_text
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_SPEAKERS = {"USER": USER, "SYSTEM": ASSISTANT}
_NO_INTENT = "NONE"
_USUAL = frozenset({"frames", "speaker", "utterance"})


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a frame as the file has it."""


class _State(_Part, frozen=True):
    """The state of a service."""

    active_intent: str = _NO_INTENT
    requested_slots: tuple[str, ...] = ()
    slot_values: dict[str, tuple[str, ...]] = {}


class _Action(_Part, frozen=True):
    """An act with at most one slot."""

    act: str
    slot: str = ""
    values: tuple[str, ...] = ()
    canonical_values: tuple[str, ...] = ()


class _Span(_Part, frozen=True):
    """Where a value is in the text, or what it was copied from."""

    slot: str
    start: int | None = None
    exclusive_end: int | None = None
    value: str | tuple[str, ...] = ""
    copy_from: str = ""


class _Call(_Part, frozen=True):
    """A call of a service."""

    method: str
    parameters: dict[str, Any] = {}


class _Frame(_Part, frozen=True):
    """Everything that a turn says of one service."""

    service: str = ""
    state: _State | None = None
    actions: tuple[_Action, ...] | None = None
    slots: tuple[_Span, ...] = ()
    service_call: _Call | None = None
    service_results: list[Any] | None = None


def is_dialogue(value: Any) -> bool:
    """`{"dialogue_id": …, "turns": [{"speaker": "USER", "utterance": …, "frames": […]}]}`"""
    turns = value.get("turns") if isinstance(value, dict) and "dialogue_id" in value else None
    return any(
        isinstance(turn, dict) and as_text(turn.get("speaker")) in _SPEAKERS and "utterance" in turn
        for turn in as_list(turns)
    )


def conversation(dialogue: Any, format: str, group: RecordGroup, notes: Notes) -> Conversation:
    """The dialogue with its frames, calls and results."""
    fields = Fields(dialogue, "dialogue", notes)
    turns = fields.take("turns", kind=list)
    if turns is None:
        raise InputError("has no turns", field="turns", hint='expected {"dialogue_id": …, "turns": [{"speaker": …')
    id = fields.text("dialogue_id") or group.name
    services = [text for one in fields.take("services", kind=list) or () if (text := as_text(one))]
    timeline = TimelineBuilder(notes)
    frames: list[Frame] = []
    for index, turn in enumerate(turns):
        frames += _turn(index, turn, timeline)
    return Conversation(
        id=id,
        dimensions={"domain": "+".join(services)} if services else {},
        source=Source(format=format, files=group.file_names, record=id),
        participants=timeline.participants,
        timeline=tuple(timeline.events),
        frames=tuple(frames),
        extras={**({"services": services} if services else {}), **fields.rest()},
    )


def _turn(index: int, turn: Any, timeline: TimelineBuilder) -> list[Frame]:
    """The text of a turn, after the calls that it was answered with; its frames."""
    notes = timeline.notes
    if not isinstance(turn, dict):
        notes.set_aside("turn_unreadable", f"turns[{index}]", timeline.seq)
        timeline.mark("turn_unreadable", turn)
        return []
    fields = Fields(turn, "turn", notes, _USUAL)
    written = _take_frames(fields, index, timeline.seq)
    for frame in written:
        call = frame.service_call
        if call is not None:
            timeline.call(call.method, call.parameters, extras={"service": frame.service} if frame.service else None)
        if frame.service_results is not None:
            timeline.result(frame.service_results, name="" if call is None else call.method)
    name = as_text(fields.get("speaker"))
    speaker = _SPEAKERS.get(name)
    if speaker is None:
        notes.set_aside("speaker_unknown", f"turns[{index}].speaker {name[:80]}", timeline.seq)
    else:
        del fields["speaker"]
    text = fields.take("utterance", kind=str)
    if text is None:
        notes.set_aside("text_missing", f"turns[{index}].utterance", timeline.seq)
    seq, id = timeline.seq, fields.text("turn_id") or str(index)
    speaker = timeline.participant(speaker or "unknown")
    timeline.say(speaker, intended=Text(text or ""), id=id, extras=fields.rest())
    return [_frame(frame, seq, text or "") for frame in written]


def _take_frames(fields: Fields, index: int, seq: int) -> list[_Frame]:
    """The frames that can be read; those that cannot stay in the turn."""
    value = fields.pop("frames", [])
    read: list[_Frame] = []
    unread: list[Any] = []
    for frame in value if isinstance(value, list) else [value]:
        try:
            read.append(msgspec.convert(frame, _Frame))
        except msgspec.ValidationError as error:
            fields.notes.set_aside("frame_unreadable", f"turns[{index}].frames: {error}"[:200], seq)
            unread.append(frame)
    if unread:
        fields["frames"] = unread
    return read


def _frame(frame: _Frame, seq: int, text: str) -> Frame:
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
        intents=None if state is None else tuple({state.active_intent} - {"", _NO_INTENT}),
        slots=None if state is None else {_bare(name, service): read for name, read in state.slot_values.items()},
        requested=None if state is None else tuple(_bare(name, service) for name in state.requested_slots),
        # Every turn does something: without an act it was not annotated here.
        acts=tuple(Act(one.act, _slots(one)) for one in frame.actions) if frame.actions else None,
        spans=tuple(_span(one, service, text) for one in frame.slots),
        extras={"canonical_values": canonical} if canonical else {},
    )


def _slots(action: _Action) -> tuple[SlotValue, ...]:
    if not action.slot:
        return ()
    return tuple(SlotValue(action.slot, value) for value in action.values) or (SlotValue(action.slot),)


def _span(span: _Span, service: str, text: str) -> SlotSpan:
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
    return name.removeprefix(f"{service}-") if service else name


class SGDReader(Reader):
    """Dialogues with the state, the acts and the calls of services."""

    name = "sgd"
    title = "Schema-Guided Dialogue"

    def detect(self, sample: Sample) -> Detection | None:
        if any(is_dialogue(value) for value in sample.values):
            return Detection(0.95, '"turns" of USER and SYSTEM, with frames of services')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            yield conversation(record.value, self.name, group, notes)


READER = SGDReader()
