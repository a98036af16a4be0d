"""Convoscope's own conversation JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from convoscope.conversation import (
    SCHEMA_ID,
    TURN_RULES,
    AnyEvent,
    Conversation,
    Source,
    Time,
    Utterance,
    from_builtins,
)
from convoscope.conversation.serial import keep_unknown_keys
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.report import Notes

_KIND, _, _VERSION = SCHEMA_ID.partition("/")


class NativeReader(Reader):
    """Conversations as Convoscope writes them."""

    name = "convoscope"
    title = "Convoscope conversation JSON"

    def detect(self, sample: Sample) -> Detection | None:
        if any(_is_native(value) for value in sample.values):
            return Detection(1.0, f'"schema" is {_KIND}')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            yield _build(record.value, group, notes)


def _is_native(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("schema", "")).startswith(_KIND)


def _build(value: Any, group: RecordGroup, notes: Notes) -> Conversation:
    if not _is_native(value):
        raise InputError(f'no "schema": "{SCHEMA_ID}"', field="schema", hint="add it, or move the record elsewhere")
    if value["schema"] != SCHEMA_ID:
        version = str(value["schema"]).rpartition("/")[2]
        hint = f"this version of convoscope reads version {_VERSION}"
        raise InputError(f"is version {version} of the conversation JSON", field="schema", hint=hint)
    try:
        conversation = from_builtins(value)
    except msgspec.ValidationError:
        for moved in keep_unknown_keys(value):
            notes.unknown(f"{moved.path}.{moved.key}")
        try:
            conversation = from_builtins(value)
        except msgspec.ValidationError as error:
            message, _, field = str(error).partition(" - at ")
            raise InputError(message, field=field.strip("`"), hint="see docs/formats/convoscope.md") from None
    if conversation.turn_rule not in TURN_RULES:
        rules = ", ".join(sorted(TURN_RULES))
        raise InputError(
            f"turn rule {conversation.turn_rule!r} is not known", field="turn_rule", hint=f"there is {rules}"
        )
    if not conversation.source.format:
        source = Source(format=NativeReader.name, files=group.file_names)
        conversation = msgspec.structs.replace(conversation, source=source)
    timeline = tuple(_with_possible_times(event, notes) for event in conversation.timeline)
    return msgspec.structs.replace(conversation, timeline=timeline)


def _with_possible_times(event: AnyEvent, notes: Notes) -> AnyEvent:
    """Without segments and ends that are before their starts: no sound has a negative length."""
    time = event.time
    if time is not None and time.until is not None and time.until < time.at:
        notes.set_aside("end_before_start", f"time: {time.at} to {time.until}", event.seq)
        event = msgspec.structs.replace(event, time=Time(time.at, time.clock))
    wrong = [one for one in event.segments if one.end < one.start] if isinstance(event, Utterance) else []
    if not isinstance(event, Utterance) or not wrong:
        return event
    for segment in wrong:
        notes.set_aside("end_before_start", f"segment: {segment.start} to {segment.end}", event.seq)
    extras = {**event.extras, "segments": [msgspec.to_builtins(one) for one in wrong]}
    possible = tuple(one for one in event.segments if one not in wrong)
    return msgspec.structs.replace(event, segments=possible, extras=extras)


READER = NativeReader()
