"""Conversations of a run, each with everything that is known of it: notes, scores, what they come to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from convoscope.conversation import Conversation, from_json
from convoscope.ingest.report import Note
from convoscope.metrics.score import Score, Status
from convoscope.runs.parts import CONVERSATIONS
from convoscope.runs.run import ALL_CONVERSATION_SCORES, ALL_SCORES, SCORE_COLUMNS, SCORE_ORDER, Run, named, score_of
from convoscope.runs.tables import connect

_BATCH = 100
_REDUCED = "metric, variant, judge, status, value, score, unit, n, not_applicable + unmeasured + errors, reason, detail"


class Reduced(NamedTuple):
    """What one metric, by one judge, says of one conversation."""

    metric: str
    variant: str
    judge: str
    status: Status
    value: float | None
    ten: float | None
    unit: str
    n: int
    skipped: int
    """Subjects without a value."""
    reason: str
    detail: str

    @property
    def key(self) -> str:
        return f"{self.metric}@{self.variant}" if self.variant else self.metric


class Record(NamedTuple):
    """One conversation of a run."""

    number: int
    conversation: Conversation
    notes: Sequence[Note]
    scores: Sequence[Score]
    reduced: Sequence[Reduced]


def records(run: Run, numbers: Sequence[int]) -> Iterator[Record]:
    """The conversations with these numbers, in this order; a few at a time are held in memory."""
    for start in range(0, len(numbers), _BATCH):
        yield from _batch(run, numbers[start : start + _BATCH])


def _batch(run: Run, numbers: Sequence[int]) -> Iterator[Record]:
    with connect(memory_mb=1024) as connection:
        connection.register("wanted", {"number": np.asarray(numbers, dtype=np.int64)})

        def rows(columns: str, table: str, order: str = "") -> dict[int, list[tuple[Any, ...]]]:
            found: dict[int, list[tuple[Any, ...]]] = {number: [] for number in numbers}
            query = f"SELECT number, {columns} FROM {run.table(table)} SEMI JOIN wanted USING (number){order}"
            for number, *values in connection.execute(query).fetchall():
                found[number].append(tuple(values))
            return found

        bodies = rows("conversation, notes, body", CONVERSATIONS)
        scores = rows(SCORE_COLUMNS, ALL_SCORES, f" {SCORE_ORDER}")
        reduced = rows(_REDUCED, ALL_CONVERSATION_SCORES, " ORDER BY number, metric, variant, judge")
    for number in numbers:
        ((id, notes, body),) = bodies[number]
        yield Record(
            number,
            named(from_json(body), id),
            msgspec.json.decode(notes, type=list[Note]) if notes else [],
            [score_of(row) for row in scores[number]],
            [_reduced(row) for row in reduced[number]],
        )


def _reduced(row: tuple[Any, ...]) -> Reduced:
    reduced = Reduced(*row)
    return reduced._replace(reason=reduced.reason or "", detail=reduced.detail or "")
