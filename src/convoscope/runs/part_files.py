"""The files of one part of a run: final Parquet files, written column by column."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope import __version__
from convoscope.conversation import DIMENSIONS, Conversation
from convoscope.ingest.discover import LOCK
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import Read
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    SCORES,
    attempted_file,
    connect,
    quoted,
    write_parquet,
)
from convoscope.runs.partial import AnswerFile
from convoscope.runs.receipt import sources
from convoscope.runs.stored import upload_part
from convoscope.scores.observation import LONGEST_ID, STATUSES, Counts, cut, cut_all, evidence
from convoscope.scores.side_tables import SideTable
from convoscope.scoring.batch import MetricColumns
from convoscope.scoring.evaluate import say
from convoscope.scoring.partition import problem_of
from convoscope.scoring.profiles import Profile
from convoscope.statistics.within import Observed, Reduced
from convoscope.views.background import background_of
from convoscope.views.fields import field_value
from convoscope.views.flow.endings import ending_of, outcome_of, shown_value
from convoscope.views.items import Subject

if TYPE_CHECKING:
    import duckdb

_encode = msgspec.json.Encoder().encode


class PartFiles:
    """What a part holds, until its tables are written column by column."""

    def __init__(
        self,
        folder: Path,
        part: int,
        content: str,
        tables: Sequence[SideTable],
        fields: Sequence[str] = (),
        address: str = "",
    ) -> None:
        self.folder = folder
        self.address = address
        self.part = part
        self.attempt = uuid4().hex[:12]
        self.answers = AnswerFile(folder, content)
        self._fields = fields
        self._conversations: list[tuple[Any, ...]] = []
        self._sides = [_SideRows(table) for table in tables]

    def __len__(self) -> int:
        return len(self._conversations)

    def add(self, read: Read, body: str, profile: Profile, report: ReadReport) -> None:
        """Keep a conversation, with its JSON."""
        conversation = read.conversation
        dimensions = conversation.dimensions
        if conversation.flow is not None and "flow" not in dimensions:
            dimensions = {**dimensions, "flow": conversation.flow.name}
        background = background_of(conversation)
        if background.versions:
            dimensions = {**background.versions, **dimensions}
        if self._fields:
            dimensions = {**_fields_of(conversation, self._fields), **dimensions}
        for side in self._sides:
            side.add(conversation, len(self._conversations), dimensions, report)
        label, outcome = conversation.outcome.label, outcome_of(conversation)
        others = None if dimensions.keys() <= _DIMENSIONS else _others(dimensions)
        self._conversations.append(
            (
                cut(conversation.id, LONGEST_ID),
                *map(dimensions.get, DIMENSIONS),
                _encode(others).decode() if others else None,
                _encode(background.kinds).decode() if background.kinds else None,
                cut(background.user, LONGEST_ID) or None,
                conversation.source.format,
                conversation.outcome.error or None,
                None if label is None else cut(shown_value(label.value)),
                outcome.name,
                cut(outcome.evidence) or None,
                cut(ending_of(conversation), LONGEST_ENDING) or None,
                _encode(read.notes).decode() if read.notes else None,
                body,
                profile.key,
            )
        )

    def close(self) -> None:
        self.answers.close()

    def write(self, batch: Sequence[MetricColumns]) -> tuple[str, ...]:
        """Write the tables; side tables only where they have rows. Gives back which."""
        names = _objects([row[0] for row in self._conversations])
        tables: dict[str, ColumnBuffer] = {
            CONVERSATIONS: self._conversation_columns(),
            SCORES: _score_columns(batch, names),
            CONVERSATION_SCORES: _reduced_columns(batch, names),
            **{side.table.name: side.columns(names) for side in self._sides if side.rows},
        }
        if self.address:  # a worker elsewhere has no folder of the run yet
            self.folder.mkdir(parents=True, exist_ok=True)
        with connect(self.folder) as connection:
            for table, columns in tables.items():
                columns.constant("part", int, self.part)
                columns.write(connection, attempted_file(self.folder, table, self.part, self.attempt))
        if self.address:
            upload_part(self.folder, self.address, self.part, self.attempt, tables)
        return tuple(tables)

    def _conversation_columns(self) -> ColumnBuffer:
        columns = ColumnBuffer(len(self))
        columns.numbers("row", int, np.arange(len(self), dtype=np.int32))
        columns.numbers("size", int, np.array([len(row[_BODY]) for row in self._conversations], dtype=np.int64))
        values = zip(*self._conversations, strict=True)
        for name, column in zip(_CONVERSATION_COLUMNS, values, strict=True):
            if name == "body":  # decoded from UTF-8, so that it can be written as it is
                columns.names(name, _object_array(column))
            else:
                columns.texts(name, column, differ=name == "conversation")
        return columns


class RunFiles(msgspec.Struct, frozen=True):
    """Keeps parts in the folder of a run."""

    folder: Path
    tables: tuple[SideTable, ...] = ()
    fields: tuple[str, ...] = ()
    """Fields that are kept among the dimensions, because runs are grouped by them."""
    address: str = ""
    """Where the files of parts are kept, too: below an address in an object store."""

    def part(self, number: int, content: str) -> PartFiles:
        return PartFiles(self.folder, number, content, self.tables, self.fields, self.address)

    def sees(self) -> dict[str, str]:
        """The version, the sources, and the mark of the run's folder, which no other folder has.

        A run in a store needs no folder that all machines share.
        """
        same = {"Convoscope's version": __version__, "Convoscope's sources": sources()}
        if self.address:
            return same
        mark = self.folder / LOCK
        held = hashlib.sha256(mark.read_bytes()).hexdigest() if mark.is_file() else "not there"
        return {**same, str(self.folder): held}


def _fields_of(conversation: Conversation, names: Sequence[str]) -> dict[str, str]:
    """The fields of these names that a conversation has, as text."""
    values = ((name, field_value(conversation, name)) for name in names)
    return {name: cut(shown_value(value)) for name, value in values if value is not None}


def _others(dimensions: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in dimensions.items() if name not in _DIMENSIONS}


_DIMENSIONS = frozenset(DIMENSIONS)
LONGEST_ENDING = 60
_OUTCOME = ("label", "outcome", "outcome_reason", "ending")
_CONVERSATION_COLUMNS = (
    "conversation",
    *DIMENSIONS,
    "dimensions",
    "facts",
    "user_id",
    "format",
    "error",
    *_OUTCOME,
    "notes",
    "body",
    "profile",
)
_BODY = _CONVERSATION_COLUMNS.index("body")


def _start(
    batch: Sequence[MetricColumns], blocks: Sequence[Observed | Reduced], names: NDArray[np.object_]
) -> ColumnBuffer:
    """A table with the conversation and the metric of each row; `blocks` are the columns of the metrics of a batch."""
    rows = np.concatenate([block.row for block in blocks]) if blocks else np.zeros(0, dtype=np.int64)
    columns = ColumnBuffer(len(rows))
    columns.names("conversation", names[rows])
    columns.numbers("row", int, rows.astype(np.int32))
    metrics = {one.metric_index: one.declared for one in batch}
    code = {index: number for number, index in enumerate(metrics)}
    codes = np.repeat([code[one.metric_index] for one in batch], [len(block.row) for block in blocks])
    columns.coded("metric", codes, [one.name for one in metrics.values()])
    columns.coded("variant", codes, [one.variant for one in metrics.values()])
    return columns


def _column(blocks: Sequence[Any], name: str) -> list[Any]:
    return [getattr(block, name) for block in blocks]


def _stacked(blocks: Sequence[Any], name: str) -> NDArray[Any]:
    return np.concatenate(_column(blocks, name)) if blocks else np.zeros(0)


def _score_columns(batch: Sequence[MetricColumns], names: NDArray[np.object_]) -> ColumnBuffer:
    blocks = [one.observed for one in batch]
    columns = _start(batch, blocks, names)
    subjects = [_subjects(block.subject) for block in blocks]
    columns.blocks("subject_kind", [kinds for kinds, _, _ in subjects])
    columns.blocks("subject", [cut_all(ids) for _, ids, _ in subjects])
    columns.numbers(
        "position",
        int,
        _concatenated([np.array(positions, dtype=np.int64) for _, _, positions in subjects]),
        sql="BIGINT",
    )
    columns.blocks("judge", _column(blocks, "judge"))
    columns.numbers("repeat", int, _concatenated([np.array(block.repeat, dtype=np.int64) for block in blocks]))
    columns.coded("status", _stacked(blocks, "status"), STATUSES)
    for name in ("value", "numerator", "denominator"):
        columns.numbers(name, float, _stacked(blocks, name))
    for index, name in enumerate(Counts._fields):
        columns.numbers(name, float, _concatenated([_counts(block, index) for block in blocks]))
    for name in ("reason", "detail"):
        columns.blocks(name, list(map(cut_all, _column(blocks, name))), empty=None)
    columns.blocks("details", [_encoded(block.details) for block in blocks])
    return columns


def _subjects(subjects: Sequence[Subject]) -> list[Sequence[Any]]:
    """Kinds, ids and positions; most metrics speak of one subject alone, the whole conversation."""
    if subjects and subjects.count(subjects[0]) == len(subjects):
        return [[value] * len(subjects) for value in subjects[0]]
    return list(zip(*subjects, strict=True)) or [(), (), ()]


def _counts(block: Observed, index: int) -> NDArray[np.float64]:
    if block.counts is None:
        return np.full(len(block.row), np.nan)
    return np.array([None if one is None else one[index] for one in block.counts], dtype=np.float64)


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _encoded(details: Sequence[Mapping[str, Any] | None]) -> Sequence[str | None]:
    if details.count(None) == len(details):
        return [None] * len(details)
    return list(map(evidence, details))


def _reduced_columns(batch: Sequence[MetricColumns], names: NDArray[np.object_]) -> ColumnBuffer:
    blocks = [one.reduced for one in batch]
    columns = _start(batch, blocks, names)
    columns.blocks("judge", _column(blocks, "judge"))
    columns.coded("status", _stacked(blocks, "status"), STATUSES)
    columns.numbers("value", float, _stacked(blocks, "value"))
    columns.numbers("score", float, _stacked(blocks, "ten"))
    columns.blocks("unit", [[one.declared.unit] * len(one.reduced.row) for one in batch])
    columns.numbers("n", int, _stacked(blocks, "n"))
    for name in ("total", "numerator", "denominator", "tp", "fp", "fn"):
        columns.numbers(name, float, _stacked(blocks, name))
    for name in ("not_applicable", "unmeasured", "errors"):
        columns.numbers(name, int, _stacked(blocks, name))
    for name in ("reason", "detail"):
        columns.blocks(name, list(map(cut_all, _column(blocks, name))), empty=None)
    return columns


def _fields(table: SideTable) -> Callable[[Any], tuple[Any, ...]]:
    """The values of a row, in the order of the columns."""
    values = attrgetter(*(column.name for column in table.columns))
    return values if len(table.columns) > 1 else lambda row: (values(row),)


class _SideRows:
    """The rows of a side table in a part."""

    def __init__(self, table: SideTable) -> None:
        self.table = table
        self.rows: list[tuple[Any, ...]] = []
        self._values = _fields(table)
        self._is_built_in = table.rows.__module__.startswith("convoscope.")

    def add(self, conversation: Conversation, row: int, dimensions: Mapping[str, str], report: ReadReport) -> None:
        """The rows of a conversation. One whose rows cannot be made has none, and that is a problem."""
        try:
            rows = [self._values(one) for one in self.table.rows(conversation)]
            if not self._is_built_in:
                self._check(rows)
        except (Exception, SystemExit) as error:  # whatever the function of a user raises
            report.problem(problem_of(conversation, f"has no rows in {self.table.name}: {cut(say(error))}"))
            return
        own = (row, dimensions.get("flow"), dimensions.get("agent") or dimensions.get("model"))
        self.rows += [(*own, *values) for values in rows]

    def _check(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for values in rows:
            for column, value in zip(self.table.columns, values, strict=True):
                if not column.holds(value):
                    raise ValueError(f"{column.name} cannot hold {value!r}")

    def columns(self, names: NDArray[np.object_]) -> ColumnBuffer:
        columns = ColumnBuffer(len(self.rows))
        rows, flows, agents, *values = zip(*self.rows, strict=True)
        columns.names("conversation", names[list(rows)])
        columns.numbers("row", int, np.array(rows, dtype=np.int32))
        columns.texts("flow", flows)
        columns.texts("agent", agents)
        for kind, column in zip(self.table.columns, values, strict=True):
            if kind.is_list:
                columns.texts(kind.name, list(map(joined, column)), split=kind.sql)
            elif kind.is_json:
                columns.texts(kind.name, [_encode(one).decode() if one else None for one in column])
            elif kind.sql == "VARCHAR":
                columns.texts(kind.name, column)
            else:
                columns.numbers(kind.name, float, np.array(column, dtype=np.float64), sql=kind.sql)
        return columns


_SQL_TYPES = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR"}
_FEW = 256


class ColumnBuffer:
    """The columns of one table, all of one length."""

    def __init__(self, length: int) -> None:
        self.length = length
        # DuckDB must see at least one array to know how many rows there are.
        self._arrays: dict[str, Any] = {"index": np.arange(length, dtype=np.int32)}
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
        """A column of texts, of which there are few: each row has the index of its own among them."""
        if len(texts) == 1 or not self.length:
            self.constant(name, str, texts[0] if texts else None)
        elif len(texts) > _FEW:
            self.names(name, _objects(texts)[codes])
        else:
            self._arrays[name] = codes.astype(np.int32) + 1
            listed = list(map(_literal, texts))
            # As an enumeration, which is written as text: each text is looked at once, and not in each row.
            kinds = ", ".join(dict.fromkeys(one for one in listed if one != _literal(None)))
            expression = f'list_extract([{", ".join(listed)}]::ENUM({kinds})[], "{name}")'
            self._expressions.append(f'{expression} AS "{name}"')

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
    """The different values, each with its index among them."""
    return dict(zip(dict.fromkeys(values), count(), strict=False))


def _literal(value: str | float | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return quoted(_writable(value))
    return repr(value)


def _objects(values: Sequence[str | None]) -> NDArray[np.object_]:
    try:
        "".join([value for value in values if value is not None]).encode()
    except UnicodeEncodeError:
        values = [None if value is None else _writable(value) for value in values]
    return _object_array(values)


def _object_array(values: Sequence[str | None]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _writable(text: str) -> str:
    """Half of a surrogate pair cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
