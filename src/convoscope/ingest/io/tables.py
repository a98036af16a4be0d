"""Rows of tables as records: CSV and TSV, by their names, and Parquet, by its first bytes.

A row becomes a JSON object by column name. Cells of CSV are text, as they are: the reader of the
records knows what is a number. An empty cell is null.
"""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.errors import InputError, is_interrupt, raised_inside
from convoscope.harmless import is_utf8
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.containers import ByteRange
from convoscope.ingest.io.json import BadJson, decode
from convoscope.storage import HINT, StoreError, open_binary, register_store

if TYPE_CHECKING:
    import duckdb

BETWEEN_ROWS = b"\n"
"""Separates the rows of a range. A row that took several lines is followed by as many blank ones."""

_PARQUET = b"PAR1"
_TEXT_ENDINGS = (".csv", ".tsv", ".tab")
ENDINGS = (*_TEXT_ENDINGS, ".parquet")
_DELIMITERS = ",\t;"
_READ_BYTES = 1024 * 1024
_FETCH_ROWS = 512
_MEMORY_MB = 256
_SKIPPED = "the row was skipped, and the rest is read"
_NEVER_CLOSED = "a quotation mark is opened and never closed"

_encode = msgspec.json.Encoder().encode


class UnknownTable(InputError):
    """A table that can be read, and is no log."""


def is_table(path: Path, head: bytes) -> bool:
    """Is this file a table? A CSV file that begins like JSON is taken for what it holds."""
    is_named = files.unpacked_name(path.name).endswith(_TEXT_ENDINGS)
    return head.startswith(_PARQUET) or (is_named and head.lstrip()[:1] not in (b"{", b"["))


def first_rows(path: Path, count: int) -> list[Any]:
    """The first rows, to tell the format by. Raises `InputError` where the table cannot be read."""
    rows: list[Any] = []
    if is_parquet(path):
        for text in _parquet_rows(path, f"LIMIT {count}"):
            with suppress(BadJson):
                rows.append(decode(text).value)
    else:
        bad = None
        for row in _rows(path):
            if isinstance(row, _BadRow):
                bad = bad or row
            elif len(rows) < count:
                rows.append(row.cells)
            if len(rows) == count:
                break
        if bad is not None and not rows:
            raise InputError(f"no row can be read: {bad.problem}", line=bad.first, hint=bad.hint)
    if not rows:
        raise UnknownTable("is a table without rows", hint="nothing was written to it but its columns")
    return rows


def row_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    """The rows of a table in ranges of about `size` bytes, as JSON objects.

    Rows of CSV are numbered by the line they begin in, rows of Parquet from 1.
    """
    if is_parquet(path):
        return files.ranges_of_texts(_parquet_rows_or_end(path), size, BETWEEN_ROWS)
    return _text_ranges(path, size)


def _parquet_rows_or_end(path: Path) -> Iterator[bytes | files.BrokenEnd]:
    try:
        yield from _parquet_rows(path)
    except InputError as error:
        yield files.BrokenEnd(error.message, error.hint)


def is_parquet(path: Path) -> bool:
    """Recognised by its first bytes."""
    with open_binary(path) as stream:
        return stream.read(4) == _PARQUET


class _Row(NamedTuple):
    """A row, and the lines it takes."""

    first: int
    last: int
    cells: dict[str, str | None]


class _BadRow(NamedTuple):
    """Instead of a row: why it cannot be read."""

    first: int
    last: int
    problem: str
    hint: str = _SKIPPED


def _text_ranges(path: Path, size: int) -> Iterator[ByteRange]:
    held: list[bytes] = []
    length, first, line = 0, 1, 1
    for row in _rows(path):
        if isinstance(row, _BadRow) or length >= size:
            if held:
                yield ByteRange(first, 0, 0, BETWEEN_ROWS.join(held))
            held, length, first, line = [], 0, row.first, row.first
        if isinstance(row, _BadRow):
            yield ByteRange(row.first, 0, 0, b"", row.problem, row.hint)
            first = line = row.last + 1
            continue
        if not held:
            first = line = row.first
        text = _json(row.cells)
        # Blank lines keep the numbers right: those before this row, and those that it goes on for.
        held.extend([b""] * (row.first - line))
        held.append(text)
        held.extend([b""] * (row.last - row.first))
        length += len(text)
        line = row.last + 1
    if held:
        yield ByteRange(first, 0, 0, BETWEEN_ROWS.join(held))


def _json(cells: dict[str, str | None]) -> bytes:
    try:
        return _encode(cells)
    except UnicodeEncodeError:
        # Bytes that were not UTF-8 came through as surrogates and go out as they were.
        return json.dumps(cells, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _rows(path: Path) -> Iterator[_Row | _BadRow]:
    """The rows below the header. Raises `InputError` where the header cannot be used."""
    lines = _Lines(path)
    csv.field_size_limit(files.MAX_RECORD_BYTES)
    parsed = csv.reader(lines, delimiter=_delimiter(path, lines.peek()), strict=True)
    names = _header(parsed)
    while True:
        lines.row.clear()
        first = lines.number + 1
        try:
            cells = next(parsed)
        except StopIteration:
            break
        except csv.Error as error:
            problem = _why(error)
            if problem in (_NEVER_CLOSED, files.TOO_LONG):
                # It swallowed what follows: only its first line is given up.
                lines.back_to(first + 1)
            yield _BadRow(first, lines.number, problem)
            continue
        if not any(cells):
            continue
        if len(cells) != len(names):
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            hint = f"{_SKIPPED}; put a cell that holds the delimiter in quotes"
            yield _BadRow(first, lines.number, f"the row has {count}, and the header {len(names)}", hint)
            continue
        yield _Row(first, lines.number, {name: cell or None for name, cell in zip(names, cells, strict=True)})
    if lines.broken:
        yield _BadRow(lines.number + 1, lines.number + 1, lines.broken, "everything before it was read")


def _header(parsed: Any) -> list[str]:
    """The names of the columns; one without a name is called by its position."""
    try:
        cells: list[str] = next((row for row in parsed if row), [])
    except csv.Error as error:
        raise InputError(f"the header cannot be read: {_why(error)}", line=1) from None
    names = [cell.strip() or f"column_{number}" for number, cell in enumerate(cells, start=1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two columns are called {twice[0]!r}", hint="give each column a name of its own")
    return names


def _delimiter(path: Path, header: str) -> str:
    """The most frequent one in the header, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", header)
    most = max(_DELIMITERS, key=bare.count)
    if bare.count(most):
        return most
    return "," if ".csv" in path.name.lower() else "\t"


def _why(error: csv.Error) -> str:
    message = str(error)
    if "unexpected end of data" in message:
        return _NEVER_CLOSED
    if "expected after" in message:
        return "there is text behind the closing quotation mark of a cell"
    if "field limit" in message:
        return files.TOO_LONG
    return f"cannot be read: {message}"


class _Lines:
    """The lines of a text with their ends, to be parsed row by row; `broken` says why it broke off, where it did."""

    def __init__(self, path: Path) -> None:
        self.broken = ""
        self.number = 0
        """Of the line that was given last."""
        self.row: list[str] = []
        """The lines that the row under way has taken."""
        self._again: deque[str] = deque()
        self._lines = self._read(path)

    def peek(self) -> str:
        """The first line that is not blank."""
        for line in self._lines:
            self._again.append(line)
            if line.strip():
                return line
        return ""

    def back_to(self, number: int) -> None:
        """Give the lines of this row again, from this one on."""
        again = self.row[number - self.number - 1 :] if number <= self.number else []
        self._again.extendleft(reversed(again))
        self.number -= len(again)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._again.popleft() if self._again else next(self._lines)
        self.row.append(line)
        self.number += 1
        return line

    def _read(self, path: Path) -> Iterator[str]:
        unpacked = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        unfinished, newline = "", ""
        with files.open_bytes(path) as stream:
            while True:
                block, self.broken = files.read_block(stream, _READ_BYTES)
                ended = bool(self.broken) or len(block) < _READ_BYTES
                text = unfinished + unpacked.decode(block, ended)
                if not newline:
                    text = text.removeprefix("\ufeff")
                    # Some spreadsheets still end lines with a carriage return alone.
                    newline = "\n" if "\n" in text or "\r" not in text else "\r"
                *lines, unfinished = text.split(newline)
                for line in lines:
                    yield f"{line}\n"
                if len(unfinished) > files.MAX_RECORD_BYTES:
                    self.broken, ended = files.TOO_LONG, True
                if ended:
                    break
        # The line in which an archive breaks off is lost.
        if unfinished and not self.broken:
            yield unfinished


def _parquet_rows(path: Path, clause: str = "") -> Iterator[bytes]:
    """The rows as JSON, in their order; a few at a time, so that a file of any size takes little memory."""
    import duckdb

    if not is_utf8(path.resolve()):
        raise InputError("is a Parquet file whose path is not UTF-8", hint="rename it, or its folder")
    # By its very name: DuckDB would read * ? [ as patterns.
    name = re.sub(r"([*?\[])", r"[\1]", str(path.resolve())).replace("'", "''")
    table = f"read_parquet(['{name}'])"
    try:
        with duckdb.connect(":memory:") as connection:
            for setting in ("enable_progress_bar", "autoinstall_known_extensions", "autoload_known_extensions"):
                connection.execute(f"SET {setting} = false")
            connection.execute("SET threads = 1")
            register_store(connection, path)
            connection.execute(f"SET memory_limit = '{_MEMORY_MB}MB'")
            result = connection.execute(f"SELECT CAST(to_json(row) AS VARCHAR) FROM {table} AS row {clause}")
            while rows := result.fetchmany(_FETCH_ROWS):
                for (text,) in rows:
                    yield text.encode("utf-8", "surrogatepass")
    except duckdb.Error as error:
        if is_interrupt(error):
            raise
        if reason := raised_inside(error):
            raise StoreError(f"{path}: {reason[:300]}", hint=HINT) from None
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: duckdb.Error) -> InputError:
    """Why a Parquet file cannot be read. DuckDB's own words are of its insides, and name the path on this machine."""
    import duckdb

    size = len(_PARQUET)
    with open_binary(path) as stream:
        ends = stream.seek(0, os.SEEK_END) > size and stream.seek(-size, os.SEEK_END) >= 0 and stream.read() == _PARQUET
    if not ends:
        hint = "copy or download it again, or have it written again"
        return InputError("begins like a Parquet file, but its end is missing", hint=hint)
    if isinstance(error, duckdb.OutOfMemoryException):
        hint = "write the file again with smaller row groups"
        return InputError(f"is a Parquet file that takes more than {_MEMORY_MB} MB to unpack", hint=hint)
    if isinstance(error, duckdb.NotImplementedException):
        hint = "write the file again with usual types and Snappy or Zstandard compression"
        return InputError("is a Parquet file with something in it that cannot be read here", hint=hint)
    return InputError("is a Parquet file that is damaged", hint="copy or download it again, or have it written again")
