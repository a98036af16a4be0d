"""Parts become one run, in the order of conversation ids, whatever order they were made in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from convoscope.conversation import DIMENSIONS
from convoscope.metrics.registry import Declared
from convoscope.runs.parts import BETWEEN, CONVERSATION_SCORES, CONVERSATIONS, SCORES, STATE_COLUMNS, STATES, part_file
from convoscope.runs.tables import MEMORY_MB, connect, parquet, quoted, write_parquet
from convoscope.statistics.summary import STATUSES

if TYPE_CHECKING:
    import duckdb

_DIMENSIONS = ", ".join(f'c."{name}"' for name in DIMENSIONS)


_BODIES_MB = 2048
CHUNK_BYTES = 32 * 1024 * 1024
"""Bodies are sorted this much at a time: a sort of all of them at once would not fit into little memory."""


def merge(parts: Path, out: Path, metrics: Sequence[Declared], *, limit: int | None, scratch: Path) -> list[str]:
    """Write the run's Parquet files. Gives back the ids that more than one conversation had."""
    with connect(scratch=scratch) as connection:
        numbers = _numbers(parts)
        _number_conversations(connection, _files(parts, CONVERSATIONS, numbers), limit)
        shared = _shared_ids(connection)
        _name_metrics(connection, metrics)
        _merge_conversations(connection, parts, out, scratch)
        for table, query in _QUERIES.items():
            source = _files(parts, table, numbers)
            write_parquet(connection, query.format(source=source), out / f"{table}.parquet", "COMPRESSION zstd")
    return shared


def _numbers(parts: Path) -> list[int]:
    return sorted(int(path.stem.rpartition("-")[2]) for path in parts.glob(f"{CONVERSATIONS}-*.parquet"))


def _files(parts: Path, table: str, numbers: Sequence[int]) -> str:
    return parquet(*(part_file(parts, table, number) for number in numbers))


def _number_conversations(connection: duckdb.DuckDBPyConnection, source: str, limit: int | None) -> None:
    """Number conversations in the order of their ids; a second one of an id gets `~2` at its end."""
    connection.execute(f"""
        CREATE TABLE every AS
        SELECT part, conversation, place, record, piece, id, size,
               row_number() OVER (PARTITION BY id ORDER BY place, record, piece) AS nth
        FROM (
            SELECT * EXCLUDE (body, notes)
            FROM {source}
            ORDER BY place, record, piece
            {"" if limit is None else f"LIMIT {limit}"}
        )
    """)
    # More tildes where somebody's own id ends in ~2.
    for tildes in range(1, 100):
        connection.execute(f"""
            CREATE OR REPLACE TABLE named AS
            SELECT *, CASE WHEN nth = 1 THEN id ELSE id || '{"~" * tildes}' || nth END AS name FROM every
        """)
        counts = connection.execute("SELECT count(*) = count(DISTINCT name) FROM named").fetchone()
        if counts and counts[0]:
            break
    connection.execute(f"""
        CREATE TABLE numbered AS
        SELECT part, conversation, id, nth, name,
               row_number() OVER (ORDER BY name) - 1 AS number,
               (sum(size) OVER (ORDER BY name ROWS UNBOUNDED PRECEDING) // {CHUNK_BYTES})::INTEGER AS chunk
        FROM named
    """)


def _merge_conversations(connection: duckdb.DuckDBPyConnection, parts: Path, out: Path, scratch: Path) -> None:
    rows = connection.execute("SELECT DISTINCT chunk, part FROM numbered ORDER BY ALL").fetchall()
    parts_of: dict[int, list[int]] = {}
    for chunk, part in rows:
        parts_of.setdefault(chunk, []).append(part)
    # A chunk is small, but a single conversation may be large: the limit gives way to it.
    connection.execute(f"SET memory_limit = '{_BODIES_MB}MB'")
    connection.execute("SET preserve_insertion_order = false")
    options = "COMPRESSION {}, ROW_GROUP_SIZE 2048, ROW_GROUP_SIZE_BYTES 16000000"
    chunks: list[Path] = []
    for chunk, numbers in parts_of.items():
        chunks.append(scratch / f"{CONVERSATIONS}-{chunk:06d}.parquet")
        query = _CONVERSATIONS.format(source=_files(parts, CONVERSATIONS, numbers), chunk=chunk)
        write_parquet(connection, query, chunks[-1], options.format("lz4"))
    query = f"SELECT * FROM {parquet(*chunks)}"
    write_parquet(connection, query, out / f"{CONVERSATIONS}.parquet", options.format("zstd"))
    connection.execute("SET preserve_insertion_order = true")
    connection.execute(f"SET memory_limit = '{MEMORY_MB}MB'")


def _shared_ids(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute("SELECT DISTINCT id FROM numbered WHERE nth > 1 ORDER BY id").fetchall()
    return [row[0] for row in rows]


def _name_metrics(connection: duckdb.DuckDBPyConnection, metrics: Sequence[Declared]) -> None:
    declared = {
        "code": np.arange(len(metrics), dtype=np.int64),
        "name": np.array([one.name for one in metrics], dtype=object),
        "variant": np.array([one.variant for one in metrics], dtype=object),
        "unit": np.array([one.unit for one in metrics], dtype=object),
    }
    statuses = {
        "code": np.arange(len(STATUSES), dtype=np.int64),
        "name": np.array(STATUSES, dtype=object),
    }
    for name, table in (("declared", declared), ("statuses", statuses)):
        connection.register("incoming", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        connection.unregister("incoming")


_JOIN = "FROM {{source}} AS {alias} JOIN numbered AS k USING (part, conversation)"
_NAMES = "JOIN declared AS m ON m.code = s.metric JOIN statuses AS t ON t.code = s.status"


def _list(name: str, kind: str = "VARCHAR") -> str:
    """A list that was written as one text."""
    entries = f"coalesce(string_split(s.{name}, {quoted(BETWEEN)}), [])"
    return f"{entries}::{kind}[] AS {name}"


_CONVERSATIONS = f"""
    SELECT k.name AS conversation, k.number::INTEGER AS number, {_DIMENSIONS}, c.dimensions::JSON AS dimensions,
           c.format, c.error, c.notes::JSON AS notes, c.body::JSON AS body
    {_JOIN.format(alias="c")}
    WHERE k.chunk = {{chunk}}
    ORDER BY k.number
"""
_QUERIES = {
    SCORES: f"""
        SELECT k.name AS conversation, k.number::INTEGER AS number, m.name AS metric, m.variant,
               s.subject_kind, s.subject, s.position::INTEGER AS position, s.judge, s.repeat::INTEGER AS repeat,
               t.name AS status, s.value, s.numerator, s.denominator, s.reason, s.detail, s.details::JSON AS details
        {_JOIN.format(alias="s")} {_NAMES}
        ORDER BY k.number, s.row
    """,
    CONVERSATION_SCORES: f"""
        SELECT k.name AS conversation, k.number::INTEGER AS number, m.name AS metric, m.variant, s.judge,
               t.name AS status, s.value, s.ten AS score, m.unit, s.n::INTEGER AS n, s.total,
               s.numerator, s.denominator, s.tp, s.fp, s.fn,
               s.not_applicable::INTEGER AS not_applicable, s.unmeasured::INTEGER AS unmeasured,
               s.errors::INTEGER AS errors, s.reason, s.detail
        {_JOIN.format(alias="s")} {_NAMES}
        ORDER BY s.metric, s.judge, k.number
    """,
    STATES: f"""
        SELECT k.name AS conversation, k.number::INTEGER AS number, s.flow, s.agent, s.state,
               s.position::INTEGER AS position, s.segment, s.visits::INTEGER AS visits,
               s.progress::TINYINT AS progress, s.stall::TINYINT AS stall, s.escalation::TINYINT AS escalation,
               s.revisit::INTEGER AS revisit, s.dwell_turns, s.latency_p95_ms,
               s.guard_error::INTEGER AS guard_error, s.slot_fill_rate, {_list("to_states")},
               s.slot_ready_rate, s.front_loaded::INTEGER AS front_loaded, s.required::INTEGER AS required,
               s.turns::INTEGER AS turns, {_list("latencies", "DOUBLE")}, {_list("to_counts", "INTEGER")},
               {_list("slots")}, {_list("unplaced")}, s.tool_calls::INTEGER AS tool_calls,
               s.tool_successes::INTEGER AS tool_successes, s.tool_unknown::INTEGER AS tool_unknown,
               s.asked::INTEGER AS asked, s.accepted::INTEGER AS accepted, s.reasons::JSON AS reasons
        {_JOIN.format(alias="s")}
        ORDER BY k.number, s.position
    """,
}
_LISTS = {
    "to_states": "VARCHAR[]",
    "latencies": "DOUBLE[]",
    "to_counts": "INTEGER[]",
    "slots": "VARCHAR[]",
    "unplaced": "VARCHAR[]",
}
_NUMBERS = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR"}
NO_STATES = (
    "SELECT NULL::VARCHAR AS run, NULL::VARCHAR AS conversation, NULL::INTEGER AS number, "
    + ", ".join(
        f"NULL::{_LISTS.get(name, _NUMBERS[kind])} AS {name}"
        for name, kind in STATE_COLUMNS.items()
        if name != "conversation"
    )
    + " WHERE false"
)
"""The table of states, without a row."""
