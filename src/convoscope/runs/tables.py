"""DuckDB, as we use it: one thread by default, little memory, Parquet in and out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


MEMORY_MB = 256


def connect(*, memory_mb: int = MEMORY_MB, scratch: Path | None = None, threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A database of our own, in memory, that spills to `scratch` when it must."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET enable_progress_bar = false")
    # Nothing is fetched from anywhere, whatever a query asks for.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    connection.execute(f"SET memory_limit = '{memory_mb}MB'")
    if scratch is not None:
        connection.execute(f"SET temp_directory = {quoted(scratch.resolve())}")
    return connection


def quoted(text: object) -> str:
    """A string as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"


def parquet(*paths: Path) -> str:
    """Parquet files as a table, by their very names: DuckDB would read * ? [ as patterns and ~ as a home."""
    names = (re.sub(r"([*?\[])", r"[\1]", str(path.resolve())) for path in paths)
    return f"read_parquet([{', '.join(quoted(name) for name in names)}])"


def write_parquet(connection: duckdb.DuckDBPyConnection, query: str, path: Path, options: str) -> None:
    """Write what a query gives as one file, whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    connection.execute(f"COPY ({query}) TO {quoted(unfinished.resolve())} (FORMAT parquet, {options})")
    unfinished.rename(path)
