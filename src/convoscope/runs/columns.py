"""Columns of Python values on their way into a Parquet file.

Most columns of a part hold one value, or a few: these are told to DuckDB once, and not row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from convoscope.runs.tables import quoted, write_parquet

if TYPE_CHECKING:
    import duckdb

_SQL_TYPES = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_FEW = 64


class Columns:
    """The columns of one table, all of one length."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._arrays: dict[str, Any] = {"row": np.arange(length, dtype=np.int32)}
        self._expressions = ['"row"']

    def constant(self, name: str, value: int) -> None:
        self._expressions.append(f'{value}::INTEGER AS "{name}"')

    def add(self, name: str, kind: type, values: Sequence[Any]) -> None:
        """A column; None is NULL. Types are spelled out: a column without a single value would have none."""
        sql = _SQL_TYPES[kind]
        if values and values.count(values[0]) == len(values):
            self._expressions.append(f'{_literal(values[0])}::{sql} AS "{name}"')
            return
        if kind is str and len(few := dict.fromkeys(values)) <= _FEW:
            self._expressions.append(f'list_extract([{", ".join(map(_literal, few))}], "{name}")::{sql} AS "{name}"')
            code = {value: number for number, value in enumerate(few, 1)}
            self._arrays[name] = np.fromiter(map(code.__getitem__, values), dtype=np.int32, count=len(values))
            return
        self._expressions.append(f'"{name}"::{sql} AS "{name}"')
        self._arrays[name] = _array(values, kind)

    def write(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        connection.register("columns", self._arrays)
        write_parquet(connection, f"SELECT {', '.join(self._expressions)} FROM columns", path, "COMPRESSION lz4")
        connection.unregister("columns")


def _literal(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return quoted(_writable(value))
    return repr(value)


def _array(values: Sequence[Any], kind: type) -> Any:
    if kind is float:
        # NumPy reads None as NaN, which no score can be; DuckDB reads a masked entry as NULL.
        numbers = np.array(values, dtype=np.float64)
        return np.ma.masked_array(numbers, mask=np.isnan(numbers)) if None in values else numbers
    if kind is int:
        if None not in values:
            return np.array(values, dtype=np.int64)
        known = np.array([0 if value is None else value for value in values], dtype=np.int64)
        return np.ma.masked_array(known, mask=[value is None for value in values])
    column = np.empty(len(values), dtype=object)
    try:
        "".join(value for value in values if value is not None).encode()
        column[:] = values
    except UnicodeEncodeError:
        column[:] = [None if value is None else _writable(value) for value in values]
    return column


def _writable(text: str) -> str:
    """Half of a surrogate pair cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
