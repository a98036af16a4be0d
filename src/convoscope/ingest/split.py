"""The work, cut into pieces that can be read apart from each other, and the reading of one piece.

Where the cuts fall depends on the input alone, never on who works on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, Flow
from convoscope.errors import InputError
from convoscope.ingest.companions.companion import Attach, companions
from convoscope.ingest.companions.flows import FlowDefinitions
from convoscope.ingest.copies import copied_inputs, spoken_digest
from convoscope.ingest.discover import Input
from convoscope.ingest.hash_buckets import KeyedRecords, bucket_of, read_bucket, spread
from convoscope.ingest.keyed_pieces import keyed_pieces, share_keys
from convoscope.ingest.pieces import CUTTERS, InputPiece, cut_up
from convoscope.ingest.raw_records import (
    MARKS,
    TEXT_ENDINGS,
    UNKEYED,
    decoded_records,
    json_record,
    record_name,
    records_of,
    stem,
    whole_texts,
)
from convoscope.ingest.reader import Place, Reader, Record, RecordGroup, reader_named
from convoscope.ingest.report import FileRead, Note, Notes, Problem, ReadReport
from convoscope.ingest.row_copies import without_copied_lines, without_copied_messages
from convoscope.ingest.row_ids import separated
from convoscope.ingest.same_records import same_records, with_same, without_same
from convoscope.ingest.sessions import split_by_silence
from convoscope.ingest.settings import DEFAULT_SETTINGS, ReadSettings
from convoscope.ingest.tool_speech import moved_notes

PART_BYTES = 4 * 1024 * 1024
MAX_PIECES = 500


class Partition(msgspec.Struct, frozen=True):
    """Some pieces that are read together."""

    number: int
    pieces: tuple[InputPiece, ...]


class Origin(NamedTuple):
    """Where a conversation stood in the input: the order of a run is the order of these."""

    place: int
    record: int
    part: int


class Read(NamedTuple):
    """A conversation, what was done to read it, and where it stood."""

    conversation: Conversation
    notes: tuple[Note, ...]
    origin: Origin
    is_session: bool = False
    """Its id is that of a session, which may go on days later."""
    exact: bool = False
    """Its values are those of the JSON that it was read from, which holds no NaN and no infinity."""


def cut(inputs: Sequence[Input], report: ReadReport, scratch: Path, size: int = PART_BYTES) -> Iterator[Partition]:
    """Cut the inputs into partitions of about `size` bytes.

    Records that must be brought together by key are first spread over files in `scratch`; what
    cannot be read on the way goes to `report`.
    """
    number, held, weight = 0, list[InputPiece](), 0
    for piece, cost in _pieces(inputs, report, scratch, size):
        held.append(piece)
        weight += cost
        if weight >= size or len(held) >= MAX_PIECES:
            yield Partition(number, tuple(held))
            number, held, weight = number + 1, [], 0
    if held:
        yield Partition(number, tuple(held))


def _pieces(inputs: Sequence[Input], report: ReadReport, scratch: Path, size: int) -> Iterator[tuple[InputPiece, int]]:
    by_key: dict[str, list[tuple[int, Input]]] = {}
    same = same_records(inputs, size, report)
    copied = copied_inputs(inputs, [_size(item) for item in inputs])
    for place, item in enumerate(inputs):
        said_again = same.get(place)
        report.files[item.name] = FileRead(item.reader, item.why)
        if place in copied:
            report.drop_file(item.name, inputs[copied[place]].name)
        elif item.grouping == "key":
            by_key.setdefault(item.reader, []).append((place, item))
        elif item.grouping == "record" and item.container in CUTTERS:
            cuts = cut_up(InputPiece(item, place), size)
            for piece in cuts if said_again is None else without_same(cuts, said_again):
                yield piece, piece.end - piece.start or len(piece.data or b"")
        else:
            whole = InputPiece(item, place)
            # The logs of a folder say most things more than once: little of them is left in the conversation.
            yield (
                whole if said_again is None else with_same(whole, said_again),
                _size(item) // (4 if item.grouping == "folder" else 1),
            )
    for reader, keyed in sorted(by_key.items()):
        if reader_named(reader).unkeyed_record_is_conversation and not share_keys(reader, keyed, size):
            for place, item in keyed:
                by_record = msgspec.structs.replace(item, grouping="record")
                for piece in cut_up(InputPiece(by_record, place), size):
                    yield piece, piece.end - piece.start or len(piece.data or b"") or _size(item)
            continue
        by_name = reader_named(reader)
        files_of_keys = (keyed_pieces(InputPiece(item, place), by_name, report, size) for place, item in keyed)
        buckets = -(-sum(_size(one) for _, one in keyed) // size)
        spilled = spread(reader, chain.from_iterable(files_of_keys), scratch, buckets)
        beside = tuple(dict.fromkeys(path for _, item in keyed for path in item.companions))
        elsewhere = _said_elsewhere(inputs, size) if by_name.joins_messages else {}
        for place, (number, bucket) in enumerate(spilled):
            known = {id: digest for id, digest in elsewhere.items() if bucket_of(id, buckets) == number}
            whole = InputPiece(msgspec.structs.replace(bucket, companions=beside), len(inputs) + place, elsewhere=known)
            yield whole, size


def _said_elsewhere(inputs: Sequence[Input], size: int) -> dict[str, int]:
    """What was said in the conversations of records that hold a whole one, by their ids.

    Single messages of the same conversations, in another file of another shape, are copies of them.
    """
    digests: dict[str, int] = {}
    for place, item in enumerate(inputs):
        if item.grouping == "record" and item.container != "text":
            for piece in cut_up(InputPiece(item, place), size):
                for read in read_partition(Partition(0, (piece,)), ReadReport()):
                    digests.setdefault(read.conversation.id, spoken_digest(read.conversation))
    return digests


def _size(item: Input) -> int:
    path = Path(item.path)
    try:
        if path.is_dir():
            return sum(place.stat().st_size for place in path.iterdir() if place.is_file())
        return path.stat().st_size
    except OSError:
        return 0


def read_partition(
    partition: Partition, report: ReadReport, settings: ReadSettings = DEFAULT_SETTINGS, flows: Sequence[Flow] = ()
) -> Iterator[Read]:
    """The conversations of a partition. What cannot be read goes to the report; the rest goes on.

    `flows` are the definitions of flows that they may have gone through.
    """
    kinds = companions(FlowDefinitions(flows))
    for piece in partition.pieces:
        files_beside = [Path(companion) for companion in piece.input.companions]
        attachers = [attach for kind in kinds if (attach := kind.attacher(piece.input.reader, files_beside))]
        for built, notes in _reads(piece, reader_named(piece.input.reader), report):
            distinct = _without_known(built, piece.elsewhere, report) if piece.elsewhere else built
            plain = _sessions(distinct, settings.session_gap, report)
            reads = _attached(attachers, plain, notes, report) if attachers else plain
            yield from (_as_set(settings, read, report) for read in reads)


def _read_typed(piece: InputPiece, reader: Reader, notes: Notes, report: ReadReport) -> Iterator[Read]:
    """The conversations of records that stand for themselves: typed where they fit, else by the reader's `build`.

    Line by line: a batch takes as long to decode, and has to be held.
    """
    item = piece.input
    name, place, path = item.name, piece.place, Path(item.path)
    numbered, mark = item.container in CUTTERS, MARKS.get(item.container)
    names = RecordGroup("", path).file_names
    typed, build = _decoder(reader.typed), reader.build_typed
    new = tuple.__new__  # half of what the class takes to make one
    file: FileRead | None = None
    for number, text in whole_texts(piece, report):
        notes.begin(name, number if numbered else 0)
        if piece.takes_in:
            _note_history(piece, number, notes)
        called = f"{name}{mark}{number}" if mark else record_name(item, number)
        conversation = None
        if number not in piece.earlier:
            # Whatever goes wrong, the reader's `build` says what it is.
            with suppress(Exception):
                conversation = build(typed(text), Place(called, number, names, text), notes)
        if conversation is None:
            if (record := json_record(text, number, name, report)) is not None:
                notes.begin(name, number if numbered else 0)
                _note_history(piece, number, notes)
                for code in record.repairs:
                    notes.repaired(code)
                group = RecordGroup(called, path, (_with_earlier(record, piece),))
                yield from _build(reader, group, name, Origin(place, number, 0), notes, report)
            continue
        taken = notes.hand_over()
        if taken:
            report.add_notes(taken)
        report.conversations += 1
        report.records_used += 1
        if file is None:
            file = report.files.get(name) or report.files.setdefault(name, FileRead(reader.name))
        file.conversations += 1
        yield new(Read, (conversation, taken, new(Origin, (place, number, 0)), False, True))


@cache
def _decoder(type: Any) -> Callable[[bytes], Any]:
    return msgspec.json.Decoder(type).decode


def _reads(piece: InputPiece, reader: Reader, report: ReadReport) -> Iterator[tuple[Iterable[Read], Notes]]:
    """What is read of each group of records, and where notes about it go."""
    if piece.input.grouping == "key":
        yield from _keyed(piece, reader, report)
        return
    if piece.input.grouping == "record" and piece.input.container != "text" and reader.typed is not None:
        notes = Notes(piece.input.name)
        yield _read_typed(piece, reader, notes, report), notes
        return
    numbered = piece.input.container in CUTTERS
    for group, name, origin in _groups(piece, report):
        notes = _repairs(group, name, numbered=numbered)
        _note_history(piece, origin.record, notes)
        yield _build(reader, group, name, origin, notes, report), notes


def _with_earlier(record: Record, piece: InputPiece) -> Record:
    earlier = piece.earlier.get(record.number)
    return record._replace(before=earlier) if earlier else record


def _note_history(piece: InputPiece, number: int, notes: Notes) -> None:
    if count := piece.takes_in.get(number):
        notes.inferred("history_merged", f"{count} {'record' if count == 1 else 'records'} with its beginning")


def _repairs(group: RecordGroup, name: str, *, numbered: bool) -> Notes:
    """Notes that begin with what had to be put right to read the records."""
    notes = Notes(name, group.records[0].number if numbered and group.records else 0)
    for record in group.records:
        if record.repairs:
            with notes.standing_at(record.file, record.number if numbered else 0):
                for code in record.repairs:
                    notes.repaired(code)
    return notes


def _attached(attachers: Sequence[Attach], reads: Iterable[Read], notes: Notes, report: ReadReport) -> Iterator[Read]:
    """The conversations with what lies beside them."""
    for read in reads:
        conversation = read.conversation
        for attach in attachers:
            conversation = attach(conversation, notes)
        taken = notes.hand_over()
        report.add_notes(taken)
        unchanged = conversation is read.conversation and not taken
        yield read if unchanged else Read(conversation, read.notes + taken, read.origin)


def _without_known(reads: Iterable[Read], elsewhere: Mapping[str, int], report: ReadReport) -> Iterator[Read]:
    """Without conversations that records of another shape hold."""
    for read in reads:
        conversation = read.conversation
        if elsewhere.get(conversation.id) != spoken_digest(conversation):
            yield read
            continue
        report.conversations -= 1
        report.drop_conversation(conversation.id)


def _sessions(reads: Iterable[Read], gap: float, report: ReadReport) -> Iterator[Read]:
    """Sessions that went on after a long silence as several conversations."""
    for read in reads:
        if not read.is_session or len(parts := split_by_silence(read.conversation, gap)) < 2:
            yield read
            continue
        report.split_session(read.conversation.id)
        report.conversations += len(parts) - 1
        for file in read.conversation.source.files:
            if file in report.files:
                report.files[file].conversations += len(parts) - 1
        for number, conversation in enumerate(parts):
            notes = read.notes if number == 0 else ()
            yield Read(conversation, notes, read.origin._replace(part=read.origin.part + number))


def _as_set(settings: ReadSettings, read: Read, report: ReadReport) -> Read:
    conversation = settings.applied(read.conversation)
    if conversation is read.conversation:
        return read
    if len(conversation.timeline) == len(read.conversation.timeline):
        return read._replace(conversation=conversation)
    notes = moved_notes(read.notes, conversation)
    report.add_notes(notes[len(read.notes) :])
    return read._replace(conversation=conversation, notes=notes)


def _build(
    reader: Reader,
    group: RecordGroup,
    name: str,
    origin: Origin,
    notes: Notes,
    report: ReadReport,
    *,
    by_key: bool = False,
) -> Iterator[Read]:
    line = notes.line
    # Of records that were brought together by key each is lost that is in no conversation.
    lost = len(group.records) if by_key else 1
    try:
        for part, conversation in enumerate(reader.build(group, notes)):
            lost = 1
            taken = notes.hand_over()
            report.add_notes(taken)
            report.conversations += 1
            used = _used(group, notes)
            report.records_used += len(used) if part == 0 else 0
            report.records_seen += notes.records
            report.records_used += notes.records
            notes.records = 0
            for file_name in dict.fromkeys(record.file or name for record in used) or (name,):
                file = report.files.get(file_name) or report.files.setdefault(file_name, FileRead(reader.name))
                file.conversations += 1
            at = Origin(origin.place, origin.record, part) if part else origin
            yield Read(conversation, taken, at, notes.is_session)
    except InputError as error:
        count = max(lost, error.count)
        report.problem(Problem(name, error.line or line, error.message, error.field, error.hint, count))
    except OSError as error:
        report.problem(Problem(name, line, f"cannot be read: {error.strerror or error}", count=lost))
    except Exception as error:  # a reader that trips over a record must not stop the rest
        message = f"the {reader.name} reader failed: {type(error).__name__}: {error}"
        report.problem(Problem(name, line, message, hint="please report this with the record", count=lost))


def _used(group: RecordGroup, notes: Notes) -> Sequence[Record]:
    """The records that became part of a conversation."""
    if not notes.unused:
        return group.records
    unused = {id(record) for record in notes.unused}
    return [record for record in group.records if id(record) not in unused]


def _groups(piece: InputPiece, report: ReadReport) -> Iterator[tuple[RecordGroup, str, Origin]]:
    item = piece.input
    path = Path(item.path)
    if item.grouping == "folder":
        beside = tuple(Path(companion) for companion in item.companions)
        yield RecordGroup(item.name, path, companions=beside), item.name, Origin(piece.place, 0, 0)
    elif item.grouping == "file":
        records = tuple(_all_records(piece, report))
        reader = reader_named(item.reader)
        if item.container != "text" and reader.joins_messages:
            records = without_copied_messages(records, reader, item.name, report)
        if records:
            called = stem(item.name, TEXT_ENDINGS if item.container == "text" else ())
            yield RecordGroup(called, path, records), item.name, Origin(piece.place, 0, 0)
    else:
        for record in records_of(piece, report):
            yield (
                RecordGroup(record_name(item, record.number), path, (_with_earlier(record, piece),)),
                item.name,
                Origin(piece.place, record.number, 0),
            )


def _keyed(piece: InputPiece, reader: Reader, report: ReadReport) -> Iterator[tuple[Iterable[Read], Notes]]:
    """What is read of each key of a bucket."""
    for number, spread_records in enumerate(read_bucket(Path(piece.input.path))):
        origin = Origin(piece.place, number, 0)
        keyed = spread_records if reader.joins_messages else without_copied_lines(spread_records, report)
        read = _quick_read(reader, keyed, origin, report)
        if read is not None:
            first = keyed.runs[0]
            yield (read,), Notes(first.name, first.numbers[0])
            continue
        decoded = [record for run in keyed.runs for record in decoded_records(run, report)]
        key = keyed.key.removeprefix(UNKEYED) or keyed.key
        for records in separated(key, decoded) if reader.joins_messages else [decoded]:
            if group := _group_of_key(key, records, reader, report):
                name = group.records[0].file
                notes = _repairs(group, name, numbered=True)
                yield _build(reader, group, name, origin, notes, report, by_key=True), notes


def _group_of_key(key: str, read: Sequence[Record], reader: Reader, report: ReadReport) -> RecordGroup | None:
    records = tuple(read)
    if reader.joins_messages:
        records = without_copied_messages(records, reader, "", report)
    if not records:
        return None
    report.join_records(len(records))
    names = tuple(dict.fromkeys(Path(name).name for name in dict.fromkeys(one.file for one in records)))
    return RecordGroup(key, Path(records[0].file), records, names)


def _quick_read(reader: Reader, keyed: KeyedRecords, origin: Origin, report: ReadReport) -> Read | None:
    lines = keyed.lines
    try:
        conversation = reader.quick_build(lines)
    except Exception:  # whatever it trips over, `build` looks at it more closely, and tells of it
        return None
    if conversation is None:
        return None
    report.conversations += 1
    report.records_used += len(lines.texts)
    report.join_records(len(lines.texts))
    for name in lines.files:
        file = report.files.get(name) or report.files.setdefault(name, FileRead(reader.name))
        file.conversations += 1
    return Read(conversation, (), origin)


def _all_records(piece: InputPiece, report: ReadReport) -> Iterator[Record]:
    for part in cut_up(piece, PART_BYTES):
        yield from records_of(part, report)


__all__ = ["PART_BYTES", "InputPiece", "Origin", "Partition", "Read", "cut", "read_partition"]
