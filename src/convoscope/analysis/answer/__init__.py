"""The answer of a run."""

from convoscope.analysis.answer.make import LostConversation, look_at_lost, make_answer, reasons_of
from convoscope.analysis.answer.model import (
    Answer,
    Cause,
    Clause,
    Evidence,
    GroupApart,
    KeyFigure,
    Outcomes,
    WorstConversation,
    metric_label,
)

__all__ = [
    "Answer",
    "Cause",
    "Clause",
    "Evidence",
    "GroupApart",
    "KeyFigure",
    "LostConversation",
    "Outcomes",
    "WorstConversation",
    "look_at_lost",
    "make_answer",
    "metric_label",
    "reasons_of",
]
