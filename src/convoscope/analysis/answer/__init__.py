"""The answer of a run."""

from convoscope.analysis.answer.make import make_answer
from convoscope.analysis.answer.model import (
    Answer,
    Cause,
    Clause,
    Evidence,
    GroupApart,
    KeyFigure,
    Outcomes,
    WorstConversation,
)

__all__ = [
    "Answer",
    "Cause",
    "Clause",
    "Evidence",
    "GroupApart",
    "KeyFigure",
    "Outcomes",
    "WorstConversation",
    "make_answer",
]
