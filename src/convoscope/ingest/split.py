"""The work, cut into partitions that can be read apart from each other, and the reading of one partition.

Where the cuts are depends on the input alone, never on who works on it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, Flow
from convoscope.errors import InputError
from convoscope.ingest.companions.companion import companions
from convoscope.ingest.companions.flows import FlowDefinitions
from convoscope.ingest.copies import copied_inputs, spoken_digest, without_copied_lines, without_copied_messages
from convoscope.ingest.discover import OBJECTS, Input, size_of
from convoscope.ingest.given_speakers import notes_on_speakers, other_side
from convoscope.ingest.io.audio_heads import ENDINGS
from convoscope.ingest.keyed_records import (
    UNKEYED,
    KeyedRecords,
    bucket_of,
    keyed_pieces,
    read_bucket,
    separated,
    share_keys,
    spread,
)
from convoscope.ingest.known_pieces import KnownParts, PieceGroup, PieceRead, WeighedPiece, folders_of
from convoscope.ingest.looks import Looks, PiecesOf
from convoscope.ingest.pieces import (
    CUTTERS,
    MARKS,
    TEXT_ENDINGS,
    InputPiece,
    json_record,
    may_repeat_names,
    pieces_of,
    record_name,
    records_of,
    reported_texts,
    stem,
)
from convoscope.ingest.reader import Attach, RawRecord, Record, RecordGroup, reader_named
from convoscope.ingest.recordings import AMBIGUOUS, ELSEWHERE, Claims, RecordingFinder, folder_of
from convoscope.ingest.report import COPIES, SPLIT, FileRead, Note, Notes, Problem, ReadReport
from convoscope.ingest.same_records import same_records, without_same
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings, moved_notes, split_by_silence
from convoscope.ingest.shared_sessions import SharedParts, part_pieces, shared_parts
from convoscope.ingest.speaker_labels import UNKNOWN_SPEAKER
from convoscope.storage import StoreError, as_path

PART_BYTES = 4 * 1024 * 1024
MAX_PIECES = 500
_FULL = 0.75
"""A piece ends where a record does, so that most are a little smaller than asked for: such a partition is full."""


class Partition(msgspec.Struct, frozen=True):
    """Some pieces that are read together."""

    number: int
    pieces: tuple[InputPiece, ...]
    read: tuple[PieceRead, ...] = ()
    """The pieces by their content, where an earlier read of the input is known."""
    is_known: bool = False
    """An earlier part was read from these very pieces."""
    contested: frozenset[str] = frozenset()
    """Endings of paths of recordings that several conversations share: they do not say whose a file is."""


class Origin(NamedTuple):
    """Where a conversation was in the input: the order of a run is the order of these."""

    input: int
    record: int
    part: int


class Read(NamedTuple):
    """A conversation, what was done to read it, and where it was."""

    conversation: Conversation
    notes: tuple[Note, ...]
    origin: Origin
    is_session: bool = False
    """Its id is that of a session, which may go on days later."""
    exact: bool = False
    """Its values are those of the JSON that it was read from, which holds no NaN and no infinity."""


def cut(
    inputs: Sequence[Input],
    report: ReadReport,
    scratch: Path,
    size: int = PART_BYTES,
    known: KnownParts | None = None,
    looks: Looks | None = None,
    contested: frozenset[str] = frozenset(),
) -> Iterator[Partition]:
    """Cut the inputs into partitions of about `size` bytes.

    Records that must be brought together by key are first spread over files in `scratch`; what
    cannot be read on the way goes to `report`. Of an input that grew, `known` are the parts that are there: the
    pieces that they were read from stay together, as long as they are unchanged. `looks` keeps what was seen at the
    first look. `contested` is what `contested_recordings` says of the inputs.
    """
    sizes = [size_of(item) for item in inputs]
    in_pieces = PiecesOf(lambda index: _even(sizes[index], size), looks=looks or Looks())
    if known is not None:
        in_pieces = in_pieces._replace(cut=known.pieces_of, content_of=known.content_of)
    pieces = _pieces(inputs, report, scratch, size, sizes, in_pieces)
    groups = (PieceGroup(None, [one], []) for one in pieces) if known is None else known.matched(pieces)
    numbers, weight = (count() if known is None else known.free), 0
    held, reads = list[InputPiece](), list[PieceRead]()
    for group in chain(groups, [None]):
        is_new = group is not None and group.number is None
        if group is not None and is_new:
            held += [one.piece for one in group.pieces]
            reads += group.reads
            weight += sum(one.weight for one in group.pieces)
        if held and (not is_new or weight >= _FULL * size or len(held) >= MAX_PIECES):
            yield Partition(next(numbers), tuple(held), tuple(reads), contested=contested)
            held, reads, weight = [], [], 0
        if group is not None and group.number is not None:
            pieces_of_group = tuple(one.piece for one in group.pieces)
            yield Partition(group.number, pieces_of_group, tuple(group.reads), is_known=True, contested=contested)


def _pieces(
    inputs: Sequence[Input], report: ReadReport, scratch: Path, size: int, sizes: Sequence[int], in_pieces: PiecesOf
) -> Iterator[WeighedPiece]:
    """The pieces to be read, each with what it weighs."""
    by_key: dict[str, list[tuple[int, Input]]] = {}
    same = same_records(inputs, in_pieces, report)
    copied = copied_inputs(inputs, sizes)
    numbers = count(len(inputs))
    distinct = [index for index in range(len(inputs)) if index not in copied]
    parts_of = shared_parts([inputs[index] for index in distinct], size)
    shared = {distinct[at]: parts for at, parts in parts_of.items()}
    for index, item in enumerate(inputs):
        report.files[item.name] = FileRead(item.reader, item.why)
        if index in copied:
            report.files[item.name].skipped = f"a copy of {inputs[copied[index]].name}"
            report.count_same(COPIES, item.name)
        elif item.grouping == "key":
            by_key.setdefault(item.reader, []).append((index, item))
        elif index in shared and shared[index].is_all:
            continue
        else:
            is_cut = item.grouping == "record" and item.container in CUTTERS
            pieces = in_pieces.of(item, index) if is_cut else iter([_rest(item, index, shared)])
            for piece in without_same(pieces, same[index]) if index in same else pieces:
                # The logs of a folder say most things more than once: little of them is left in the conversation.
                weight = piece.size if is_cut else sizes[index] // (4 if item.grouping == "folder" else 1)
                yield WeighedPiece(piece, weight)
    for name, keyed in sorted(by_key.items()):
        reader = reader_named(name)
        if reader.unkeyed_record_is_conversation and not share_keys(name, keyed, in_pieces):
            for index, item in keyed:
                by_record = msgspec.structs.replace(item, grouping="record")
                for piece in in_pieces.of(by_record, index):
                    yield WeighedPiece(piece, piece.size or sizes[index])
            continue
        pieces_by_file = (keyed_pieces(item, index, reader, report, size) for index, item in keyed)
        buckets = -(-sum(sizes[index] for index, _ in keyed) // size)
        companions_of_all = tuple(dict.fromkeys(one for _, item in keyed for one in item.companions))
        folders_of_all = tuple(dict.fromkeys(folder_of(item.path) for _, item in keyed if item.data is None))
        elsewhere = _said_elsewhere(inputs, size) if reader.joins_messages else {}
        spilled = spread(name, chain.from_iterable(pieces_by_file), scratch, buckets)
        for number, bucket in spilled:
            known = {id: digest for id, digest in elsewhere.items() if bucket_of(id, buckets) == number}
            joined = msgspec.structs.replace(bucket, companions=companions_of_all)
            piece = InputPiece(joined, next(numbers), elsewhere=known, folders=folders_of_all)
            yield WeighedPiece(piece, size)
    for name in sorted({inputs[index].reader for index in shared}):
        of_reader = [(index, inputs[index], parts) for index, parts in shared.items() if inputs[index].reader == name]
        buckets = -(-sum(sizes[index] for index, _, _ in of_reader) // size)
        for _, bucket in spread(name, part_pieces(of_reader, reader_named(name), report, size), scratch, buckets):
            folders = tuple(dict.fromkeys(folder_of(item.path) for _, item, _ in of_reader if item.data is None))
            yield WeighedPiece(InputPiece(bucket, next(numbers), folders=folders), size)


def _rest(item: Input, index: int, shared: Mapping[int, SharedParts]) -> InputPiece:
    """A whole input, without its parts of conversations of several files."""
    return InputPiece(item, index, apart=frozenset(shared[index].wholes) if index in shared else frozenset())


def _even(total: int, size: int) -> int:
    """About `size`, such that an input of `total` bytes gives pieces that are alike."""
    return max(int(_FULL * size), total // max(1, round(total / size)) + 1)


def _said_elsewhere(inputs: Sequence[Input], size: int) -> dict[str, int]:
    """Digests of what was said in the conversations of records that hold a whole one, by their ids.

    Single messages of the same conversations, in another file of another shape, are copies of them.
    """
    digests: dict[str, int] = {}
    for index, item in enumerate(inputs):
        if item.grouping == "record" and item.container != "text":
            for piece in pieces_of(item, index, size):
                for read in read_partition(Partition(0, (piece,)), ReadReport()):
                    digests.setdefault(read.conversation.id, spoken_digest(read.conversation))
    return digests


def read_partition(
    partition: Partition, report: ReadReport, settings: ReadSettings = DEFAULT_SETTINGS, flows: Sequence[Flow] = ()
) -> Iterator[Read]:
    """The conversations of a partition. What cannot be read goes to the report; the rest goes on.

    `flows` are the definitions of flows that they may have gone through.
    """
    kinds = companions(FlowDefinitions(flows))
    finders: dict[tuple[str, ...], RecordingFinder] = {}  # a folder of many small logs is listed once, not for each
    for piece in partition.pieces:
        item, near = piece.input, folders_of(piece)
        attachers = [one for kind in kinds if (one := kind.attacher(item.reader, item.companions_of(kind.format)))]
        finder = finders.get(near) or finders.setdefault(
            near,
            RecordingFinder(
                near,
                settings.audio,
                partition.contested,
                made_in_python=item.why == OBJECTS,
            ),
        )
        for built, notes in _PieceReader(piece, report).reads():
            distinct = _without_known(built, piece, report) if piece.elsewhere else built
            reads = _sessions(distinct, settings.session_gap, report)
            for read in _attached(attachers, reads, notes, report) if attachers else reads:
                read = _with_recording(read, finder, report)  # noqa: PLW2901
                conversation = settings.applied(read.conversation)
                if settings.speakers:
                    read = _with_speaker_notes(read, settings.speakers, report)  # noqa: PLW2901
                if conversation is read.conversation:
                    yield read
                elif len(conversation.timeline) == len(read.conversation.timeline):
                    yield read._replace(conversation=conversation)
                else:
                    moved = moved_notes(read.notes, conversation)
                    report.add_notes(moved[len(read.notes) :])
                    yield read._replace(conversation=conversation, notes=moved)


def contested_recordings(inputs: Sequence[Input], audio: str = "", size: int = PART_BYTES) -> frozenset[str]:
    """What several conversations say of their recordings, so that it does not say whose a file is.

    The logs are read for it, where there are recordings that may be found by their names.
    """
    logs = [item for item in inputs if item.container != "recording"]
    claims = Claims([folder_of(item.path) for item in logs if item.data is None], audio)
    if claims and logs:
        report = ReadReport()
        with tempfile.TemporaryDirectory(prefix="convoscope-") as scratch:
            for partition in cut(logs, report, Path(scratch), size):
                for piece in partition.pieces:
                    for reads, _ in _PieceReader(piece, report).reads():
                        for read in reads:
                            claims.add(read.conversation, folders_of(piece))
    return claims.contested


def _with_recording(read: Read, finder: RecordingFinder, report: ReadReport) -> Read:
    """What was read, with the path of its recording; with a note, where only the file's name says whose it is."""
    result = finder.find(read.conversation)
    notes = read.notes
    file = ", ".join(read.conversation.source.files[:1])
    by_code = {"recording_by_id": result.by_id, "recording_by_name": result.by_name, ELSEWHERE: result.elsewhere}
    for code, detail in by_code.items():
        if detail:
            notes = (*notes, Note(kind="inferred", code=code, detail=detail, file=file))
    if result.ambiguous:
        notes = (*notes, Note(kind="set_aside", code=AMBIGUOUS, detail=result.ambiguous, file=file))
    report.add_notes(notes[len(read.notes) :])
    return read._replace(conversation=result.conversation, notes=notes)


def _with_speaker_notes(read: Read, speakers: Sequence[tuple[str, str]], report: ReadReport) -> Read:
    """What was read, with notes on the speakers that the user named; a role that is known now is not unknown."""
    given = notes_on_speakers(read.conversation, speakers)
    report.add_notes(given)
    labels = {label for label, _ in speakers}
    if side := other_side(read.conversation, speakers):
        labels.add(side.label.casefold())
    known = [one for one in read.notes if one.code == UNKNOWN_SPEAKER and one.detail.casefold() in labels]
    for note in known:
        report.withdraw(note)
    return read._replace(notes=(*(note for note in read.notes if note not in known), *given))


class _PieceReader:
    """Reads the conversations of one piece."""

    def __init__(self, piece: InputPiece, report: ReadReport) -> None:
        self.piece, self.report = piece, report
        self.item = piece.input
        self.path = as_path(self.item.path)
        self.reader = reader_named(self.item.reader)
        self.is_numbered = self.item.container in CUTTERS

    def reads(self) -> Iterator[tuple[Iterable[Read], Notes]]:
        """What is read of each group of records, and where notes about it go."""
        item = self.item
        if item.grouping == "key":
            for number, keyed in enumerate(read_bucket(self.path)):
                yield from self._keyed(keyed, Origin(self.piece.index, number, 0))
        elif item.grouping == "record" and item.container != "text" and self.reader.typed is not None:
            notes = Notes(item.name)
            yield self._typed(notes), notes
        else:
            for group, number in self._groups():
                notes = self._notes(group, item.name)
                self._note_history(number, notes)
                yield self._build(group, item.name, Origin(self.piece.index, number, 0), notes), notes

    def _groups(self) -> Iterator[tuple[RecordGroup, int]]:
        item = self.item
        if item.grouping == "folder":
            yield RecordGroup(item.name, self.path, companions=tuple(as_path(one.path) for one in item.companions)), 0
        elif item.container == "recording":
            yield RecordGroup(_recording_name(item.name), self.path), 0
        elif item.grouping == "file":
            pieces = pieces_of(item, self.piece.index, PART_BYTES)
            records = tuple(record for piece in pieces for record in records_of(piece, self.report))
            if item.container != "text" and self.reader.joins_messages:
                records = without_copied_messages(records, self.reader, item.name, self.report)
            if records:
                name = stem(item.name, TEXT_ENDINGS if item.container == "text" else ())
                yield RecordGroup(name, self.path, records, apart=self.piece.apart), 0
        else:
            for record in records_of(self.piece, self.report):
                name = record_name(item, record.number)
                yield RecordGroup(name, self.path, (self._with_earlier(record),)), record.number

    def _typed(self, notes: Notes) -> Iterator[Read]:
        """The conversations of single records: typed where they fit, else by the reader's `build`.

        Line by line: a batch takes as long to decode, and has to be held.
        """
        piece, report, item = self.piece, self.report, self.item
        name, index, mark = item.name, piece.index, MARKS.get(item.container)
        names = RecordGroup("", self.path).file_names
        typed, build = _decoder(self.reader.typed), self.reader.build_typed
        new = tuple.__new__  # half of what the class takes to make one
        file: FileRead | None = None
        for number, text in reported_texts(piece, report):
            line = number if self.is_numbered else 0
            notes.begin(name, line)
            if piece.same.longer:
                self._note_history(number, notes)
            called = f"{name}{mark}{number}" if mark else record_name(item, number)
            conversation = None
            if number not in piece.same.earlier and not may_repeat_names(text):
                # Whatever goes wrong, the reader's `build` says what it is.
                with suppress(Exception):
                    conversation = build(typed(text), RawRecord(called, number, names, text), notes)
            if conversation is None:
                if (record := json_record(text, number, name, report)) is not None:
                    notes.begin(name, line)
                    self._note_history(number, notes)
                    for code in record.repairs:
                        notes.repaired(code)
                    group = RecordGroup(called, self.path, (self._with_earlier(record),))
                    yield from self._build(group, name, Origin(index, number, 0), notes)
                continue
            taken = notes.hand_over()
            if taken:
                report.add_notes(taken)
            report.conversations += 1
            report.records_used += 1
            file = file or report.file(name, self.reader.name)
            file.conversations += 1
            yield new(Read, (conversation, taken, new(Origin, (index, number, 0)), False, True))

    def _keyed(self, records: KeyedRecords, origin: Origin) -> Iterator[tuple[Iterable[Read], Notes]]:
        reader, report = self.reader, self.report
        keyed = records if reader.joins_messages else without_copied_lines(records, report)
        lines, conversation = keyed.lines, None
        # Whatever it trips over, `build` looks at it more closely, and reports it; and what was put right before.
        with suppress(Exception):
            conversation = None if any(run.repairs for run in keyed.runs) else reader.quick_build(lines)
        if conversation is not None:
            report.conversations += 1
            report.records_used += len(lines.texts)
            report.join_records(len(lines.texts))
            for name in lines.files:
                report.file(name, reader.name).conversations += 1
            first = keyed.runs[0]
            yield (Read(conversation, (), origin),), Notes(first.name, first.numbers[0])
            return
        decoded = list(keyed.decoded(report))
        key = keyed.key.removeprefix(UNKEYED) or keyed.key
        for apart in separated(key, decoded) if reader.joins_messages else [decoded]:
            group = tuple(apart)
            if reader.joins_messages:
                group = without_copied_messages(group, reader, "", report)
            if not group:
                continue
            report.join_records(len(group))
            names = tuple(dict.fromkeys(Path(name).name for name in dict.fromkeys(one.file for one in group)))
            name = group[0].file
            whole = RecordGroup(key, Path(name), group, names)
            notes = self._notes(whole, name)
            # Of records that were brought together by key each is lost that is in no conversation.
            yield self._build(whole, name, origin, notes, lost=len(group)), notes

    def _build(self, group: RecordGroup, name: str, origin: Origin, notes: Notes, *, lost: int = 1) -> Iterator[Read]:
        """The conversations of a group; `lost` is how many records are not read where there is no conversation."""
        reader, report, line = self.reader, self.report, notes.line
        files: list[str] = []
        try:
            for part, conversation in enumerate(reader.build(group, notes)):
                lost = 1
                taken = notes.hand_over()
                report.add_notes(taken)
                report.conversations += 1
                if part == 0:  # a group may hold as many conversations as records
                    unused = {id(record) for record in notes.unused}
                    used = [record for record in group.records if id(record) not in unused]
                    report.records_used += len(used)
                    files = list(dict.fromkeys(record.file or name for record in used)) or [name]
                report.records_used += notes.records
                report.records_seen += notes.records
                notes.records = 0
                for file_name in files:
                    report.file(file_name, reader.name).conversations += 1
                yield Read(conversation, taken, origin._replace(part=part) if part else origin, notes.is_session)
            report.add_notes(notes.hand_over())  # of what is in none of the conversations
        except InputError as error:
            notes.refused.append(error)
        except OSError as error:
            report.problem(Problem(name, line, f"cannot be read: {error.strerror or error}", count=lost))
        except StoreError:
            raise
        except Exception as error:  # a reader that trips over a record must not stop the rest
            message = f"the {reader.name} reader failed: {type(error).__name__}: {error}"
            report.problem(Problem(name, line, message, hint="please report this with the record", count=lost))
        for refusal in notes.refused:
            count = max(lost, refusal.count)
            report.problem(Problem(name, refusal.line or line, refusal.message, refusal.field, refusal.hint, count))
        notes.refused = []
        report.add_notes(notes.hand_over())

    def _with_earlier(self, record: Record) -> Record:
        earlier = self.piece.same.earlier.get(record.number)
        return record._replace(before=earlier) if earlier else record

    def _note_history(self, number: int, notes: Notes) -> None:
        if count := self.piece.same.takes_in.get(number):
            notes.inferred("history_merged", f"{count} {'record' if count == 1 else 'records'} with its beginning")
        if number in self.piece.same.labelled:
            notes.inferred("label_of_last_record", "an earlier record of this conversation has other labels")

    def _notes(self, group: RecordGroup, name: str) -> Notes:
        """Notes that begin with what had to be put right to read the records."""
        notes = Notes(name, group.records[0].number if self.is_numbered and group.records else 0)
        for record in group.records:
            if record.repairs:
                with notes.at_line(record.file, record.number if self.is_numbered else 0):
                    for code in record.repairs:
                        notes.repaired(code)
        return notes


def _recording_name(name: str) -> str:
    """The name of a file without the ending of a recording."""
    path = Path(name)
    return name.removesuffix(path.suffix) if path.suffix.lower() in ENDINGS else name


@cache
def _decoder(type: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(type).decode


def _attached(attachers: Sequence[Attach], reads: Iterable[Read], notes: Notes, report: ReadReport) -> Iterator[Read]:
    for read in reads:
        conversation = read.conversation
        for attach in attachers:
            conversation = attach(conversation, notes)
        taken = notes.hand_over()
        report.add_notes(taken)
        unchanged = conversation is read.conversation and not taken
        yield read if unchanged else Read(conversation, read.notes + taken, read.origin)


def _without_known(reads: Iterable[Read], piece: InputPiece, report: ReadReport) -> Iterator[Read]:
    """Without conversations that records of another shape hold."""
    for read in reads:
        conversation = read.conversation
        if piece.elsewhere.get(conversation.id) != spoken_digest(conversation):
            yield read
            continue
        report.conversations -= 1
        report.count_same(COPIES, conversation.id)


def _sessions(reads: Iterable[Read], gap: float, report: ReadReport) -> Iterator[Read]:
    """Sessions that went on after a long silence as several conversations."""
    for read in reads:
        if not read.is_session or len(parts := split_by_silence(read.conversation, gap)) < 2:
            yield read
            continue
        report.count_same(SPLIT, read.conversation.id)
        report.conversations += len(parts) - 1
        for file in read.conversation.source.files:
            if file in report.files:
                report.files[file].conversations += len(parts) - 1
        for number, conversation in enumerate(parts):
            notes = read.notes if number == 0 else ()
            yield Read(conversation, notes, read.origin._replace(part=read.origin.part + number))
