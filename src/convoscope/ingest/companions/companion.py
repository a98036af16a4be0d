"""The kinds of files that belong to logs. A new kind is a `Companion` and an entry here."""

from __future__ import annotations

from convoscope.ingest.companions.datasets import Datasets
from convoscope.ingest.companions.dialogue_files import BookingRuleFiles, DialogueActs, DialogueSchema
from convoscope.ingest.companions.flows import FlowDefinitions
from convoscope.ingest.companions.gold import Gold
from convoscope.ingest.companions.predictions import PredictionFiles
from convoscope.ingest.companions.verdicts import Verdicts
from convoscope.ingest.reader import Companion

KINDS: list[Companion] = [
    Datasets(),
    DialogueActs(),
    DialogueSchema(),
    PredictionFiles(),
    BookingRuleFiles(),
    Gold(),
    Verdicts(),
]
"""The kinds whose files are read with the inputs that they belong to."""


def companions(flows: FlowDefinitions) -> tuple[Companion, ...]:
    """Every kind. Flow definitions are those of one read: they can also be given as values."""
    return (flows, *KINDS)
