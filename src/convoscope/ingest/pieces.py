"""A piece of an input, and its records: as they are written, and decoded. What cannot be read goes to the report."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from io import BytesIO
from typing import Any

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import packed, tables
from convoscope.ingest.io.containers import legacy_text
from convoscope.ingest.io.json import BadJson, decode, repeated_name
from convoscope.ingest.reader import Record
from convoscope.ingest.report import MERGED, Problem, ReadReport
from convoscope.storage import as_path, open_binary

CUTTERS = {
    "lines": files.line_ranges,
    "text": files.line_ranges,
    "array": files.element_ranges,
    "members": files.member_ranges,
    "table": tables.row_ranges,
    "yaml": packed.yaml_ranges,
    "zip": packed.zip_ranges,
}
MARKS = {"lines": ":", "text": ":", "array": "#", "members": "#", "table": ":", "yaml": "#", "zip": "#"}
"""What separates the name of a file and the number of a record."""
TEXT_ENDINGS = (".log", ".txt", ".srt", ".vtt", ".sbv")


class SameRecords(msgspec.Struct, frozen=True, dict=True):
    """Records of an input that are not read, and records that take in others, by their numbers in order."""

    repeated: Sequence[int] = ()
    """A longer record repeats them: they are part of that one."""
    longer: Sequence[int] = ()
    """A number for each record that is a part of it."""
    copies: Sequence[int] = ()
    labelled: Sequence[int] = ()
    """Their labels are others than those of a record that they take in."""
    earlier: dict[int, list[Any]] = {}
    """Messages of a conversation that only earlier records of it have, by the number of its last record."""

    def between(self, first: int, end: int | None) -> SameRecords:
        """Those of the records from `first` to before `end`."""
        repeated, longer, copies, labelled = (
            numbers[bisect_left(numbers, first) : len(numbers) if end is None else bisect_left(numbers, end)]
            for numbers in (self.repeated, self.longer, self.copies, self.labelled)
        )
        earlier = {number: one for number, one in self.earlier.items() if number >= first and (not end or number < end)}
        return SameRecords(repeated, longer, copies, labelled, earlier)

    @cached_property
    def takes_in(self) -> Counter[int]:
        """How many records are part of a record, by its number."""
        return Counter(self.longer)


class InputPiece(msgspec.Struct, frozen=True):
    """A part of one input; `index` is the position of the input in the order of inputs."""

    input: Input
    index: int
    first: int = 1
    start: int = 0
    end: int = 0
    data: bytes | None = None
    problem: str = ""
    hint: str = ""
    same: SameRecords = SameRecords()
    elsewhere: dict[str, int] = {}
    """Digests of what was said in the conversations of these ids, by records of another shape."""
    apart: frozenset[str] = frozenset()
    """Keys of conversations that are read elsewhere, with what other files hold of them."""
    folders: tuple[str, ...] = ()
    """The folders of the logs, where records of several files were brought together."""

    @property
    def size(self) -> int:
        return self.end - self.start or len(self.data or b"")

    @property
    def content(self) -> bytes:
        if self.data is not None:
            data = self.data
        elif self.input.container == "document":
            return files.whole(as_path(self.input.path))
        else:
            with open_binary(as_path(self.input.path)) as stream:
                stream.seek(self.start)
                data = stream.read(self.end - self.start)
        return data.removeprefix(files.BOM) if self.start == 0 else data

    @property
    def texts(self) -> Iterator[tuple[int, bytes]]:
        """The records as they are written, each with its number; blank lines are among them."""
        return self.texts_in(self.content)

    def texts_in(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The records of the content that was read."""
        # One line after the other: all of them at once would be as much memory again, and none of it in the cache.
        texts: Iterable[bytes] = BytesIO(data) if data else (data,)
        if self.input.container in ("array", "members", "yaml", "zip"):
            texts = data.split(files.BETWEEN_ELEMENTS)
        elif self.input.container not in CUTTERS:
            texts = (data,)
        for number, text in enumerate(texts, self.first):
            yield number, text.strip()


def pieces_of(item: Input, index: int, size: int) -> Iterator[InputPiece]:
    """An input as pieces of about `size` bytes; a document is one piece."""
    cutter = CUTTERS.get(item.container)
    if cutter is None:
        yield InputPiece(item, index)
        return
    try:
        if item.data is None:
            ranges = cutter(as_path(item.path), size)
        else:
            ranges = files.ranges_of_lines(BytesIO(item.data), size, plain=False)
            item = msgspec.structs.replace(item, data=None)
        for byte_range in ranges:
            yield InputPiece(item, index, *byte_range)
    except OSError as error:
        yield InputPiece(item, index, problem=f"cannot be read: {error.strerror or error}")
    except InputError as error:
        yield InputPiece(item, index, problem=error.message, hint=error.hint)


def readable_texts(item: Input, index: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The records of an input with their numbers, for a first look; what cannot be read is reported when it is read."""
    for piece in pieces_of(item, index, size):
        yield from readable_texts_of(piece)


def readable_texts_of(piece: InputPiece, data: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """The same of one piece, whose content may be at hand."""
    if not piece.problem:
        with suppress(OSError, InputError):
            for number, text in piece.texts if data is None else piece.texts_in(data):
                if text and len(text) <= files.MAX_RECORD_BYTES:
                    yield number, text


def record_name(item: Input, number: int) -> str:
    """A name for a record that is a conversation by itself."""
    mark = MARKS.get(item.container)
    return f"{item.name}{mark}{number}" if mark else stem(item.name)


def stem(name: str, more: Sequence[str] = ()) -> str:
    stem = name
    for ending in (".gz", ".zst", ".zstd", ".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".eval", *more):
        stem = stem.removesuffix(ending)
    return stem or name


def records_of(piece: InputPiece, report: ReadReport) -> Iterator[Record]:
    """The records of a piece; what is not JSON goes to the report, unless they are lines of plain text."""
    for number, text in reported_texts(piece, report):
        if piece.input.container == "text":
            try:
                yield Record(text.decode(), number)
            except UnicodeDecodeError:
                # The Latin-1 of western systems.
                yield Record(legacy_text(text) or text.decode("utf-8", "replace"), number, ("encoding",))
        elif (record := json_record(text, number, piece.input.name, report)) is not None:
            yield record


def reported_texts(piece: InputPiece, report: ReadReport) -> Iterator[tuple[int, bytes]]:
    """The records of a piece as text, which may be JSON; what is left out or cannot be read goes to the report."""
    name, repeated, copies = piece.input.name, frozenset(piece.same.repeated), frozenset(piece.same.copies)
    if piece.problem:
        report.records_seen += 1
        usual = files.TOO_LONG_HINT if piece.problem == files.TOO_LONG else "everything before it was read"
        report.problem(Problem(name, piece.first, piece.problem, hint=piece.hint or usual))
        return
    try:
        for number, text in piece.texts:
            if not text:
                if piece.input.container != "table":
                    report.ignore("blank_line")
                continue
            report.records_seen += 1
            if repeated and number in repeated:
                report.ignore("repeated_history")
                report.records_used += 1
                report.count_same(MERGED)
            elif copies and number in copies:
                report.drop_copy(name, number)
            elif len(text) > files.MAX_RECORD_BYTES:
                report.problem(Problem(name, number, files.TOO_LONG, hint=files.TOO_LONG_HINT))
            else:
                yield number, text
    except OSError as error:
        report.problem(Problem(name, 0, f"cannot be read: {error.strerror or error}"))
    except InputError as error:
        report.problem(Problem(name, 0, f"cannot be read: {error.message}", hint=error.hint))


def json_record(text: bytes, number: int, name: str, report: ReadReport) -> Record | None:
    try:
        value, repairs = decode(text)
    except BadJson as error:
        report.problem(not_json(name, number, error))
        return None
    if may_repeat_names(text) and repeated_name(text):
        repairs = (*repairs, "name_twice")
    return Record(value, number, repairs)


def may_repeat_names(text: bytes) -> bool:
    """Whether a field that decides much occurs twice. To look at every object takes longer than to read the record."""
    count = text.count
    return (
        count(b'"messages"') > 1
        or count(b'"conversation_id"') > 1
        or count(b'"session_id"') > 1
        or count(b'"traj"') > 1
        or count(b'"transcript"') > 1
    )


def not_json(name: str, number: int, error: BadJson) -> Problem:
    return Problem(name, number, str(error), hint="the record was skipped; write it whole")
