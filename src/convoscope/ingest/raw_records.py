"""The records of a piece of input, as they are written and decoded; what cannot be read goes to the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.hash_buckets import SortedRun
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode, has_name_twice
from convoscope.ingest.io.kinds import legacy_text
from convoscope.ingest.pieces import InputPiece, texts_of
from convoscope.ingest.reader import Record
from convoscope.ingest.report import Problem, ReadReport


def record_name(item: Input, number: int) -> str:
    """A name for a record that is a conversation by itself."""
    mark = MARKS.get(item.container)
    return f"{item.name}{mark}{number}" if mark else stem(item.name)


MARKS = {"lines": ":", "text": ":", "array": "#", "members": "#", "table": ":"}
UNKEYED = "\0"
"""Begins the key of a record that has none."""


def decoded_records(run: SortedRun, report: ReadReport) -> Iterator[Record]:
    for index, (number, text) in enumerate(zip(run.numbers, run.texts, strict=True)):
        try:
            value, repairs = decode(text)
        except BadJson as error:
            report.problem(not_json(run.name, number, error))
        else:
            yield Record(value, number, run.repairs.get(index, ()) + repairs, run.name)


def records_of(piece: InputPiece, report: ReadReport) -> Iterator[Record]:
    """The records of a piece; what is not JSON goes to the report, unless they are lines of plain text."""
    for number, text in whole_texts(piece, report):
        if piece.input.container == "text":
            yield _line(text, number)
        elif (record := json_record(text, number, piece.input.name, report)) is not None:
            yield record


def _line(text: bytes, number: int) -> Record:
    """A line of plain text; one that is not UTF-8 is read as the Latin-1 of western systems."""
    try:
        return Record(text.decode(), number)
    except UnicodeDecodeError:
        return Record(legacy_text(text) or text.decode("utf-8", "replace"), number, ("encoding",))


def whole_texts(piece: InputPiece, report: ReadReport) -> Iterator[tuple[int, bytes]]:
    """The records of a piece as text, which may be JSON; what cannot be read at all goes to the report."""
    name, repeated, copies = piece.input.name, piece.repeated, piece.copies
    if piece.problem:
        report.records_seen += 1
        usual = files.TOO_LONG_HINT if piece.problem == files.TOO_LONG else "everything before it was read"
        report.problem(Problem(name, piece.first, piece.problem, hint=piece.hint or usual))
        return
    try:
        for number, text in texts_of(piece):
            if not text:
                if piece.input.container != "table":
                    report.ignore("blank_line")
                continue
            report.records_seen += 1
            if repeated and number in repeated:
                report.merge_record()
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
    if has_name_twice(text):
        repairs = (*repairs, "name_twice")
    return Record(value, number, repairs)


def not_json(name: str, number: int, error: BadJson) -> Problem:
    return Problem(name, number, str(error), hint="the record was skipped; write it whole")


TEXT_ENDINGS = (".log", ".txt", ".srt", ".vtt", ".sbv")


def stem(name: str, more: Sequence[str] = ()) -> str:
    stem = name
    for ending in (".gz", ".zst", ".zstd", ".json", ".jsonl", ".ndjson", *more):
        stem = stem.removesuffix(ending)
    return stem or name
