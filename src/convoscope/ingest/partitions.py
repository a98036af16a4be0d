"""The work, cut into pieces that can be read apart from each other, and the reading of one piece.

Where the cuts fall depends on the input alone, never on who works on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.errors import InputError
from convoscope.ingest import files
from convoscope.ingest.decode import BadJson, decode
from convoscope.ingest.inputs import Input
from convoscope.ingest.reader import Group, Reader, Record, installed
from convoscope.ingest.report import FileRead, Note, Notes, Problem, ReadReport

PART_BYTES = 4 * 1024 * 1024
MAX_PIECES = 500
MAX_BUCKETS = 256


class Piece(msgspec.Struct, frozen=True):
    """A stretch of one input; `place` is the input's place in the order of inputs."""

    input: Input
    place: int
    first: int = 1
    start: int = 0
    end: int = 0
    data: bytes | None = None
    problem: str = ""


class Partition(msgspec.Struct, frozen=True):
    """Some pieces that are read together."""

    number: int
    pieces: tuple[Piece, ...]


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


def cut(inputs: Sequence[Input], report: ReadReport, scratch: Path, size: int = PART_BYTES) -> Iterator[Partition]:
    """Cut the inputs into partitions of about `size` bytes.

    Records that must be brought together by key are first spread over files in `scratch`; what
    cannot be read on the way goes to `report`.
    """
    number, held, weight = 0, list[Piece](), 0
    for piece, cost in _pieces(inputs, report, scratch, size):
        held.append(piece)
        weight += cost
        if weight >= size or len(held) >= MAX_PIECES:
            yield Partition(number, tuple(held))
            number, held, weight = number + 1, [], 0
    if held:
        yield Partition(number, tuple(held))


def _pieces(inputs: Sequence[Input], report: ReadReport, scratch: Path, size: int) -> Iterator[tuple[Piece, int]]:
    by_key: dict[str, list[tuple[int, Input]]] = {}
    for place, one in enumerate(inputs):
        report.files[one.name] = FileRead(one.reader, one.why)
        if one.grouping == "key":
            by_key.setdefault(one.reader, []).append((place, one))
        elif one.grouping == "record" and one.container in ("lines", "array"):
            for stretch in _stretches(one, size):
                yield Piece(one, place, *stretch), stretch.end - stretch.start or len(stretch.data or b"")
        else:
            yield Piece(one, place), _size(one)
    for reader, keyed in sorted(by_key.items()):
        for place, bucket in enumerate(_spread(reader, keyed, report, scratch, size)):
            yield Piece(bucket, len(inputs) + place), size


def _stretches(one: Input, size: int) -> Iterator[files.Stretch]:
    cutter = files.line_stretches if one.container == "lines" else files.element_stretches
    return cutter(Path(one.path), size)


def _size(one: Input) -> int:
    path = Path(one.path)
    try:
        if path.is_dir():
            return sum(place.stat().st_size for place in path.iterdir() if place.is_file())
        return path.stat().st_size
    except OSError:
        return 0


class _Spilled(msgspec.Struct, array_like=True):
    """A record on its way to its bucket."""

    key: str
    place: int
    name: str
    number: int
    value: msgspec.Raw


def _spread(
    reader: str, keyed: Sequence[tuple[int, Input]], report: ReadReport, scratch: Path, size: int
) -> Iterator[Input]:
    """Spread records over bucket files by the hash of their key; each bucket is then read by itself."""
    weight = sum(_size(one) for _, one in keyed)
    buckets = max(1, min(MAX_BUCKETS, -(-weight // size)))
    scratch.mkdir(parents=True, exist_ok=True)
    paths = [scratch / f"{reader}-{number:03d}.jsonl" for number in range(buckets)]
    streams = [path.open("wb") for path in paths]
    encode = msgspec.json.Encoder().encode
    key_of = installed().by_name[reader].key
    try:
        for place, one in keyed:
            for stretch in _stretches(one, size):
                piece = Piece(one, place, *stretch)
                for record in _records(piece, report):
                    key = key_of(record.value)
                    if key is None:
                        message = "no id says which conversation this belongs to"
                        report.problem(Problem(one.name, record.number, message, hint="add a conversation_id"))
                        continue
                    line = encode(_Spilled(key, place, one.name, record.number, msgspec.Raw(encode(record.value))))
                    streams[zlib.crc32(key.encode()) % buckets].write(line + b"\n")
    finally:
        for stream in streams:
            stream.close()
    for path in paths:
        if path.stat().st_size:
            yield Input(str(path), path.name, reader, "lines", "key", "")


def read_partition(partition: Partition, report: ReadReport) -> Iterator[Read]:
    """The conversations of a partition. What cannot be read goes to the report; the rest goes on."""
    for piece in partition.pieces:
        for group, name, origin in _groups(piece, report):
            notes = Notes(name, origin.record if piece.input.container in ("lines", "array") else 0)
            yield from _build(piece, group, name, origin, notes, report)


def _build(piece: Piece, group: Group, name: str, origin: Origin, notes: Notes, report: ReadReport) -> Iterator[Read]:
    reader: Reader = installed().by_name[piece.input.reader]
    line = notes.line
    part = 0
    try:
        for part, conversation in enumerate(reader.build(group, notes)):
            taken = notes.hand_over()
            report.add_notes(taken)
            report.conversations += 1
            file = report.files.setdefault(name, FileRead(reader.name))
            file.conversations += 1
            yield Read(conversation, taken, Origin(origin.place, origin.record, part))
        report.records_used += len(group.records)
    except InputError as error:
        report.problem(Problem(name, error.line or line, error.message, error.field, error.hint))
    except OSError as error:
        report.problem(Problem(name, line, f"cannot be read: {error}"))
    except Exception as error:  # a reader that trips over a record must not stop the rest
        message = f"the {reader.name} reader failed: {type(error).__name__}: {error}"
        report.problem(Problem(name, line, message, hint="please report this with the record"))


def _groups(piece: Piece, report: ReadReport) -> Iterator[tuple[Group, str, Origin]]:
    one = piece.input
    path = Path(one.path)
    if one.grouping == "folder":
        yield Group(one.name, path), one.name, Origin(piece.place, 0, 0)
    elif one.grouping == "key":
        yield from _keyed(piece)
    elif one.grouping == "file":
        records = tuple(_all_records(piece, report))
        if records:
            yield Group(_stem(one.name), path, records), one.name, Origin(piece.place, 0, 0)
    else:
        mark = {"lines": ":", "array": "#"}.get(one.container)
        for record in _records(piece, report):
            name = f"{one.name}{mark}{record.number}" if mark else _stem(one.name)
            yield Group(name, path, (record,)), one.name, Origin(piece.place, record.number, 0)


def _keyed(piece: Piece) -> Iterator[tuple[Group, str, Origin]]:
    together: dict[str, list[_Spilled]] = {}
    decoder = msgspec.json.Decoder(_Spilled)
    with Path(piece.input.path).open("rb") as stream:
        for line in stream:
            spilled = decoder.decode(line)
            together.setdefault(spilled.key, []).append(spilled)
    for key, mine in together.items():
        mine.sort(key=lambda one: (one.place, one.number))
        records = tuple(Record(msgspec.json.decode(one.value), one.number) for one in mine)
        first = mine[0]
        yield Group(key, Path(first.name), records), first.name, Origin(first.place, first.number, 0)


def _all_records(piece: Piece, report: ReadReport) -> Iterator[Record]:
    if piece.input.container == "document":
        yield from _records(piece, report)
        return
    for stretch in _stretches(piece.input, PART_BYTES):
        yield from _records(Piece(piece.input, piece.place, *stretch), report)


def _records(piece: Piece, report: ReadReport) -> Iterator[Record]:
    """The records of a piece; what is not JSON goes to the report."""
    name = piece.input.name
    if piece.problem:
        report.records_seen += 1
        hint = files.TOO_LONG_HINT if piece.problem == files.TOO_LONG else "what could be read was"
        report.problem(Problem(name, piece.first, piece.problem, hint=hint))
        return
    try:
        data = _data(piece)
    except (OSError, InputError) as error:
        report.problem(Problem(name, 0, f"cannot be read: {error}"))
        return
    if piece.input.container == "array":
        yield from _elements(data, piece.first, name, report)
        return
    lines = enumerate(data.split(b"\n"), piece.first) if piece.input.container == "lines" else ((1, data),)
    for number, line in lines:
        text = line.strip()
        if text:
            yield from _record(text, number, name, report)
        elif line or number > piece.first:
            report.ignore("blank_line")


def _data(piece: Piece) -> bytes:
    if piece.data is not None:
        data = piece.data
    elif piece.input.container == "document":
        return files.whole(Path(piece.input.path))
    else:
        with Path(piece.input.path).open("rb") as stream:
            stream.seek(piece.start)
            data = stream.read(piece.end - piece.start)
    data = data.removeprefix(b"\xef\xbb\xbf") if piece.start == 0 else data
    return data.removesuffix(b"\n")


def _elements(data: bytes, first: int, name: str, report: ReadReport) -> Iterator[Record]:
    # The cutter has parsed these already, so that they can be read at one go.
    decoded = decode(b"[" + data + b"]")
    _note_repairs(decoded.repairs, name, first, report)
    for number, value in enumerate(decoded.value, first):
        report.records_seen += 1
        yield Record(value, number)


def _record(text: bytes, number: int, name: str, report: ReadReport) -> Iterator[Record]:
    report.records_seen += 1
    try:
        value, repairs = decode(text)
    except BadJson as error:
        report.problem(Problem(name, number, str(error), hint="the line was skipped; write it whole"))
        return
    _note_repairs(repairs, name, number, report)
    yield Record(value, number)


def _note_repairs(repairs: Iterable[str], name: str, number: int, report: ReadReport) -> None:
    report.add_notes(Note(kind="repaired", code=code, file=name, line=number) for code in repairs)


def _stem(name: str) -> str:
    stem = name
    for ending in (".gz", ".zst", ".zstd", ".json", ".jsonl", ".ndjson"):
        stem = stem.removesuffix(ending)
    return stem or name


__all__ = ["PART_BYTES", "Origin", "Partition", "Piece", "Read", "cut", "read_partition"]
