"""Schema-Guided Dialogue: files of dialogues with frames, service calls and results."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Conversation
from convoscope.ingest.formats.sgd.dialogue import conversation, is_dialogue
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.report import Notes


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
