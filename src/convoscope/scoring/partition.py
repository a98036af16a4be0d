"""A partition in, a part out: conversations are read, scored, and handed to a writer."""

from __future__ import annotations

import gc
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import Any, Protocol

import msgspec

from convoscope.annotate.annotator import Annotator, annotated, in_order
from convoscope.conversation import Conversation, Flow, to_json
from convoscope.ingest.known_pieces import PieceRead, Surroundings, folders_of, hash_of_pieces, piece_read
from convoscope.ingest.reader import registered as registered_readers
from convoscope.ingest.recordings import CANDIDATES, RecordingState, states_elsewhere
from convoscope.ingest.report import Note, NoteTally, Problem, ReadReport
from convoscope.ingest.split import Partition, Read, read_partition
from convoscope.metrics.declaration import Metric
from convoscope.metrics.registry import Declared
from convoscope.metrics.registry import registered as registered_metrics
from convoscope.metrics.signatures import signature
from convoscope.resources.registry import RECOGNISER, RECORDING, Resource
from convoscope.scores.observation import cut
from convoscope.scoring.annotators import ProvidedRule, annotator_for
from convoscope.scoring.batch import Answers, Batch, MetricColumns
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.profiles import Profile
from convoscope.scoring.session import Session
from convoscope.scoring.settings import ScoreSettings, joint_metrics
from convoscope.user_code import content_hash
from convoscope.views.background import background_of

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

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the seconds of a block."""
        began = perf_counter()
        yield
        setattr(self, name, getattr(self, name) + perf_counter() - began)


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
    attempt: str = ""
    """Its files have a name of this attempt, until the process that makes the run takes them."""
    flows: dict[str, Flow] = {}
    """The declarations of the flows that its conversations went through."""
    pieces: tuple[PieceRead, ...] = ()
    """What it was read from, by content: a run that grows keeps it as long as these stay as they were."""
    running: int = 0
    """Conversations that go on right now: they are not in it."""
    recordings: tuple[RecordingState, ...] = ()
    """The recordings that its conversations have at paths of their own, as they were."""
    heard: dict[str, NoteTally] = {}
    """How many conversations have the recordings that were measured, and their names, by what is in them."""


class PartWriter(Protocol):
    """Keeps one part. Another worker may write the same part at the same time: one of them was thought to be lost."""

    attempt: str
    """A name that no other attempt to write a part has."""

    @property
    def answers(self) -> Answers:
        """The answers to metrics that wait, of an earlier attempt and of this one."""

    def add(self, read: Read, body: str, profile: Profile, report: ReadReport) -> None:
        """Keep a conversation, with its JSON; it has the next row. What cannot be kept is reported."""

    def write(self, columns: Sequence[MetricColumns]) -> tuple[str, ...]:
        """Keep what was observed in all of them, and give the names of the tables that were written."""

    def close(self) -> None:
        """Nothing more will come, whether the part was finished or not."""


class Writer(Protocol):
    """Keeps the parts of a run. It goes with the work, to another process or another machine."""

    def part(self, number: int, content: str) -> PartWriter:
        """The writer of the part of this number; `content` is a hash of what it is read from."""

    def sees(self) -> dict[str, str]:
        """What all processes of a run must agree on, as this one sees it, by a name for a person."""


InputRule = LabelRule | ProvidedRule


class PartitionTask(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Call it with a partition to get the part: conversations are read, scored and written.

    It can be sent to another process or another machine, which first loads the code that the user named.
    """

    metrics: Sequence[Declared]
    writer: Writer
    settings: ScoreSettings = ScoreSettings()
    """Without what cannot be sent, and with names of files that hold anywhere: `ScoreSettings.portable`."""
    flows: Sequence[Flow] = ()
    rules: Sequence[InputRule] = ()
    """What was decided over the whole input, to be applied to each conversation."""
    resources: Mapping[str, Resource] = {}
    """What is handed to metrics that ask for a type, by the name of the type."""
    surroundings: Surroundings = Surroundings()
    """What conversations depend on beside their own logs."""
    most_partitions: int | None = None
    """How many partitions may be worked on at the same time, where more would ask a judge too much at once."""
    seen: Any = None
    """A number in memory that forked workers share: it grows with each conversation, for a progress bar."""

    def __call__(self, partition: Partition) -> PartDone:
        named, most = self.settings.annotate, self.settings.max_concurrency
        annotator = annotator_for(named, self.resources, most) if named else None
        # Before anything is read: what changes meanwhile has another hash the next time.
        pieces = partition.read or tuple(piece_read(one, self.surroundings) for one in partition.pieces)
        ending: Any = closing(annotator) if hasattr(annotator, "close") else nullcontext()
        with (
            closing(self.writer.part(partition.number, hash_of_pieces(pieces))) as part_writer,
            _without_collecting(),
            ending,
        ):
            listens = self.settings.use_audio and listens_of(self.metrics)
            part = _Part(partition.number, part_writer, self.metrics, self.session, listens=listens)
            reads: Iterator[Read] = self._wanted(partition, part)
            if annotator is not None:
                annotate = partial(_annotated, annotator)
                reads = in_order(annotator, annotate, reads, partial(part.timings.of, "annotating"))
            for read in reads:
                part.add(read._replace(conversation=self._with_rules(read.conversation)))
                if self.seen is not None:
                    with self.seen:
                        self.seen.value += 1
            with part.timings.of("metrics"):
                columns = part.batch.columns()
            with part.timings.of("writing"):
                tables = part_writer.write(columns) if len(part.batch) else ()
        return PartDone(
            part=partition.number,
            conversations=len(part.batch) + part.left_out,
            tables=tables,
            profiles=tuple(sorted(part.profiles)),
            attempt=part_writer.attempt,
            report=part.report,
            timings=part.timings,
            flows=part.flows,
            pieces=pieces,
            running=part.running,
            recordings=tuple(part.recordings.values()),
            heard=part.heard,
        )

    def _with_rules(self, conversation: Conversation) -> Conversation:
        for rule in self.rules:
            conversation = rule.applied(conversation)
        return conversation

    def _wanted(self, partition: Partition, part: _Part) -> Iterator[Read]:
        """The conversations that count, each with what was heard in its recording; the others are counted."""
        reads = read_partition(partition, part.report, self.settings.reading, self.flows)
        grouping = {piece.index: piece.input.grouping for piece in partition.pieces}
        near = {piece.index: folders_of(piece) for piece in partition.pieces}
        taken = 0
        while True:
            began = perf_counter()
            read = next(reads, None)
            part.timings.reading += perf_counter() - began
            if read is None:
                return
            if self.settings.limit is not None and taken - part.refused >= self.settings.limit:
                part.left_out += 1
            elif grouping.get(read.origin.input) == "key" and self._is_running(read.conversation):
                part.running += 1
                part.report.conversations -= 1
            elif self._is_before(read.conversation):
                part.report.conversations -= 1
                part.report.ignore("conversation_before_since")
            else:
                taken += 1
                if RECORDING in self.resources:  # before anything listens: what changes meanwhile is another one
                    part.know_recordings(read.conversation, near[read.origin.input], self.settings.reading.audio)
                if self.settings.use_audio and RECOGNISER in self.resources:
                    read = read._replace(conversation=self.session.transcribed(read.conversation))
                yield read

    def _is_before(self, conversation: Conversation) -> bool:
        """Whether it began before the first day that counts; one without a day counts."""
        since = self.settings.since
        return since is not None and background_of(conversation).kinds.get("day", since) < since

    def _is_running(self, conversation: Conversation) -> bool:
        """Whether something happened in it a moment ago, by its own times."""
        if not self.settings.ended_after:
            return False
        clocks = {one.id for one in conversation.clocks if one.kind == "wall"} or {"wall"}
        times = [one.time.at for one in conversation.timeline if one.time is not None and one.time.clock in clocks]
        return max(times, default=0.0) > time() - self.settings.ended_after

    @property
    def session(self) -> Session:
        """What this process scores with. One that was inherited belongs to another process."""
        session: Session | None = self.__dict__.get("_session")
        if session is None or session.process != os.getpid():
            session = self.__dict__["_session"] = Session(
                self.resources,
                self.settings.max_concurrency,
                repeats=self.settings.repeats,
                panel=self.settings.panel_rule,
                joint_metrics=joint_metrics(self.metrics, self.settings),
            )
        return session

    def sees(self) -> dict[str, str]:
        """What a worker must see as the process does that sends the work: code, folder, judges."""
        own = {one.key: signature(one) for one in self.metrics}
        named = [Path(name) for name in (*self.settings.metrics_from, *self.settings.readers_from)]
        return {
            **self.writer.sees(),
            **{str(path): content_hash(path) for path in named if path.is_file()},
            "the metrics": msgspec.json.encode(own, order="sorted").decode(),
            **self.session.identities(),
            # An environment variable may name another address there.
            "the addresses of the judges": ", ".join(self.session.addresses()),
        }

    def use(self, session: Session) -> None:
        """Score with what this process has already."""
        self.__dict__["_session"] = session

    def __reduce__(self) -> tuple[Callable[..., PartitionTask], tuple[Any, ...]]:
        # Metrics are looked up by name: the code that declares them is loaded first.
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "seen"}
        return (_restored, (self.settings.metrics_from, self.settings.readers_from, pickle.dumps(fields)))


def listens_of(metrics: Sequence[Declared]) -> bool:
    """Whether one of the metrics asks for recordings."""
    return any(RECORDING in one.resources.values() for one in metrics if isinstance(one, Metric))


def _restored(metrics_from: Sequence[str], readers_from: Sequence[str], fields: bytes) -> PartitionTask:
    registered_metrics(metrics_from)
    registered_readers(readers_from)
    return PartitionTask(**pickle.loads(fields))


def _annotated(annotator: Annotator, read: Read) -> Read:
    return read._replace(conversation=annotated(read.conversation, annotator))


class _Part:
    """A part while it is being scored."""

    left_out = 0
    """Conversations beyond the limit."""
    running = 0
    """Conversations that go on right now."""
    refused = 0
    """Conversations that cannot be kept."""

    def __init__(
        self, number: int, writer: PartWriter, metrics: Sequence[Declared], session: Session, *, listens: bool
    ) -> None:
        self._number = number
        self._writer = writer
        self._session = session
        self.batch = Batch(metrics, session, writer.answers)
        self.report = ReadReport()
        self.timings = Timings()
        self.profiles: set[str] = set()
        self.flows: dict[str, Flow] = {}
        self.recordings: dict[str, RecordingState] = {}
        self.heard: dict[str, NoteTally] = {}
        self._listens = listens
        """Whether a metric asks for recordings, be they opened or not."""

    def know_recordings(self, conversation: Conversation, near: Sequence[str], audio: str) -> None:
        """Keep how the recordings are that a log has elsewhere."""
        for state in states_elsewhere(conversation, near, audio):
            self.recordings.setdefault(state.path, state)

    def _note_sound(self, conversation: Conversation) -> None:
        """Report why the sound of a recording is not measured, and which of several files was taken."""
        if not self._listens or conversation.recording is None:
            return
        sound = self._session.sound_of(conversation)
        if sound.reason:
            self.report.not_heard(sound.reason, sound.text)
            return
        if sound.digest:
            self.heard.setdefault(sound.digest, NoteTally()).add(1, [sound.text])
        if CANDIDATES in conversation.recording.extras:
            file = next(iter(conversation.source.files), "")
            self.report.add_notes([Note(kind="inferred", code="recording_of_several", detail=sound.text, file=file)])

    def add(self, read: Read) -> None:
        """Score a conversation. One that cannot be written is a problem, and has no row."""
        conversation = read.conversation
        began = perf_counter()
        try:
            body = to_json(conversation, finite=read.exact).decode()
            if len(body) > LARGEST:
                raise ValueError(f"as JSON it has {len(body):,} characters, more than {LARGEST:,}")
        except (ValueError, TypeError, RecursionError) as error:
            self.refused += 1
            self.report.conversations -= 1
            self.report.problem(problem_of(conversation, f"cannot be kept: {cut(str(error))}"))
            return
        encoded = perf_counter()
        self._note_sound(conversation)
        if self._session.held is not None:
            self._session.held.add(self._number, len(self.batch), conversation, len(body))
        profile = self.batch.add(conversation, len(body))
        self.profiles.add(profile.key)
        if conversation.flow is not None:
            self.flows.setdefault(conversation.flow.name, conversation.flow)
        self._writer.add(read, body, profile, self.report)
        self.timings.encoding += encoded - began
        self.timings.metrics += perf_counter() - encoded


def problem_of(conversation: Conversation, message: str) -> Problem:
    """A problem with one conversation, with the file and line of its record."""
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
