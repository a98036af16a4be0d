"""Our own conversation JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from convoscope.conversation import SCHEMA_ID, TURN_RULES, Conversation, Source, from_builtins
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
        if any(_is_ours(value) for value in sample.values):
            return Detection(1.0, f'"schema" is {_KIND}')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            yield _build(record.value, group, notes)


def _is_ours(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("schema", "")).startswith(_KIND)


def _build(value: Any, group: RecordGroup, notes: Notes) -> Conversation:
    if not _is_ours(value):
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
    return conversation


READER = NativeReader()
