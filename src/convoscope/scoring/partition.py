"""A partition in, a part out: conversations are read, scored, and handed to whoever keeps them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from time import perf_counter
from typing import Protocol

import msgspec

from convoscope.annotate.annotator import Annotator, annotated
from convoscope.conversation import Conversation, Flow, to_json
from convoscope.ingest.report import Problem, ReadReport
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings
from convoscope.ingest.split import Partition, Read, read_partition
from convoscope.metrics.registry import Declared
from convoscope.scores.observation import cut
from convoscope.scoring.batch import Answers, Batch, MetricColumns
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.profiles import Profile
from convoscope.scoring.session import Session

LARGEST = 128 * 1024 * 1024
"""Characters that a conversation may take as JSON: what is larger is too much for the reports that show it."""


class Timings(msgspec.Struct):
    """Seconds of work by what they were spent on."""

    reading: float = 0.0
    annotating: float = 0.0
    metrics: float = 0.0
    encoding: float = 0.0
    writing: float = 0.0

    def add(self, other: Timings) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class PartDone(msgspec.Struct, kw_only=True):
    """What is known of a part that is finished."""

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


class PartWriter(Protocol):
    """Keeps one part."""

    @property
    def answers(self) -> Answers:
        """What metrics that wait were told in an earlier attempt, and are told in this one."""

    def add(self, read: Read, body: str, profile: Profile, report: ReadReport) -> None:
        """Keep a conversation, with its JSON; it has the next row. What cannot be kept is reported."""

    def write(self, columns: Sequence[MetricColumns]) -> tuple[str, ...]:
        """Keep what was observed in all of them, and give the names of the tables that were written."""

    def close(self) -> None:
        """Nothing more will come, whether the part was finished or not."""


class Writer(Protocol):
    """Keeps the parts of a run. It goes with the work, to another process or another machine."""

    def part(self, number: int) -> PartWriter:
        """Who keeps the part of this number."""


def score_partition(
    partition: Partition,
    metrics: Sequence[Declared],
    writer: Writer,
    *,
    settings: ReadSettings = DEFAULT_SETTINGS,
    flows: Sequence[Flow] = (),
    session: Session | None = None,
    limit: int | None = None,
    label: LabelRule | None = None,
    annotator: Annotator | None = None,
) -> PartDone:
    """Read, score and keep one partition; of more conversations than `limit`, only the first are scored."""
    with closing(writer.part(partition.number)) as part_writer, _without_collecting():
        part = _Part(part_writer, metrics, session)
        clock = perf_counter
        reads = read_partition(partition, part.report, settings, flows)
        while True:
            began = clock()
            read = next(reads, None)
            part.timings.reading += clock() - began
            if read is None:
                break
            if limit is not None and part.scored >= limit:
                part.left_out += 1
            else:
                if annotator is not None:
                    began = clock()
                    read = read._replace(conversation=annotated(read.conversation, annotator))
                    part.timings.annotating += clock() - began
                part.add(read if label is None else read._replace(conversation=label.applied(read.conversation)))
        began = clock()
        columns = part.batch.columns()
        part.timings.metrics += clock() - began
        began = clock()
        tables = part_writer.write(columns) if part.scored else ()
        part.timings.writing += clock() - began
    return PartDone(
        part=partition.number,
        conversations=part.scored + part.left_out,
        tables=tables,
        profiles=tuple(sorted(part.profiles)),
        report=part.report,
        timings=part.timings,
        flows=part.flows,
    )


class _Part:
    """A part while it is being scored."""

    def __init__(self, writer: PartWriter, metrics: Sequence[Declared], session: Session | None) -> None:
        self.writer = writer
        self.batch = Batch(metrics, session, writer.answers)
        self.report = ReadReport()
        self.timings = Timings()
        self.profiles: set[str] = set()
        self.flows: dict[str, Flow] = {}
        self.left_out = 0

    @property
    def scored(self) -> int:
        return len(self.batch)

    def add(self, read: Read) -> None:
        """Score a conversation. One that cannot be written is a problem, and has no row."""
        conversation = read.conversation
        began = perf_counter()
        body = self._body(conversation, read.exact)
        if body is None:
            return
        encoded = perf_counter()
        profile = self.batch.add(conversation, len(body))
        self.profiles.add(profile.key)
        if conversation.flow is not None:
            self.flows.setdefault(conversation.flow.name, conversation.flow)
        self.writer.add(read, body, profile, self.report)
        self.timings.encoding += encoded - began
        self.timings.metrics += perf_counter() - encoded

    def _body(self, conversation: Conversation, finite: bool) -> str | None:
        try:
            body = to_json(conversation, finite=finite).decode()
            if len(body) > LARGEST:
                raise ValueError(f"as JSON it has {len(body):,} characters, more than {LARGEST:,}")
        except (ValueError, TypeError, RecursionError) as error:
            self.report.conversations -= 1
            self.report.problem(problem_of(conversation, f"cannot be kept: {cut(str(error))}"))
            return None
        return body


def problem_of(conversation: Conversation, message: str) -> Problem:
    """A problem with one conversation, at the place of its record."""
    name, record = cut(conversation.id, 100), conversation.source.record
    file = next(iter(conversation.source.files), name)
    line = record.removeprefix(f"{file}:") if record.startswith(f"{file}:") else ""
    return Problem(file, int(line) if line.isdecimal() and len(line) < 10 else 0, f"conversation {name} {message}")


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


__all__ = ["PartDone", "PartWriter", "Timings", "Writer", "score_partition"]
