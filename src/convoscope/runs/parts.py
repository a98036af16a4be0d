"""One part of a run: a partition in, Parquet files of scores out. Pure, so that anyone can do it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import numpy as np

from convoscope.conversation import DIMENSIONS, to_json
from convoscope.ingest.partitions import Partition, Read, read_partition
from convoscope.ingest.report import Problem, ReadReport
from convoscope.metrics.registry import Declared
from convoscope.runs.tables import connect, write_parquet
from convoscope.scoring.evaluate import Evaluated, evaluate
from convoscope.statistics.summary import STATUSES

CONVERSATIONS = "conversations"
SCORES = "scores"
CONVERSATION_SCORES = "conversation_scores"
TABLES = (CONVERSATIONS, SCORES, CONVERSATION_SCORES)

_STATUS = {status: code for code, status in enumerate(STATUSES)}
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
    report: ReadReport
    timings: Timings


def part_file(folder: Path, table: str, part: int) -> Path:
    return folder / f"{table}-{part:06d}.parquet"


def score_partition(
    partition: Partition, metrics: Sequence[Declared], folder: Path, turn_rule: str | None = None
) -> PartDone:
    """Read, score and write one partition."""
    report = ReadReport()
    timings = Timings()
    rows = _Rows(partition.number, metrics)
    reads = read_partition(partition, report, turn_rule)
    while True:
        began = perf_counter()
        read = next(reads, None)
        timings.reading += perf_counter() - began
        if read is None:
            break
        _score(read, metrics, rows, report, timings)
    began = perf_counter()
    rows.write(folder)
    timings.writing += perf_counter() - began
    return PartDone(part=partition.number, conversations=rows.count, report=report, timings=timings)


def _score(read: Read, metrics: Sequence[Declared], rows: _Rows, report: ReadReport, timings: Timings) -> None:
    began = perf_counter()
    evaluated = list(evaluate(read.conversation, metrics))
    scored = perf_counter()
    try:
        body = to_json(read.conversation)
    except (ValueError, TypeError, RecursionError) as error:
        report.conversations -= 1
        report.problem(Problem(read.conversation.id, 0, f"cannot be kept: {error}"))
        return
    encoded = perf_counter()
    rows.add(read, body, evaluated)
    timings.metrics += scored - began
    timings.encoding += encoded - scored
    timings.writing += perf_counter() - encoded


class _Rows:
    """The rows of a part, column by column."""

    def __init__(self, part: int, metrics: Sequence[Declared]) -> None:
        self.part = part
        self.count = 0
        self._metric = {declared.key: number for number, declared in enumerate(metrics)}
        self._conversations: list[tuple[Any, ...]] = []
        self._scores: list[tuple[Any, ...]] = []
        self._reduced: list[tuple[Any, ...]] = []

    def add(self, read: Read, body: bytes, evaluated: Sequence[Evaluated]) -> None:
        number = self.count
        self.count += 1
        conversation = read.conversation
        dimensions = conversation.dimensions
        others = {name: value for name, value in dimensions.items() if name not in DIMENSIONS}
        self._conversations.append(
            (
                number,
                *read.origin,
                conversation.id,
                *(dimensions.get(name) for name in DIMENSIONS),
                _encode(others).decode() if others else None,
                conversation.source.format,
                conversation.outcome.error or None,
                len(body),
                body.decode(),
                _encode(read.notes).decode() if read.notes else None,
            )
        )
        add_score, add_reduced = self._scores.append, self._reduced.append
        for declared, observations, scores in evaluated:
            metric = self._metric[declared.key]
            for one in observations:
                kind, subject, position = one.subject
                details = None if one.details is None else _encode_details(one.details)
                add_score(
                    (
                        number,
                        metric,
                        kind,
                        subject,
                        position,
                        one.judge,
                        one.repeat,
                        _STATUS[one.status],
                        one.value,
                        one.numerator,
                        one.denominator,
                        one.reason or None,
                        one.detail or None,
                        details,
                    )
                )
            for score in scores:
                add_reduced(
                    (
                        number,
                        metric,
                        score.judge,
                        _STATUS[score.status],
                        score.value,
                        score.ten,
                        score.n,
                        score.total,
                        score.numerator,
                        score.denominator,
                        score.tp,
                        score.fp,
                        score.fn,
                        score.not_applicable,
                        score.unmeasured,
                        score.errors,
                        score.reason or None,
                        score.detail or None,
                    )
                )

    def write(self, folder: Path) -> None:
        tables = (
            (CONVERSATIONS, self._conversations, _CONVERSATION_COLUMNS),
            (SCORES, self._scores, _SCORE_COLUMNS),
            (CONVERSATION_SCORES, self._reduced, _REDUCED_COLUMNS),
        )
        with connect(memory_mb=2048) as connection:
            for table, rows, types in tables:
                columns: dict[str, Any] = {
                    "part": np.full(len(rows), self.part, dtype=np.int32),
                    "row": np.arange(len(rows), dtype=np.int32),
                }
                values = zip(*rows, strict=True) if rows else ((),) * len(types)
                columns |= {name: _column(one, types[name]) for name, one in zip(types, values, strict=True)}
                connection.register("columns", columns)
                path = part_file(folder, table, self.part)
                # Types are spelled out: a column without a single value would have none.
                typed = ", ".join(f'"{name}"::{_SQL_TYPES[kind]} AS "{name}"' for name, kind in types.items())
                query = f"SELECT part, row, {typed} FROM columns"
                write_parquet(connection, query, path, "COMPRESSION lz4")


def _encode_details(details: Mapping[str, Any]) -> str:
    """Evidence is kept whatever it is made of: what JSON cannot say is written as Python would show it."""
    try:
        return msgspec.json.encode(details, enc_hook=repr).decode()
    except Exception:  # circles, depths, numbers and reprs that cannot be written
        with suppress(Exception):
            return _encode({"shown": repr(details)}).decode()
        return '{"unreadable": true}'


def _column(values: Sequence[Any], kind: type) -> Any:
    if kind is float:
        # NumPy reads None as NaN, which no score can be; DuckDB reads a masked entry as NULL.
        numbers = np.array(values, dtype=np.float64)
        return np.ma.masked_array(numbers, mask=np.isnan(numbers))
    if kind is int:
        return np.array(values, dtype=np.int64)
    column = np.empty(len(values), dtype=object)
    try:
        "".join(value for value in values if value is not None).encode()
        column[:] = values
    except UnicodeEncodeError:
        column[:] = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return column


_SQL_TYPES = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_CONVERSATION_COLUMNS: dict[str, type] = {
    "conversation": int,
    "place": int,
    "record": int,
    "piece": int,
    "id": str,
    **dict.fromkeys(DIMENSIONS, str),
    "dimensions": str,
    "format": str,
    "error": str,
    "size": int,
    "body": str,
    "notes": str,
}
_SCORE_COLUMNS: dict[str, type] = {
    "conversation": int,
    "metric": int,
    "subject_kind": str,
    "subject": str,
    "position": int,
    "judge": str,
    "repeat": int,
    "status": int,
    "value": float,
    "numerator": float,
    "denominator": float,
    "reason": str,
    "detail": str,
    "details": str,
}
_REDUCED_COLUMNS: dict[str, type] = {
    "conversation": int,
    "metric": int,
    "judge": str,
    "status": int,
    "value": float,
    "ten": float,
    "n": int,
    "total": float,
    "numerator": float,
    "denominator": float,
    "tp": float,
    "fp": float,
    "fn": float,
    "not_applicable": int,
    "unmeasured": int,
    "errors": int,
    "reason": str,
    "detail": str,
}
