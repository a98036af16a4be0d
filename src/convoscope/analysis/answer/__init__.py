"""The answer of a run."""

from convoscope.analysis.answer.make import (
    LostConversation,
    RankReasons,
    look_at_lost,
    make_answer,
    noun_of,
    rank_reasons,
    rank_texts,
)
from convoscope.analysis.answer.model import (
    Answer,
    Cause,
    Clause,
    Evidence,
    GroupApart,
    JudgeOpinion,
    KeyFigure,
    Outcomes,
    WorstConversation,
    metric_label,
    sentence_start,
)

__all__ = [
    "Answer",
    "Cause",
    "Clause",
    "Evidence",
    "GroupApart",
    "JudgeOpinion",
    "KeyFigure",
    "LostConversation",
    "Outcomes",
    "RankReasons",
    "WorstConversation",
    "look_at_lost",
    "make_answer",
    "metric_label",
    "noun_of",
    "rank_reasons",
    "rank_texts",
    "sentence_start",
]
