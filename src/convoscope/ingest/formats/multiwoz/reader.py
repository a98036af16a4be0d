"""MultiWOZ dialogues: detection of both versions, and the reading of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest.formats.multiwoz import version_21
from convoscope.ingest.formats.sgd.dialogue import conversation, is_dialogue
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import as_list, as_object, as_text
from convoscope.ingest.report import Notes

_MEMBER = re.compile(rb'\s*\{\s*"[^"]*"\s*:\s*\{')
"""How an object of dialogues begins."""


class MultiWOZReader(Reader):
    """Task-oriented dialogues with the state and the acts of both sides."""

    name = "multiwoz"
    title = "MultiWOZ 2.1 and 2.2 dialogues"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if isinstance(value, dict) and any(_is_21(one) for one in value.values()):
                return Detection(1.0, 'dialogues by id, each with a "log" of texts with "metadata"')
            if is_dialogue(value) and _is_22(value):
                return Detection(1.1, '"turns" of USER and SYSTEM, with frames of the domains of MultiWOZ')
        return None

    def holds_members(self, head: bytes) -> bool:
        return _MEMBER.match(head) is not None and b'"log"' in head and b'"metadata"' in head

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            if isinstance(record.value, dict) and "turns" in record.value:
                yield conversation(record.value, self.name, group, notes)
                continue
            if not isinstance(record.value, dict):
                raise InputError("has no dialogues by id", hint='expected {"MUL0001.json": {"goal": …, "log": […]}}')
            refused: list[InputError] = []
            for id, dialogue in record.value.items():
                try:
                    yield _dialogue_21(id, dialogue, group, notes)
                except InputError as error:
                    refused.append(error)
            if refused:
                refused[0].count = len(refused)
                raise refused[0]


def _is_21(value: Any) -> bool:
    log = value.get("log") if isinstance(value, dict) else None
    return isinstance(log, list) and any(isinstance(one, dict) and {"text", "metadata"} <= one.keys() for one in log)


def _is_22(dialogue: Any) -> bool:
    """Schema-guided dialogues of other data sets have services such as `Hotels_2`."""
    frames = [frame for turn in dialogue["turns"] for frame in as_list(as_object(turn).get("frames"))]
    named = {as_text(as_object(frame).get("service")) for frame in frames}
    return bool((named | set(map(as_text, as_list(dialogue.get("services"))))) & set(version_21.DOMAINS))


def _dialogue_21(id: str, dialogue: Any, group: RecordGroup, notes: Notes) -> Conversation:
    if not isinstance(dialogue, dict):
        raise InputError(f"dialogue {id} is not an object", field=id, hint='expected {"goal": …, "log": […]}')
    return version_21.conversation(id or group.name, dialogue, group, notes)


READER = MultiWOZReader()
