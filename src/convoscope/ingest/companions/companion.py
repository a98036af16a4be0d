"""What lies beside logs and says more about their conversations: one protocol, and the list of its kinds.

A new kind is one module with a class of this protocol and one entry in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from convoscope.conversation import Conversation
from convoscope.ingest.companions.booking_rules import BookingRuleFiles
from convoscope.ingest.companions.datasets import Datasets
from convoscope.ingest.companions.dialogue_files import DialogueActs, DialogueSchema
from convoscope.ingest.companions.flows import FlowDefinitions
from convoscope.ingest.companions.gold import Gold
from convoscope.ingest.companions.predictions import PredictionFiles
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.report import Notes

Attach = Callable[[Conversation, Notes], Conversation]
"""Gives a conversation what a companion says of it, and notes what it concluded; the same one where that is nothing."""


class Companion(Protocol):
    """A kind of file that lies beside logs."""

    @property
    def format(self) -> str:
        """Its name in the read report. Where a reader has the same name, it is for that reader's inputs only."""
        ...

    def detect(self, sample: Sample) -> Detection | None:
        """Is this file of my kind? A YAML file comes without values: it is never a log."""
        ...

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Read a file at once, for all conversations; False to have it read with the inputs that it lies beside.

        `is_named`: the user named this file, so whatever is wrong with it is an error.
        """
        ...

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        """What completes the conversations of an input of this reader, which has these companions; None for nothing."""
        ...


KINDS: list[Companion] = [Datasets(), DialogueActs(), DialogueSchema(), PredictionFiles(), BookingRuleFiles(), Gold()]
"""The kinds whose files are read with the inputs that they lie beside."""


def companions(flows: FlowDefinitions) -> tuple[Companion, ...]:
    """Every kind. Flow definitions are those of one read: they can also be given as values."""
    return (flows, *KINDS)
