"""What was not measured, for whoever wants it as rows: the profiles of a run, and tables with their null rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from convoscope.metrics.registry import Declared
from convoscope.runs.database import CONVERSATION_SCORES, CONVERSATIONS, SCORES, Tables, connect, parquet, quoted
from convoscope.runs.parquet_columns import ColumnBuffer
from convoscope.scores.observation import COMPUTED
from convoscope.scoring.profiles import Profiles

PROFILES = "profiles.parquet"


def write_profiles(
    folder: Path, metrics: Sequence[Declared], keys: Iterable[str], resources: frozenset[str] = frozenset()
) -> None:
    """One row for each profile and each metric that cannot look at conversations of that profile."""
    profiles = Profiles(metrics, resources)
    rows = [
        (key, metrics[place].name, metrics[place].variant, metrics[place].unit, *absence)
        for key in sorted(keys)
        for place, absence in sorted(profiles.with_key(key).absent.items())
    ]
    columns = ColumnBuffer(len(rows))
    names = ("profile", "metric", "variant", "unit", "status", "reason", "detail")
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    for name, column in zip(names, values, strict=True):
        columns.texts(name, [text or None for text in column] if name == "detail" else column)
    with connect(folder) as connection:
        columns.write(connection, folder / PROFILES)


def _absent(tables: Tables, paths: Sequence[Path] | None, columns: str) -> str:
    conversations = tables.table(CONVERSATIONS, paths)
    return (
        f"SELECT c.conversation, c.number, p.metric, p.variant, {columns} "
        f"FROM {conversations} AS c JOIN {parquet(tables.folder / PROFILES)} AS p USING (profile)"
    )


def all_scores(tables: Tables, part: int | None = None) -> str:
    """The scores with a row for each metric that could not look at a conversation; of one part if given."""
    absent = (
        f"'conversation' AS subject_kind, '' AS subject, 0::BIGINT AS position, {quoted(COMPUTED)} AS judge, "
        "0 AS repeat, "
        "p.status, NULL::DOUBLE AS value, NULL::DOUBLE AS numerator, NULL::DOUBLE AS denominator, "
        "NULL::DOUBLE AS tp, NULL::DOUBLE AS fp, NULL::DOUBLE AS fn, "
        "p.reason, p.detail, NULL::VARCHAR AS details"
    )
    return _together(tables, SCORES, part, absent)


def all_conversation_scores(tables: Tables) -> str:
    """The scores of conversations with a row for each metric that could not look at one."""
    absent = (
        f"{quoted(COMPUTED)} AS judge, p.status, NULL::DOUBLE AS value, NULL::DOUBLE AS score, p.unit, 0 AS n, "
        "0.0::DOUBLE AS total, 0.0::DOUBLE AS numerator, 0.0::DOUBLE AS denominator, "
        "0.0::DOUBLE AS tp, 0.0::DOUBLE AS fp, 0.0::DOUBLE AS fn, "
        "(p.status = 'not_applicable')::INTEGER AS not_applicable, "
        "(p.status <> 'not_applicable')::INTEGER AS unmeasured, "
        "0 AS errors, p.reason, p.detail"
    )
    return _together(tables, CONVERSATION_SCORES, None, absent)


def _together(tables: Tables, table: str, part: int | None, absent: str) -> str:
    observed = tables.table(table, None if part is None else tables.of_part(table, part))
    missing = _absent(tables, None if part is None else tables.of_part(CONVERSATIONS, part), absent)
    return f"({f'SELECT * FROM {observed} UNION ALL BY NAME ' if observed else ''}{missing})"
