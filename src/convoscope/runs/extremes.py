"""The conversations that are furthest off in one metric."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.runs.database import CONVERSATION_SCORES, CONVERSATIONS, connect
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure


class Far(NamedTuple):
    """A conversation and its own value in the metric."""

    conversation: str
    value: float


def lowest(run: Run, figure: Figure, limit: int) -> list[Far]:
    """The conversations with the least values in the metric of a figure, by the figure's judge."""
    return _first(run, figure, "ASC", limit)


def highest(run: Run, figure: Figure, limit: int) -> list[Far]:
    """The conversations with the greatest values in the metric of a figure, by the figure's judge."""
    return _first(run, figure, "DESC", limit)


def _first(run: Run, figure: Figure, direction: str, limit: int) -> list[Far]:
    query = (
        f"SELECT c.conversation, s.value FROM {run.table(CONVERSATION_SCORES)} s "
        f"JOIN {run.table(CONVERSATIONS)} c USING (number) "
        "WHERE s.metric = ? AND s.variant = ? AND s.judge = ? AND s.status = 'measured' "
        f"ORDER BY s.value {direction}, number LIMIT {int(limit)}"
    )
    with connect() as connection:
        rows = connection.execute(query, [figure.metric, figure.variant, figure.judge]).fetchall()
    return [Far(conversation, value) for conversation, value in rows]
