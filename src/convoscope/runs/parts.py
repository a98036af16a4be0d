"""One part of a run: a partition in, Parquet files of scores out. Pure, so that anyone can do it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from convoscope.conversation import DIMENSIONS, Flow, to_json
from convoscope.conversation.remembered import forget
from convoscope.flows.rows import StateRow, state_rows
from convoscope.ingest.partitions import Partition, Read, read_partition
from convoscope.ingest.report import Problem, ReadReport
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import Observation
from convoscope.runs.columns import Columns
from convoscope.runs.tables import connect
from convoscope.scoring.evaluate import Evaluated, Evaluator
from convoscope.statistics.summary import STATUSES
from convoscope.statistics.within import ConversationScore

if TYPE_CHECKING:
    import duckdb

CONVERSATIONS = "conversations"
SCORES = "scores"
CONVERSATION_SCORES = "conversation_scores"
STATES = "states"
TABLES = (CONVERSATIONS, SCORES, CONVERSATION_SCORES, STATES)

BETWEEN = "\x1f"
"""Stands between the entries of a list on its way into a Parquet file."""

_STATUS = {status: code for code, status in enumerate(STATUSES)}
_encode = msgspec.json.Encoder().encode

T = TypeVar("T")


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
    flows: dict[str, Flow] = {}
    """The declarations of the flows that its conversations went through."""


def part_file(folder: Path, table: str, part: int) -> Path:
    return folder / f"{table}-{part:06d}.parquet"


def score_partition(
    partition: Partition,
    metrics: Sequence[Declared],
    folder: Path,
    turn_rule: str | None = None,
    flows: Sequence[Flow] = (),
) -> PartDone:
    """Read, score and write one partition."""
    report = ReadReport()
    timings = Timings()
    rows = _Rows(partition.number, metrics)
    evaluator = Evaluator(metrics)
    reads = read_partition(partition, report, turn_rule, flows)
    while True:
        began = perf_counter()
        read = next(reads, None)
        timings.reading += perf_counter() - began
        if read is None:
            break
        _score(read, evaluator, rows, report, timings)
    began = perf_counter()
    rows.write(folder)
    timings.writing += perf_counter() - began
    return PartDone(part=partition.number, conversations=rows.count, report=report, timings=timings, flows=rows.flows)


def _score(read: Read, evaluator: Evaluator, rows: _Rows, report: ReadReport, timings: Timings) -> None:
    began = perf_counter()
    evaluated = evaluator.evaluate(read.conversation)
    states = state_rows(read.conversation)
    forget(read.conversation)
    scored = perf_counter()
    try:
        body = to_json(read.conversation, finite=read.exact)
    except (ValueError, TypeError, RecursionError) as error:
        report.conversations -= 1
        report.problem(Problem(read.conversation.id, 0, f"cannot be kept: {error}"))
        return
    encoded = perf_counter()
    rows.add(read, body, evaluated, states)
    timings.metrics += scored - began
    timings.encoding += encoded - scored
    timings.writing += perf_counter() - encoded


@cache
def _connection(process: int) -> duckdb.DuckDBPyConnection:
    """One for all parts that a process writes: making one takes longer than writing a small part."""
    del process
    return connect(memory_mb=2048)


class _Rows:
    """What a part holds, until its tables are written column by column."""

    def __init__(self, part: int, metrics: Sequence[Declared]) -> None:
        self.part = part
        self.count = 0
        self._metric = {declared.key: number for number, declared in enumerate(metrics)}
        self._conversations: list[tuple[Any, ...]] = []
        self._observed = _Kept[Observation]()
        self._reduced = _Kept[ConversationScore]()
        self._states: list[tuple[Any, ...]] = []
        self.flows: dict[str, Flow] = {}

    def add(self, read: Read, body: bytes, evaluated: Iterable[Evaluated], states: Iterable[StateRow]) -> None:
        number = self.count
        self.count += 1
        conversation = read.conversation
        dimensions = conversation.dimensions
        if conversation.flow is not None and "flow" not in dimensions:
            dimensions = {**dimensions, "flow": conversation.flow.name}
        others = {name: value for name, value in dimensions.items() if name not in DIMENSIONS}
        self._conversations.append(
            (
                *read.origin,
                conversation.id,
                *map(dimensions.get, DIMENSIONS),
                _encode(others).decode() if others else None,
                conversation.source.format,
                conversation.outcome.error or None,
                len(body),
                body.decode(),
                _encode(read.notes).decode() if read.notes else None,
            )
        )
        observed, reduced = self._observed, self._reduced
        for declared, observations, scores in evaluated:
            metric = self._metric[declared.key]
            for one in observations:
                observed.add(number, metric, one)
            for score in scores:
                reduced.add(number, metric, score)
        flow = dimensions.get("flow")
        agent = dimensions.get("agent") or dimensions.get("model")
        self._states += [(number, flow, agent, *_state_values(row)) for row in states]
        if conversation.flow is not None:
            self.flows.setdefault(conversation.flow.name, conversation.flow)

    def write(self, folder: Path) -> None:
        tables = {
            CONVERSATIONS: self._conversation_columns(),
            SCORES: self._observed.columns(_SCORE_COLUMNS),
            CONVERSATION_SCORES: self._reduced.columns(_REDUCED_COLUMNS),
            STATES: _columns(STATE_COLUMNS, self._states),
        }
        connection = _connection(os.getpid())
        for table, columns in tables.items():
            columns.constant("part", self.part)
            columns.write(connection, part_file(folder, table, self.part))

    def _conversation_columns(self) -> Columns:
        numbered = [(number, *row) for number, row in enumerate(self._conversations)]
        return _columns({"conversation": int, **_CONVERSATION_COLUMNS}, numbered)


def _columns(types: Mapping[str, type], rows: Sequence[tuple[Any, ...]]) -> Columns:
    columns = Columns(len(rows))
    values = zip(*rows, strict=True) if rows else ((),) * len(types)
    for (name, kind), column in zip(types.items(), values, strict=True):
        columns.add(name, kind, column)
    return columns


def _joined(entries: Sequence[Any]) -> str:
    joined = BETWEEN.join(map(str, entries))
    if joined.count(BETWEEN) == len(entries) - 1:
        return joined
    return BETWEEN.join(str(one).replace(BETWEEN, " ") for one in entries)


def _state_values(row: StateRow) -> Iterator[Any]:
    """The values of `STATE_COLUMNS` from the state on."""
    for name in _STATE_FIELDS:
        value = getattr(row, name)
        if type(value) is tuple:
            value = _joined(value) if value else None
        elif type(value) is dict:
            value = _encode(value).decode() if value else None
        yield value


class _Kept(Generic[T]):
    """Observations, or what they come to, each with the conversation and the metric it belongs to."""

    def __init__(self) -> None:
        self._conversations: list[int] = []
        self._metrics: list[int] = []
        self._things: list[T] = []

    def add(self, conversation: int, metric: int, thing: T) -> None:
        self._conversations.append(conversation)
        self._metrics.append(metric)
        self._things.append(thing)

    def columns(self, types: Mapping[str, _Column]) -> Columns:
        columns = Columns(len(self._things))
        columns.add("conversation", int, self._conversations)
        columns.add("metric", int, self._metrics)
        for name, (kind, place, made) in types.items():
            values = list(map(attrgetter(place), self._things))
            if made is not None and values:
                # Most columns hold one value, and what is made of it is made once.
                same = values.count(values[0]) == len(values)
                values = [made(values[0])] * len(values) if same else list(map(made, values))
            columns.add(name, kind, values)
        return columns


def _filled(text: str) -> str | None:
    return text or None


def _encode_details(details: Mapping[str, Any] | None) -> str | None:
    """Evidence is kept whatever it is made of: what JSON cannot say is written as Python would show it."""
    if details is None:
        return None
    try:
        return msgspec.json.encode(details, enc_hook=repr).decode()
    except Exception:  # circles, depths, numbers and reprs that cannot be written
        with suppress(Exception):
            return _encode({"shown": repr(details)}).decode()
        return '{"unreadable": true}'


_CONVERSATION_COLUMNS: dict[str, type] = {
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


_STATE_FIELDS: dict[str, type] = {
    **dict.fromkeys(("state", "segment"), str),
    **dict.fromkeys(("position", "visits", "progress", "stall", "escalation", "revisit", "guard_error"), int),
    **dict.fromkeys(("dwell_turns", "latency_p95_ms", "slot_fill_rate", "slot_ready_rate"), float),
    **dict.fromkeys(("front_loaded", "required", "turns", "asked", "accepted"), int),
    **dict.fromkeys(("tool_calls", "tool_successes", "tool_unknown"), int),
    **dict.fromkeys(("to_states", "to_counts", "latencies", "slots", "unplaced", "reasons"), str),
}
STATE_COLUMNS = {"conversation": int, "flow": str, "agent": str, **_STATE_FIELDS}


class _Column(NamedTuple):
    """A column of a table: its type, where its value is found, and what is made of that; an empty text is NULL."""

    kind: type
    place: str
    made: Callable[[Any], Any] | None = None


_SCORE_COLUMNS = {
    "subject_kind": _Column(str, "subject.kind"),
    "subject": _Column(str, "subject.id"),
    "position": _Column(int, "subject.position"),
    "judge": _Column(str, "judge"),
    "repeat": _Column(int, "repeat"),
    "status": _Column(int, "status", _STATUS.__getitem__),
    "value": _Column(float, "value"),
    "numerator": _Column(float, "numerator"),
    "denominator": _Column(float, "denominator"),
    "reason": _Column(str, "reason", _filled),
    "detail": _Column(str, "detail", _filled),
    "details": _Column(str, "details", _encode_details),
}
_REDUCED_COLUMNS = {
    "judge": _Column(str, "judge"),
    "status": _Column(int, "status", _STATUS.__getitem__),
    **{name: _Column(float, name) for name in ("value", "ten", "total", "numerator", "denominator", "tp", "fp", "fn")},
    **{name: _Column(int, name) for name in ("n", "not_applicable", "unmeasured", "errors")},
    "reason": _Column(str, "reason", _filled),
    "detail": _Column(str, "detail", _filled),
}
