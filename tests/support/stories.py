"""Stories for tests: conversations scored with what a test finds in them, and told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from convoscope.conversation import (
    Conversation,
    Event,
)
from convoscope.ingest.report import Note
from convoscope.metrics import (
    EVENT,
    HIGHER,
    Metric,
    Observation,
    Score,
    metric,
)
from convoscope.metrics.registry import Declared
from convoscope.report.story import Mark, Story, TimelineEntry, story
from convoscope.runs.conversations import KeptConversation, ReducedScore
from convoscope.runs.summary import describe
from convoscope.scoring.evaluate import evaluate
from support.chats import chat
from support.figures import summary


def record_of(conversation: Conversation, metrics: Sequence[Declared], notes: Sequence[Note] = ()) -> KeptConversation:
    """What a run would keep of the conversation."""
    scores: list[Score] = []
    reduced: list[ReducedScore] = []
    for declared, observations, rows in evaluate(conversation, metrics):
        of = {"conversation": conversation.id, "metric": declared.name, "variant": declared.variant}
        scores += [Score(observation=one, **of) for one in observations]
        for row in rows:
            skipped = row.not_applicable + row.unmeasured + row.errors
            told = (row.judge, row.status, row.value, row.ten, declared.unit, row.n, skipped, row.reason, row.detail)
            reduced.append(ReducedScore(declared.name, declared.variant, *told))
    return KeptConversation(0, conversation, notes, scores, reduced)


def tell(conversation: Conversation, *metrics: Declared, notes: Sequence[Note] = ()) -> Story:
    """The story of a conversation that was scored with these metrics."""
    return story(record_of(conversation, metrics, notes), summary(declared=[describe(one) for one in metrics]))


def finding(*observations: Observation, name: str = "test.found", unit: str = "points", **facts: Any) -> Metric:
    """A metric that finds this in any conversation."""

    @metric(name, **{"version": 1, "observes": EVENT, "unit": unit, "better": HIGHER} | facts)
    def find(conversation: Conversation) -> Iterator[Observation]:
        """What is found?"""
        yield from observations

    return find


def entries(told: Story) -> list[TimelineEntry]:
    return [one for turn in told.turns for one in turn.entries]


def only(*events: Event, **facts: Any) -> TimelineEntry:
    """How a conversation of nothing else is told."""
    (one,) = entries(tell(chat(*events, **facts)))
    return one


def said(*marks: Mark) -> list[str]:
    return [mark.text for mark in marks]


def placed(told: Story) -> dict[str, list[str]]:
    """Where the marks stand: by turn, by event, elsewhere by the name of their subject."""
    found: dict[str, list[str]] = {}
    for turn in told.turns:
        if turn.marks:
            found[f"turn {turn.turn}"] = said(*turn.marks)
        for one in turn.entries:
            if one.marks:
                found[f"event {one.seq}"] = said(*one.marks)
    for mark in told.elsewhere:
        found.setdefault(mark.subject, []).append(mark.text)
    return found
