"""One part of a run: a partition in, final Parquet files out. Pure, so that anyone can do it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import DIMENSIONS, Conversation, Flow, to_json
from convoscope.flows.rows import StateRow, state_rows
from convoscope.ingest.partitions import Partition, Read, read_partition
from convoscope.ingest.report import Problem, ReadReport
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import STATUSES
from convoscope.runs.columns import Columns, joined
from convoscope.runs.evidence import cut, cut_all, evidence
from convoscope.runs.tables import STATES, connect, part_file
from convoscope.scoring.batch import Batch, MetricColumns
from convoscope.statistics.columns import Observed, Reduced

if TYPE_CHECKING:
    import duckdb

CONVERSATIONS = "conversations"
SCORES = "scores"
CONVERSATION_SCORES = "conversation_scores"
TABLES = (CONVERSATIONS, SCORES, CONVERSATION_SCORES, STATES)

LARGEST = 128 * 1024 * 1024
"""Characters that a conversation may take as JSON: what is larger is too much for the reports that show it."""

_encode = msgspec.json.Encoder().encode


class Timings(msgspec.Struct):
    """Seconds of work by what they were spent on."""

    reading: float = 0.0
    metrics: float = 0.0
    encoding: float = 0.0
    writing: float = 0.0

    def add(self, other: Timings) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class PartDone(msgspec.Struct, kw_only=True):
    """What the journal keeps of a finished part."""

    part: int
    conversations: int
    tables: tuple[str, ...]
    """Those of which it has a file."""
    profiles: tuple[str, ...]
    """The keys of the profiles that its conversations have."""
    report: ReadReport
    timings: Timings
    flows: dict[str, Flow] = {}
    """The declarations of the flows that its conversations went through."""


def score_partition(
    partition: Partition,
    metrics: Sequence[Declared],
    folder: Path,
    turn_rule: str | None = None,
    flows: Sequence[Flow] = (),
) -> PartDone:
    """Read, score and write one partition."""
    with _without_collecting():
        return _score_partition(partition, metrics, folder, turn_rule, flows)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """A part makes very many small objects and no circles: looking for circles among them takes a fifth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _score_partition(
    partition: Partition, metrics: Sequence[Declared], folder: Path, turn_rule: str | None, flows: Sequence[Flow]
) -> PartDone:
    report = ReadReport()
    timings = Timings()
    rows = _Rows(partition.number, metrics)
    reads = read_partition(partition, report, turn_rule, flows)
    clock = perf_counter
    while True:
        began = clock()
        read = next(reads, None)
        timings.reading += clock() - began
        if read is None:
            break
        rows.add(read, report, timings)
    began = clock()
    tables = rows.write(folder) if len(rows) else ()
    timings.writing += clock() - began
    return PartDone(
        part=partition.number,
        conversations=len(rows),
        tables=tables,
        profiles=rows.profiles,
        report=report,
        timings=timings,
        flows=rows.flows,
    )


@cache
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    """One for all parts that a process writes: making one takes longer than writing a small part."""
    del process
    return connect(memory_mb=2048)


class _Rows:
    """What a part holds, until its tables are written column by column."""

    def __init__(self, part: int, metrics: Sequence[Declared]) -> None:
        self.part = part
        self.flows: dict[str, Flow] = {}
        self._metrics = metrics
        self._batch = Batch(metrics)
        self._conversations: list[tuple[Any, ...]] = []
        self._states: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._conversations)

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(sorted({row[-1] for row in self._conversations}))

    def add(self, read: Read, report: ReadReport, timings: Timings) -> None:
        """Score a conversation. One that cannot be written is a problem, and has no row."""
        conversation = read.conversation
        began = perf_counter()
        try:
            body = to_json(conversation, finite=read.exact).decode()
            if len(body) > LARGEST:
                raise ValueError(f"as JSON it has {len(body):,} characters, more than {LARGEST:,}")
        except (ValueError, TypeError, RecursionError) as error:
            report.conversations -= 1
            report.problem(_cannot_be_kept(conversation, error))
            return
        encoded = perf_counter()
        profile = self._batch.add(conversation, len(body))
        dimensions = conversation.dimensions
        if conversation.flow is not None:
            self.flows.setdefault(conversation.flow.name, conversation.flow)
            if "flow" not in dimensions:
                dimensions = {**dimensions, "flow": conversation.flow.name}
        self._add_states(state_rows(conversation), dimensions)
        others = None if dimensions.keys() <= _DIMENSIONS else _others(dimensions)
        self._conversations.append(
            (
                cut(conversation.id),
                *map(dimensions.get, DIMENSIONS),
                _encode(others).decode() if others else None,
                conversation.source.format,
                conversation.outcome.error or None,
                _encode(read.notes).decode() if read.notes else None,
                body,
                profile.key,
            )
        )
        timings.encoding += encoded - began
        timings.metrics += perf_counter() - encoded

    def _add_states(self, states: Iterable[StateRow], dimensions: Mapping[str, str]) -> None:
        row = len(self._conversations)
        flow = dimensions.get("flow")
        agent = dimensions.get("agent") or dimensions.get("model")
        self._states += [(row, flow, agent, *[getattr(state, name) for name in _STATE_FIELDS]) for state in states]

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write the tables; that of states only where there are any. Gives back which."""
        names = _objects([row[0].encode("utf-8", "replace").decode() for row in self._conversations])
        batch = self._batch.columns()
        tables: dict[str, Columns] = {
            CONVERSATIONS: self._conversation_columns(),
            SCORES: _score_columns(batch, names),
            CONVERSATION_SCORES: _reduced_columns(batch, names),
            STATES: _state_columns(self._states, names),
        }
        connection = _connection(os.getpid())
        written = [table for table, columns in tables.items() if columns.length or table != STATES]
        for table in written:
            columns = tables[table]
            columns.constant("part", int, self.part)
            columns.write(connection, part_file(folder, table, self.part))
        return tuple(written)

    def _conversation_columns(self) -> Columns:
        columns = Columns(len(self))
        columns.numbers("row", int, np.arange(len(self), dtype=np.int32))
        columns.numbers("size", int, np.array([len(row[_BODY]) for row in self._conversations], dtype=np.int64))
        values = zip(*self._conversations, strict=True)
        for name, column in zip(_CONVERSATION_COLUMNS, values, strict=True):
            if name == "body":
                columns.names(name, _objects(column))
            else:
                columns.texts(name, column, differ=name == "conversation")
        return columns


def _cannot_be_kept(conversation: Conversation, error: Exception) -> Problem:
    name, record = cut(conversation.id, 100), conversation.source.record
    file = next(iter(conversation.source.files), name)
    line = record.removeprefix(f"{file}:") if record.startswith(f"{file}:") else ""
    told = f"conversation {name} cannot be kept: {cut(str(error))}"
    return Problem(file, int(line) if line.isdecimal() and len(line) < 10 else 0, told)


def _objects(values: Sequence[str]) -> NDArray[np.object_]:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _others(dimensions: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in dimensions.items() if name not in _DIMENSIONS}


_DIMENSIONS = frozenset(DIMENSIONS)
_CONVERSATION_COLUMNS = ("conversation", *DIMENSIONS, "dimensions", "format", "error", "notes", "body", "profile")
_BODY = _CONVERSATION_COLUMNS.index("body")


def _start(batch: Sequence[MetricColumns], blocks: Sequence[Observed | Reduced], names: NDArray[np.object_]) -> Columns:
    """A table with the conversation and the metric of each row; `blocks` are the columns of the metrics of a batch."""
    rows = np.concatenate([block.row for block in blocks]) if blocks else np.zeros(0, dtype=np.int64)
    columns = Columns(len(rows))
    columns.names("conversation", names[rows])
    columns.numbers("row", int, rows.astype(np.int32))
    metrics = {one.place: one.declared for one in batch}
    code = {place: number for number, place in enumerate(metrics)}
    codes = np.repeat([code[one.place] for one in batch], [len(block.row) for block in blocks])
    columns.coded("metric", codes, [one.name for one in metrics.values()])
    columns.coded("variant", codes, [one.variant for one in metrics.values()])
    return columns


def _column(blocks: Sequence[Any], name: str) -> list[Any]:
    return [getattr(block, name) for block in blocks]


def _stacked(blocks: Sequence[Any], name: str) -> NDArray[Any]:
    return np.concatenate(_column(blocks, name)) if blocks else np.zeros(0)


def _score_columns(batch: Sequence[MetricColumns], names: NDArray[np.object_]) -> Columns:
    blocks = [one.observed for one in batch]
    columns = _start(batch, blocks, names)
    subjects = [list(zip(*block.subject, strict=True)) for block in blocks]
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
    for name in ("reason", "detail"):
        columns.blocks(name, list(map(cut_all, _column(blocks, name))), empty=None)
    columns.blocks("details", [_encoded(block.details) for block in blocks])
    return columns


def _concatenated(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _encoded(details: Sequence[Mapping[str, Any] | None]) -> Sequence[str | None]:
    if details.count(None) == len(details):
        return [None] * len(details)
    return list(map(evidence, details))


def _reduced_columns(batch: Sequence[MetricColumns], names: NDArray[np.object_]) -> Columns:
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


_STATE_FIELDS: dict[str, type | str] = {
    **dict.fromkeys(("state", "segment"), str),
    **dict.fromkeys(("position", "visits", "progress", "stall", "escalation", "revisit"), int),
    **dict.fromkeys(("dwell_turns", "latency_p95_ms"), float),
    "guard_error": int,
    "slot_fill_rate": float,
    "to_states": "VARCHAR",
    "slot_ready_rate": float,
    **dict.fromkeys(("front_loaded", "required", "turns"), int),
    "latencies": "DOUBLE",
    "to_counts": "INTEGER",
    **dict.fromkeys(("slots", "unplaced"), "VARCHAR"),
    **dict.fromkeys(("tool_calls", "tool_successes", "tool_unknown", "asked", "accepted"), int),
    "reasons": dict,
}
"""The values of a state row and their types; a text is the type of the entries of a list."""


def _state_columns(states: Sequence[tuple[Any, ...]], names: NDArray[np.object_]) -> Columns:
    columns = Columns(len(states))
    if not states:
        return columns
    rows, flows, agents, *values = zip(*states, strict=True)
    columns.names("conversation", names[list(rows)])
    columns.numbers("row", int, np.array(rows, dtype=np.int32))
    columns.texts("flow", flows)
    columns.texts("agent", agents)
    for (name, kind), column in zip(_STATE_FIELDS.items(), values, strict=True):
        if isinstance(kind, str):
            columns.texts(name, list(map(joined, column)), split=kind)
        elif kind is dict:
            columns.texts(name, [_encode(one).decode() if one else None for one in column])
        elif kind is str:
            columns.texts(name, column)
        else:
            columns.numbers(name, kind, np.array(column, dtype=np.float64))
    return columns


_SQL_TYPES = {int: "INTEGER", float: "DOUBLE", str: "VARCHAR", dict: "VARCHAR"}
NO_STATES = (
    "SELECT NULL::VARCHAR AS conversation, NULL::INTEGER AS number, NULL::VARCHAR AS flow, NULL::VARCHAR AS agent, "
    + ", ".join(
        f"NULL::{f'{kind}[]' if isinstance(kind, str) else _SQL_TYPES[kind]} AS {name}"
        for name, kind in _STATE_FIELDS.items()
    )
    + " WHERE false"
)
"""The table of states, without a row."""
