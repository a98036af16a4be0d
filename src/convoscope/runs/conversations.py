"""Conversations of a run, each with everything that is known of it: notes, scores, what they come to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from convoscope.conversation import Conversation, from_json
from convoscope.ingest.report import Note
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    PROFILES,
    SCORES,
    Tables,
    connect,
    parquet,
    quoted,
)
from convoscope.runs.run import SCORE_COLUMNS, Run, named, score_of
from convoscope.scores.observation import COMPUTED, Score, Status
from convoscope.views.fields import field_names

if TYPE_CHECKING:
    import duckdb

_BATCH_BYTES = 16_000_000
"""Of the bodies of conversations that are read together."""
_LOOKED_AT = 20
"""Conversations that are looked through for fields."""
_REDUCED = "metric, variant, judge, status, value, score, unit, n, not_applicable + unmeasured + errors, reason, detail"


class ReducedScore(NamedTuple):
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


class KeptConversation(NamedTuple):
    """One conversation of a run."""

    number: int
    conversation: Conversation
    notes: Sequence[Note]
    scores: Sequence[Score]
    """What was observed."""
    reduced: Sequence[ReducedScore]
    """What each metric says in the end, also one that could not look at it."""


ScoreRow = tuple[Any, ...]
"""The `SCORE_COLUMNS` of one score."""


class ScoreFilter(Protocol):
    """Which scores are needed: to make a score takes longer than to read its row."""

    @property
    def parts(self) -> Collection[str]:
        """Metrics of which only the scores of whole conversations are needed."""

    def wanted(self, conversation: Conversation) -> Callable[[ScoreRow], bool]:
        """Whether the row of a score of this conversation is needed."""


def records(run: Run, numbers: Sequence[int], scores: ScoreFilter | None = None) -> Iterator[KeptConversation]:
    """The conversations with these numbers, in this order; as many at a time as fit into little memory."""
    with connect(run.folder) as connection:
        source = run.tables.at(CONVERSATIONS, numbers)
        sizes = dict(connection.execute(f"SELECT number, size FROM {source}").fetchall()) if numbers else {}
    batch: list[int] = []
    weight = 0
    for number in numbers:
        batch.append(number)
        weight += sizes[number]
        if weight > _BATCH_BYTES:
            yield from _batch(run, batch, scores)
            batch, weight = [], 0
    if batch:
        yield from _batch(run, batch, scores)


def first_conversations(run: Run, most: int, most_bytes: int = 8_000_000) -> Iterator[Conversation]:
    """The first conversations of a run, up to so many and about so many bytes of JSON.

    They are kept for `records`, so that a small run is decoded once.
    """
    size = 0
    kept = run.held
    with connect(run.folder) as connection:
        # Only the parts that hold them are opened.
        source = run.tables.at(CONVERSATIONS, range(min(most, run.summary.conversations)))
        rows = connection.execute(f"SELECT number, body FROM {source} ORDER BY number")
        while size <= most_bytes and (batch := rows.fetchmany(50)):
            for number, body in batch:
                size += len(body)
                if number not in kept:
                    kept[number] = from_json(body)
                yield kept[number]


def conversation_ids(tables: Tables) -> list[str]:
    """The ids of all conversations of a run."""
    with connect(tables.folder) as connection:
        rows = connection.execute(f"SELECT conversation FROM {tables.table(CONVERSATIONS)}").fetchall()
    return [id for (id,) in rows]


def some_fields(tables: Tables) -> list[str]:
    """The fields that the first conversations of a run have, each once."""
    with connect(tables.folder) as connection:
        query = f"SELECT body FROM {tables.table(CONVERSATIONS)} ORDER BY number LIMIT {_LOOKED_AT}"
        bodies = connection.execute(query).fetchall()
    return list(dict.fromkeys(name for (body,) in bodies for name in field_names(from_json(body))))


def _batch(run: Run, numbers: Sequence[int], filter_by: ScoreFilter | None) -> Iterator[KeptConversation]:
    with connect(run.folder) as connection:

        def rows(columns: str, table: str, where: str = "") -> dict[int, list[tuple[Any, ...]]]:
            by_number: dict[int, list[tuple[Any, ...]]] = {number: [] for number in numbers}
            source = run.tables.at(table, numbers)
            for row in connection.execute(f"SELECT number, {columns} FROM {source} {where}").fetchall():
                by_number[row[0]].append(row[1:])
            return by_number

        # What is held is given once: of a number that is asked for twice, the second comes from the table.
        are_held = len(set(numbers)) == len(numbers) and all(number in run.held for number in numbers)
        body = "NULL" if are_held else "body"
        bodies = rows(f"conversation, notes, {body}, profile", CONVERSATIONS)
        parts = ", ".join(map(quoted, sorted(filter_by.parts))) if filter_by is not None else ""
        where = f"WHERE subject_kind = 'conversation' OR metric NOT IN ({parts})" if parts else ""
        scores = rows(SCORE_COLUMNS, SCORES, where)
        reduced = rows(_REDUCED, CONVERSATION_SCORES)
        absent = _absences(connection, run)
    for number in numbers:
        ((id, notes, body, profile),) = bodies[number]
        conversation = named(run.held.pop(number) if number in run.held else from_json(body), id)
        kept: Iterable[ScoreRow] = (
            filter(filter_by.wanted(conversation), scores[number]) if filter_by is not None else scores[number]
        )
        yield KeptConversation(
            number,
            conversation,
            msgspec.json.decode(notes, type=list[Note]) if notes else [],
            sorted(map(score_of, kept), key=_position),
            sorted([*map(_reduced, reduced[number]), *absent.get(profile, ())], key=lambda one: one[:3]),
        )


def _position(score: Score) -> tuple[Any, ...]:
    observation = score.observation
    return (
        score.metric,
        score.variant,
        observation.subject.position,
        observation.subject.id,
        observation.judge,
        observation.repeat,
    )


def _absences(connection: duckdb.DuckDBPyConnection, run: Run) -> dict[str, list[ReducedScore]]:
    """By profile: what metrics say that cannot look at conversations of it."""
    columns = "profile, metric, variant, status, unit, reason, coalesce(detail, '')"
    absences: dict[str, list[ReducedScore]] = {}
    for profile, metric, variant, status, unit, reason, detail in connection.execute(
        f"SELECT {columns} FROM {parquet(run.tables.own(PROFILES))}"
    ).fetchall():
        absence = ReducedScore(metric, variant, COMPUTED, status, None, None, unit, 0, 1, reason, detail)
        absences.setdefault(profile, []).append(absence)
    return absences


def _reduced(row: tuple[Any, ...]) -> ReducedScore:
    reduced = ReducedScore(*row)
    return reduced._replace(reason=reduced.reason or "", detail=reduced.detail or "")
