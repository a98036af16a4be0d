"""The side tables of runs: which there are, what SQL shows of them, and what the rows of their subjects come to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from convoscope.errors import DeclarationError
from convoscope.harmless import one_line
from convoscope.metrics.registry import installed
from convoscope.runs.database import connect, write_parquet
from convoscope.runs.run import Run
from convoscope.scores.side_tables import COMBINED, SideTable


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
                write_parquet(connection, query_text, run.folder / combined_file(table.name), "COMPRESSION zstd")


def combined_file(name: str) -> str:
    """Where a run keeps what the rows of the subjects of a table come to."""
    return f"{name}{COMBINED}.parquet"


def combined(table: SideTable, by: str, source: str = "") -> str:
    """A query for what the rows of groups come to: those of one subject, and of whatever else they are grouped by."""
    sums = ", ".join(f'{expression} AS "{name}"' for name, expression in table.combine.items())
    source = source or f'"{table.name}"'
    return f'SELECT {by}, "{table.key}", {sums} FROM {source} GROUP BY {by}, "{table.key}" ORDER BY ALL'
