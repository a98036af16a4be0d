"""What metrics say of each conversation, as columns: a few metrics are read at a time, and kept where all are few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.runs.array_file import ArrayFile, StoredArray
from convoscope.runs.database import CONVERSATION_SCORES, Tables, connect, metadata, quoted
from convoscope.scores.observation import MEASURED, STATUSES
from convoscope.statistics.intervals import Columns, Floats

if TYPE_CHECKING:
    import duckdb

VALUES = Columns._fields
COUNTS = ("not_applicable", "unmeasured", "errors")
POINTS = "score"
"""Of ten; a row without them has no number there."""
_FETCHED = (*VALUES, *COUNTS, POINTS)
_CONVERSATIONS_AT_HAND = 20_000
"""Whose rows are read at a time, where all are."""
MOST_KEPT = 1_000_000
"""Rows that are kept when they were read, about 20 bytes each."""
MOST_KEPT_OF_NEW = 3_000_000
"""Of a run that is being made: its page comes next."""
Key = tuple[str, str]
"""The name of a metric and its variant."""


class Extent(NamedTuple):
    """How much a metric has in the table, and the columns that hold one value."""

    rows: int
    judges: list[str]
    measured_by: list[str]
    constant: dict[str, float]


class MetricRows(NamedTuple):
    """The rows of one metric, in the order of the conversations."""

    number: NDArray[Any]
    judge: NDArray[Any]
    """The index among the judges of the run."""
    status: NDArray[Any]
    """The index among all statuses."""
    reason: NDArray[Any]
    """The index among the reasons of the run."""
    columns: dict[str, NDArray[Any]]
    """Without those that are 0 everywhere."""

    def column(self, name: str, rows: Any = slice(None)) -> Floats:
        values = self.columns.get(name)
        if values is None:
            return np.broadcast_to(np.float64(0), len(self.number[rows]))
        if values.strides == (0,):
            return np.broadcast_to(np.float64(values[:1].sum()), len(self.number[rows]))
        return np.asarray(values[rows], dtype=np.float64)


class ScoreColumns:
    """The rows of all metrics. Where they are few, all are read at once, and kept.

    Where they are many, `sets_aside` puts those of each `block` that was read into a file: they are wanted again.
    """

    def __init__(self, tables: Tables, most_kept: int = MOST_KEPT, *, sets_aside: bool = False) -> None:
        self._tables = tables
        self._aside: dict[Key, dict[str, StoredArray | NDArray[Any]]] = {}
        self._file = ArrayFile() if sets_aside else None
        self._table = tables.table(CONVERSATION_SCORES)
        self._most_kept = most_kept
        self._blocks: dict[Key, MetricRows] = {}

    def _execute(self, query: str) -> duckdb.DuckDBPyConnection:
        return connect(self._tables.folder).execute(query)

    def _distinct(self, column: str) -> list[Any]:
        rows = self._execute(f"SELECT DISTINCT {column} FROM {self._table} ORDER BY ALL").fetchall()
        return [value for (value,) in rows]

    @property
    def is_kept(self) -> bool:
        """Whether all is in memory or set aside, so that no file of the run is read any more."""
        return "extents" in self.__dict__ and (self._keeps or self._aside.keys() == self.extents.keys())

    @cached_property
    def extents(self) -> dict[Key, Extent]:
        """The metrics that have rows."""
        return self._read_all() if self._keeps else self._look_at_all()

    @cached_property
    def reasons(self) -> list[str]:
        """All reasons there are."""
        return self._distinct("coalesce(reason, '')")

    @cached_property
    def judges(self) -> list[str]:
        """All who scored."""
        return self._distinct("judge")

    @cached_property
    def _keeps(self) -> bool:
        ((rows,),) = self._execute(f"SELECT count(*) FROM {self._table}").fetchall()
        return bool(rows <= self._most_kept)

    def _read_all(self) -> dict[Key, Extent]:
        metrics, variants = self._distinct("metric"), self._distinct("variant")
        codes = f"{_code('metric', metrics)} * {len(variants)} + {_code('variant', variants)} AS metric"
        varying = [name for name in _FETCHED if name not in self._zeros]
        read: dict[int, list[MetricRows]] = {}
        for table in self._chunks():
            rows = self._fetch(f"{codes}, ", table, varying)
            # Of small codes, the order is found faster.
            code_of = np.asarray(rows["metric"], np.int16 if len(metrics) * len(variants) < 2**15 else np.int32)
            order = np.argsort(code_of, kind="stable")
            codes_here, starts = np.unique(code_of[order], return_index=True)
            for code, own in zip(codes_here.tolist(), np.split(order, starts)[1:], strict=True):
                read.setdefault(code, []).append(_packed(_block(rows, own, varying)))
        self._blocks = {
            (metrics[code // len(variants)], variants[code % len(variants)]): _together(blocks)
            for code, blocks in sorted(read.items())
        }
        return {key: self._extent(block) for key, block in self._blocks.items()}

    @cached_property
    def _zeros(self) -> set[str]:
        """Columns that are 0 in every row, as the files say at their end: the rows of these need not be read."""
        is_zero = "stats_null_count = 0 AND stats_min_value IN ('0', '0.0') AND stats_max_value IN ('0', '0.0')"
        rows = self._execute(
            f"SELECT path_in_schema FROM {metadata(*self._tables.files(CONVERSATION_SCORES))} "
            f"GROUP BY path_in_schema HAVING count(*) = count(*) FILTER ({is_zero})"
        ).fetchall()
        return {name for (name,) in rows}

    def _chunks(self) -> Iterator[str]:
        """The table, some parts at a time."""
        parts, paths, size = self._tables.parts, list[Path](), 0
        for part in self._tables.order:
            if paths and size + parts[part] > _CONVERSATIONS_AT_HAND:
                yield self._tables.table(CONVERSATION_SCORES, paths)
                paths, size = [], 0
            paths += self._tables.of_part(CONVERSATION_SCORES, part)
            size += parts[part]
        yield self._tables.table(CONVERSATION_SCORES, paths)

    def _extent(self, block: MetricRows) -> Extent:
        is_measured = block.status == STATUSES.index(MEASURED)
        constant = {name: float(values[0]) for name, values in block.columns.items() if values.strides == (0,)}
        return Extent(
            len(block.number),
            [self.judges[code] for code in np.flatnonzero(np.bincount(block.judge)).tolist()],
            [self.judges[code] for code in np.flatnonzero(np.bincount(block.judge[is_measured])).tolist()],
            constant | {name: 0.0 for name in _FETCHED if name not in block.columns},
        )

    def _look_at_all(self) -> dict[Key, Extent]:
        bounds = ", ".join(f"min({name}), max({name})" for name in _FETCHED)
        measured = f"coalesce(list(DISTINCT judge) FILTER (status = {quoted(MEASURED)}), [])"
        rows = self._execute(
            f"SELECT metric, variant, count(*), list(DISTINCT judge), {measured}, count({POINTS}), {bounds} "
            f"FROM {self._table} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        extents: dict[Key, Extent] = {}
        for metric, variant, count, judges, measured_by, points, *ends in rows:
            pairs = zip(_FETCHED, ends[::2], ends[1::2], strict=True)
            constant = {name: float(low) for name, low, high in pairs if low is not None and low == high}
            if points < count:
                constant.pop(POINTS, None)
            if not points:
                constant[POINTS] = np.nan
            extents[metric, variant] = Extent(count, sorted(judges), sorted(measured_by), constant)
        return extents

    def block(self, key: Key) -> MetricRows:
        """The rows of a metric."""
        if key in self.extents and key not in self._blocks:
            # One at a time: its rows may be as many as the conversations.
            self._blocks = {key: self._again(key, _FETCHED)}
            if self._file is not None and key not in self._aside:
                self._set_aside(key, _packed(self._blocks[key]), self._file)
        return self._blocks[key]

    def _set_aside(self, key: Key, block: MetricRows, file: ArrayFile) -> None:
        arrays = block._asdict() | block.columns
        del arrays["columns"]
        try:
            self._aside[key] = {name: file.add(values) for name, values in arrays.items()}
        except OSError:  # a full disk: what is not set aside is read again
            self._file = None

    def _again(self, key: Key, names: Sequence[str]) -> MetricRows:
        """The rows of a metric with some columns: those that were set aside, else those of the run."""
        if key not in self._aside or self._file is None:
            return self._read(key, names)
        arrays = {name: one for name, one in self._aside[key].items() if name in (*MetricRows._fields, *names)}
        read = {name: self._file.get(one) for name, one in arrays.items()}
        number, judge, status, reason = (read.pop(name) for name in MetricRows._fields[:4])
        return MetricRows(number, judge, status, reason, read)

    def measured(self, metric: str, variant: str, judge: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        """What one judge measured: the numbers of the conversations, ascending, and some columns."""
        key = (metric, variant)
        extent = self.extents.get(key)
        if extent is None or judge not in extent.measured_by:
            return {"number": np.zeros(0, dtype=np.int64), **{name: np.zeros(0) for name in names}}
        block = self._blocks[key] if key in self._blocks else self._again(key, names)
        rows: Any = (block.status == STATUSES.index(MEASURED)) & (block.judge == self.judges.index(judge))
        if rows.all():
            rows = slice(None)
        number = np.asarray(block.number[rows], dtype=np.int64)
        if (number[1:] < number[:-1]).any():
            rows = np.arange(len(block.number))[rows][np.argsort(number, kind="stable")]
            number = np.asarray(block.number[rows], dtype=np.int64)
        return {"number": number, **{name: block.column(name, rows) for name in names}}

    def _read(self, key: Key, names: Sequence[str]) -> MetricRows:
        constant = self.extents[key].constant
        is_single = constant.get("n") == 1.0  # the sum of one value is that value
        wanted = ["value" if name == "total" and is_single else name for name in names]
        varying = [name for name in dict.fromkeys(wanted) if name not in constant]
        where = f"WHERE metric = {quoted(key[0])} AND variant = {quoted(key[1])}"
        block = _block(self._fetch("", f"{self._table} {where}", varying), slice(None), varying)
        # A column that holds one value takes no room.
        of_one = {name: np.broadcast_to(np.float64(constant[name]), len(block.number)) for name in constant}
        columns = block.columns | {name: one for name, one in of_one.items() if constant[name]}
        if is_single and "value" in columns:
            columns["total"] = columns["value"]
        return block._replace(columns=columns)

    def _fetch(self, codes: str, table: str, names: Sequence[str]) -> dict[str, Any]:
        reason = _code("coalesce(reason, '')", self.reasons)
        rows: dict[str, Any] = self._execute(
            f"SELECT {codes}number, {_code('status', STATUSES)} AS status, {reason} AS reason, "
            f"{_code('judge', self.judges)} AS judge{''.join(f', {name}' for name in names)} FROM {table}"
        ).fetchnumpy()
        return rows | {name: _filled(rows[name], np.nan if name == POINTS else 0.0) for name in names}


def _block(rows: Mapping[str, Any], own: Any, names: Sequence[str]) -> MetricRows:
    number, judge, status, reason = (np.asarray(rows[name])[own] for name in MetricRows._fields[:4])
    return MetricRows(number, judge, status, reason, {name: rows[name][own] for name in names})


def _filled(column: Any, absent: float) -> Floats:
    values = np.ma.asarray(column).astype(np.float64, copy=False)
    filled: Floats = np.ma.filled(values, absent)
    return filled


def _packed(block: MetricRows) -> MetricRows:
    """The same rows in less memory: a column of one value takes no room, and small numbers take little."""
    number, judge, status, reason = map(_packed_column, (block.number, block.judge, block.status, block.reason))
    columns = {name: _packed_column(one) for name, one in block.columns.items()}
    return MetricRows(number, judge, status, reason, {name: one for name, one in columns.items() if not _is_zero(one)})


def _is_zero(values: NDArray[Any]) -> bool:
    return values.strides == (0,) and not values[0]


def _packed_column(values: NDArray[Any]) -> NDArray[Any]:
    if values.strides == (0,):
        return values
    first = values[0]
    if (values == first).all() or (np.isnan(first) and np.isnan(values).all()):
        return np.broadcast_to(first, len(values))
    if values.dtype.kind != "f":
        return values.astype(np.int32 if values.max() > np.iinfo(np.int16).max else np.int16)
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def _together(blocks: Sequence[MetricRows]) -> MetricRows:
    """The rows of several blocks as one."""
    names = dict.fromkeys(name for block in blocks for name in block.columns)
    columns = {name: np.concatenate([_whole(block, name) for block in blocks]) for name in names}
    number, judge, status, reason = (np.concatenate([block[at] for block in blocks]) for at in range(4))
    return _packed(MetricRows(number, judge, status, reason, columns))


def _whole(block: MetricRows, name: str) -> NDArray[Any]:
    return block.columns.get(name, np.broadcast_to(np.float32(0), len(block.number)))


def _code(column: str, values: Sequence[Any]) -> str:
    """The index of a column's text in a list that holds all there are."""
    return f"(list_position([{', '.join(map(quoted, values))}], {column}) - 1)::INTEGER"
