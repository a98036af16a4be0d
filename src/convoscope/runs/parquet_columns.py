"""Columns on their way into a Parquet file, written by DuckDB straight from NumPy arrays.

Most columns of a part hold one value, or a few: these are told to DuckDB once, and not row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from convoscope.runs.database import quoted, write_parquet

if TYPE_CHECKING:
    import duckdb

_SQL_TYPES = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR"}
_FEW = 256


class ColumnBuffer:
    """The columns of one table, all of one length."""

    def __init__(self, length: int) -> None:
        self.length = length
        # DuckDB must see at least one array to know how many rows there are.
        self._arrays: dict[str, Any] = {"place": np.arange(length, dtype=np.int32)}
        self._expressions: list[str] = []

    def constant(self, name: str, kind: type, value: str | float | None, sql: str = "") -> None:
        """One value for all rows; None is NULL. Types are spelled out: a column without a value would have none."""
        self._expressions.append(f'{_literal(value)}::{sql or _SQL_TYPES[kind]} AS "{name}"')

    def numbers(self, name: str, kind: type, values: NDArray[Any], sql: str = "") -> None:
        """A column of numbers, whole ones where `kind` says so; NaN is NULL. `sql` is a type of its own."""
        sql = sql or _SQL_TYPES[kind]
        if not self.length:
            self.constant(name, kind, None, sql)
            return
        missing = np.isnan(values) if values.dtype.kind == "f" else None
        if missing is not None and missing.any():
            if missing.all():
                self.constant(name, kind, None, sql)
                return
            values = np.ma.masked_array(values, mask=missing)
        elif (values == values[0]).all():
            self.constant(name, kind, kind(values[0]), sql)
            return
        self._arrays[name] = values
        self._expressions.append(f'"{name}"::{sql} AS "{name}"')

    def coded(self, name: str, codes: NDArray[Any], texts: Sequence[str | None]) -> None:
        """A column of texts, of which there are few: each row has the place of its own among them."""
        if len(texts) == 1 or not self.length:
            self.constant(name, str, texts[0] if texts else None)
        elif len(texts) > _FEW:
            some = np.empty(len(texts), dtype=object)
            some[:] = [None if text is None else _writable(text) for text in texts]
            self._arrays[name] = some[codes]
            self._expressions.append(f'"{name}"::VARCHAR AS "{name}"')
        else:
            self._arrays[name] = codes.astype(np.int32) + 1
            listed = ", ".join(map(_literal, texts))
            self._expressions.append(f'list_extract([{listed}]::VARCHAR[], "{name}") AS "{name}"')

    def texts(self, name: str, values: Sequence[str | None], *, differ: bool = False, split: str = "") -> None:
        """A column of texts; None is NULL. `differ` where most are different from each other.

        `split` is the type of a list whose entries were joined into one text.
        """
        if not differ and not split and values and values.count(values[0]) == len(values):
            self.constant(name, str, values[0])
            return
        code = {} if differ or split else _codes(values)
        if len(code) <= _FEW and not differ and not split:
            codes = np.fromiter(map(code.__getitem__, values), dtype=np.int32, count=len(values))
            self.coded(name, codes, list(code))
            return
        self._arrays[name] = _objects(values)
        expression = f'"{name}"::VARCHAR'
        if split:
            expression = f"coalesce(string_split({expression}, {quoted(BETWEEN)}), [])::{split}[]"
        self._expressions.append(f'{expression} AS "{name}"')

    def blocks(self, name: str, blocks: Sequence[Sequence[Any]], *, empty: str | None = "") -> None:
        """A column of texts from several sequences, many of which hold one value; `empty` stands for an empty text."""
        code: dict[Any, int] = {}
        parts: list[NDArray[np.int32]] = []
        for block in blocks:
            if block and block.count(block[0]) == len(block):
                parts.append(np.full(len(block), code.setdefault(block[0], len(code)), dtype=np.int32))
                continue
            for value in dict.fromkeys(block):
                code.setdefault(value, len(code))
            parts.append(np.fromiter(map(code.__getitem__, block), dtype=np.int32, count=len(block)))
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        self.coded(name, codes, [empty if value == "" else value for value in code])

    def names(self, name: str, values: NDArray[np.object_]) -> None:
        """A column of texts that can be written as they are, most of them different."""
        self._arrays[name] = values
        self._expressions.append(f'"{name}"::VARCHAR AS "{name}"')

    def write(self, connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        """Write the file, whole or not at all."""
        connection.register("columns", self._arrays)
        write_parquet(connection, f"SELECT {', '.join(self._expressions)} FROM columns", path, "COMPRESSION zstd")
        connection.unregister("columns")


BETWEEN = "\x1f"
"""Stands between the entries of a list on its way into a Parquet file."""


def joined(entries: Sequence[Any]) -> str | None:
    """The entries of a list as one text, to be split when it is written; None for none."""
    if not entries:
        return None
    text = BETWEEN.join(map(str, entries))
    if text.count(BETWEEN) == len(entries) - 1:
        return text
    return BETWEEN.join(str(entry).replace(BETWEEN, " ") for entry in entries)


def _codes(values: Sequence[str | None]) -> dict[str | None, int]:
    """The different values, each with its place among them."""
    return dict(zip(dict.fromkeys(values), count(), strict=False))


def _literal(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return quoted(_writable(value))
    return repr(value)


def _objects(values: Sequence[str | None]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    try:
        "".join([value for value in values if value is not None]).encode()
        column[:] = values
    except UnicodeEncodeError:
        column[:] = [None if value is None else _writable(value) for value in values]
    return column


def _writable(text: str) -> str:
    """Half of a surrogate pair cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
