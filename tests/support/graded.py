"""Runs whose values are written down in the test: a table of conversations by metrics, or of turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    TURN,
    Metric,
    Observation,
    measured,
    metric,
    not_applicable,
)
from convoscope.metrics.declaration import Better
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.chats import agent, chat, user


def grade(name: str, better: Better = HIGHER, unit: str = "points") -> Metric:
    """Reads its value from what the log says besides; not applicable where it says nothing."""

    @metric(f"test.{name}", version=1, observes=CONVERSATION, unit=unit, better=better)
    def read(conversation: Conversation) -> Observation:
        """What does the log say?"""
        value = conversation.extras.get(name)
        return not_applicable(conversation, "no_grade") if value is None else measured(conversation, value)

    return read


def turn_grades(name: str, unit: str = "points") -> Metric:
    """One value for each turn: those that the log lists, in their order; a turn whose value is None has none."""

    @metric(f"test.{name}", version=1, observes=TURN, unit=unit, better=HIGHER)
    def read(conversation: Conversation) -> Iterator[Observation]:
        """What does the log say of each turn?"""
        for turn, value in zip(conversation.turns, conversation.extras[name], strict=True):
            yield not_applicable(turn, "no_grade") if value is None else measured(turn, value)

    return read


def graded(
    folder: Path, grades: Mapping[str, Mapping[str, float]], metrics: Sequence[Metric], workers: int = 1, **facts: int
) -> Run:
    """A run of conversations by id, each with its grades."""
    conversations = [chat(user("hi"), id=id, extras=dict(values)) for id, values in grades.items()]
    return score(conversations, metrics=metrics, out=folder / "run", workers=workers, **facts)


def listed(folder: Path, values: Mapping[str, Sequence[float]], metrics: Sequence[Metric]) -> Run:
    """The same from a list for each metric: the first conversation has the first value of each."""
    count = max(map(len, values.values()))
    grades = {
        f"c{place:05d}": {name: column[place] for name, column in values.items() if place < len(column)}
        for place in range(count)
    }
    return graded(folder, grades, metrics)


def turned(folder: Path, name: str, turns: Mapping[str, Sequence[float | None]], unit: str = "points") -> Run:
    """A run of conversations by id, each with as many turns as it has grades."""
    conversations = [
        chat(*(say for _ in grades for say in (user("so?"), agent("so."))), id=id, extras={name: list(grades)})
        for id, grades in turns.items()
    ]
    return score(conversations, metrics=[turn_grades(name, unit)], out=folder / "run", workers=1)
