"""SQL over any number of runs."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from convoscope.errors import DeclarationError, UsageError, is_interrupt
from convoscope.harmless import one_line
from convoscope.metrics.registry import installed
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    PROFILES,
    RENAMED,
    SCORES,
    TABLES,
    connect,
    connect_alone,
    parquet,
    quoted,
    write_parquet,
)
from convoscope.runs.run import ALL_CONVERSATION_SCORES, ALL_SCORES, Run
from convoscope.scores.side_tables import COMBINED, SideTable

if TYPE_CHECKING:
    import duckdb


class QueryResult(NamedTuple):
    """The columns and rows of a query."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def query(
    runs: Sequence[Run], sql: str, tables: Iterable[SideTable] = (), *, seconds: float | None = None
) -> QueryResult:
    """Ask the runs; `views` names what there is to ask. Only files of the runs are read, and nothing is written.

    `tables` are declarations of side tables beside those of the installed families. A query that takes longer than
    `seconds` is stopped, and so is one during which the user interrupts.
    """
    tables = list(tables)
    if not sql.strip():
        raise UsageError("the query is empty", hint=f"views: {', '.join(views(runs, tables))}")
    files = [path for run in runs for path in _files(run)]
    with (
        tempfile.TemporaryDirectory(prefix="convoscope-") as scratch,
        connect_alone(Path(scratch), files=files, memory_mb=1024, threads=2) as connection,
        ThreadPoolExecutor(1) as pool,
    ):
        create_views(connection, runs, tables)
        stopped = Event()
        answer = pool.submit(_answer, connection, sql, ", ".join(views(runs, tables)), stopped)
        try:
            return answer.result(timeout=seconds)
        except BaseException as error:
            stopped.set()
            connection.interrupt()
            if isinstance(error, TimeoutError):
                hint = "ask for less, or allow more with --timeout"
                raise UsageError(f"the query took more than {seconds:g} seconds, and was stopped", hint=hint) from None
            raise


def _answer(connection: duckdb.DuckDBPyConnection, sql: str, known: str, stopped: Event) -> QueryResult:
    """The answer to a query; a few rows at a time, so that it can be stopped."""
    import duckdb

    try:
        select = _select(connection, sql, known)
        answer = connection.execute(select)
        columns, types = [one[0] for one in answer.description], [str(one[1]) for one in answer.description]
        if any(_TIME_ZONE in kind for kind in types):
            shown = ", ".join(_shown(*one) for one in enumerate(types, 1))
            answer = connection.execute(f"SELECT {shown} FROM ({select.strip().rstrip(';')}\n)")
        rows: list[tuple[Any, ...]] = []
        while not stopped.is_set() and (some := answer.fetchmany(_ROWS)):
            rows += some
        return QueryResult(columns, rows)
    except duckdb.Error as error:
        if is_interrupt(error):
            raise
        raise UsageError(f"the query failed: {error}", hint=f"views: {known}") from None


_ROWS = 10_000
_TIME_ZONE = "WITH TIME ZONE"
_READ_ONLY = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})


def _shown(index: int, kind: str) -> str:
    """A column of an answer; what has a time zone is text, as Python has none of the zones that it may have."""
    return f"#{index}::VARCHAR AS c{index}" if _TIME_ZONE in kind else f"#{index} AS c{index}"


def _files(run: Run) -> list[Path]:
    parts = [path for table in (*TABLES, *run.tables.side_tables()) for path in run.tables.files(table)]
    return [*parts, run.tables.own(PROFILES), run.tables.own(RENAMED)]


def _select(connection: duckdb.DuckDBPyConnection, sql: str, known: str) -> str:
    """The query, if it is one that only reads, by the parse of the database itself.

    Its type is not enough: a SELECT may hold an INSERT or a COPY in its WITH.
    """
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT:
        ((tree,),) = connection.execute("SELECT json_serialize_sql(?)", [statements[0].query]).fetchall()
        kinds = set(re.findall(r'"type":"(\w+_NODE)"', tree))
        if kinds and kinds <= _READ_ONLY:
            return statements[0].query
    raise UsageError(
        "a query may only read the views: one SELECT, and nothing that writes, loads or sets anything",
        hint=f"views: {known}",
    )


_TABLES = (SCORES, CONVERSATION_SCORES, CONVERSATIONS, ALL_SCORES, ALL_CONVERSATION_SCORES)


def views(runs: Sequence[Run], tables: Iterable[SideTable] = ()) -> tuple[str, ...]:
    """The names that a query over these runs may use."""
    declared = _declared_views(tables)
    return (*_TABLES, *declared, *undeclared_tables(runs, declared), "aspect_scores", "profiles", "metrics", "runs")


def _declared_views(tables: Iterable[SideTable]) -> list[str]:
    return [name for table in declared_tables(tables).values() for name in (table.name, *views_of(table))]


def create_views(connection: duckdb.DuckDBPyConnection, runs: Sequence[Run], tables: Iterable[SideTable] = ()) -> None:
    """Make the views over the given runs. What they do comes from code; a run gives files and the names of tables."""
    if not runs:
        raise UsageError("no run given", hint="score something first, or name a run with --run")
    tables = list(tables)
    for table in _TABLES:
        _create_view(connection, table, [(run, run.table(table)) for run in runs])
    for side in declared_tables(tables).values():
        _create_view(connection, side.name, [(run, run.tables.table(side.name) or f"({side.nothing})") for run in runs])
        for view, query_text in views_of(side).items():
            connection.execute(f'CREATE VIEW "{view}" AS {query_text}')
    for name in undeclared_tables(runs, _declared_views(tables)):
        _create_view(connection, name, [(run, table) for run in runs if (table := run.tables.table(name))])
    _create_view(connection, "profiles", [(run, parquet(run.tables.own(PROFILES))) for run in runs])
    _create_table(connection, "metrics", _METRIC_COLUMNS, _declared(runs))
    _create_table(connection, "runs", _RUN_COLUMNS, [_run_row(run) for run in runs])
    connection.execute(_ASPECT_SCORES)


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, sources: Sequence[tuple[Run, str]]) -> None:
    """The rows of all runs, each with the run's name."""
    union = " UNION ALL BY NAME ".join(f"SELECT {quoted(run.name)} AS run, * FROM {table}" for run, table in sources)
    connection.execute(f'CREATE VIEW "{name}" AS {union}')


_METRIC_COLUMNS = (
    "run",
    "metric",
    "family",
    "version",
    "question",
    "unit",
    "better",
    "observes",
    "aspect",
    "component",
)
_RUN_COLUMNS = (
    "run",
    "run_id",
    "valid",
    "invalid_reason",
    "invalidated_at",
    "superseded_by",
    "started_at",
    "finished_at",
    "conversations",
    "config_hash",
    "input_hash",
)


_TYPES = {"version": "INTEGER", "valid": "BOOLEAN", "conversations": "BIGINT"}


def _declared(runs: Sequence[Run]) -> list[tuple[Any, ...]]:
    return [
        (run.name, *(getattr(declared, name) for name in _METRIC_COLUMNS[1:]))
        for run in runs
        for declared in run.summary.declared
    ]


def _run_row(run: Run) -> tuple[Any, ...]:
    receipt = run.receipt
    fields = [
        run.summary.conversations if name == "conversations" else getattr(receipt, name) for name in _RUN_COLUMNS[1:]
    ]
    return (run.name, *fields)


def _create_table(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    arrays = {}
    for number, column in enumerate(columns):
        array = np.empty(len(rows), dtype=object)
        array[:] = [row[number] for row in rows]
        arrays[column] = array
    connection.register("incoming", arrays)
    # Types are spelled out: a column without a single value would have none.
    typed = ", ".join(f'"{column}"::{_TYPES.get(column, "VARCHAR")} AS "{column}"' for column in columns)
    connection.execute(f"CREATE TABLE {name} AS SELECT {typed} FROM incoming")
    connection.unregister("incoming")


# docs: specs of the flow matrix. One row per conversation, aspect and judge; the score is 0 to 10.
_ASPECT_SCORES = """
    CREATE VIEW aspect_scores AS
    SELECT s.run, s.conversation, c.flow, coalesce(c.agent, c.model) AS agent,
           json_extract_string(c.dimensions, '$.persona') AS persona,
           m.aspect, s.judge, s.score, s.value, s.unit, s.reason
    FROM all_conversation_scores AS s
    JOIN metrics AS m
      ON m.run = s.run AND m.metric = CASE WHEN s.variant = '' THEN s.metric ELSE s.metric || '@' || s.variant END
    JOIN conversations AS c ON c.run = s.run AND c.conversation = s.conversation
    WHERE m.aspect <> ''
"""


def declared_tables(more: Iterable[SideTable] = ()) -> dict[str, SideTable]:
    """The side tables that code declares, by name: the installed families, and what the user named.

    Never the run: what SQL does with a table comes from code, as a run folder may come from anyone.
    """
    return dict(sorted({**installed().tables, **{one.name: one for one in more}}.items()))


def undeclared_tables(runs: Sequence[Run], taken: Iterable[str]) -> list[str]:
    """The side tables that runs hold and no code here declares: their bare rows can be asked."""
    return sorted({name for run in runs for name in run.tables.side_tables()} - set(taken))


def views_of(table: SideTable) -> dict[str, str]:
    """What a declaration has SQL show of its table: the views that it names, and what groups of its rows come to."""
    views = {name: f'SELECT {columns} FROM "{table.name}"' for name, columns in table.views.items()}
    if table.combine:
        views[table.name + COMBINED] = combined(table, "run, flow")
    return views


def check_tables(tables: Sequence[SideTable]) -> None:
    """Refuse a declaration whose views or sums no database can make, before anything is done."""
    import duckdb

    strange = [table for table in tables if table.name not in installed().tables]
    if not strange:
        return
    with connect() as connection:
        for table in strange:
            try:
                connection.execute(
                    f'CREATE TEMP VIEW "{table.name}" AS SELECT NULL::VARCHAR AS run, * FROM ({table.nothing})'
                )
                for view, query_text in views_of(table).items():
                    connection.execute(f'CREATE TEMP VIEW "{view}" AS {query_text}')
            except duckdb.Error as error:
                raise DeclarationError(f"the table {table.name} cannot be made: {one_line(str(error))}") from None


def write_combined(run: Run, tables: Sequence[SideTable]) -> None:
    """Keep what the rows of each subject come to, so that a question need not read all of them."""
    for table in tables:
        if table.combine and run.tables.files(table.name):
            with connect(run.folder) as connection:
                query_text = combined(table, "flow", run.table(table.name))
                write_parquet(connection, query_text, run.tables.own(combined_file(table.name)), "COMPRESSION zstd")


def combined_file(name: str) -> str:
    """Where a run keeps what the rows of the subjects of a table come to."""
    return f"{name}{COMBINED}.parquet"


def combined(table: SideTable, by: str, source: str = "") -> str:
    """A query for what the rows of groups come to: those of one subject, and of whatever else they are grouped by."""
    sums = ", ".join(f'{expression} AS "{name}"' for name, expression in table.combine.items())
    source = source or f'"{table.name}"'
    return f'SELECT {by}, "{table.key}", {sums} FROM {source} GROUP BY {by}, "{table.key}" ORDER BY ALL'
