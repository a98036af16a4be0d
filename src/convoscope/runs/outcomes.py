"""What came of the conversations of a run, counted: done, lost, handed over; and what the user's label says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from convoscope.runs.database import CONVERSATIONS, Tables, connect
from convoscope.scoring.labels import LabelRule

if TYPE_CHECKING:
    import duckdb

MAX_WORDS = 5
"""So many texts that say neither pass nor fail are named."""


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The label of a run, and how many conversations it passes and fails."""

    label: str
    """As it was given: `reward`, or `csat >= 4`."""
    conversations: int
    """Those that have it."""
    passed: int
    failed: int


class OutcomeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many conversations are lost, done, and so on; together all of them."""

    lost: int = 0
    handed_over: int = 0
    """Put through to a person, and neither label nor log nor flow says whether that is a loss."""
    unknown: int = 0
    done: int = 0
    no_user_speech: int = 0
    """The user never said a word. These and the next two are in no average."""
    voicemail: int = 0
    ivr: int = 0


def count_outcomes(tables: Tables) -> OutcomeCounts:
    """Count the outcomes of all conversations."""
    with connect(tables.folder) as connection:
        query = f"SELECT outcome, count(*) FROM {tables.table(CONVERSATIONS)} GROUP BY outcome"
        return OutcomeCounts(**dict(connection.execute(query).fetchall()))


class LabelReading(msgspec.Struct, frozen=True):
    """What a label comes to in a run, and what has to be said about it."""

    counts: LabelCounts
    warnings: list[str]


def read_label(tables: Tables, rule: LabelRule, warning: str) -> LabelReading:
    """Count what the label says, and tell of conversations that it says nothing of."""
    with connect(tables.folder) as connection:
        values = _values(connection, tables)
    passed = sum(count for text, count in values if rule.passed(text))
    failed = sum(count for text, count in values if rule.passed(text) is False)
    conversations, total = sum(count for _, count in values), sum(tables.parts)
    warnings = [warning] if warning else []
    if conversations < total:
        warnings.append(f"label {rule.field}: {total - conversations:,} of {total:,} conversations do not have it")
    silent = [(text, count) for text, count in values if rule.passed(text) is None]
    if silent and not warning:
        some = ", ".join(repr(text) for text, _ in silent[:MAX_WORDS]) + (", …" if len(silent) > MAX_WORDS else "")
        count = sum(count for _, count in silent)
        warnings.append(f"label {rule.field}: {count:,} of {total:,} say neither pass nor fail: {some}")
    counts = LabelCounts(label=rule.text, conversations=conversations, passed=passed, failed=failed)
    return LabelReading(counts, warnings)


def _values(connection: duckdb.DuckDBPyConnection, tables: Tables) -> list[tuple[str, int]]:
    source = tables.table(CONVERSATIONS)
    query = f"SELECT label, count(*) FROM {source} WHERE label IS NOT NULL GROUP BY label ORDER BY label"
    return connection.execute(query).fetchall()


__all__ = ["LabelCounts", "LabelReading", "OutcomeCounts", "count_outcomes", "read_label"]
